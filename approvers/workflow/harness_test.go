package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
	"countersign/store/bolt"
	"countersign/store/jobs"
	"countersign/store/postgres"
)

// harness is a workflow with a real store, and with fakes of Slack, the tools and the clock. At the end of the test,
// the harness checks the store's invariants.
type harness struct {
	*workflow.Workflow
	t         testing.TB
	path      string
	database  string // address of the database that is used instead of a file; empty: there is none
	store     store.Store
	clock     *clock
	policy    atomic.Pointer[approvers.Policy]
	tools     *toolbox
	turns     []string
	quiet     map[string]time.Time                      // by user id: until when the person is in do-not-disturb
	gone      map[string]bool                           // by user id: whether the person's account is deactivated
	n         int                                       // the number of ids that were made
	known     map[approvers.PersonID]approvers.Identity // Slack's data about people whom a test has changed
	slackDown bool
}

func newHarness(t testing.TB) *harness { return newHarnessIn(t, t.TempDir()) }

func newHarnessIn(t testing.TB, dir string) *harness {
	h := newBareHarness(t, dir)
	t.Cleanup(func() { // before the store is closed
		if !t.Failed() {
			h.invariants()
		}
	})
	return h
}

// newBareHarness is like newHarness, but does not check the invariants at the end of the test.
func newBareHarness(t testing.TB, dir string) *harness {
	h := &harness{
		t: t, path: filepath.Join(dir, "store.db"), tools: newToolbox(),
		clock: &clock{now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}, quiet: map[string]time.Time{}, gone: map[string]bool{},
	}
	h.policy.Store(policy("policy-1"))
	h.open(nil)
	t.Cleanup(func() {
		if err := h.store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return h
}

// open opens the store and creates a new workflow on it, as a new process does. wrap may wrap the store.
func (h *harness) open(wrap func(store.Store) store.Store) {
	h.t.Helper()
	var s store.Store
	var err error
	if h.database != "" {
		s, err = postgres.Open(h.ctx(), h.database, postgres.Options{})
	} else {
		s, err = bolt.Open(h.path, bolt.Options{Rehearse: true})
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.store = s
	seen := s
	if wrap != nil {
		seen = wrap(s)
	}
	h.Workflow = workflow.New(workflow.Config{
		Store: seen, Policy: h.policy.Load, Tools: h.tools, Log: slog.New(slog.DiscardHandler), Now: h.clock.Now,
		GrantOwner: h.giver, Team: func(context.Context) (string, error) { return "T0001", nil },
	})
}

// reopen starts a new process on the same file.
func (h *harness) reopen() {
	h.t.Helper()
	if err := h.store.Close(); err != nil {
		h.t.Fatal(err)
	}
	h.open(nil)
	h.ok(h.Runs.Recover(h.ctx(), store.AllShares))
}

func (h *harness) ctx() context.Context { return context.Background() }

func (h *harness) ok(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) id(kind string) string {
	h.n++
	return fmt.Sprintf("%s-%d", kind, h.n)
}

// wantDenied checks that an error is a denial with a code.
func wantDenied(t testing.TB, err error, code approvers.Code) approvers.Denied {
	t.Helper()
	var denied *approvers.Denied
	if !errors.As(err, &denied) {
		t.Fatalf("got %v; want denied for %s", err, code)
	}
	if denied.Code != code {
		t.Fatalf("denied for %s; want %s", denied.Code, code)
	}
	return *denied
}

// readStore runs a read transaction.
func readStore[T any](h *harness, read func(store.Reader) (T, error)) T {
	h.t.Helper()
	var out T
	h.ok(h.store.View(h.ctx(), func(r store.Reader) (err error) {
		out, err = read(r)
		return err
	}))
	return out
}

// say makes a person write a message in the thread, and returns the outcome.
func (h *harness) say(who approvers.Identity, text string) workflow.MessageResult {
	h.t.Helper()
	return h.sayIn("100.1", who, text)
}

func (h *harness) sayIn(thread string, who approvers.Identity, text string) workflow.MessageResult {
	h.t.Helper()
	h.n++
	u := workflow.IncomingMessage{
		Inbox: h.id("Ev"), At: h.clock.Now(), Team: "T0001", Thread: thread, TS: fmt.Sprintf("ts-%06d", h.n), Who: who, Text: text, Start: true,
		Channel: approvers.ChannelRef{Channel: "C0001", Name: "support"},
	}
	return h.hear(u)
}

func (h *harness) hear(u workflow.IncomingMessage) workflow.MessageResult {
	h.t.Helper()
	if u.Inbox != "" {
		_, err := h.Intake.Receive(h.ctx(), store.Inbox{ID: u.Inbox, Kind: store.InboxEvent, ReceivedAt: u.At, Payload: []byte("{}")}, "thread:"+u.Thread)
		h.ok(err)
	}
	heard, err := h.Intake.ReceiveMessage(h.ctx(), u)
	h.ok(err)
	if heard.Turn != "" {
		h.turns = append(h.turns, heard.Turn)
	}
	return heard
}

// begin calls Turns.Begin for a model call that is due.
func (h *harness) begin(turn string) workflow.Brief {
	h.t.Helper()
	b, err := h.Turns.Begin(h.ctx(), turn)
	h.ok(err)
	return b
}

// calls parses tool calls to the model, each as "tool {args}".
func calls(specs ...string) []workflow.ModelCall {
	var out []workflow.ModelCall
	for i, s := range specs {
		tool, args, _ := strings.Cut(s, " ")
		out = append(out, workflow.ModelCall{ID: fmt.Sprintf("m%d", i), Tool: tool, Args: args})
	}
	return out
}

// propose makes the model request calls in a turn, and returns the stored calls.
func (h *harness) propose(turn string, specs ...string) []store.Call {
	h.t.Helper()
	b := h.begin(turn)
	var authors []approvers.PersonID
	for _, m := range b.Messages {
		if m.Author != "" {
			authors = append(authors, m.Author)
		}
	}
	h.ok(h.Turns.Propose(h.ctx(), workflow.Proposal{Turn: turn, Step: b.Turn.Step, Text: "Let me see.", Calls: calls(specs...), Authors: authors}))
	var out []store.Call
	for _, c := range h.callsOf(turn) {
		if c.Step == b.Turn.Step+1 {
			out = append(out, c)
		}
	}
	return out
}

// ask makes alice ask for something, for which the model requests one call. ask returns the call's request.
func (h *harness) ask(spec string) approvers.Request {
	h.t.Helper()
	c := h.propose(h.say(alice, "please").Turn, spec)[0]
	if c.Request == "" {
		h.t.Fatalf("nobody was asked about %s; outcome %s: %s", spec, c.Outcome, c.Result)
	}
	return h.request(c.Request)
}

func (h *harness) callsOf(turn string) []store.Call {
	h.t.Helper()
	return readStore(h, func(r store.Reader) ([]store.Call, error) { return r.Calls(turn) })
}

func (h *harness) call(id string) store.Call {
	h.t.Helper()
	return readStore(h, func(r store.Reader) (store.Call, error) { return r.Call(id) })
}

func (h *harness) request(id string) approvers.Request {
	h.t.Helper()
	return readStore(h, func(r store.Reader) (approvers.Request, error) { return r.Request(id) })
}

func (h *harness) execution(id string) approvers.Execution {
	h.t.Helper()
	return readStore(h, func(r store.Reader) (approvers.Execution, error) { return r.Execution(id) })
}

func (h *harness) turn(id string) approvers.Turn {
	h.t.Helper()
	return readStore(h, func(r store.Reader) (approvers.Turn, error) { return r.Turn(id) })
}

func (h *harness) messagesOf(ref string) []store.OutboxMessage {
	h.t.Helper()
	return readStore(h, func(r store.Reader) ([]store.OutboxMessage, error) { return r.OutboxMessagesOf(ref) })
}

// h.timers returns the timers of some kinds. The keys are the Refs of the timers.
func (h *harness) timers(kinds ...store.TimerKind) map[string]store.Timer {
	h.t.Helper()
	out := map[string]store.Timer{}
	for _, kind := range kinds {
		for _, t := range readStore(h, func(r store.Reader) ([]store.Timer, error) { return r.Timers(kind, 10_000) }) {
			out[t.Ref] = t
		}
	}
	return out
}

// clickOn returns a click of a person on the current card of a request. The click is received now.
func (h *harness) clickOn(who approvers.Identity, kind approvers.DecisionKind, request string) workflow.Click {
	h.t.Helper()
	r := h.request(request)
	c := workflow.Click{
		Inbox: h.id("click"), At: h.clock.Now(), Who: who, Request: request, Kind: kind, Reason: "because",
		Digest: r.Digest, Stage: approvers.StageDigest(r), Whole: true, Typed: true, Rendering: "rendering", Channel: "C0002", MessageTS: "200.1",
	}
	h.receive(c)
	return c
}

func (h *harness) receive(c workflow.Click) {
	h.t.Helper()
	_, err := h.Intake.Receive(h.ctx(), store.Inbox{ID: c.Inbox, Kind: store.InboxInteraction, ReceivedAt: c.At, Payload: []byte("{}")}, "person:"+string(c.Who.ID))
	h.ok(err)
}

func (h *harness) approve(who approvers.Identity, request string) approvers.Request {
	h.t.Helper()
	r, err := h.Requests.Decide(h.ctx(), h.clickOn(who, approvers.Approve, request))
	h.ok(err)
	return r
}

func (h *harness) reject(who approvers.Identity, request string) approvers.Request {
	h.t.Helper()
	r, err := h.Requests.Decide(h.ctx(), h.clickOn(who, approvers.Reject, request))
	h.ok(err)
	return r
}

// edit returns a click that submits edited arguments.
func (h *harness) edit(who approvers.Identity, request, args string) workflow.Click {
	h.t.Helper()
	c := h.clickOn(who, approvers.Modify, request)
	c.Args, c.Typed = json.RawMessage(args), false
	return c
}

// run claims and finishes an execution. If the execution may not run, the test fails.
func (h *harness) run(execution, result string) {
	h.t.Helper()
	e, run, err := h.Runs.Claim(h.ctx(), execution)
	h.ok(err)
	if !run {
		h.t.Fatalf("%s was not to be run; it is %s", e.Tool, h.execution(execution).State)
	}
	h.ok(h.Runs.Finish(h.ctx(), execution, true, result))
}

// notRun claims an execution. If the execution may run, the test fails.
func (h *harness) notRun(execution string) {
	h.t.Helper()
	e, run, err := h.Runs.Claim(h.ctx(), execution)
	h.ok(err)
	if run {
		h.t.Fatalf("%s was allowed to run", e.Tool)
	}
}

// h.due handles all due timers in order with the workflow's own handlers, until no timer is due.
func (h *harness) due() {
	h.t.Helper()
	handlers := map[store.TimerKind]jobs.Handler{
		store.TimerExpire: h.Requests.Expire, store.TimerEscalate: h.Requests.Escalate, store.TimerLeave: h.Runs.LeaveUnknown,
		store.TimerAvailability: h.resolveAvailability, store.TimerRemind: h.remind, store.TimerAway: h.absenceChanged,
		store.TimerModelQuestion: h.Questions.Expire, store.TimerGrant: h.Grants.Lapse, store.TimerRepost: h.Outbox.Repost, store.TimerChannel: h.Intake.LeaveChannel,
		store.TimerOutcome: h.Callers.Overdue,
	}
	for range 1000 {
		var first *store.Timer
		for kind := range handlers {
			for _, t := range readStore(h, func(r store.Reader) ([]store.Timer, error) {
				return r.TimersIn(store.AllShares, kind, h.clock.Now(), 1)
			}) {
				if first == nil || t.Due.Before(first.Due) {
					first = &t
				}
			}
		}
		if first == nil {
			return
		}
		h.ok(handlers[first.Kind](h.ctx(), *first))
	}
	h.t.Fatal("timers stay due although they were handled")
}

// answer ends a turn with an answer of the model. A model call of the turn must be due.
func (h *harness) answer(turn string) {
	h.t.Helper()
	b := h.begin(turn)
	h.ok(h.Turns.Answer(h.ctx(), turn, b.Turn.Step, "Done.", nil, 1))
}

// h.kinds returns the kinds of an audit chain's records as one string.
func (h *harness) kinds(chain string) string {
	h.t.Helper()
	var out []string
	for _, a := range readStore(h, func(r store.Reader) ([]approvers.AuditRecord, error) { return r.Audit(chain) }) {
		out = append(out, string(a.Kind))
	}
	return strings.Join(out, " ")
}

func (h *harness) wantKinds(chain, want string) {
	h.t.Helper()
	if got := h.kinds(chain); got != want {
		h.t.Errorf("audit %q\nwant  %q", got, want)
	}
}

func (h *harness) wantOutcome(call string, want approvers.Outcome) store.Call {
	h.t.Helper()
	c := h.call(call)
	if c.Outcome != want {
		h.t.Errorf("%s: outcome %q; want %q", c.Tool, c.Outcome, want)
	}
	return c
}

func (h *harness) wantState(request string, want approvers.State) approvers.Request {
	h.t.Helper()
	r := h.request(request)
	if r.State != want {
		h.t.Errorf("%s: %s (%s); want %s", r.Tool, r.State, r.Reason, want)
	}
	return r
}

func (h *harness) wantTurn(turn string, want approvers.TurnState) {
	h.t.Helper()
	if got := h.turn(turn).State; got != want {
		h.t.Errorf("turn is %s; want %s", got, want)
	}
}

func contains(s, part string) bool { return strings.Contains(s, part) }
