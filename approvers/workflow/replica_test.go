package workflow_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
	"countersign/store/jobs"
)

// peer is one of two replicas in one process. The first replica has all shares.
type peer struct {
	store.Alone
	shares store.Shares
	since  time.Time
	got    chan store.Notice
	other  *peer // nil: notices are lost
}

func (p *peer) Shares() store.Shares                 { return p.shares }
func (p *peer) Since(int) (since time.Time, ok bool) { return p.since, p.shares != 0 }
func (p *peer) Alive() int                           { return 2 }
func (p *peer) Notices() <-chan store.Notice         { return p.got }
func (p *peer) Tell(n store.Notice) {
	if p.other != nil {
		p.other.got <- n
	}
}

// inTwoReplicas calls fn with the workflows of two replicas on one store. Only the first replica handles timers.
func inTwoReplicas(t *testing.T, noticesLost bool, fn func(t *testing.T, w *workingHarness, second *workflow.Workflow)) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		first, other := &peer{shares: store.AllShares, since: time.Now(), got: make(chan store.Notice, 100)}, &peer{got: make(chan store.Notice, 100)}
		if !noticesLost {
			first.other, other.other = other, first
		}
		conf := workflow.Config{Store: w.store, Policy: w.policy.Load, Tools: w.tools, Log: slog.New(slog.DiscardHandler), Replica: first}
		w.Workflow = workflow.New(conf)
		conf.Replica = other
		fn(t, w, workflow.New(conf))
	})
}

// clickIn makes a replica receive a click.
func clickIn(w *workingHarness, replica *workflow.Workflow, c workflow.Click) workflow.Click {
	c.At = w.clock.Now()
	_, err := replica.Intake.Receive(w.ctx(), store.Inbox{ID: c.Inbox, Kind: store.InboxInteraction, ReceivedAt: c.At, Payload: []byte("{}")}, "")
	w.ok(err)
	return c
}

// A transaction in one replica may end work that runs in another replica. The other replica then stops the work:
// immediately if it gets a notice, and within two seconds if the notice is lost.
func TestAnotherReplicaEndsTheWork(t *testing.T) {
	for _, lost := range []bool{false, true} {
		inTwoReplicas(t, lost, func(t *testing.T, w *workingHarness, second *workflow.Workflow) {
			w.propose(w.sayIn("1.1", alice, "please").Turn, `search_orders {}`)
			thinking := w.sayIn("2.1", alice, "think").Turn
			var l log
			until := func(ctx context.Context, what string) error {
				select {
				case <-ctx.Done():
					l.add("%s: %v", what, context.Cause(ctx))
					return ctx.Err()
				case <-time.After(time.Minute):
					return errors.New("nobody stopped it")
				}
			}
			w.work(map[store.TimerKind]jobs.Worker{
				store.TimerThink: {Concurrency: 4, Handle: func(ctx context.Context, timer store.Timer) error {
					if _, err := w.Turns.Begin(ctx, timer.Ref); err != nil {
						return err
					}
					return until(ctx, "thought")
				}},
				store.TimerRun: {Concurrency: 4, Handle: func(ctx context.Context, timer store.Timer) error {
					e, run, err := w.Runs.Claim(ctx, timer.Ref)
					if err != nil || !run {
						return err
					}
					_ = until(ctx, "ran")
					return w.Runs.PutBack(context.WithoutCancel(ctx), e.ID)
				}},
			})
			w.pass(5 * time.Second)
			within := 2 * time.Second
			if !lost {
				within = 0
			}
			w.ok(second.Turns.StopBy(w.ctx(), clickIn(w, second, workflow.Click{Who: alice, Turn: thinking, Inbox: "stop"})))
			w.pass(within)
			synctest.Wait()
			if got := l.String(); got != "thought: "+workflow.ErrStopped.Error() {
				t.Errorf("notices lost: %v; after the stop: %q", lost, got)
			}
			l.lines = nil
			w.ok(second.Pauses.Pause(w.ctx(), lead.ID, "an incident"))
			w.pass(within)
			synctest.Wait()
			if got := l.String(); got != "ran: "+workflow.ErrPaused.Error() {
				t.Errorf("notices lost: %v; after the pause: %q", lost, got)
			}
		})
	}
}

// If one replica receives a person's answer to a tool's question, the run in another replica gets the answer.
func TestAnotherReplicaTakesTheAnswer(t *testing.T) {
	for _, lost := range []bool{false, true} {
		inTwoReplicas(t, lost, func(t *testing.T, w *workingHarness, second *workflow.Workflow) {
			call := w.propose(w.sayIn("1.1", alice, "please").Turn, `search_orders {}`)[0]
			var answer approvers.Elicitation
			w.work(map[store.TimerKind]jobs.Worker{store.TimerRun: {Concurrency: 1, Handle: func(ctx context.Context, timer store.Timer) error {
				e, run, err := w.Runs.Claim(ctx, timer.Ref)
				if err != nil || !run {
					return err
				}
				if answer, err = w.Questions.Elicit(ctx, e.ID, trip, func() string { return "it was not waited for" }); err != nil {
					return err
				}
				return w.Runs.Finish(ctx, e.ID, true, "done")
			}}})
			w.pass(time.Second)
			q := w.elicitations(call.Execution)[0]
			c := clickIn(w, second, workflow.Click{Who: alice, Elicitation: q.ID, Inbox: "answer"})
			w.ok(second.Questions.Respond(w.ctx(), c, []byte(`{"city":"Bern"}`)))
			w.pass(2 * time.Second)
			if answer.State != approvers.ElicitationAccepted || string(answer.Values) != `{"city":"Bern"}` {
				t.Errorf("notices lost: %v; the run was told %s %s", lost, answer.State, answer.Values)
			}
			w.wantOutcome(call.ID, approvers.OutcomeExecuted)
		})
	}
}

// A replica searches Slack for a message before it posts the message, if the earlier owner of the message's share may
// have posted the message. The earlier owner can have posted only a message that waited when the replica got the share.
// If the replica has not listed the waiting messages yet, it compares the time of the message with the time at which it
// got the share.
func TestMadeAmongReplicas(t *testing.T) {
	inTwoReplicas(t, false, func(t *testing.T, w *workingHarness, second *workflow.Workflow) {
		got := time.Now()
		made := func(what string, s store.OutboxMessage, want bool) {
			t.Helper()
			if made, since := w.Outbox.Made(s); made != want || !since.Equal(got) {
				t.Errorf("%s: made=%v since %s, want %v since %s", what, made, since, want, got)
			}
		}
		w.propose(w.sayIn("1.1", alice, "please").Turn, `issue_refund {"order_id":"ORD-1","amount":100,"currency":"USD"}`)
		var before []store.OutboxMessage
		for _, rank := range store.Ranks {
			for _, timer := range w.timers(rank.Timer()) {
				before = append(before, store.OutboxMessage{ID: timer.Ref, To: timer.Lane, Rank: rank, CreatedAt: got.Add(time.Hour)})
			}
		}
		if len(before) == 0 {
			t.Fatal("no message waits")
		}
		for what, tt := range map[string]struct {
			age  time.Duration
			made bool
		}{
			"of another one, before the takeover":                        {-time.Second, false},
			"of another one, perhaps with a clock ahead":                 {30 * time.Second, false},
			"of another one, after the takeover whatever the clocks say": {2 * time.Minute, true},
		} {
			made(what, store.OutboxMessage{Process: "proc_x", CreatedAt: got.Add(tt.age)}, tt.made)
		}
		w.pass(time.Second)
		w.work(map[store.TimerKind]jobs.Worker{})
		synctest.Wait() // now the replica has listed the waiting messages
		for _, s := range before {
			made("waited at the takeover", s, false)
		}
		made("of another one, a moment after the takeover", store.OutboxMessage{ID: "s_new", Process: "proc_x", CreatedAt: got.Add(-time.Second)}, true)
		got = time.Now()
		w.Replica.(*peer).since = got // the replica has lost the share and got it back
		made("after another takeover, not listed yet", store.OutboxMessage{ID: "s_new", Process: "proc_x", CreatedAt: got.Add(time.Second)}, false)
		if made, _ := second.Outbox.Made(store.OutboxMessage{CreatedAt: got.Add(time.Hour)}); made {
			t.Error("a replica without the share takes a message for its own")
		}
	})
}

// The times of messages may be by another clock than the machine's, because the replicas share the database's clock.
// The time at which a replica got a share is compared by the same clock.
func TestMadeByAnotherClock(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		inTwoReplicas(t, false, func(t *testing.T, w *workingHarness, _ *workflow.Workflow) {
			shared := func() time.Time { return time.Now().Add(ahead) }
			own := workflow.New(workflow.Config{Store: w.store, Policy: w.policy.Load, Tools: w.tools, Log: slog.New(slog.DiscardHandler), Replica: w.Replica, Now: shared})
			got := shared()
			time.Sleep(time.Hour / 2)
			for age, want := range map[time.Duration]bool{-time.Second: false, 2 * time.Minute: true} {
				if made, _ := own.Outbox.Made(store.OutboxMessage{Process: "proc_x", CreatedAt: got.Add(age)}); made != want {
					t.Errorf("with the shared clock ahead by %s, of another one, %s after the takeover: made=%v", ahead, age, made)
				}
			}
		})
	}
}

// wokenSource is a policy source that counts its wake-ups.
type wokenSource struct{ woken atomic.Int64 }

func (*wokenSource) CatchUp(context.Context) error { return nil }
func (*wokenSource) Usable() bool                  { return true }
func (s *wokenSource) Wake()                       { s.woken.Add(1) }

// When one replica changes the policy, the other replicas read the new policy immediately.
func TestAnotherReplicaChangesThePolicy(t *testing.T) {
	inTwoReplicas(t, false, func(t *testing.T, w *workingHarness, second *workflow.Workflow) {
		var source wokenSource
		w.PolicySource = &source
		w.work(map[store.TimerKind]jobs.Worker{})
		w.ok(second.Pauses.Pause(w.ctx(), lead.ID, "other news"))
		synctest.Wait()
		before := source.woken.Load()
		content := []byte("content")
		p, err := second.Policies.PutIntoForce(w.ctx(), store.Policy{}, workflow.PolicyChange{Load: "first", Policy: "digest", Content: content})
		w.ok(err)
		if p.Content != approvers.SumOf(content).String() {
			t.Errorf("the record has the hash %q of the content", p.Content)
		}
		synctest.Wait()
		if n := source.woken.Load(); before != 0 || n != 1 {
			t.Errorf("woken %d times before the change, and %d times with it", before, n)
		}
	})
}
