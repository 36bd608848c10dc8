package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/store"
)

// If arbitrary bytes overwrite parts of the beginning of a page, reading the file does not panic and does not run
// forever. At least half of the cases are noticed.
func TestDamagedPages(t *testing.T) {
	testkit.SkipIfShort(t)
	whole := filepath.Join(t.TempDir(), "whole.db")
	fillPages(t, whole)
	file, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	random := rand.New(rand.NewPCG(1, 2))
	damaged := 0
	cases := 40
	if testkit.CI() {
		cases = 150
	}
	for i := range cases {
		broken := bytes.Clone(file)
		at := (2 + random.IntN(len(file)/page-2)) * page // after the meta pages
		what := fmt.Sprintf("damage %d: page %d", i, at/page)
		for range 1 + random.IntN(4) {
			binary.LittleEndian.PutUint16(broken[at+random.IntN(40)*2:], uint16(random.Uint32()))
		}
		path := filepath.Join(t.TempDir(), "broken.db")
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path, Options{})
		told := 0
		if err == nil {
			told = len(s.Damage())
			err = errors.Join(s.Check(t.Context()), s.View(t.Context(), func(r store.Reader) error {
				return r.EachAuditRow(func(approvers.AuditRow) error { return nil })
			}))
			if closed := s.Close(); closed != nil {
				t.Errorf("%s: close: %v", what, closed)
			}
		}
		if err != nil || told > 0 {
			damaged++
		}
		if errors.Is(err, store.ErrForeign) && !strings.Contains(err.Error(), "Put a backup in its place") {
			t.Errorf("%s: %v; want an error that says what to do", what, err)
		}
	}
	t.Logf("damaged=%d of %d, the others in pages that are free or in bytes that nothing depends on", damaged, cases)
	if damaged < cases/2 {
		t.Error("too few were noticed: this test shows nothing")
	}
}

func fillPages(t *testing.T, path string) {
	t.Helper()
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		err := s.Update(t.Context(), func(tx store.Tx) error {
			for j := range 100 {
				chain := fmt.Sprintf("req_%d_%d", i, j)
				facts := map[string]string{"digest": Noise(160)}
				if err := tx.AppendAudit(approvers.AuditRecord{Chain: chain, Kind: approvers.AuditProposed, Facts: facts}.Link(approvers.AuditRecord{}), nil); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Check(t.Context()), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// EachAuditRow reads two buckets at the same time. If a page of either is damaged, EachAuditRow returns an error.
func TestDamagedPageOfHistory(t *testing.T) {
	examineUpTo(t, 1)
	whole := filepath.Join(t.TempDir(), "whole.db")
	file := wreckable(t)
	if err := os.WriteFile(whole, file, 0o600); err != nil {
		t.Fatal(err)
	}
	on := pagesOf(t, whole)
	for _, in := range []bucket{audit, auditPayloads} {
		for _, key := range [][]byte{number(text(nil, "id0"), 1), number(text(nil, "id9"), 1)} { // on the first page, and on a later one
			row := in.String() + " " + string(key)
			broken := bytes.Clone(file)
			binary.LittleEndian.PutUint16(broken[on[row][0]*4096+8:], pageFreelist)
			path := filepath.Join(t.TempDir(), "broken.db")
			if err := os.WriteFile(path, broken, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(path, Options{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			err = s.View(t.Context(), func(r store.Reader) error { return r.EachAuditRow(func(approvers.AuditRow) error { return nil }) })
			if !errors.Is(err, store.ErrDamaged) {
				t.Errorf("%q: got error %v, want ErrDamaged", row, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Guard re-raises a panic that damage of the file did not cause.
func TestGuardIsForTheFileOnly(t *testing.T) {
	defer func() {
		if p := recover(); p != "mine" {
			t.Errorf("recovered %v", p)
		}
	}()
	_ = Guard(func() error { panic("mine") })
	t.Error("the panic was taken for a damaged file")
}

// The test empties the file while the store is open. Reading the number of the file's last transaction does not crash
// the process.
func TestStandsOfEmptiedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := s.writer.stands(); n == math.MaxInt || n < 1 {
		t.Errorf("the file holds transaction %d", n)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if n := s.writer.stands(); n != math.MaxInt {
		t.Errorf("the emptied file holds transaction %d", n)
	}
	_ = s.Close() // a clean close is not possible
}
