package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
)

// busy is a harness with open work of every kind. busy holds the ids of the records that the tests check after the
// restoration.
type busy struct {
	*harness
	waits, approved, executing, unknown approvers.Request
	grant                               approvers.Grant
	automatic, running, reading         store.Call
	question                            store.Call
	click                               string
}

func newBusy(t *testing.T) *busy {
	b := &busy{harness: newHarness(t)}
	b.policy.Store(policy("policy-1", granting, func(p *approvers.Policy) { p.Tools[4].Confirm = true }))
	b.tools.asks("ask_people")
	b.grant = b.granted(3)
	b.sayIn("another", alice, "hello") // queued for the model
	thread := 0
	in := func(spec ...string) []store.Call {
		thread++
		return b.propose(b.sayIn(fmt.Sprint("thread-", thread), alice, "please").Turn, spec...)
	}
	two := in(`cancel_account {"order_id":"1"}`, `cancel_account {"order_id":"2"}`)
	b.waits, b.approved = b.request(two[0].Request), b.request(two[1].Request)
	b.approve(fin1, b.approved.ID)
	b.executing = b.request(in(`cancel_account {"order_id":"3"}`)[0].Request)
	b.approve(fin1, b.executing.ID)
	b.claims(b.executing.Execution)
	b.unknown = b.request(in(`cancel_account {"order_id":"4"}`)[0].Request)
	b.approve(fin1, b.unknown.ID)
	b.claims(b.unknown.Execution)
	b.ok(b.Runs.MarkUnknown(b.ctx(), b.unknown.Execution))
	automatic := in(`update_address {"order_id":"5"}`, `update_address {"order_id":"6"}`, `search_orders {}`)
	b.automatic, b.running, b.reading = automatic[0], automatic[1], automatic[2]
	b.claims(b.running.Execution)
	b.claims(b.reading.Execution)
	b.question = in(question)[0]
	b.sayIn("thread-1", bob, "and what about me?") // waits for the turn under way
	b.click = b.clickOn(fin1, approvers.Approve, b.waits.ID).Inbox
	return b
}

func (b *busy) claims(execution string) {
	b.t.Helper()
	_, run, err := b.Runs.Claim(b.ctx(), execution)
	b.ok(err)
	if !run {
		b.t.Fatalf("%s is not to be run", execution)
	}
}

var taken = time.Date(2026, 3, 2, 9, 30, 0, 0, time.UTC)

var fromBackup = workflow.Restoration{Who: anna.ID, Backup: "monday.db", Hash: "00ff", Taken: taken}

// stopping is a store whose writes fail after the first n writes.
type stopping struct {
	store.Store
	left int
}

var errKilled = errors.New("killed")

func (s *stopping) Update(ctx context.Context, fn func(store.Tx) error) error {
	if s.left == 0 {
		return errKilled
	}
	s.left--
	return s.Store.Update(ctx, fn)
}

// After a restoration, all open work is closed. People are told that the work may have been done after the backup. No
// message may say that the work was not done.
func TestRestored(t *testing.T) {
	b := newBusy(t)
	b.reopen()
	unseen, err := b.Views.Unseen(b.ctx())
	b.ok(err)
	var runs []string
	for _, e := range unseen {
		runs = append(runs, e.ID)
	}
	slices.Sort(runs)
	if want := slices.Sorted(slices.Values([]string{b.executing.Execution, b.unknown.Execution, b.running.Execution})); !slices.Equal(runs, want) {
		t.Errorf("runs whose end nobody saw: %v; want %v", runs, want)
	}
	b.ok(b.History.Restored(b.ctx(), fromBackup))
	b.wantNothingOpen()
	for _, r := range []approvers.Request{b.waits, b.approved} {
		after := b.wantState(r.ID, approvers.Voided)
		if !after.Lost || !contains(after.Reason, "a backup of 2026-03-02 09:30:00 UTC") || !contains(after.Reason, "it may have been decided, and run") {
			t.Errorf("%+v", after)
		}
		chain := readStore(b.harness, func(s store.Reader) ([]approvers.AuditRecord, error) { return s.Audit(r.ID) })
		i := slices.IndexFunc(chain, func(a approvers.AuditRecord) bool { return a.Kind == approvers.AuditClosed })
		if i < 0 || chain[i].Facts["why"] != string(approvers.LossRestored) {
			t.Errorf("the history of the request does not say why it was closed: %v", chain)
		}
		if c := b.wantOutcome(r.Call, approvers.OutcomeVoided); !contains(c.Result, "Do not call it again") || contains(c.Result, "was not run") {
			t.Errorf("the agent is told %s", c.Result)
		}
		for _, s := range b.messagesOf(r.ID) {
			if s.State != store.OutboxWanted {
				t.Errorf("the %s at %s is not shown again", s.Kind, s.To)
			}
		}
	}
	for _, e := range []string{b.executing.Execution, b.unknown.Execution, b.running.Execution} {
		if got := b.execution(e); got.State != approvers.ExecutionUnknown {
			t.Errorf("%s of %s is %s", e, got.Tool, got.State)
		}
	}
	for _, call := range []string{b.executing.Call, b.unknown.Call, b.running.ID} {
		b.wantOutcome(call, approvers.OutcomeUnknown)
	}
	b.ok(b.Runs.Report(b.ctx(), workflow.Click{Who: anna, Execution: b.executing.Execution, Reason: "seen at the bank"}, workflow.Happened))
	if c := b.wantOutcome(b.automatic.ID, approvers.OutcomeVoided); !contains(c.Result, "it may have been decided, and run") || b.execution(c.Execution).State != approvers.ExecutionNone {
		t.Errorf("what had not begun: %s, %s", b.execution(c.Execution).State, c.Result)
	}
	b.wantOutcome(b.reading.ID, approvers.OutcomeError)
	b.wantOutcome(b.question.ID, approvers.OutcomeVoided)
	if g := b.harness.grant(b.grant.ID); g.State != approvers.GrantRevoked || g.ClosedBy != anna.ID {
		t.Errorf("the grant is %s", g.State)
	}
	row := readStore(b.harness, func(r store.Reader) (store.Inbox, error) { return r.Inbox(b.click) })
	if row.HandledAt.IsZero() || !contains(row.Note, "set aside") {
		t.Errorf("the click: %+v", row)
	}
	_, err = b.Requests.Decide(b.ctx(), b.clickOn(fin1, approvers.Approve, b.waits.ID))
	wantDenied(t, err, approvers.DeniedResolved)

	turn := b.turn(b.waits.Turn)
	if turn.State != approvers.TurnStopped || !turn.CanRetry || !contains(turn.Problem, "put back from a backup of 2026-03-02 09:30:00 UTC") {
		t.Errorf("the turn: %+v", turn)
	}
	b.wantKinds(approvers.InstallationChain, "restored")
	records := readStore(b.harness, func(r store.Reader) ([]approvers.AuditRecord, error) { return r.Audit(approvers.InstallationChain) })
	if f := records[0].Facts; records[0].Actor != anna.ID || f["backup"] != "monday.db" || f["sha256"] != "00ff" || f["requests"] != "2" || f["runs"] != "4" || f["deliveries"] == "0" || f["grants"] != "1" {
		t.Errorf("recorded as %+v", records[0])
	}
	messages := readStore(b.harness, func(r store.Reader) ([]store.Message, error) { return r.Messages(turn.Conversation, 0) })
	waited := messages[len(messages)-1].Turn // the turn of the message that waited
	b.turns = append(b.turns, waited)
	b.ok(b.Turns.TryAgain(b.ctx(), workflow.Click{Who: bob, Turn: waited}))
}

// wantNothingOpen checks that the store has no open work on which a process could act.
func (b *busy) wantNothingOpen() {
	b.t.Helper()
	b.invariants()
	for _, kind := range []store.TimerKind{store.TimerRun, store.TimerThink, store.TimerInbox, store.TimerExpire, store.TimerEscalate, store.TimerModelQuestion, store.TimerLeave, store.TimerGrant} {
		if left := b.timers(kind); len(left) > 0 {
			b.t.Errorf("there is still %s to do: %v", kind, left)
		}
	}
	if left := readStore(b.harness, func(r store.Reader) ([]approvers.Request, error) { return r.OpenRequests(store.RequestCursor{}, 10) }); len(left) > 0 {
		b.t.Errorf("%d requests are open", len(left))
	}
	if left := b.grants(); len(left) > 0 {
		b.t.Errorf("%d grants are open", len(left))
	}
	for _, e := range []string{b.waits.Execution, b.approved.Execution, b.executing.Execution, b.unknown.Execution, b.automatic.Execution, b.running.Execution, b.reading.Execution} {
		b.notRun(e)
	}
}

// A waiting turn has a timer, as in a salvaged store, and has an open call whose run is lost.
func TestRestoredWithoutRun(t *testing.T) {
	h := newHarness(t)
	turn := h.turn(h.sayIn("thread", alice, "please").Turn)
	turn.State, turn.Step = approvers.TurnWaiting, 1
	lost := store.Call{ID: "call", Conversation: turn.Conversation, Turn: turn.ID, Step: 1, Tool: "issue_refund", Args: "{}", Execution: "lost"}
	proposed := approvers.AuditRecord{Chain: lost.Execution, At: h.clock.Now(), Kind: approvers.AuditProposed}.Link(approvers.AuditRecord{})
	h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
		return errors.Join(tx.PutTurn(turn), tx.PutCall(lost), tx.AppendAudit(proposed, nil))
	}))
	h.ok(h.History.Restored(h.ctx(), fromBackup))
	if c := h.wantOutcome(lost.ID, approvers.OutcomeUnknown); contains(c.Result, "nothing was run") {
		t.Errorf("the agent is told %s", c.Result)
	}
	if got := h.turn(turn.ID); !got.Ended() {
		t.Errorf("the turn is %s", got.State)
	}
}

// The conversation of a turn is lost, perhaps while somebody stopped the turn. The restoration gives the turn's call a
// result, and ends the turn.
func TestRestoredWithoutConversation(t *testing.T) {
	for _, stopping := range []string{"", "stopped"} {
		h := newBareHarness(t, t.TempDir())
		turn := h.turn(h.sayIn("thread", alice, "please").Turn)
		turn.State, turn.Step, turn.Stopping, turn.Conversation = approvers.TurnWaiting, 1, stopping, "lost"
		open := store.Call{ID: "call", Conversation: turn.Conversation, Turn: turn.ID, Step: 1, Tool: "issue_refund", Args: "{}", Execution: "lost"}
		h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error { return errors.Join(tx.PutTurn(turn), tx.PutCall(open)) }))
		h.ok(h.History.Restored(h.ctx(), fromBackup))
		h.wantOutcome(open.ID, approvers.OutcomeUnknown)
		h.wantTurn(turn.ID, approvers.TurnStopped)
		if timers := h.timers(store.TimerThink); len(timers) > 0 {
			t.Errorf("there are timers: %v", timers)
		}
	}
}

// A client's call is lost with its request and its run, and the turn and the conversation are left. The restoration ends
// the turn without a message, because the conversation is not in Slack.
func TestRestoredCallersTurn(t *testing.T) {
	h := newBareHarness(t, t.TempDir())
	h.policy.Store(policy("policy-1", withClients))
	conv := h.callerView("ci", h.callerAsks(callerCall("k", `issue_refund {"amount": 5}`))).Conversation
	turn := approvers.Turn{ID: "turn", Conversation: conv.ID, State: approvers.TurnWaiting, Step: 1, CreatedAt: h.clock.Now()}
	h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
		return errors.Join(tx.PutTurn(turn), tx.SetTimer(store.Timer{Kind: store.TimerThink, Ref: turn.ID, Due: h.clock.Now()}))
	}))
	h.ok(h.History.Restored(h.ctx(), fromBackup))
	h.wantTurn(turn.ID, approvers.TurnAnswered)
	if messages := h.messagesOf(turn.ID); len(messages) > 0 {
		t.Errorf("there are messages: %v", messages)
	}
}

// A salvaged store lacks its newest commits, and has lost further records of an approved call. The call may have run in
// these commits, so nobody is told that nothing was run.
func TestSalvagedOlder(t *testing.T) {
	for _, lost := range []string{
		"", "requests", "turns", "executions", "calls", "calls executions", "requests executions", "calls requests executions", "conversations",
	} {
		t.Run(lost, func(t *testing.T) {
			h := newBareHarness(t, t.TempDir()) // a store with lost records does not have all invariants
			r := h.approve(lead, h.ask(`issue_refund {"amount":40}`).ID)
			id := map[string]string{"requests": r.ID, "turns": r.Turn, "executions": r.Execution, "calls": r.Call, "conversations": r.Conversation}
			damages := []store.Damage{{Bucket: "file"}}
			for _, bucket := range strings.Fields(lost) {
				h.flip(bucket, id[bucket])
				damages = append(damages, store.Damage{Bucket: bucket, ID: id[bucket]})
			}
			h.ok(h.History.Salvaged(h.ctx(), workflow.Restoration{Who: anna.ID, Taken: h.clock.Now()}, damages))
			c := h.call(r.Call)
			if c.Outcome != approvers.OutcomeUnknown && (c.Outcome != approvers.OutcomeVoided || !contains(c.Result, "it may have been decided, and run")) {
				t.Errorf("the call is %s: %s", c.Outcome, c.Result)
			}
			if all := h.request(r.ID); all.State == approvers.Voided && !all.Lost {
				t.Errorf("the request is %s: %s", all.State, all.Reason)
			}
			if !contains(lost, "calls") || !contains(lost, "executions") {
				if e := h.execution(r.Execution); e.State != approvers.ExecutionUnknown || e.Unrun {
					t.Errorf("the run is %s", e.State)
				}
			}
			if turn := h.turn(r.Turn); !turn.Ended() {
				t.Errorf("the turn is %s", turn.State)
			}
		})
	}
}

// A salvaged store lacks its newest commits. The call's row has the result of a run, and the history, without a gap,
// does not have the run. In the other case, only the turn has a timer, and the call's run has not begun in this store.
func TestSalvagedOlderCall(t *testing.T) {
	for _, ran := range []bool{true, false} {
		h := newBareHarness(t, t.TempDir())
		c := h.propose(h.say(alice, "please").Turn, `update_address {}`)[0]
		damages := []store.Damage{{Bucket: "file"}}
		h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
			if ran {
				c.Outcome, c.Result, c.ReturnedAt = approvers.OutcomeExecuted, "done", h.clock.Now()
				return tx.PutCall(c)
			}
			return errors.Join(tx.ClearTimer(store.TimerRun, c.Execution), tx.SetTimer(store.Timer{Kind: store.TimerThink, Ref: c.Turn, Due: h.clock.Now()}))
		}))
		want := approvers.ExecutionUnknown
		if ran {
			h.flip("executions", c.Execution)
			damages, want = append(damages, store.Damage{Bucket: "executions", ID: c.Execution}), approvers.ExecutionSucceeded
		}
		h.ok(h.History.Salvaged(h.ctx(), workflow.Restoration{Who: anna.ID, Taken: h.clock.Now()}, damages))
		if e := h.execution(c.Execution); e.State != want {
			t.Errorf("the run is %s (unrun: %t), want %s", e.State, e.Unrun, want)
		}
		h.wantOutcome(c.ID, map[bool]approvers.Outcome{true: approvers.OutcomeExecuted, false: approvers.OutcomeUnknown}[ran])
		if turn := h.turn(c.Turn); !turn.Ended() && !ran {
			t.Errorf("the turn is %s", turn.State)
		}
	}
}

// If Restored stops at any point and is called again, the result is the same as without the stop. A further call adds
// only its audit record.
func TestRestoredIsKilledAndBegunAgain(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	for n := 0; ; n++ {
		b := newBusy(t)
		b.ok(b.store.Close())
		b.open(func(s store.Store) store.Store { return &stopping{s, n} })
		err := b.History.Restored(b.ctx(), fromBackup)
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		b.invariants()
		b.reopen()
		if err != nil && slices.Contains(strings.Fields(b.kinds(approvers.InstallationChain)), "restored") {
			t.Fatalf("killed in write %d: it is recorded before it is done", n)
		}
		b.ok(b.History.Restored(b.ctx(), fromBackup))
		b.wantNothingOpen()
		if err == nil {
			b.wantKinds(approvers.InstallationChain, "restored restored")
			t.Logf("killed in each of %d writes, and begun again", n)
			if n < 10 {
				t.Errorf("it took only %d writes", n)
			}
			return
		}
		b.wantKinds(approvers.InstallationChain, "restored")
	}
}
