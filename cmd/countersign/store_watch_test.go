package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/auditcmd"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/metrics"
	"countersign/cmd/countersign/openstore"
	"countersign/store"
	"countersign/store/bolt"
)

// If a transaction hangs, /readyz fails after a few seconds. A stopping process does not wait for the hanging
// transaction, and logs it.
func TestHungWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	synctest.Test(t, func(t *testing.T) {
		db, err := openstore.File(path)
		if err != nil {
			t.Fatal(err)
		}
		wf := workflow.New(workflow.Config{Store: db, Policy: func() *approvers.Policy { return &approvers.Policy{} }})
		page := admin([]probe{{name: "store", ready: func(ctx context.Context) error { return takesWrites(ctx, wf) }}}, metrics.New(db, metricsPolicy).Handler())
		ready := func(want int, says string) {
			t.Helper()
			rec := httptest.NewRecorder()
			page.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/readyz", nil))
			if rec.Code != want || !strings.Contains(rec.Body.String(), says) {
				t.Errorf("/readyz says %d %s; want %d and %q", rec.Code, rec.Body, want, says)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		logged := new(lineLog)
		release := make(chan struct{})
		var writers sync.WaitGroup
		ended := make(chan error, 1)
		go func() {
			ended <- unlessHung(ctx, db, slog.New(slog.NewTextHandler(logged, nil)), func() error {
				writers.Go(func() { _ = db.Update(t.Context(), func(store.Tx) error { <-release; return nil }) })
				writers.Go(func() { _ = db.Update(t.Context(), func(store.Tx) error { return nil }) }) // this transaction waits for the first one
				<-ctx.Done()
				writers.Wait()
				return nil
			})
		}()
		synctest.Wait()
		ready(http.StatusOK, "ok")
		time.Sleep(stallShown + time.Second)
		ready(http.StatusServiceUnavailable, "nothing could be written for 6s")
		stop()
		select {
		case err := <-ended:
			if cli.Code(err) != cli.ExitFailed || !strings.Contains(err.Error(), "start the bot again") {
				t.Errorf("the process ends with %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("the process does not end")
		}
		if len(logged.with("a transaction of the store does not end")) != 1 {
			t.Errorf("the log says %q", logged.all())
		}
		close(release)
		synctest.Wait()
		writers.Wait()
	})
}

// slowClose is a store whose method Close waits until the channel release is closed.
type slowClose struct {
	*bolt.Store
	release chan struct{}
}

func (s slowClose) Close() error {
	<-s.release
	return s.Store.Close()
}

// failedClose is a slowClose that reports a failure.
type failedClose struct{ slowClose }

func (failedClose) Failure() error { return store.ErrDamaged }

// The process does not wait forever for a store that can't be closed. The process waits for its own work, even if this
// work takes long.
func TestStoreThatCannotBeClosed(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		mine := errors.New("mine")
		for _, hangs := range []bool{false, true} {
			db, err := openstore.File(filepath.Join(dir, "store.db"))
			if err != nil {
				t.Fatal(err)
			}
			s := slowClose{db, make(chan struct{})}
			if !hangs {
				close(s.release)
			}
			ctx, stop := context.WithCancel(t.Context())
			logged := new(lineLog)
			began := time.Now()
			stop()
			err = unlessHung(ctx, s, slog.New(slog.NewTextHandler(logged, nil)), func() error { time.Sleep(time.Hour); return mine })
			took := time.Since(began) - time.Hour
			if hangs {
				if cli.Code(err) != cli.ExitFailed || took > closeEnds+time.Second || len(logged.with("can't be closed")) != 1 {
					t.Errorf("it ended after %s with %v; the log says %q", took, err, logged.all())
				}
				close(s.release)
				synctest.Wait()
				failed := failedClose{slowClose{db, make(chan struct{})}}
				if err := unlessHung(t.Context(), failed, slog.New(slog.DiscardHandler), func() error { return mine }); !errors.Is(err, mine) {
					t.Errorf("with a store that has stopped, it ended with %v", err)
				}
				close(failed.release)
				synctest.Wait()
			} else if !errors.Is(err, mine) || took > 0 || len(logged.all()) != 0 {
				t.Errorf("it ended after %s with %v; the log says %q", took, err, logged.all())
			}
		}
	})
}

// failingDisk is a store whose disk fails after a call of fail.
type failingDisk struct {
	*bolt.Store
	mu     sync.Mutex
	failed bool
	broken chan struct{}
}

func (f *failingDisk) fail() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = true
	close(f.broken)
}

func (f *failingDisk) Failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed {
		return store.ErrCommitUnknown
	}
	return nil
}

func (f *failingDisk) Broken() <-chan struct{} { return f.broken }

func (f *failingDisk) Update(ctx context.Context, fn func(store.Tx) error) error {
	if err := f.Failure(); err != nil {
		return err
	}
	return f.Store.Update(ctx, fn)
}

// A failed commit ends the process immediately, even while a tool runs, because the process could not record the tool's
// answer. The next process asks people about the outcome.
func TestFailedCommitWithToolUnderWay(t *testing.T) {
	tool := agent.Tool{Name: "wire", Effect: approvers.Unprotected, Timeout: time.Hour, Run: func(ctx context.Context, _ agent.Invocation) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}}
	inRun(t, []agent.Tool{tool}, func(b *synctestHarness) {
		b.ok(b.bot.end())
		disk := &failingDisk{Store: b.db, broken: make(chan struct{})}
		b.setup.store = disk
		b.start()
		b.pass(5 * time.Second)
		b.says("run wire")
		comesTo := func(want approvers.ExecutionState) {
			t.Helper()
			b.within(time.Minute, "the run is "+string(want), func() (is bool) {
				b.view(func(r store.Reader) error {
					for _, turn := range b.allTurns(r) {
						calls, err := r.Calls(turn)
						if err != nil {
							return err
						}
						for _, c := range calls {
							e, err := r.Execution(c.Execution)
							if err != nil {
								return err
							}
							is = is || e.State == want
						}
					}
					return nil
				})
				return is
			})
		}
		comesTo(approvers.ExecutionExecuting)
		began := time.Now()
		disk.fail()
		<-b.bot.done
		if took := time.Since(began); took > time.Second || cli.Code(b.bot.err) != cli.ExitFailed || !strings.Contains(b.bot.err.Error(), "start again") {
			t.Errorf("after %s the bot ended with %v", took, b.bot.err)
		}
		b.setup.store = b.db
		b.start()
		comesTo(approvers.ExecutionUnknown)
		b.pass(time.Minute) // goroutines of the ended process live on in the bubble until their timeouts
	})
}

// oneRequest creates a store with a waiting request and its history, and returns its path.
func oneRequest(t *testing.T, change func(*approvers.Request)) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store.db")
	db, err := openstore.File(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r := approvers.Request{
		ID: "req_WAITING", State: approvers.Pending, Tool: "pay", Execution: "exec_1", Args: []byte(`{"amount":1}`), CreatedAt: time.Unix(1, 0).UTC(),
		Plan: approvers.Plan{Stages: []approvers.Stage{{Approver: "lead", Quorum: 1}, {Approver: "director", Quorum: 2}}},
	}
	r.Digest = approvers.Digest(r.Execution, r.Tool, "", r.Args)
	proposed := approvers.AuditRecord{Chain: r.ID, Kind: approvers.AuditProposed, Facts: map[string]string{
		"tool": "pay", "execution": "exec_1", "digest": r.Digest, "stages": r.Plan.StageFacts(), "risk": r.Plan.Risk.String(),
	}}.Link(approvers.AuditRecord{})
	if change != nil {
		change(&r)
	}
	err = db.Update(t.Context(), func(tx store.Tx) error {
		if err := tx.PutRequest(r); err != nil {
			return err
		}
		return tx.AppendAudit(proposed, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// toldOf opens a store, and returns what /readyz and audit verify report about the store.
func toldOf(t *testing.T, path string) (verified int, said string, ready error) {
	t.Helper()
	db, err := openstore.File(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var out bytes.Buffer
	err = auditcmd.Verify(t.Context(), &out, db, audit.VerifyOptions{})
	return cli.Code(err), out.String(), undamaged(db)(t.Context())
}

// If one bit of a waiting request's quorum changes, /readyz and audit verify report a fault, and name the request.
func TestFlippedQuorum(t *testing.T) {
	path := oneRequest(t, nil)
	if verified, said, ready := toldOf(t, path); ready != nil || verified != cli.ExitDone {
		t.Fatalf("a whole store: %v, %d, %s", ready, verified, said)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.ReplaceAll(file, []byte(`"quorum":2`), []byte(`"quorum":0`))
	if bytes.Equal(file, flipped) {
		t.Fatal("there is no quorum in the file")
	}
	if err := os.WriteFile(path, flipped, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // once when the damage is found, and once after the next start
		verified, said, ready := toldOf(t, path)
		if ready == nil || !strings.Contains(ready.Error(), "requests, row req_WAITING") {
			t.Errorf("/readyz: %v", ready)
		}
		if verified != cli.ExitNo || !strings.Contains(said, "req_WAITING") {
			t.Errorf("audit verify: code %d\n%s", verified, said)
		}
	}
}

// If the row with the changed quorum has a valid checksum, verification finds the change by comparing the request with
// the history.
func TestQuorumChangedBehindTheChecksum(t *testing.T) {
	path := oneRequest(t, func(r *approvers.Request) { r.Plan.Stages[1].Quorum = 0 })
	verified, said, _ := toldOf(t, path)
	if verified != cli.ExitNo || !strings.Contains(said, `request req_WAITING: its stages is "lead,director", and was recorded as "lead,2 x director"`) {
		t.Errorf("audit verify: code %d\n%s", verified, said)
	}
}

// silentDatabase is a database whose reads hang until their context ends, while hangs is set.
type silentDatabase struct {
	store.Store
	hangs   bool
	stalled time.Duration
	refused error
}

func (d *silentDatabase) View(ctx context.Context, fn func(store.Reader) error) error {
	if d.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return d.Store.View(ctx, fn)
}

func (d *silentDatabase) Stalled() time.Duration        { return d.stalled }
func (d *silentDatabase) Broken() <-chan struct{}       { return nil }
func (d *silentDatabase) Failure() error                { return nil }
func (d *silentDatabase) Refused(context.Context) error { return d.refused }
func (d *silentDatabase) Hanging(context.Context) error { return errors.New("the standby is missing") }

// If a database refuses writes or hangs, /readyz says what the database says. It does not speak of a disk or a restart.
func TestReadyWithoutDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	synctest.Test(t, func(t *testing.T) {
		file, err := openstore.File(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		db := &silentDatabase{Store: file}
		wf := workflow.New(workflow.Config{Store: db, Policy: func() *approvers.Policy { return &approvers.Policy{} }})
		ready := func() string {
			ctx, cancel := context.WithTimeout(t.Context(), probeTimeout)
			defer cancel()
			if err := takesWrites(ctx, wf); err != nil {
				return err.Error()
			}
			return ""
		}
		if is := ready(); is != "" {
			t.Error(is)
		}
		db.refused = errors.New("GRANT UPDATE")
		if is := ready(); is != "GRANT UPDATE" {
			t.Errorf("with a missing right: %q", is)
		}
		db.refused, db.hangs = nil, true
		if is := ready(); is != "the standby is missing" {
			t.Errorf("without an answer: %q", is)
		}
		db.stalled = 6 * time.Second
		if is := ready(); is != "nothing could be written for 6s: the standby is missing" {
			t.Errorf("with a transaction that does not end: %q", is)
		}
	})
}

// endless is a store whose reads hang until release is closed, whatever their context is.
type endless struct {
	store.Store
	release chan struct{}
}

func (e endless) View(ctx context.Context, read func(store.Reader) error) error {
	<-e.release
	return e.Store.View(context.WithoutCancel(ctx), read)
}

// While the store does not answer, a scrape takes a few seconds, and has the metrics that need no store.
func TestMetricsWithoutStore(t *testing.T) {
	empty := emptyStore(t)
	synctest.Test(t, func(t *testing.T) {
		db := endless{empty, make(chan struct{})}
		m := metrics.New(db, metricsPolicy)
		wf := workflow.New(workflow.Config{Store: db, Policy: metricsPolicy})
		m.WatchStore(func(ctx context.Context) error { return takesWrites(ctx, wf) })
		scrape := func() (string, time.Duration) {
			began, rec := time.Now(), httptest.NewRecorder()
			m.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			return rec.Body.String(), time.Since(began)
		}
		for range 2 {
			page, took := scrape()
			if took > 5*time.Second || !strings.Contains(page, "\ncountersign_store_answers 0\n") || !strings.Contains(page, "\ncountersign_store_up 0\n") ||
				strings.Contains(page, "\ncountersign_requests_waiting ") {
				t.Errorf("after %s:\n%s", took, page)
			}
		}
		close(db.release)
		synctest.Wait()
		if page, _ := scrape(); !strings.Contains(page, "\ncountersign_store_answers 1\n") || !strings.Contains(page, "\ncountersign_store_up 1\n") ||
			!strings.Contains(page, "\ncountersign_requests_waiting ") {
			t.Errorf("when the store answers:\n%s", page)
		}
	})
}
