package bolt

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"countersign/store"
)

// The test writes rows without a time to set_aside, as SetAside, the repair of a file and earlier programs do. For such
// a row, EraseSetAside counts the time from the call that first finds the row. Each call handles at most limit rows,
// also if a row is damaged a second time.
func TestEraseSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := mustOpen(t, path)
	put := func(keys ...string) {
		t.Helper()
		err := s.Update(t.Context(), func(x store.Tx) error {
			var errs []error
			for _, k := range keys {
				errs = append(errs, x.(*tx).rows.set(setAside, []byte(k), nil, []byte("value of "+k)))
			}
			return errors.Join(errs...)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	day := func(n int) time.Time { return benchTime.AddDate(0, 0, n) }
	erase := func(now, before, limit, erased int, done bool) {
		t.Helper()
		err := s.Update(t.Context(), func(x store.Tx) error {
			n, over, err := x.(store.SetAside).EraseSetAside(day(now), day(before), limit)
			if n != erased || over != done {
				t.Errorf("day %d: %d rows from before day %d are erased, done: %v; want %d, %v", now, n, before, over, erased, done)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	rows := func() (values []string) {
		t.Helper()
		err := s.View(t.Context(), func(r store.Reader) error {
			for _, v := range r.(*reader).rows.asStored(setAside, nil) {
				values = append(values, string(v.value))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(values)
		return values
	}
	want := func(keys ...string) {
		t.Helper()
		for i, k := range keys {
			keys[i] = "value of " + k
		}
		if got := rows(); !slices.Equal(got, keys) {
			t.Errorf("set aside are %q; want %q", got, keys)
		}
	}
	a, b, long := string(text(nil, "requests"))+"a", string(text(nil, "timers"))+"b\x00", string(text(nil, "calls"))+string(make([]byte, bbolt.MaxKeySize-10))
	put(a, b)
	erase(0, -10, 1, 0, false) // the call adds a time to one row
	erase(1, -9, 10, 0, true)  // the call adds a time to the other row
	want(a, b)
	put(long)
	erase(2, -8, 10, 0, true)
	want(slices.Sorted(slices.Values([]string{a, b, long}))...)
	err := s.Update(t.Context(), func(x store.Tx) error {
		n, _, err := x.(store.SetAside).EraseSetAside(day(20), day(10), 10)
		return errors.Join(err, fmt.Errorf("%d rows are erased, and the transaction is undone", n))
	})
	if err == nil || len(rows()) != 3 {
		t.Errorf("after a transaction that was undone (%v), %d rows are left", err, len(rows()))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	db, err := bbolt.Open(path, 0o600, nil) // one row is damaged again
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		k, v := tx.Bucket([]byte("set_aside")).Cursor().First()
		v = slices.Clone(v)
		v[0] ^= 1
		return tx.Bucket([]byte("set_aside")).Put(slices.Clone(k), v)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, path)
	erase(10, 0, 10, 0, true)
	erase(11, 1, 10, 1, true)
	erase(12, 2, 10, 1, true)
	erase(13, 3, 10, 1, true)
	want()
	for _, x := range s.Damage() {
		if x.Bucket == setAside.String() {
			t.Errorf("an erased row is still reported as damaged: %v", x)
		}
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
