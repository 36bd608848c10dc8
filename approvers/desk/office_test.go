package desk_test

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
	"countersign/approvers/desk"
	"countersign/store"
	"countersign/store/bolt"
)

// office is a desk over a real store, with everything around it faked. Its books are checked when the test ends.
type office struct {
	*desk.Desk
	t         testing.TB
	path      string
	store     store.Store
	clock     *clock
	policy    atomic.Pointer[approvers.Policy]
	tools     *toolbox
	turns     []string
	quiet     map[string]time.Time                      // until when somebody can't be disturbed, by user id
	n         int                                       // for ids
	known     map[approvers.PersonID]approvers.Identity // as whom Slack knows somebody who is not as they seem
	slackDown bool
}

func newOffice(t testing.TB) *office { return newOfficeIn(t, t.TempDir()) }

func newOfficeIn(t testing.TB, dir string) *office {
	o := &office{
		t: t, path: filepath.Join(dir, "store.db"), tools: newToolbox(),
		clock: &clock{now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}, quiet: map[string]time.Time{},
	}
	o.policy.Store(policy("policy-1"))
	o.open(nil)
	t.Cleanup(func() {
		if !t.Failed() {
			o.books()
		}
		if err := o.store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return o
}

// open opens the store and puts a new desk before it, as a process that starts does. wrap may stand between them.
func (o *office) open(wrap func(store.Store) store.Store) {
	o.t.Helper()
	s, err := bolt.Open(o.path, bolt.Options{Rehearse: true})
	if err != nil {
		o.t.Fatal(err)
	}
	o.store = s
	seen := store.Store(s)
	if wrap != nil {
		seen = wrap(s)
	}
	o.Desk = desk.New(desk.Config{
		Store: seen, Policy: o.policy.Load, Tools: o.tools, Log: slog.New(slog.DiscardHandler), Now: o.clock.Now,
		Giver: o.giver,
	})
}

// reopen is a new process on the same file.
func (o *office) reopen() {
	o.t.Helper()
	if err := o.store.Close(); err != nil {
		o.t.Fatal(err)
	}
	o.open(nil)
	o.ok(o.Recover(o.ctx()))
}

func (o *office) ctx() context.Context { return context.Background() }

func (o *office) ok(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) id(kind string) string {
	o.n++
	return fmt.Sprintf("%s-%d", kind, o.n)
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

// view reads.
func view[T any](o *office, read func(store.Reader) (T, error)) T {
	o.t.Helper()
	var out T
	o.ok(o.store.View(o.ctx(), func(r store.Reader) (err error) {
		out, err = read(r)
		return err
	}))
	return out
}

// say has a person say something in the thread, and returns what became of it.
func (o *office) say(who approvers.Identity, text string) desk.Heard {
	o.t.Helper()
	return o.sayIn("100.1", who, text)
}

func (o *office) sayIn(thread string, who approvers.Identity, text string) desk.Heard {
	o.t.Helper()
	u := desk.Utterance{
		Inbox: o.id("Ev"), At: o.clock.Now(), Team: "T0001", Thread: thread, TS: o.id("ts"), Who: who, Text: text, Start: true,
		Place: approvers.Place{Channel: "C0001", Name: "support"},
	}
	return o.hear(u)
}

func (o *office) hear(u desk.Utterance) desk.Heard {
	o.t.Helper()
	if u.Inbox != "" {
		_, err := o.Receive(o.ctx(), store.Inbox{ID: u.Inbox, Kind: store.InboxEvent, ReceivedAt: u.At, Payload: []byte("{}")}, "thread:"+u.Thread)
		o.ok(err)
	}
	heard, err := o.Hear(o.ctx(), u)
	o.ok(err)
	if heard.Turn != "" {
		o.turns = append(o.turns, heard.Turn)
	}
	return heard
}

// begin begins a due model call.
func (o *office) begin(turn string) desk.Brief {
	o.t.Helper()
	b, err := o.Begin(o.ctx(), turn)
	o.ok(err)
	return b
}

// call is one tool call of the model, as "tool {args}".
func calls(specs ...string) []desk.ModelCall {
	var out []desk.ModelCall
	for i, s := range specs {
		tool, args, _ := strings.Cut(s, " ")
		out = append(out, desk.ModelCall{ID: fmt.Sprintf("m%d", i), Tool: tool, Args: args})
	}
	return out
}

// propose has the model ask for calls in a turn, and returns them as they were written down.
func (o *office) propose(turn string, specs ...string) []store.Call {
	o.t.Helper()
	b := o.begin(turn)
	var authors []approvers.PersonID
	for _, m := range b.Messages {
		if m.Author != "" {
			authors = append(authors, m.Author)
		}
	}
	o.ok(o.Propose(o.ctx(), desk.Proposal{Turn: turn, Step: b.Turn.Step, Text: "Let me see.", Calls: calls(specs...), Authors: authors}))
	var out []store.Call
	for _, c := range o.callsOf(turn) {
		if c.Step == b.Turn.Step+1 {
			out = append(out, c)
		}
	}
	return out
}

// ask has alice ask for one call, and returns its request.
func (o *office) ask(spec string) approvers.Request {
	o.t.Helper()
	c := o.propose(o.say(alice, "please").Turn, spec)[0]
	if c.Request == "" {
		o.t.Fatalf("nobody was asked about %s; outcome %s: %s", spec, c.Outcome, c.Result)
	}
	return o.request(c.Request)
}

func (o *office) callsOf(turn string) []store.Call {
	o.t.Helper()
	return view(o, func(r store.Reader) ([]store.Call, error) { return r.Calls(turn) })
}

func (o *office) call(id string) store.Call {
	o.t.Helper()
	return view(o, func(r store.Reader) (store.Call, error) { return r.Call(id) })
}

func (o *office) request(id string) approvers.Request {
	o.t.Helper()
	return view(o, func(r store.Reader) (approvers.Request, error) { return r.Request(id) })
}

func (o *office) execution(id string) approvers.Execution {
	o.t.Helper()
	return view(o, func(r store.Reader) (approvers.Execution, error) { return r.Execution(id) })
}

func (o *office) turn(id string) approvers.Turn {
	o.t.Helper()
	return view(o, func(r store.Reader) (approvers.Turn, error) { return r.Turn(id) })
}

func (o *office) surfacesOf(ref string) []store.Surface {
	o.t.Helper()
	return view(o, func(r store.Reader) ([]store.Surface, error) { return r.SurfacesOf(ref) })
}

// timers lists the timers of some kinds by what they name.
func (o *office) timers(kinds ...store.TimerKind) map[string]store.Timer {
	o.t.Helper()
	out := map[string]store.Timer{}
	for _, kind := range kinds {
		for _, t := range view(o, func(r store.Reader) ([]store.Timer, error) { return r.Timers(kind, 10_000) }) {
			out[t.Ref] = t
		}
	}
	return out
}

// clickOn is a person's click on the card of a request as it is now, received now.
func (o *office) clickOn(who approvers.Identity, kind approvers.DecisionKind, request string) desk.Click {
	o.t.Helper()
	c := desk.Click{
		Inbox: o.id("click"), At: o.clock.Now(), Who: who, Request: request, Kind: kind, Reason: "because",
		Digest: o.request(request).Digest, Whole: true, Typed: true, Rendering: "rendering", Channel: "C0002", MessageTS: "200.1",
	}
	o.receive(c)
	return c
}

func (o *office) receive(c desk.Click) {
	o.t.Helper()
	_, err := o.Receive(o.ctx(), store.Inbox{ID: c.Inbox, Kind: store.InboxInteraction, ReceivedAt: c.At, Payload: []byte("{}")}, "person:"+string(c.Who.ID))
	o.ok(err)
}

func (o *office) approve(who approvers.Identity, request string) approvers.Request {
	o.t.Helper()
	r, err := o.Decide(o.ctx(), o.clickOn(who, approvers.Approve, request))
	o.ok(err)
	return r
}

func (o *office) reject(who approvers.Identity, request string) approvers.Request {
	o.t.Helper()
	r, err := o.Decide(o.ctx(), o.clickOn(who, approvers.Reject, request))
	o.ok(err)
	return r
}

// edit is a click that changes the arguments.
func (o *office) edit(who approvers.Identity, request, args string) desk.Click {
	o.t.Helper()
	c := o.clickOn(who, approvers.Modify, request)
	c.Args, c.Typed = json.RawMessage(args), false
	return c
}

// run claims and finishes an execution; it fails the test where there is nothing to run.
func (o *office) run(execution, result string) {
	o.t.Helper()
	e, run, err := o.Claim(o.ctx(), execution)
	o.ok(err)
	if !run {
		o.t.Fatalf("%s was not to be run; it is %s", e.Tool, o.execution(execution).State)
	}
	o.ok(o.Finish(o.ctx(), execution, true, result))
}

// notRun claims an execution and fails the test if it may run.
func (o *office) notRun(execution string) {
	o.t.Helper()
	e, run, err := o.Claim(o.ctx(), execution)
	o.ok(err)
	if run {
		o.t.Fatalf("%s was allowed to run", e.Tool)
	}
}

// due runs the desk's own handlers for what has fallen due, in order, until nothing has.
func (o *office) due() {
	o.t.Helper()
	handlers := map[store.TimerKind]desk.Handler{
		store.TimerExpire: o.Expire, store.TimerEscalate: o.Escalate, store.TimerLeave: o.LeaveUnknown,
		store.TimerMuster: o.muster, store.TimerRemind: o.remind, store.TimerAway: o.depart,
		store.TimerInquiry: o.LapseInquiry, store.TimerGrant: o.LapseGrant, store.TimerRepost: o.Repost, store.TimerPlace: o.Vacate,
	}
	for range 1000 {
		var first *store.Timer
		for kind := range handlers {
			for _, t := range view(o, func(r store.Reader) ([]store.Timer, error) { return r.DueTimers(kind, o.clock.Now(), 1) }) {
				if first == nil || t.Due.Before(first.Due) {
					first = &t
				}
			}
		}
		if first == nil {
			return
		}
		o.ok(handlers[first.Kind](o.ctx(), *first))
	}
	o.t.Fatal("timers stay due although they were handled")
}

// answer ends a turn that is to think.
func (o *office) answer(turn string) {
	o.t.Helper()
	b := o.begin(turn)
	o.ok(o.Answer(o.ctx(), turn, b.Turn.Step, "Done.", 1))
}

// kinds are the kinds of a chain's records, joined.
func (o *office) kinds(chain string) string {
	o.t.Helper()
	var out []string
	for _, a := range view(o, func(r store.Reader) ([]approvers.AuditRecord, error) { return r.Audit(chain) }) {
		out = append(out, string(a.Kind))
	}
	return strings.Join(out, " ")
}

func (o *office) wantKinds(chain, want string) {
	o.t.Helper()
	if got := o.kinds(chain); got != want {
		o.t.Errorf("audit %q\nwant  %q", got, want)
	}
}

func (o *office) wantOutcome(call string, want approvers.Outcome) store.Call {
	o.t.Helper()
	c := o.call(call)
	if c.Outcome != want {
		o.t.Errorf("%s: outcome %q; want %q", c.Tool, c.Outcome, want)
	}
	return c
}

func (o *office) wantState(request string, want approvers.State) approvers.Request {
	o.t.Helper()
	r := o.request(request)
	if r.State != want {
		o.t.Errorf("%s: %s (%s); want %s", r.Tool, r.State, r.Reason, want)
	}
	return r
}

func (o *office) wantTurn(turn string, want approvers.TurnState) {
	o.t.Helper()
	if got := o.turn(turn).State; got != want {
		o.t.Errorf("turn is %s; want %s", got, want)
	}
}

func contains(s, part string) bool { return strings.Contains(s, part) }
