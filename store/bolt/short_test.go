package bolt

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"countersign/approvers"
)

// Stored rows contain the codes of the phrases. So no phrase and no code may change.
func TestPhrasesStay(t *testing.T) {
	const these = "7e99b9a83cc09af6369a8bbdea189091b7ced120576f94ea4ae4fcf249122a80"
	if got := approvers.SumOf([]byte(strings.Join(phrases[:122], "\n"))).String(); got != these {
		t.Errorf("the phrases of earlier programs have changed: %s", got)
	}
	if most := 256 - codePhrase; len(phrases) > most {
		t.Errorf("%d phrases have a code each; there are %d codes", len(phrases), most)
	}
}

// shortRecord returns an audit record like the record of a decision.
func shortRecord(t testing.TB) []byte {
	t.Helper()
	digest := approvers.SumOf([]byte("digest")).String()
	a := approvers.AuditRecord{
		Chain: "req_06H1K0M75885SOSU61QS3356QG", At: benchTime, Kind: approvers.AuditDecided, Actor: "T0001/U0002",
		Facts: map[string]string{
			"channel": "C0002", "digest": digest, "kind": "approve", "message": "1795732719.416816", "received": "2026-11-26T22:38:39.423865Z",
			"rendering": approvers.SumOf([]byte("rendering")).String(), "role": "team-lead", "shown": digest, "took": "5", "execution": "exec_06H1K0M7590NG2181AP2E1N4KS",
		},
		PayloadHash: approvers.SumOf([]byte("payload")).String(),
	}
	return a.Link(approvers.AuditRecord{Chain: a.Chain, Seq: 2, Hash: approvers.SumOf([]byte("before")).String()}).Bytes()
}

// The short form of a record has less than half of the record's size. Any bytes can be encoded and decoded without a
// change.
func TestShort(t *testing.T) {
	rec := shortRecord(t)
	if got := shorten(nil, rec); 2*len(got) > len(rec) {
		t.Errorf("%d bytes are stored in %d: %q", len(rec), len(got), got)
	}
	rapid.Check(t, func(t *rapid.T) {
		hash := approvers.SumOf([]byte(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "hashed"))).String()
		piece := rapid.OneOf(
			rapid.SampledFrom(append([]string{hash, hash[1:], strings.ToUpper(hash), "06H1K0M75885SOSU61QS3356QG", "06H1K0M75885SOSU61QS3356QH", "ZZZZ"}, phrases...)),
			rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 90), func(b []byte) string { return string(b) }),
		)
		rec := []byte(strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "record"), ""))
		short := shorten([]byte("before"), rec)
		got, err := lengthen([]byte("kept"), short[len("before"):])
		if err != nil || string(got) != "kept"+string(rec) {
			t.Fatalf("%q is read as %q, %v", rec, got, err)
		}
		damaged := bytes.Clone(short[len("before"):])
		damaged[rapid.IntRange(0, len(damaged)-1).Draw(t, "place")] ^= rapid.ByteMin(1).Draw(t, "bits")
		if got, err := lengthen(nil, damaged[:rapid.IntRange(0, len(damaged)).Draw(t, "length")]); err != nil && got != nil {
			t.Fatalf("damaged bytes are read as %q, with the error %v", got, err)
		}
	})
}

func BenchmarkShort(b *testing.B) {
	rec := shortRecord(b)
	short := shorten(nil, rec)
	for _, x := range []struct {
		name string
		do   func()
	}{
		{"shorten", func() { shorten(make([]byte, 0, len(rec)), rec) }},
		{"lengthen", func() { _, _ = lengthen(nil, short) }},
		{"hash", func() { approvers.SumOf(rec) }},
		{"zstd", func() { quick.EncodeAll(rec, nil) }},
	} {
		b.Run(fmt.Sprintf("%s of %d bytes in %d", x.name, len(rec), len(short)), func(b *testing.B) {
			for b.Loop() {
				x.do()
			}
		})
	}
}
