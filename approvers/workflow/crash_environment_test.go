package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/store"
	"countersign/store/jobs"
)

// environment simulates everything outside the bot: Slack, the people, and the shop that tools act on. The environment
// survives each crash of the bot.
type environment struct {
	*harness
	kill       func(point string) bool // called at each point; if it returns true, the process is killed there
	deliveries []*delivery
	posts      map[string]posted // by outbox message
	calls      map[string]int    // how often a tool was called, by execution; the execution's id is the idempotency key
	acts       map[string]int    // how often a tool acted, by execution; an idempotent tool acts once under one key
	cut        map[string]int    // by execution: how many of its runs a crash interrupted
	acted      map[string]bool   // the messages that people have acted on
	crashes    int
	script     []string          // the calls that the model requests in its first step
	then       []string          // the calls that the model requests in its second step, if any
	silent     bool              // nobody decides anything
	previews   map[string]int    // how often a tool made a preview of a call, by digest
	muted      bool              // people do not report unknown outcomes
	allow      int               // how many more calls the first approver allows by a grant
	aside      []act             // actions of people on the first card, in order, before anybody decides
	others     []*otherAgent     // other agents, which make calls over the gateway
	told       map[string]string // the last change that a webhook was told, by request
}

type posted struct {
	kind  store.OutboxKind
	ref   string
	posts int
	shown workflow.SentMessage
}

// delivery is a delivery from Slack. Slack repeats a delivery until the bot acknowledges it.
type delivery struct {
	id       string
	received bool
	act      act
}

func newEnvironment(t testing.TB, kill func(point string) bool) *environment {
	return newEnvironmentOn(t, "", kill)
}

// newEnvironmentOn returns an environment whose store is a database with empty tables. If database is "", the store is
// a file.
func newEnvironmentOn(t testing.TB, database string, kill func(point string) bool) *environment {
	w := &environment{
		harness: newHarnessIn(t, quickDir(t)), kill: kill, posts: map[string]posted{}, calls: map[string]int{}, acts: map[string]int{}, cut: map[string]int{},
		acted: map[string]bool{}, previews: map[string]int{}, told: map[string]string{},
		script: []string{`search_orders {}`, `issue_refund {"amount":49.99}`, `update_address {}`, `cancel_account {}`, `issue_refund {"amount":`},
	}
	w.ok(w.store.Close())
	w.database = database
	w.open(w.mortally)
	w.slack(act{Who: alice, Say: "do it all"})
	return w
}

func (w *environment) mortally(s store.Store) store.Store { return &mortal{Store: s, reach: w.reach} }

// reach marks a point at which the process may be killed.
func (w *environment) reach(point string) {
	if w.kill(point) {
		panic(stopped{})
	}
}

func (w *environment) slack(a act) {
	w.deliveries = append(w.deliveries, &delivery{id: w.id("Ev"), act: a})
}

// w.life runs the bot until no work is left. After each crash, life starts a new process.
func (w *environment) life() {
	w.t.Helper()
	for range 1000 {
		if w.alive() {
			return
		}
		w.crashes++
		w.leave()
		w.open(w.mortally)
		w.turns = w.heard()
		w.noteCuts()
		w.invariants() // invariants hold between any two transactions
		if w.t.Failed() {
			w.t.Fatalf("after crash %d", w.crashes)
		}
		w.clock.pass(time.Second)
	}
	w.t.Fatal("after 1000 processes there is still something to do")
}

// noteCuts records which runs the crash interrupted. An interrupted run is executing, but its process has ended.
func (w *environment) noteCuts() {
	w.t.Helper()
	for _, turn := range slices.Compact(slices.Clone(w.turns)) {
		for _, c := range w.callsOf(turn) {
			if c.Execution == "" {
				continue
			}
			if e := w.execution(c.Execution); e.State == approvers.ExecutionExecuting {
				w.cut[e.ID] = e.Tries
			}
		}
	}
}

// w.leave ends a killed process. A killed process does not close its store. So w.leave copies the store's file before
// it closes the store, and the next process gets only the copy. For a database, no copy is needed, because the server
// rolls back the changes that were not committed.
func (w *environment) leave() {
	w.t.Helper()
	if w.database != "" {
		w.ok(w.store.Close())
		return
	}
	left, err := os.ReadFile(w.path)
	w.ok(err)
	w.ok(w.store.Close())
	w.ok(os.Remove(w.path))
	w.path = filepath.Join(filepath.Dir(w.path), fmt.Sprintf("after-%d.db", w.crashes))
	w.ok(os.WriteFile(w.path, left, 0o600))
}

// alive runs one process. If the process was killed, alive returns false.
func (w *environment) alive() (finished bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(stopped); !ok {
				panic(p)
			}
			finished = false
		}
	}()
	w.ok(w.Runs.Recover(w.ctx(), store.AllShares))
	for range 10_000 {
		if !w.step() {
			return true
		}
	}
	w.t.Fatal("after 10,000 steps there is still something to do")
	return true
}

// w.step does the next due work, if any work is due.
func (w *environment) step() bool {
	for _, d := range w.deliveries {
		if d.received {
			continue
		}
		payload, err := json.Marshal(d.act)
		w.ok(err)
		w.clock.pass(time.Millisecond)
		_, err = w.Intake.Receive(w.ctx(), store.Inbox{ID: d.id, Kind: store.InboxEvent, ReceivedAt: w.clock.Now(), Payload: payload}, "")
		w.ok(err)
		w.reach(notAcknowledged)
		d.received = true
		w.reach(notHandled)
		return true
	}
	handlers := map[store.TimerKind]jobs.Handler{
		store.TimerInbox: w.handle, store.TimerThink: w.think, store.TimerRun: w.runTool, store.TimerPreview: w.makePreview,
		store.TimerShowFirst: w.showAt, store.TimerShow: w.showAt, store.TimerShowAnswer: w.showAt, store.TimerShowLast: w.showAt,
		store.TimerAvailability: w.resolveAvailability, store.TimerRemind: w.remind, store.TimerAway: w.absenceChanged, store.TimerWebhook: w.tellWebhook,
		store.TimerLeftover: func(ctx context.Context, t store.Timer) error { return w.Outbox.TriedLeftovers(ctx, t.Ref, nil) }, // Slack deletes everything here
		store.TimerCatchUp:  func(ctx context.Context, _ store.Timer) error { return w.Intake.CaughtUp(ctx, settings.Gap{}) },   // Slack has no messages to read again
	}
	for kind, worker := range w.Workers() {
		handlers[kind] = worker.Handle
	}
	for _, kind := range stepOrder {
		if handlers[kind] == nil {
			w.t.Fatalf("nothing handles timers %q here", kind)
		}
	}
	due := readStore(w.harness, func(r store.Reader) (first []store.Timer, err error) {
		for _, kind := range stepOrder {
			if first, err = r.TimersIn(store.AllShares, kind, w.clock.Now(), 1); err != nil || len(first) > 0 {
				break
			}
		}
		return first, err
	})
	if len(due) > 0 {
		w.clock.pass(time.Millisecond)
		if err := handlers[due[0].Kind](w.ctx(), due[0]); err != nil && !errors.Is(err, workflow.ErrNotDue) {
			w.t.Fatalf("%s: %v", due[0].Kind, err)
		}
		return true
	}
	return slices.ContainsFunc(w.others, func(o *otherAgent) bool { return o.acts(w) }) || w.people()
}

// stepOrder lists all timer kinds in the order in which step handles them: work, then cards, then deadlines.
var stepOrder = func() []store.TimerKind {
	work := append([]store.TimerKind{store.TimerInbox, store.TimerThink, store.TimerRun}, store.ShowTimers...)
	return append(work, slices.DeleteFunc(slices.Clone(store.TimerKinds), func(k store.TimerKind) bool { return slices.Contains(work, k) })...)
}()

// makePreview calls a companion, which is a tool that makes the preview of another tool. The companion is read-only, so
// the bot may call it any number of times.
func (w *environment) makePreview(ctx context.Context, t store.Timer) error {
	p, ok, err := w.Runs.BeginPreview(ctx, t.Ref)
	if err != nil || !ok {
		return err
	}
	w.previews[p.Digest]++
	return w.Runs.EndPreview(ctx, p, approvers.PreviewAnswer{Text: "it is fine"})
}

// wantPreviews checks that every request got its preview, or was decided before the preview was made. wantPreviews also
// checks that no tool was called for a preview too often.
func (w *environment) wantPreviews() {
	w.t.Helper()
	for _, turn := range slices.Compact(slices.Clone(w.turns)) {
		for _, c := range w.callsOf(turn) {
			if c.Request == "" {
				continue
			}
			r := w.request(c.Request)
			if f := r.ToolPreview; f == nil && r.Tool == "issue_refund" || f.Making() && r.State == approvers.Pending || f != nil && f.State == approvers.ToolPreviewFailed && f.Tries < approvers.ToolPreviewTries {
				w.t.Errorf("a request of %s that is %s has the preview %+v", r.Tool, r.State, f)
			}
		}
	}
	for digest, n := range w.previews {
		if n > approvers.ToolPreviewTries {
			w.t.Errorf("a tool was asked %d times about %s", n, digest)
		}
	}
}

// heard returns the turn of each message. heard reads the turns from the store, because the memory of a killed process
// is lost.
func (w *environment) heard() []string {
	w.t.Helper()
	return readStore(w.harness, func(r store.Reader) (turns []string, err error) {
		conv, err := r.ConversationAt("T0001/C0001/100.1")
		if errors.Is(err, store.ErrNotFound) {
			return nil, nil
		}
		messages, err := r.Messages(conv.ID, 0)
		for _, m := range messages {
			turns = append(turns, m.Turn)
		}
		return turns, err
	})
}
