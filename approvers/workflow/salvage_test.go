package workflow_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
)

// For every fifth page of a store, the test destroys this page and up to two random pages, and salvages the store. The
// salvaged store must have no open work, as after a restoration, and its check must find no fault. The verification of
// its audit must find no fault, except for the records that the store names as lost. COUNTERSIGN_DAMAGE="1 1" selects
// the long form of the test, which destroys every page alone, with another page, and with two other pages. A third
// number is the seed. If a store fails the test, the test keeps the store's file. The seed alone can't reproduce the
// store, because ids are random.
func TestSalvagedStore(t *testing.T) {
	testkit.SkipIfShort(t)
	w := wreckable(t)
	pages, step, seed := len(w.file)/4096, 5, uint64(5)
	if text := os.Getenv(testkit.DamageVariable); text != "" {
		step, seed = 1, rand.Uint64()
		if len(strings.Fields(text)) > 2 {
			_, _, seed = testkit.Damage(t, 0, 0)
		}
	}
	random := rand.New(rand.NewPCG(seed, 1))
	destroyed, rows, named := 0, 0, 0
	for page := 0; page < pages; page += step {
		for more := range 3 {
			if step > 1 && more != page%3 {
				continue
			}
			gone := []int{page}
			for range more {
				gone = append(gone, random.IntN(pages))
			}
			broken := slices.Clone(w.file)
			for _, p := range gone {
				for i := range 4096 {
					broken[p*4096+i] = byte(random.Uint32() * uint32(page%2))
				}
			}
			destroyed++
			r, n := w.salvage(t, broken, fmt.Sprintf("pages %v of %d", gone, pages))
			rows, named = rows+r, named+n
		}
	}
	t.Logf("seed=%d: of %d pages, one to three were destroyed in %d stores: %d rows in the new stores, %d lost records and texts of the history, each named", seed, pages, destroyed, rows, named)
}

// A request, run or call is lost together with the messages of its conversation and the audit records of the request,
// and perhaps with the conversation. So no messages lead to the call, and no audit records except, in some cases, the
// first record of the request. The salvaged store must have no open work, and must not say of a run that had begun that
// nothing was run. The first call was edited often, so more runs of its conversation are lost than closeDamaged passes
// to closeAll. The turn of the last call has ended, so the conversation does not lead to this turn.
func TestSalvagedWithoutMessages(t *testing.T) {
	testkit.SkipIfShort(t)
	w := wreckable(t)
	path := filepath.Join(t.TempDir(), "edited.db")
	if err := os.WriteFile(path, w.file, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	last := len(w.requests) - 1
	var done store.Call
	err = s.Update(t.Context(), func(tx store.Tx) (err error) {
		if done, err = tx.Call(w.requests[last].call); err != nil {
			return err
		}
		r, err := tx.Request(w.requests[0].id)
		for i := range 70 {
			e := approvers.Execution{ID: fmt.Sprint("edited", i), State: approvers.ExecutionNone, Conversation: r.Conversation, Turn: r.Turn, Call: r.Call, Request: r.ID}
			w.of[e.ID], err = 0, errors.Join(err, tx.PutExecution(e))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	wf := workflow.New(workflow.Config{
		Store: s, Policy: func() *approvers.Policy { return policy("policy-1") }, Tools: newToolbox(), Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Date(2000, 1, 1, 0, 30, 0, 0, time.UTC) }, // before the salvage in faked time
	})
	if err := wf.Turns.Answer(t.Context(), done.Turn, done.Step, "Done.", nil, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if w.file, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	for n, r := range w.requests {
		if n >= len(w.requests)/2 && n != last { // the other half is the same, except for the last request
			continue
		}
		for _, lost := range []string{
			"requests", "executions", "requests executions", "requests conversations", "requests conversations executions", "calls executions", "calls requests executions",
			"requests executions but proposed", "calls requests executions but proposed",
		} {
			path := filepath.Join(t.TempDir(), "store.db")
			if err := os.WriteFile(path, w.file, 0o600); err != nil {
				t.Fatal(err)
			}
			db, err := bbolt.Open(path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
			if err != nil {
				t.Fatal(err)
			}
			buckets, proposed := strings.CutSuffix(lost, " but proposed")
			err = db.Update(func(tx *bbolt.Tx) error {
				for _, bucket := range append(strings.Fields(buckets), "messages", "audit") {
					rows := tx.Bucket([]byte(bucket))
					for id, of := range w.of { // the keys of messages begin with the conversation, and the keys of audit records with the request
						var keys [][]byte
						all := rows.Cursor()
						for k, _ := all.Seek([]byte(id)); of == n && strings.HasPrefix(string(k), id); k, _ = all.Next() {
							keys = append(keys, bytes.Clone(k))
						}
						if proposed && bucket == "audit" && id == r.id {
							keys = keys[1:]
						}
						for _, k := range keys {
							if err := rows.Delete(k); err != nil {
								return err
							}
						}
					}
				}
				return nil
			})
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			broken, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			w.salvage(t, broken, fmt.Sprintf("request %d (%s) without its %s", n, r.id, lost))
		}
	}
}

// A run had begun, and the last record of its chain, the request, the run and the journal are lost, perhaps with the
// conversation and its messages. The chain has no gap, but the salvaged store does not say that nothing was run.
func TestSalvagedWithoutLastRecord(t *testing.T) {
	w := wreckable(t)
	for n, r := range w.requests[:len(w.requests)/2] { // the other half is the same
		for _, lost := range []string{"requests executions", "requests executions conversations", "requests executions conversations messages"} {
			path := filepath.Join(t.TempDir(), "store.db")
			if err := os.WriteFile(path, w.file, 0o600); err != nil {
				t.Fatal(err)
			}
			db, err := bbolt.Open(path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
			if err != nil {
				t.Fatal(err)
			}
			err = db.Update(func(tx *bbolt.Tx) (err error) {
				remove := func(bucket, id string) {
					var keys [][]byte
					all := tx.Bucket([]byte(bucket)).Cursor()
					for k, _ := all.Seek([]byte(id)); k != nil && strings.HasPrefix(string(k), id); k, _ = all.Next() {
						keys = append(keys, bytes.Clone(k))
					}
					for _, k := range keys {
						err = errors.Join(err, tx.Bucket([]byte(bucket)).Delete(k))
					}
				}
				remove("audit_journal", "")
				for _, bucket := range strings.Fields(lost) {
					for id, of := range w.of {
						if of == n {
							remove(bucket, id)
						}
					}
				}
				chain, last := []byte(r.id), []byte(nil)
				all := tx.Bucket([]byte("audit")).Cursor()
				for k, _ := all.Seek(chain); bytes.HasPrefix(k, chain); k, _ = all.Next() {
					last = bytes.Clone(k)
				}
				return errors.Join(err, tx.Bucket([]byte("audit")).Delete(last))
			})
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			broken, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			w.salvage(t, broken, fmt.Sprintf("request %d (%s) without its %s and its last record", n, r.id, lost))
		}
	}
}

// thinkReads is a store that counts how often the timers of turns are read.
type thinkReads struct {
	*bolt.Store
	n int
}

func (s *thinkReads) View(ctx context.Context, fn func(store.Reader) error) error {
	return s.Store.View(ctx, func(r store.Reader) error { return fn(thinkReader{r, s}) })
}

func (s *thinkReads) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.Store.Update(ctx, func(tx store.Tx) error { return fn(thinkTx{tx.(setAsideTx), s}) })
}

func (s *thinkReads) count(kind store.TimerKind) {
	if kind == store.TimerThink {
		s.n++
	}
}

type thinkReader struct {
	store.Reader
	in *thinkReads
}

func (r thinkReader) Timers(kind store.TimerKind, limit int) ([]store.Timer, error) {
	r.in.count(kind)
	return r.Reader.Timers(kind, limit)
}

type setAsideTx interface {
	store.Tx
	store.SetAside
}

type thinkTx struct {
	setAsideTx
	in *thinkReads
}

func (t thinkTx) Timers(kind store.TimerKind, limit int) ([]store.Timer, error) {
	t.in.count(kind)
	return t.setAsideTx.Timers(kind, limit)
}

// All conversations of a store are lost, together with the messages and the runs, which name the turns. The salvage
// finds the turns of all these conversations with one read of the timers, and takes the agents of the conversations from
// salvageAfter damages a copy of the file, salvages it, and opens the result. It also returns the lost rows.
func salvageAfter(t *testing.T, w wreckage, damage func(*bbolt.Tx) error) (*bolt.Store, []store.Damage) {
	t.Helper()
	path, scratch := filepath.Join(t.TempDir(), "store.db"), filepath.Join(t.TempDir(), "scratch.db")
	if err := os.WriteFile(path, w.file, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(damage), db.Close()); err != nil {
		t.Fatal(err)
	}
	lost, err := bolt.Salvage(t.Context(), path, scratch, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := bolt.Open(scratch, bolt.Options{AsIs: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, lost
}

// clearRows deletes all rows of a bucket.
func clearRows(b *bbolt.Bucket) error {
	rows := b.Cursor()
	for id, _ := rows.First(); id != nil; id, _ = rows.First() {
		if err := rows.Delete(); err != nil {
			return err
		}
	}
	return nil
}

// the turns. A few more reads stop the turns.
func TestSalvagedConversations(t *testing.T) {
	w := wreckable(t)
	opened, lost := salvageAfter(t, w, func(tx *bbolt.Tx) error {
		for _, bucket := range []string{"conversations", "messages", "executions"} {
			if err := clearRows(tx.Bucket([]byte(bucket))); err != nil {
				return err
			}
		}
		return nil
	})
	s := &thinkReads{Store: opened}
	wf := workflow.New(workflow.Config{Store: s, Policy: func() *approvers.Policy { return policy("policy-1") }, Tools: newToolbox(), Log: slog.New(slog.DiscardHandler)})
	if err := wf.History.Salvaged(t.Context(), workflow.Restoration{Who: "operator:o", Taken: time.Now()}, lost); err != nil {
		t.Fatal(err)
	}
	if s.n < 1 || s.n > 5 {
		t.Errorf("the timers of turns were read %d times", s.n)
	}
	err := opened.View(t.Context(), func(r store.Reader) error {
		for _, one := range w.requests {
			call, err := r.Call(one.call)
			if err != nil {
				return err
			}
			conv, err := r.Conversation(call.Conversation)
			if err != nil || conv.Agent == "" || conv.Turn != "" {
				t.Errorf("the conversation of %s has the agent %q and the turn %q, %v", one.id, conv.Agent, conv.Turn, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Of every conversation, only the turns survive. The salvage ends these turns.
func TestSalvagedTurnsOnly(t *testing.T) {
	w := wreckable(t)
	var turns []string
	s, lost := salvageAfter(t, w, func(tx *bbolt.Tx) error {
		rows := tx.Bucket([]byte("turns")).Cursor()
		for id, _ := rows.First(); id != nil; id, _ = rows.Next() {
			turns = append(turns, string(id))
		}
		return tx.ForEach(func(bucket []byte, b *bbolt.Bucket) error {
			name, _, _ := strings.Cut(string(bucket), "_") // the names of indexes begin with the name of a record
			if !slices.Contains([]string{"conversation", "message", "call", "request", "execution"}, strings.TrimSuffix(name, "s")) {
				return nil
			}
			return clearRows(b)
		})
	})
	wf := workflow.New(workflow.Config{Store: s, Policy: func() *approvers.Policy { return policy("policy-1", withClients) }, Tools: newToolbox(), Log: slog.New(slog.DiscardHandler)})
	if err := wf.History.Salvaged(t.Context(), workflow.Restoration{Who: "operator:o", Taken: time.Now()}, lost); err != nil {
		t.Fatal(err)
	}
	err := s.View(t.Context(), func(r store.Reader) error {
		callers := 0
		for _, id := range turns {
			turn, err := r.Turn(id)
			if err != nil {
				return err
			}
			if _, err := r.Conversation(turn.Conversation); errors.Is(err, store.ErrNotFound) {
				callers++
			}
			if !turn.Ended() {
				t.Errorf("the turn %s is %s", id, turn.State)
			}
		}
		if callers != len(w.callers) {
			t.Errorf("%d turns have no conversation", callers)
		}
		timers, err := r.Timers(store.TimerThink, 100)
		if len(timers) > 0 {
			t.Errorf("the turns have timers: %v", timers)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// salvage salvages a damaged store and checks the new store. The first result is the number of rows in the new store.
// The second result is the number of audit records and texts that the new store lists as lost.
func (w wreckage) salvage(t *testing.T, broken []byte, what string) (rows, named int) {
	t.Helper()
	before := t.Failed()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour) // so that the time is later than every time in the store
		dir := quickDir(t)
		defer os.RemoveAll(dir)
		from, scratch, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "scratch.db"), filepath.Join(dir, "to.db")
		if err := os.WriteFile(from, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		lost, err := bolt.Salvage(t.Context(), from, scratch, nil)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		s, err := bolt.Open(scratch, bolt.Options{AsIs: true})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		wf := workflow.New(workflow.Config{Store: s, Policy: func() *approvers.Policy { return policy("policy-1") }, Tools: newToolbox(), Log: slog.New(slog.DiscardHandler)})
		if err := wf.History.Salvaged(t.Context(), workflow.Restoration{Who: "operator:o", Taken: time.Now()}, lost); err != nil {
			t.Errorf("%s: %v", what, err)
			s.Close()
			return
		}
		err = bolt.Fill(t.Context(), to, "", false, func(f store.Filling) error {
			return store.CopyRows(t.Context(), s, f, func(store.Copied) { rows++ }, func() {})
		})
		if err := errors.Join(err, s.Close()); err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		s, err = bolt.Open(to, bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if found := s.Damage(); len(found) > 0 {
			t.Errorf("%s: the new store is damaged: %v", what, found)
		}
		report, err := audit.Verify(t.Context(), s, audit.VerifyOptions{Guard: bolt.Guard})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if report.Faults() > 0 {
			t.Errorf("%s: the history has faults; missing: %v", what, lost)
			report.Write(t.Output())
		}
		report.Write(io.Discard)
		for _, d := range lost {
			if d.Bucket == "audit" || d.Bucket == "audit_payloads" {
				named++
			}
		}
		err = s.View(t.Context(), func(r store.Reader) error {
			open, err := r.OpenRequests(store.RequestCursor{}, 100)
			if err != nil || len(open) > 0 {
				t.Errorf("%s: %d requests are open, %v", what, len(open), err)
			}
			for _, kind := range []store.TimerKind{store.TimerRun, store.TimerOutcome, store.TimerThink, store.TimerInbox, store.TimerModelQuestion, store.TimerExpire} {
				if timers, err := r.Timers(kind, 100); err != nil || len(timers) > 0 {
					t.Errorf("%s: there are %d timers %s, %v", what, len(timers), kind, err)
				}
			}
			for _, id := range w.callers {
				call, err := r.Call(id)
				if err != nil {
					continue // the record is lost
				}
				if conv, err := r.Conversation(call.Conversation); err != nil || conv.Caller == nil || conv.Caller.Request != id {
					continue
				}
				if timer, err := r.Timer(store.TimerWebhook, id); err != nil || timer.Lane != "ci" {
					t.Errorf("%s: the timer of the webhook of %s is in the lane %q, %v", what, id, timer.Lane, err)
				}
			}
			for id := range w.of {
				call, err := r.Call(id)
				if err != nil {
					continue // id is of another kind, or the call is lost
				}
				if turn, err := r.Turn(call.Turn); call.Outcome == "" || err == nil && !turn.Ended() {
					t.Errorf("%s: the call %s has the outcome %q, and its turn is %s", what, id, call.Outcome, turn.State)
				}
			}
			for id := range w.ran {
				e, err := r.Execution(id)
				if err == nil && (e.State == approvers.ExecutionNone || e.State == approvers.ExecutionExecuting || e.Unrun) {
					t.Errorf("%s: the run %s is %s (unrun: %v), and had acted", what, id, e.State, e.Unrun)
				}
				n, ok := w.of[id]
				if !ok { // the run belongs to a caller's request
					continue
				}
				call, err := r.Call(w.requests[n].call)
				if err == nil && (call.Outcome == approvers.OutcomeVoided || strings.Contains(call.Result, "nothing was run")) {
					t.Errorf("%s: the call %s is %s: %s, and its run had acted", what, call.ID, call.Outcome, call.Result)
				}
				request, err := r.Request(w.requests[n].id)
				if err == nil && (request.State == approvers.Voided || strings.Contains(request.Reason, "nothing was run")) {
					t.Errorf("%s: the request %s is %s: %s, and its run had acted", what, request.ID, request.State, request.Reason)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	if t.Failed() && !before {
		if f, err := os.CreateTemp("", "countersign-salvage-*.db"); err == nil {
			_, err := f.Write(broken)
			t.Logf("the damaged store is %s, %v", f.Name(), errors.Join(err, f.Close()))
		}
	}
	return rows, named
}
