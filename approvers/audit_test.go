package approvers_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
)

// chain makes n linked records.
func chain(id string, n int) []approvers.AuditRecord {
	var out []approvers.AuditRecord
	var head approvers.AuditRecord
	for i := range n {
		head = approvers.AuditRecord{
			Chain: id, At: start.Add(time.Duration(i) * time.Second), Kind: approvers.AuditDecided, Actor: onLead.ID,
			Facts: map[string]string{"kind": "approve", "n": fmt.Sprint(i)}, PayloadHash: "payload",
		}.Link(head)
		out = append(out, head)
	}
	return out
}

func TestVerifyChainTakesWhatLinkMade(t *testing.T) {
	for n := range 5 {
		if err := approvers.VerifyChain(chain("req_1", n)); err != nil {
			t.Errorf("%d records: %v", n, err)
		}
	}
}

// TestVerifyChainFindsAnyFlip changes every field of every record.
func TestVerifyChainFindsAnyFlip(t *testing.T) {
	flips := map[string]func(*approvers.AuditRecord){
		"chain":    func(a *approvers.AuditRecord) { a.Chain = "req_2" },
		"seq":      func(a *approvers.AuditRecord) { a.Seq++ },
		"at":       func(a *approvers.AuditRecord) { a.At = a.At.Add(time.Microsecond) },
		"kind":     func(a *approvers.AuditRecord) { a.Kind = approvers.AuditDenied },
		"actor":    func(a *approvers.AuditRecord) { a.Actor = asker.ID },
		"no actor": func(a *approvers.AuditRecord) { a.Actor = "" },
		"a fact":   func(a *approvers.AuditRecord) { a.Facts = map[string]string{"kind": "reject", "n": a.Facts["n"]} },
		"a new fact": func(a *approvers.AuditRecord) {
			a.Facts = map[string]string{"kind": "approve", "n": a.Facts["n"], "x": ""}
		},
		"no facts":     func(a *approvers.AuditRecord) { a.Facts = nil },
		"payload hash": func(a *approvers.AuditRecord) { a.PayloadHash = "other" },
		"prev":         func(a *approvers.AuditRecord) { a.Prev = "other" },
		"hash":         func(a *approvers.AuditRecord) { a.Hash = "other" },
		// The border between two fields is moved: the concatenated bytes are the same, but the record is different.
		"border": func(a *approvers.AuditRecord) { a.Kind, a.Actor = a.Kind+approvers.AuditKind(a.Actor[:1]), a.Actor[1:] },
	}
	for name, flip := range flips {
		for i := range 3 {
			records := chain("req_1", 3)
			flip(&records[i])
			if approvers.VerifyChain(records) == nil {
				t.Errorf("%s of record %d: not found", name, i+1)
			}
		}
	}
}

func TestVerifyChainFindsMissingAndMovedRecords(t *testing.T) {
	whole := chain("req_1", 6)
	other := chain("req_2", 6)
	tests := map[string][]approvers.AuditRecord{
		"the first is missing":     slices.Clone(whole[1:]),
		"one is missing":           slices.Delete(slices.Clone(whole), 2, 3),
		"two are missing":          slices.Delete(slices.Clone(whole), 2, 4),
		"two changed places":       {whole[0], whole[2], whole[1], whole[3]},
		"one is there twice":       {whole[0], whole[1], whole[1], whole[2]},
		"backwards":                {whole[2], whole[1], whole[0]},
		"another chain's record":   {whole[0], other[1], whole[2]},
		"another chain's tail":     {whole[0], whole[1], other[2], other[3]},
		"a record is put in front": append([]approvers.AuditRecord{{Chain: "req_1"}}, whole...),
	}
	for name, records := range tests {
		if approvers.VerifyChain(records) == nil {
			t.Errorf("%s: not found", name)
		}
	}
	// Renumbering after a deletion is detected, because each hash covers the record's number and the previous hash.
	cut := slices.Delete(slices.Clone(whole), 2, 3)
	for i := range cut {
		cut[i].Seq = uint64(i) + 1
	}
	if approvers.VerifyChain(cut) == nil {
		t.Error("a deletion with new numbers: not found")
	}
	// A forged record is also detected if the next record names the forged record's hash.
	forged := slices.Clone(whole)
	forged[2].Actor = asker.ID
	forged[2] = forged[2].Link(forged[1])
	forged[3].Prev = forged[2].Hash
	if approvers.VerifyChain(forged) == nil {
		t.Error("a forged record with a successor that points at it: not found")
	}
}

// TestVerifyChainKnowsItsLimits documents two manipulations that a chain alone can't detect. Somebody may cut off the
// end of the chain, or replace the whole chain by a new one. Signed heads outside of the store detect both
// manipulations.
func TestVerifyChainKnowsItsLimits(t *testing.T) {
	if err := approvers.VerifyChain(chain("req_1", 6)[:3]); err != nil {
		t.Errorf("want no finding for a chain whose end was cut off; got %v", err)
	}
	forged := chain("req_1", 3)
	forged[1].Actor = asker.ID
	for i := 1; i < len(forged); i++ {
		forged[i] = forged[i].Link(forged[i-1])
	}
	if err := approvers.VerifyChain(forged); err != nil {
		t.Errorf("want no finding for a chain that was re-created; got %v", err)
	}
}

// TestLinkedRecordsSurviveJSON checks that a record can be verified after a backend has stored and read the record.
func TestLinkedRecordsSurviveJSON(t *testing.T) {
	tests := map[string]approvers.AuditRecord{
		"plain":               {Facts: map[string]string{"a": "b"}},
		"no facts":            {},
		"empty facts":         {Facts: map[string]string{}},
		"markup":              {Facts: map[string]string{"a": "<b>&\u2028"}},
		"bytes that are none": {Facts: map[string]string{"tool": "a\xffb", "k\xff": "v"}},
		"a local time":        {At: time.Date(2026, 3, 2, 9, 0, 0, 123456789, time.FixedZone("x", 3600))},
	}
	for name, rec := range tests {
		rec.Chain, rec.Kind = "req_1", approvers.AuditProposed
		raw, err := json.Marshal(rec.Link(approvers.AuditRecord{}))
		if err != nil {
			t.Fatal(err)
		}
		var read approvers.AuditRecord
		if err := json.Unmarshal(raw, &read); err != nil {
			t.Fatal(err)
		}
		if err := approvers.VerifyChain([]approvers.AuditRecord{read}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPayloadHash(t *testing.T) {
	p := approvers.AuditPayload{Chain: "req_1", Seq: 1, Salt: []byte("0123456789abcdef"), Body: []byte("body")}
	moved := p
	moved.Salt, moved.Body = []byte("0123456789abcdefb"), []byte("ody")
	salted := p
	salted.Salt = []byte("fedcba9876543210")
	if p.Hash() == moved.Hash() {
		t.Error("moving the border between salt and body keeps the hash")
	}
	if p.Hash() == salted.Hash() {
		t.Error("another salt gives the same hash")
	}
}

func TestDigest(t *testing.T) {
	base := approvers.Digest("exec_1", "tool", "hash", []byte(`{"a":1}`))
	for name, other := range map[string]string{
		"execution": approvers.Digest("exec_2", "tool", "hash", []byte(`{"a":1}`)),
		"tool":      approvers.Digest("exec_1", "tool2", "hash", []byte(`{"a":1}`)),
		"tool hash": approvers.Digest("exec_1", "tool", "hash2", []byte(`{"a":1}`)),
		"a space":   approvers.Digest("exec_1", "tool", "hash", []byte(`{"a": 1}`)),
		"a border":  approvers.Digest("exec_1t", "ool", "hash", []byte(`{"a":1}`)),
	} {
		if other == base {
			t.Errorf("another %s gives the same digest", name)
		}
	}
	if base != approvers.Digest("exec_1", "tool", "hash", []byte(`{"a":1}`)) {
		t.Error("the digest is not a function of its parts")
	}
}

// TestAuditKindsAreDocumented compares the first table of docs/audit.md with the kinds of audit record.
func TestAuditKindsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| kind | when | facts | payload |\n| --- | --- | --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var documented []string
	for row := range strings.Lines(table) {
		kinds, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " |")
		for kind := range strings.SplitSeq(kinds, ", ") {
			documented = append(documented, strings.Trim(kind, "`"))
		}
	}
	var kinds []string
	for _, kind := range approvers.AuditKinds {
		kinds = append(kinds, string(kind))
	}
	slices.Sort(documented)
	slices.Sort(kinds)
	if !slices.Equal(documented, kinds) {
		t.Errorf("docs/audit.md has rows for\n%s\nthe kinds are\n%s", documented, kinds)
	}
}
