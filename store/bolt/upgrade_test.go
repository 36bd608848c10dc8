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
	"countersign/internal/testkit"
	"countersign/store"
)

func renderingAs(message string, post uint64, body string, shows ...store.Shown) store.Rendering {
	return store.Rendering{OutboxMessage: message, Post: post, Hash: "h", Shows: shows, Body: []byte(body), At: benchTime.Add(time.Microsecond)}
}

// young checks an upgraded store: it must have the contents that the function aged wrote.
func young(t *testing.T, s *Store, from int) {
	t.Helper()
	same := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s (-want +got):\n%s", what, cmp.Diff(want, got))
		}
	}
	err := s.View(t.Context(), func(r store.Reader) error {
		open, err := r.OpenRequests(store.RequestCursor{}, 10)
		same("how many open requests", len(open), 1)
		same("what the request waits for", open[0].Plan.Stages, []approvers.Stage{{Approver: "leads", Quorum: 1}})
		theirs, err0 := r.RequestsOf("T1/U1", store.RequestCursor{}, 10)
		same("how many requests the person asked for", len(theirs), 1)
		unhandled, err2 := r.Unhandled(store.InboxEvent, benchTime)
		same("something is unhandled", unhandled, true)
		timers, err3 := r.Timers(store.TimerExpire, 10)
		same("the timers", timers, []store.Timer{{Kind: store.TimerExpire, Ref: "req_1", Due: benchTime}})
		of, err4 := r.OutboxMessagesOf("card")
		same("how many outbox messages", len(of), 1)
		silent, err5 := r.ConversationsBefore(benchTime.Add(time.Hour), 10)
		same("how many conversations", len(silent), 2)
		same("the one that is silent for longest", silent[0].ID, "c1")
		err = errors.Join(err, err0, err2, err3, err4, err5, youngAudit(r, same))
		if from == 1 {
			return errors.Join(err, youngRuns(r, same))
		}
		n, err6 := r.CounterSum("t", time.Time{})
		same("the counter", n, 7)
		post, err7 := r.Rendering("card", 1)
		same("the rendering", post, renderingAs("card", 1, "body", store.Shown{Request: "req_1", Digest: "d1"}))
		return errors.Join(err, err6, err7)
	})
	if err := errors.Join(err, s.Check(t.Context())); err != nil {
		t.Error(err)
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		same("its version", string(tx.Bucket(rootBucket).Get(schemaKey)), fmt.Sprint(schema))
		if tx.Bucket(rootBucket).Get(upgradingKey) != nil || tx.Bucket(runsBucket) != nil {
			t.Error("the upgrade is not at its end")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// youngAudit checks that the audit has the hashes that the older program wrote.
func youngAudit(r store.Reader, same func(what string, got, want any)) error {
	head, err := r.AuditHead("req_1")
	same("the head of the request's chain", head.Hash, oldHead)
	away, err2 := r.AuditHead("absence:T1/U1")
	same("the other chain", away, approvers.AuditRecord{
		Chain: "absence:T1/U1", Seq: 1, At: benchTime.Add(time.Microsecond), Kind: approvers.AuditAway, Actor: "T1/U1", Facts: map[string]string{"from": "now"}, Hash: oldAway,
	})
	chain, err3 := r.Audit("req_1")
	same("how many records", len(chain), 2)
	same("the facts", chain[0].Facts, map[string]string{"tool": "issue_refund", "": "", "note": "<é>&\u2028\"\\"})
	payload, err4 := r.AuditPayload("req_1", 1)
	same("the payload", string(payload.Body), oldPayload)
	journal, err5 := r.Journal(0, 10)
	same("how many leaves", len(journal), 3)
	same("the first one", []any{journal[0].Leaf, journal[0].Chain, journal[0].Sum.String()}, []any{uint64(0), "absence:T1/U1", oldAway})
	same("the last one", []any{journal[2].Leaf, journal[2].Chain, journal[2].Seq, journal[2].Sum.String()}, []any{uint64(2), "req_1", uint64(2), oldHead})
	return errors.Join(err, err2, err3, err4, err5, approvers.VerifyChain(chain))
}

func youngRuns(r store.Reader, same func(what string, got, want any)) error {
	var errs []error
	for key, want := range map[string]map[time.Duration]int{
		"auto/search/conv\x001": {-time.Minute: 40, 0: 39, 29 * time.Minute: 10, time.Hour: 0},
		"auto/search/2":         {-time.Microsecond: 2, 0: 0},
		"auto//":                {-2e18: 1, 0: 0},
		"auto/search":           {-2e18: 0},
	} {
		for after, n := range want {
			got, err := r.CounterSum(key, benchTime.Add(after))
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
	same("a rendering of no outbox message", gone, renderingAs("gone", 1, "of no outbox message"))
	return errors.Join(append(errs, err, err2, err3)...)
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

// Open upgrades an older store. The upgrade of a small store is one transaction. After the upgrade, the store works
// like a new store.
func TestUpgrade(t *testing.T) {
	for from := 1; from < checksummed; from++ {
		path := oldStore(t, from, aged)
		before := lastTransaction(t, path)
		s := mustOpen(t, path)
		young(t, s, from)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		after := lastTransaction(t, path)
		if after != before+1 {
			t.Errorf("from version %d it took %d transactions, want 1", from, after-before)
		}
		s = mustOpen(t, path)
		young(t, s, from)
		err := s.Update(t.Context(), func(tx store.Tx) error {
			_, err := tx.PruneCounters(benchTime.Add(time.Nanosecond), 100)
			head, err2 := tx.AuditHead("req_1")
			next := approvers.AuditRecord{Chain: "req_1", At: benchTime, Kind: approvers.AuditClosed}.Link(head)
			done, err3 := tx.EraseConversation("c1", 1000)
			if !done {
				t.Error("the conversation is not erased")
			}
			if _, err := tx.Execution("exec_7"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("an execution of the conversation: %v", err)
			}
			return errors.Join(err, err2, err3, tx.AppendAudit(next, nil), tx.PutElicitation(approvers.Elicitation{ID: "q", Execution: "e"}),
				tx.PutFile(store.File{Execution: "e"}.Of([]byte("x")), []byte("x")),
				tx.PutGrant(approvers.Grant{ID: "g", State: approvers.GrantLive}), tx.PutAbsence(approvers.Absence{Who: "T/U"}))
		})
		if err := errors.Join(err, s.Check(t.Context()), s.Close()); err != nil {
			t.Error(err)
		}
		if now := lastTransaction(t, path); now != after+1 {
			t.Errorf("opening it again wrote to it: %d transactions", now-after-1)
		}
	}
}

func lastTransaction(t *testing.T, path string) (id int) {
	t.Helper()
	// Not ReadOnly: bbolt would not unlock the file, and a process that another test starts could then keep the lock.
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(func(tx *bbolt.Tx) error { id = tx.ID(); return nil })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return id
}

// The test interrupts an upgrade of several transactions after each transaction. After each interruption, an older
// program refuses the store, because the store is newer than the program. The next Open continues the upgrade.
func TestUpgradeThatIsInterrupted(t *testing.T) {
	testkit.SkipIfShort(t)
	for from := 1; from < checksummed; from++ {
		interrupted(t, from)
	}
}

func interrupted(t *testing.T, from int) {
	path := oldStore(t, from, aged)
	u := upgrade{freeBytes: 8 << 10}
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
			if version := tx.Bucket(rootBucket).Get(schemaKey); string(version) != fmt.Sprint(schema) {
				t.Errorf("after %d transactions its version is %s", n, version)
			}
			copied := filepath.Join(t.TempDir(), "copy.db")
			if err := tx.CopyFile(copied, 0o600); err != nil {
				return err
			}
			s := mustOpen(t, copied)
			young(t, s, from)
			return s.Close()
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		if done {
			if n < 6 {
				t.Errorf("%d transactions: this test interrupts next to nothing", n)
			}
			break
		}
	}
	young(t, mustOpen(t, path), from)
}

// Each transaction of an upgrade rewrites a limited number of bytes, even if the store is large.
func TestUpgradeIsBounded(t *testing.T) {
	const room = 64 << 10
	path := oldStore(t, 1, func(o old) {
		for n := range 200 {
			id := fmt.Sprint("s", n)
			o.outboxMessage(id, "r")
			o.rendering(id, 1, `"digest":"d",`, strings.Repeat("b", 4<<10))
			o.run("t", "c", benchTime, fmt.Sprint(n))
		}
	})
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	u := upgrade{freeBytes: room}
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

// A file that can't be upgraded stays unchanged. An unreadable rendering does not prevent the upgrade, and the check
// finds the rendering.
func TestUpgradeOfDamagedStore(t *testing.T) {
	path := oldStore(t, 1, func(o old) {
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

	path = oldStore(t, 1, func(o old) {
		o.put("renderings", "s\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01", `{"surface":"s","digest":"d"`)
	})
	s := mustOpen(t, path)
	if err := s.Check(t.Context()); err == nil {
		t.Error("the check finds nothing")
	}
}

// The check finds tampering in an upgraded store, even if the tampering happened before the upgrade.
func TestUpgradeHidesNothing(t *testing.T) {
	for what, change := range map[string]func(o old){
		"a record":             func(o old) { o.replace("audit", "decided", "denied") },
		"a record's hash":      func(o old) { o.replace("audit", `"hash":"7687`, `"hash":"7688`) },
		"a hash that is none":  func(o old) { o.replace("audit", `"hash":"7687`, `"hash":"xyz7`) },
		"a hash that is short": func(o old) { o.replace("audit", oldHead, oldHead[:10]) },
		"no JSON":              func(o old) { o.replace("audit", `"seq":2,`, `"seq":2`) },
		"a payload":            func(o old) { o.replace("audit_payloads", "eyJhbW91", "eyJhbW92") },
		"a payload's JSON":     func(o old) { o.replace("audit_payloads", `"seq":1,`, `"seq":1`) },
		"a record that is gone": func(o old) {
			if err := o.tx.Bucket([]byte("audit")).Delete([]byte("req_1\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01")); err != nil {
				o.Fatal(err)
			}
		},
	} {
		s := mustOpen(t, oldStore(t, 2, func(o old) {
			aged(o)
			change(o)
		}))
		if err := s.Check(t.Context()); err == nil {
			t.Errorf("%s was changed before the upgrade: the check finds nothing", what)
		}
	}
}

// If an older store lacks one of its buckets, the store is damaged, and Open refuses it.
func TestOldStoreThatLacksABucket(t *testing.T) {
	for version := 1; version < checksummed; version++ {
		for _, name := range oldBuckets[version] {
			path := oldStore(t, version, func(o old) {
				if err := o.tx.DeleteBucket([]byte(name)); err != nil {
					t.Fatal(err)
				}
			})
			if _, err := Open(path, Options{}); !errors.Is(err, store.ErrForeign) || !strings.Contains(fmt.Sprint(err), "no bucket "+name) {
				t.Errorf("version %d, %s: got error %v, want one that names it", version, name, err)
			}
		}
	}
}
