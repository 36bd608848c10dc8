package audit

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"countersign/store"
	"countersign/store/bolt"
)

// withHeads is a store with the signed heads of another store.
type withHeads struct {
	store.Store
	heads []store.Head
}

type withHeadsReader struct {
	store.Reader
	heads []store.Head
}

func (s withHeads) View(ctx context.Context, fn func(store.Reader) error) error {
	return s.Store.View(ctx, func(r store.Reader) error { return fn(withHeadsReader{r, s.heads}) })
}

func (r withHeadsReader) Heads(after uint64, _ int) ([]store.Head, error) {
	return r.heads[after:], nil
}

// A tamperer replaces one record and its entry in the journal, but can't sign the heads again. The history is
// consistent except for the heads' signed roots, so only the comparison of these roots with the journal finds the
// change.
func TestVerifyComparesHeadsWithJournal(t *testing.T) {
	signed := newSealedStore(t)
	signed.head(3)
	var heads []store.Head
	err := signed.db.View(t.Context(), func(r store.Reader) (err error) {
		heads, err = r.Heads(0, 10)
		return err
	})
	if err != nil || len(heads) != 3 {
		t.Fatalf("%d heads, %v", len(heads), err)
	}
	for replaced := range 4 { // 0: no record
		changed := newSealedStore(t)
		for n := range 3 {
			changed.n = n
			if n+1 == replaced {
				changed.n += 10
			}
			changed.head(1)
		}
		report, err := Verify(t.Context(), withHeads{changed.db, heads}, VerifyOptions{Keys: []string{signed.keys[0].Public}, Guard: bolt.Guard})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		report.Write(&out)
		want := fmt.Sprintf("head %d: the journal is not the one that was signed; the change is among its records %d to %d\n", replaced, replaced-1, replaced-1)
		if replaced == 0 {
			want = "the history is whole"
		}
		if report.Faults() != min(replaced, 1) || !strings.Contains(out.String(), want) {
			t.Errorf("record %d was replaced: %d faults, want %q:\n%s", replaced, report.Faults(), want, out.String())
		}
	}
}
