package approvers_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"countersign/approvers"
)

// Stored hashes must stay valid forever. The hashes in this test are those of records that the first version of the
// program wrote.
func TestHashesStayWhatTheyWere(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 1000, time.UTC)
	p := approvers.AuditPayload{Chain: "req_1", Seq: 1, Salt: []byte("0123456789abcdef"), Body: []byte(`{"amount":"<49.99>"}`)}
	if want := "00399b1f2ce08bb128809bd70316a5dfbc2b5ffa5e1f956508d839cdc0bc415a"; p.Hash() != want {
		t.Errorf("the payload's hash is %s, want %s", p.Hash(), want)
	}
	facts := map[string]string{"tool": "issue_refund", "note": "<é>&\u2028\"\\", "": ""}
	a := approvers.AuditRecord{Chain: "req_1", At: at, Kind: approvers.AuditProposed, Facts: facts, PayloadHash: p.Hash()}.Link(approvers.AuditRecord{})
	if want := "af9fa14d9d97e3a9a97594643f7c422cf54410cad7a3956438c4775fbf326d97"; a.Hash != want {
		t.Errorf("the first record's hash is %s, want %s", a.Hash, want)
	}
	b := approvers.AuditRecord{Chain: "req_1", At: at.Add(time.Second), Kind: approvers.AuditDecided, Actor: "T1/U1"}.Link(a)
	if want := "7687437e0695caa9c7ede23091ce71f24b8d8dfd2cb487c71150656cb1e3e82c"; b.Hash != want {
		t.Errorf("the second record's hash is %s, want %s", b.Hash, want)
	}
}

// drawText draws texts that could cause errors in the JSON encoding, or in the splitting of bytes into parts.
func drawText(t *rapid.T, label string) string {
	return rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("\"\\,:{}<>&\x00\x7f\u2028é n"))), rapid.SampledFrom([]string{"", "tool", "null"})).Draw(t, label)
}

func drawRecord(t *rapid.T) approvers.AuditRecord {
	a := approvers.AuditRecord{
		Chain: drawText(t, "chain"), At: time.UnixMicro(rapid.Int64().Draw(t, "at")), Kind: approvers.AuditKind(drawText(t, "kind")),
		Actor: approvers.PersonID(drawText(t, "actor")), PayloadHash: drawText(t, "payload hash"),
	}
	if rapid.Bool().Draw(t, "has facts") {
		a.Facts = map[string]string{}
		for range rapid.IntRange(0, 3).Draw(t, "facts") {
			a.Facts[drawText(t, "name")] = drawText(t, "value")
		}
	}
	prev := approvers.AuditRecord{Seq: rapid.Uint64Max(1<<40).Draw(t, "before"), Hash: drawText(t, "prev")}
	return a.Link(prev)
}

// A record and a payload can be parsed from their bytes. The facts have the same encoding as in encoding/json.
func TestBytesSayEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawRecord(t)
		got, err := approvers.ParseAuditRecord(a.Bytes())
		if err != nil || !reflect.DeepEqual(got, a) {
			t.Fatalf("%+v was read as %+v (%v)", a, got, err)
		}
		facts, err := json.Marshal(a.Facts)
		if err != nil {
			t.Fatal(err)
		}
		if !contains(a.Bytes(), facts) {
			t.Fatalf("the facts %s are not in %q", facts, a.Bytes())
		}
		p := approvers.AuditPayload{Chain: a.Chain, Seq: a.Seq, Salt: []byte(drawText(t, "salt")), Body: []byte(drawText(t, "body"))}
		read, err := approvers.ParseAuditPayload(p.Chain, p.Seq, p.Bytes())
		if err != nil || !reflect.DeepEqual(read, p) {
			t.Fatalf("%+v was read as %+v (%v)", p, read, err)
		}
	})
}

func contains(b, part []byte) bool {
	for i := range b {
		if len(b)-i >= len(part) && string(b[i:i+len(part)]) == string(part) {
			return true
		}
	}
	return false
}

// For any bytes, ParseAuditRecord returns a record or ErrDamaged. The record's hash is the hash of these bytes, and the
// result of the record's method Bytes can also be parsed.
func FuzzParseAuditRecord(f *testing.F) {
	f.Add(approvers.AuditRecord{Chain: "c", Facts: map[string]string{"a": "b", "c": "<d>"}}.Link(approvers.AuditRecord{}).Bytes())
	f.Add(approvers.AuditRecord{Chain: "c", Facts: map[string]string{"a": "b", "c": "d"}}.Link(approvers.AuditRecord{}).Bytes())
	f.Add(approvers.AuditRecord{}.Bytes())
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := approvers.ParseAuditRecord(b)
		if err != nil {
			if !errors.Is(err, approvers.ErrDamaged) {
				t.Errorf("got error %v, want ErrDamaged", err)
			}
			return
		}
		if a.Hash != approvers.SumOf(b).String() {
			t.Error("the hash is not that of the bytes")
		}
		if _, err := approvers.ParseAuditRecord(a.Bytes()); err != nil {
			t.Errorf("%q was read as %+v, whose bytes can't be read: %v", b, a, err)
		}
	})
}

func TestErasureAndPruningAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := approvers.Erasure{Seqs: rapid.SliceOfNDistinct(rapid.Uint64Range(1, 40), 1, 20, rapid.ID).Draw(t, "seqs")}
		a := approvers.AuditRecord{Chain: "c", Seq: 41, Facts: e.Facts()}
		got, err := approvers.ErasureOf(a)
		if err != nil || len(got.Seqs) != len(e.Seqs) {
			t.Fatalf("%v was read as %v (%v)", e, got, err)
		}
		for _, seq := range e.Seqs {
			found := false
			for _, s := range got.Seqs {
				found = found || s == seq
			}
			if !found {
				t.Fatalf("%v was read as %v", e, got)
			}
		}
	})
	if got := (approvers.Erasure{Seqs: []uint64{9, 1, 3, 2, 9}}).Facts()["records"]; got != "1-3,9" {
		t.Errorf("the records are written as %q", got)
	}
	for _, text := range []string{"0", "1-", "-1", "3-1", "1,,2", "41", "1-41", "x", "1-18446744073709551615"} {
		a := approvers.AuditRecord{Chain: "c", Seq: 41, Facts: map[string]string{"records": text}}
		if e, err := approvers.ErasureOf(a); !errors.Is(err, approvers.ErrFacts) {
			t.Errorf("%q was read as %v (%v)", text, e, err)
		}
	}
	p := approvers.Pruning{Chain: "c", Records: 7, Head: "h"}
	if got, err := approvers.PruningOf(approvers.AuditRecord{Facts: p.Facts()}); err != nil || got != p {
		t.Errorf("%+v was read as %+v (%v)", p, got, err)
	}
	for _, wrong := range []approvers.Pruning{{Records: 7, Head: "h"}, {Chain: "c", Head: "h"}, {Chain: "c", Records: 7}} {
		if _, err := approvers.PruningOf(approvers.AuditRecord{Facts: wrong.Facts()}); !errors.Is(err, approvers.ErrFacts) {
			t.Errorf("%+v was read: %v", wrong, err)
		}
	}
}

// Check accepts valid rows, and rows whose record is lost. Check rejects every row that was changed, was moved, or does
// not follow the previous row.
func TestRowsAreChecked(t *testing.T) {
	payload := approvers.AuditPayload{Salt: []byte("salt"), Body: []byte("body")}
	first := approvers.AuditRecord{Chain: "c", Kind: approvers.AuditShown, PayloadHash: payload.Hash()}.Link(approvers.AuditRecord{})
	second := approvers.AuditRecord{Chain: "c", Kind: approvers.AuditErased}.Link(first)
	other := approvers.AuditRecord{Chain: "d"}.Link(approvers.AuditRecord{})
	row := func(a approvers.AuditRecord, payload []byte) approvers.AuditRow {
		return approvers.AuditRow{Chain: a.Chain, Seq: a.Seq, Sum: approvers.SumOf(a.Bytes()), Record: a.Bytes(), Payload: payload}
	}
	one, two := row(first, payload.Bytes()), row(second, nil)
	for _, fine := range []struct {
		prev, row approvers.AuditRow
		want      approvers.Checked
	}{
		{approvers.AuditRow{}, one, approvers.Checked{Kind: approvers.AuditShown}},
		{row(other, nil), one, approvers.Checked{Kind: approvers.AuditShown}},
		{approvers.AuditRow{}, row(first, nil), approvers.Checked{Kind: approvers.AuditShown, Missing: true}},
		{one, two, approvers.Checked{Kind: approvers.AuditErased}},
	} {
		if got, err := fine.row.Check(fine.prev); err != nil || got != fine.want {
			t.Errorf("%s %d: %+v, %v, want %+v", fine.row.Chain, fine.row.Seq, got, err, fine.want)
		}
	}
	changed := func(x approvers.AuditRow, change func(*approvers.AuditRow)) approvers.AuditRow {
		x.Record, x.Payload = append([]byte{}, x.Record...), append([]byte(nil), x.Payload...)
		change(&x)
		return x
	}
	relinked := first
	relinked.Actor = "T/forged"
	relinked = relinked.Link(approvers.AuditRecord{})
	for what, x := range map[string][2]approvers.AuditRow{
		"the first is missing":            {{}, two},
		"the first of another":            {row(other, nil), two},
		"one that is there twice":         {one, one},
		"a forged record before it":       {row(relinked, payload.Bytes()), two},
		"only a payload":                  {{}, {Chain: "c", Seq: 1, Payload: payload.Bytes()}},
		"a changed payload":               {{}, row(first, []byte("other"))},
		"a payload that it never had":     {one, row(second, payload.Bytes())},
		"a place of another chain":        {{}, changed(one, func(x *approvers.AuditRow) { x.Chain = "e" })},
		"a place of another number":       {two, changed(one, func(x *approvers.AuditRow) { x.Seq = 3 })},
		"another hash":                    {{}, changed(one, func(x *approvers.AuditRow) { x.Sum[7] ^= 1 })},
		"a valid hash over invalid bytes": {{}, changed(one, func(x *approvers.AuditRow) { x.Record = []byte("x"); x.Sum = approvers.SumOf(x.Record) })},
		"bytes after the end": {{}, changed(one, func(x *approvers.AuditRow) {
			x.Record = append(x.Record, 0)
			x.Sum = approvers.SumOf(x.Record)
		})},
	} {
		if _, err := x[1].Check(x[0]); err == nil {
			t.Errorf("%s: not found", what)
		}
	}
	lost := changed(one, func(x *approvers.AuditRow) { x.Record = []byte{} })
	if c, err := lost.Check(approvers.AuditRow{}); !c.Lost || err != nil {
		t.Errorf("a lost record: %+v, %v", c, err)
	}
	if _, err := two.Check(lost); err != nil {
		t.Errorf("after a lost record: %v", err)
	}
	if _, err := two.Check(changed(lost, func(x *approvers.AuditRow) { x.Sum[7] ^= 1 })); err == nil {
		t.Error("after a lost record with another hash: not found")
	}
	for i := range one.Record {
		x := changed(one, func(x *approvers.AuditRow) { x.Record[i] ^= 1 })
		if _, err := x.Check(approvers.AuditRow{}); err == nil {
			t.Errorf("byte %d was flipped: not found", i)
		}
	}
}
