package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers"
	"countersign/store"
	"countersign/store/record"
)

// appended appends records to a chain, each linked to the head that the transaction reads.
func appended(tx store.Tx, chain string, n int) error {
	for range n {
		head, err := tx.AuditHead(chain)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		facts := map[string]string{"words": "so many that a page holds no more than a few records of them"}
		if err := tx.AppendAudit(approvers.AuditRecord{Chain: chain, Kind: approvers.AuditDecided, Facts: facts}.Link(head), nil); err != nil {
			return err
		}
	}
	return nil
}

// The test removes chains that fill whole pages. The test keeps one chain, whose key is between the keys of the removed
// chains. After each removal, the test reads the head of the kept chain, and appends a record to it. The test does this
// in one closure, and in many closures that share a commit. In one case, some of the closures fail.
func TestHeadsAfterRemovedChains(t *testing.T) {
	const chains, records = 40, 9
	mine := errors.New("mine")
	name := func(i int) string { return fmt.Sprintf("%c%02d", "ax"[i%2], i) } // sorts before or after "installation", the name of the chain that stays
	filled := func(t *testing.T) *Store {
		s := opened(t)
		err := s.Update(t.Context(), func(tx store.Tx) error {
			err := appended(tx, "installation", 1)
			for i := range chains {
				err = errors.Join(err, appended(tx, name(i), records))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	prune := func(tx store.Tx, i int) error {
		if n, err := tx.PruneChain(name(i)); err != nil || n != records {
			return fmt.Errorf("%d records of %s were removed: %w", n, name(i), err)
		}
		if err := appended(tx, "installation", 1); err != nil {
			return err
		}
		if i%4 == 3 {
			return mine
		}
		return nil
	}
	want := func(t *testing.T, s *Store, left, records int) {
		t.Helper()
		err := s.View(t.Context(), func(r store.Reader) error {
			all, err := r.AuditChains("", 2*chains)
			if len(all) != left+1 {
				t.Errorf("there are the chains %v; want %d and the one that stays", all, left)
			}
			list, err2 := r.Audit("installation")
			if len(list) != records {
				t.Errorf("the chain that stays has %d records; want %d", len(list), records)
			}
			return errors.Join(err, err2)
		})
		if err := errors.Join(err, s.Check(t.Context())); err != nil {
			t.Error(err)
		}
	}
	t.Run("a chain that is all there is", func(t *testing.T) {
		s := opened(t)
		err := s.Update(t.Context(), func(tx store.Tx) error { return appended(tx, "x", 9*records) })
		if err != nil {
			t.Fatal(err)
		}
		err = s.Update(t.Context(), func(tx store.Tx) error {
			_, err := tx.PruneChain("x")
			return errors.Join(err, appended(tx, "installation", 1)) // in an earlier version of the store, this call never returned
		})
		if err != nil {
			t.Fatal(err)
		}
		want(t, s, 0, 1)
	})
	t.Run("one closure", func(t *testing.T) {
		s := filled(t)
		err := s.Update(t.Context(), func(tx store.Tx) (err error) {
			for i := range chains {
				if err = prune(tx, i); err != nil && !errors.Is(err, mine) {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want(t, s, 0, 1+chains)
	})
	t.Run("closures that share a commit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := filled(t)
			before := s.commits(t)
			errs, release := busy(t, s, chains, func(i int) (context.Context, func(store.Tx) error) {
				return t.Context(), func(tx store.Tx) error { return prune(tx, i) }
			})
			release()
			for i, err := range errs[:chains] {
				if (i%4 == 3) != errors.Is(err, mine) || (i%4 != 3 && err != nil) {
					t.Errorf("closure %d: %v", i, err)
				}
			}
			if n := s.commits(t) - before; n != 1 {
				t.Errorf("%d commits, want 1", n)
			}
			want(t, s, chains/4, 1+chains*3/4)
			s.Close()
		})
	})
}

// If a closure fails, the store restores the rows that the closure removed. The store restores these rows even if the
// closure has put other rows under the same keys.
func TestRemovedAndWrittenAnew(t *testing.T) {
	s := opened(t)
	mine := errors.New("mine")
	put := func(tx store.Tx, lane string) error {
		return tx.SetTimer(store.Timer{Kind: store.TimerRun, Ref: "x", Lane: lane})
	}
	clear := func(tx store.Tx) error { return tx.ClearTimer(store.TimerRun, "x") }
	want := func(lane string) {
		t.Helper()
		err := s.View(t.Context(), func(r store.Reader) error {
			x, err := r.Timer(store.TimerRun, "x")
			if lane == "" && errors.Is(err, store.ErrNotFound) {
				return nil
			}
			if x.Lane != lane {
				t.Errorf("the timer is %q; want %q", x.Lane, lane)
			}
			return err
		})
		if err := errors.Join(err, s.Check(t.Context())); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		name string
		do   func(tx store.Tx) error
		want string
	}{
		{"written", func(tx store.Tx) error { return put(tx, "1") }, "1"},
		{"removed, and the closure fails", func(tx store.Tx) error { return errors.Join(clear(tx), mine) }, "1"},
		{"removed, written, and the closure fails", func(tx store.Tx) error { return errors.Join(clear(tx), put(tx, "2"), mine) }, "1"},
		{"removed, written, removed, and the closure fails", func(tx store.Tx) error { return errors.Join(clear(tx), put(tx, "2"), clear(tx), mine) }, "1"},
		{"written, removed, and the closure fails", func(tx store.Tx) error { return errors.Join(put(tx, "2"), clear(tx), mine) }, "1"},
		{"removed and written", func(tx store.Tx) error { return errors.Join(clear(tx), put(tx, "3")) }, "3"},
		{"removed, written and removed", func(tx store.Tx) error { return errors.Join(clear(tx), put(tx, "4"), clear(tx)) }, ""},
		{"written and removed", func(tx store.Tx) error { return errors.Join(put(tx, "5"), clear(tx)) }, ""},
		{"written, and the closure fails", func(tx store.Tx) error { return errors.Join(put(tx, "6"), mine) }, ""},
	} {
		if err := s.Update(t.Context(), c.do); err != nil && !errors.Is(err, mine) {
			t.Errorf("%s: %v", c.name, err)
		}
		want(c.want)
	}
}

// A commit may make the file grow while a new reader checks the file's size. The reader must not report the file as
// truncated.
func TestGrowsDuringALook(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "store.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := s.identity
	id.stat = func() (fs.FileInfo, error) {
		info, err := id.file.Stat()
		id.size.Store(info.Size() + 1) // the function committed does the same after the file has grown
		return info, err
	}
	if err := id.whole(); err != nil {
		t.Errorf("a file that grew is taken for one that was cut off: %v", err)
	}
	if err := id.whole(); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a file that is shorter than it was: %v, want ErrDamaged", err)
	}
}

// A row of the bucket timers is damaged if the timer is not set, or if the timer has another due time. Lists of due
// timers must not return such a row repeatedly.
func TestStrayTimers(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "store.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	due := time.Unix(1000, 0).UTC()
	set := store.Timer{Kind: store.TimerRun, Ref: "exec_set", Due: due}
	early, gone := set, store.Timer{Kind: store.TimerRun, Ref: "exec_gone", Due: due}
	early.Due = due.Add(-time.Minute)
	err = s.Update(t.Context(), func(x store.Tx) error {
		rows := x.(*tx).rows
		for _, stray := range []store.Timer{early, gone} {
			value, err := record.Append(nil, &stray)
			if err == nil {
				err = rows.set(timers, timerKey(stray.Kind, moment(nil, stray.Due), stray.Ref), nil, value)
			}
			if err != nil {
				return err
			}
		}
		return x.SetTimer(set)
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.View(t.Context(), func(r store.Reader) error {
		listed, err1 := r.Timers(store.TimerRun, 10)
		now, err2 := r.TimersIn(store.AllShares, store.TimerRun, due, 10)
		for _, got := range [][]store.Timer{listed, now} {
			if len(got) != 1 || got[0].Ref != set.Ref || !got[0].Due.Equal(due) {
				t.Errorf("got %v, want only %v", got, set)
			}
		}
		return errors.Join(err1, err2)
	})
	if err != nil {
		t.Fatal(err)
	}
	if found := s.Damage(); len(found) != 2 {
		t.Errorf("it tells of %v, want both strays", found)
	}
}
