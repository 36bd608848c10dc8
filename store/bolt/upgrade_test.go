package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/store"
)

func renderingAs(surface string, post uint64, body string, shows ...store.Shown) store.Rendering {
	return store.Rendering{Surface: surface, Post: post, Hash: "h", Shows: shows, Body: []byte(body), At: benchTime.Add(time.Microsecond)}
}

// young holds a store to being what aged is after an upgrade.
func young(t *testing.T, s *Store) {
	t.Helper()
	same := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s (-want +got):\n%s", what, cmp.Diff(want, got))
		}
	}
	err := s.View(t.Context(), func(r store.Reader) error {
		var errs []error
		for key, want := range map[string]map[time.Duration]int{
			"auto/search/conv\x001": {-time.Minute: 40, 0: 39, 29 * time.Minute: 10, time.Hour: 0},
			"auto/search/2":         {-time.Microsecond: 2, 0: 0},
			"auto//":                {-2e18: 1, 0: 0},
			"auto/search":           {-2e18: 0},
		} {
			for after, n := range want {
				got, err := r.CountTally(key, benchTime.Add(after))
				same(fmt.Sprintf("%q after %s", key, after), got, n)
				errs = append(errs, err)
			}
		}
		posts, err := r.Renderings("card")
		var want []store.Rendering
		for n := range 30 {
			want = append(want, renderingAs("card", uint64(n+1), strings.Repeat("body", n*100), store.Shown{Request: "req_1", Digest: fmt.Sprint("d", n+1), Whole: true}))
		}
		want = append(want, renderingAs("card", 31, "partly", store.Shown{Request: "req_1", Digest: "d31"}), renderingAs("card", 32, "it was over"))
		same("the card's renderings", posts, want)
		answer, err2 := r.Rendering("answer", 1)
		same("a rendering of no request", answer, renderingAs("answer", 1, "of no request"))
		gone, err3 := r.Rendering("gone", 1)
		same("a rendering of no surface", gone, renderingAs("gone", 1, "of no surface"))
		open, err4 := r.OpenRequests(store.RequestCursor{}, 10)
		same("how many open requests", len(open), 1)
		same("what the request waits for", open[0].Plan.Stages, []approvers.Stage{{Approver: "leads", Quorum: 1}})
		unhandled, err5 := r.Unhandled(benchTime)
		same("something is unhandled", unhandled, true)
		timer, err6 := r.NextTimer(store.TimerExpire)
		same("the timer", timer, store.Timer{Kind: store.TimerExpire, Ref: "req_1", Due: benchTime})
		of, err7 := r.SurfacesOf("card")
		same("how many surfaces", len(of), 1)
		return errors.Join(append(errs, err, err2, err3, err4, err5, err6, err7)...)
	})
	if err := errors.Join(err, s.Check(t.Context())); err != nil {
		t.Error(err)
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		same("its version", string(tx.Bucket(rootBucket).Get(schemaKey)), "2")
		if tx.Bucket(rootBucket).Get(upgradingKey) != nil || tx.Bucket(runsBucket) != nil {
			t.Error("the upgrade is not at its end")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func mustOpen(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// A store of version 1 is upgraded when it is opened, in one transaction if it is not large, and then it is like any other.
func TestUpgrade(t *testing.T) {
	path := oldStore(t, aged)
	before := lastTransaction(t, path)
	s := mustOpen(t, path)
	young(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	after := lastTransaction(t, path)
	if after != before+1 {
		t.Errorf("it took %d transactions, want 1", after-before)
	}
	s = mustOpen(t, path)
	young(t, s)
	err := s.Update(t.Context(), func(tx store.Tx) error {
		n, err := tx.ForgetTallies(benchTime.Add(time.Nanosecond), 100)
		if n != 1 { // what was counted before 1970
			t.Errorf("%d tallies were forgotten, want 1", n)
		}
		return errors.Join(err, tx.PutGrant(approvers.Grant{ID: "g", State: approvers.GrantLive}), tx.PutAbsence(approvers.Absence{Who: "T/U"}))
	})
	if err := errors.Join(err, s.Check(t.Context()), s.Close()); err != nil {
		t.Error(err)
	}
	if now := lastTransaction(t, path); now != after+1 {
		t.Errorf("opening it again wrote to it: %d transactions", now-after-1)
	}
}

func lastTransaction(t *testing.T, path string) (id int) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(func(tx *bbolt.Tx) error { id = tx.ID(); return nil })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return id
}

// An upgrade that takes several transactions is interrupted after each of them: an older program finds a newer store, and the next
// start of this one goes on.
func TestUpgradeThatIsInterrupted(t *testing.T) {
	path := oldStore(t, aged)
	u := upgrade{room: 8 << 10}
	for n := 1; ; n++ {
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		done := false
		err = db.Update(func(tx *bbolt.Tx) (err error) {
			done, err = u.step(tx)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		err = db.View(func(tx *bbolt.Tx) error {
			if version := tx.Bucket(rootBucket).Get(schemaKey); string(version) != "2" {
				t.Errorf("after %d transactions its version is %s", n, version)
			}
			copied := filepath.Join(t.TempDir(), "copy.db")
			if err := tx.CopyFile(copied, 0o600); err != nil {
				return err
			}
			s := mustOpen(t, copied)
			young(t, s)
			return s.Close()
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		if done {
			if n < 10 {
				t.Errorf("%d transactions: this test interrupts next to nothing", n)
			}
			break
		}
	}
	young(t, mustOpen(t, path))
}

// What one transaction rewrites is bounded, whatever the store holds.
func TestUpgradeIsBounded(t *testing.T) {
	const room = 64 << 10
	path := oldStore(t, func(o old) {
		for n := range 200 {
			id := fmt.Sprint("s", n)
			o.surface(id, "r")
			o.rendering(id, 1, `"digest":"d",`, strings.Repeat("b", 4<<10))
			o.run("t", "c", benchTime, fmt.Sprint(n))
		}
	})
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	u := upgrade{room: room}
	for done := false; !done; {
		var written int64
		err := db.Update(func(tx *bbolt.Tx) (err error) {
			tx.OnCommit(func() { stats := tx.Stats(); written = stats.GetPageAlloc() })
			done, err = u.step(tx)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if written > 6*room {
			t.Errorf("a transaction wrote %d bytes, and may rewrite %d", written, room)
		}
	}
}

// A file that can't be upgraded stays what it was, and a row that can't be read stops nothing that did not need it.
func TestUpgradeOfDamagedStore(t *testing.T) {
	path := oldStore(t, func(o old) {
		aged(o)
		o.put("runs", "search\x00\x01x", "")
	})
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(path, Options{})
	if !errors.Is(err, store.ErrForeign) || !strings.Contains(fmt.Sprint(err), path) || !strings.Contains(fmt.Sprint(err), "backup") {
		t.Errorf("got error %v, want ErrForeign with the path and what to do", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed (%v)", err)
	}

	path = oldStore(t, func(o old) {
		o.put("renderings", "s\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01", `{"surface":"s","digest":"d"`)
	})
	s := mustOpen(t, path)
	if err := s.Check(t.Context()); err == nil {
		t.Error("the check finds nothing")
	}
}

// A store of version 1 that lacks one of its buckets is damaged, and stays as it is.
func TestOldStoreThatLacksABucket(t *testing.T) {
	for _, name := range oldBuckets {
		path := oldStore(t, func(o old) {
			if err := o.tx.DeleteBucket([]byte(name)); err != nil {
				t.Fatal(err)
			}
		})
		if _, err := Open(path, Options{}); !errors.Is(err, store.ErrForeign) || !strings.Contains(fmt.Sprint(err), "no bucket "+name) {
			t.Errorf("%s: got error %v, want one that names it", name, err)
		}
	}
}
