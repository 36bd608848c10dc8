package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/config"
	"countersign/store"
	"countersign/store/jobs"
	"countersign/store/postgres"
)

const callPolicy = `version: 1
defaults: {expires_after: 30m, escalate_after: 10m, run_within: 15m}
tools:
  issue_refund: {risk: high, confirm: true, preview: "Refund of {{money .amount .currency}} for order {{.order_id}}"}
approvers:
  team-lead: {title: Team Lead, members: [U0002], max_risk: high, can_approve: [issue_refund], cards: "#support-approvals", lead: finance-director}
  finance-director: {title: Finance Director, members: [U0003, U0004], max_risk: critical, can_approve: ["*"]}
agents:
  support: {channels: ["#support"], prompt: You help., tools: ["*"]}
`

// callFixture does the steps of tool calls, with a workflow on a store. There is no Slack and no model: callFixture
// stores messages and clicks, and proposes the calls.
type callFixture struct {
	testing.TB
	store    *postgres.Store
	workflow *workflow.Workflow
	replica  store.Replica
	policy   *approvers.Policy
	tools    *agent.Registry
	n        *atomic.Int64           // how many messages there have been so far
	asked    func(approvers.Request) // called when a request waits; may be nil
	ran      func(execution string)  // called when a tool runs; may be nil
	// step is called at each step of a click, and may be nil. The text is the request's id. At the step "begun" and at
	// later steps, the text is the execution's id.
	step func(clickStep, string)
}

// clickStep is a step between the receipt of a click and the run of the call.
type clickStep int

const (
	acknowledged clickStep = iota // the click is stored
	taken                         // a replica begins to handle the click
	decided
	begun // a replica begins the run
	claimed
	clickSteps
)

func (s clickStep) String() string {
	return [...]string{"acknowledged", "taken", "decided", "begun", "claimed"}[s]
}

func (f *callFixture) at(s clickStep, id string) {
	if f.step != nil {
		f.step(s, id)
	}
}

// newCallFixture makes a fixture, and puts its policy into force.
func newCallFixture(t testing.TB, s *postgres.Store) *callFixture {
	t.Helper()
	f := joinCallFixture(t, s)
	inForce, err := f.workflow.Policies.PutIntoForce(t.Context(), store.Policy{}, workflow.PolicyChange{Load: f.policy.Load, Policy: f.policy.Hash, Content: []byte(callPolicy)})
	if err != nil {
		t.Fatal(err)
	}
	f.policy.Load = inForce.Load
	return f
}

// joinCallFixture makes a fixture on a store where the policy is in force.
func joinCallFixture(t testing.TB, s *postgres.Store) *callFixture {
	t.Helper()
	policy, err := config.ParsePolicy("countersign.yaml", []byte(callPolicy))
	if err != nil {
		t.Fatal(err)
	}
	f := &callFixture{TB: t, policy: policy.Policy, tools: &agent.Registry{}, n: &atomic.Int64{}}
	f.policy.Load = "first" // with this id, each transaction checks the policy, which must not cost a round trip
	if err := f.tools.Register(agent.Tool{
		Name: "issue_refund", Description: "Pays money back.", Effect: approvers.Unprotected,
		Schema: json.RawMessage(`{"type":"object","properties":{"order_id":{"type":"string"},"amount":{"type":"number"},"currency":{"type":"string"}}}`),
		Run:    func(context.Context, agent.Invocation) (string, error) { return "done", nil },
	}); err != nil {
		t.Fatal(err)
	}
	return f.on(s, nil)
}

// on returns a copy of the fixture with a workflow on another store. This store must use the same database.
func (f *callFixture) on(s *postgres.Store, replica store.Replica) *callFixture {
	other := *f
	other.store, other.replica = s, replica
	conf := workflow.Config{
		Store: s, Replica: replica, Policy: func() *approvers.Policy { return f.policy }, Tools: f.tools, Log: slog.New(slog.DiscardHandler),
	}
	if r, ok := replica.(*postgres.Replica); ok {
		conf.Now = r.Now
	}
	other.workflow = workflow.New(conf)
	return &other
}

// ts returns the id of a new message.
func (f *callFixture) ts() string { return fmt.Sprintf("178%07d.000001", f.n.Add(1)) }

// receive stores a delivery.
func (f *callFixture) receive(ctx context.Context, id string, kind store.InboxKind, lane string) error {
	_, err := f.workflow.Intake.Receive(ctx, store.Inbox{ID: id, Kind: kind, ReceivedAt: time.Now(), Payload: []byte("{}")}, lane)
	return err
}

// message handles a person's message, and returns the turn that the message begins.
func (f *callFixture) message(ctx context.Context, inbox, ts string) (turn string, err error) {
	heard, err := f.workflow.Intake.ReceiveMessage(ctx, workflow.IncomingMessage{
		Inbox: inbox, At: time.Now(), Team: "T0001", Thread: ts, TS: ts, Channel: approvers.ChannelRef{Channel: "C0001", Name: "support"},
		Who: approvers.Identity{ID: "T0001/U0009", Name: "Robin"}, Text: "Please refund order ORD-123.", Start: true,
	})
	return heard.Turn, err
}

// propose stores the call that the model asks for.
func (f *callFixture) propose(ctx context.Context, turn string) error {
	return f.workflow.Turns.Propose(ctx, workflow.Proposal{
		Turn: turn, Calls: []workflow.ModelCall{{ID: "call_1", Tool: "issue_refund", Args: `{"order_id":"ORD-123","amount":49.99,"currency":"USD"}`}},
		Authors: []approvers.PersonID{"T0001/U0009"}, Tokens: 500,
	})
}

func (f *callFixture) request(turn string) (r approvers.Request, err error) {
	err = f.store.View(f.Context(), func(x store.Reader) error {
		calls, err := x.Calls(turn)
		if err == nil {
			r, err = x.Request(calls[0].Request)
		}
		return err
	})
	return r, err
}

// decide approves a request.
func (f *callFixture) decide(ctx context.Context, inbox string, r approvers.Request) (approvers.Request, error) {
	return f.workflow.Requests.Decide(ctx, workflow.Click{
		Inbox: inbox, At: time.Now(), Who: approvers.Identity{ID: "T0001/U0002", Name: "Sam"}, Request: r.ID, Kind: approvers.Approve,
		Digest: r.Digest, Whole: true, Rendering: r.Digest, Channel: "C0002", MessageTS: "1780000000.000100",
	})
}

// ask makes a request that waits for a decision. ask does not use the scheduler.
func (f *callFixture) ask(ctx context.Context) (r approvers.Request, err error) {
	turn, err := f.message(ctx, "", f.ts())
	if err != nil {
		return r, err
	}
	if _, err := f.workflow.Turns.Begin(ctx, turn); err != nil {
		return r, err
	}
	if err := f.propose(ctx, turn); err != nil {
		return r, err
	}
	return f.request(turn)
}

// The id of an inbox row of the fixture begins with messageRow or clickRow.
const (
	messageRow = "message " // followed by the message's timestamp
	clickRow   = "click "   // followed by the id of the request that the click approves
)

// say receives a message. The scheduler handles the message.
func (f *callFixture) say(ctx context.Context) error {
	ts := f.ts()
	return f.receive(ctx, messageRow+ts, store.InboxEvent, ts)
}

// click receives a click that approves a request. The scheduler handles the click.
func (f *callFixture) click(ctx context.Context, r approvers.Request) error {
	return f.receive(ctx, clickRow+r.ID, store.InboxInteraction, r.ID)
}

// work handles due timers until stop is called, as the bot does.
func (f *callFixture) work() (stop func()) {
	workers := map[store.TimerKind]jobs.Worker{
		store.TimerInbox: {Concurrency: 64, Handle: func(ctx context.Context, t store.Timer) error {
			if ts, is := strings.CutPrefix(t.Ref, messageRow); is {
				_, err := f.message(ctx, t.Ref, ts)
				return err
			}
			id := strings.TrimPrefix(t.Ref, clickRow)
			f.at(taken, id)
			r, err := f.workflow.Views.Request(ctx, id)
			if err == nil {
				_, err = f.decide(ctx, t.Ref, r)
			}
			f.at(decided, id)
			return err
		}},
		store.TimerThink: {Concurrency: 16, Handle: func(ctx context.Context, t store.Timer) error { return f.think(ctx, t.Ref) }},
		store.TimerRun: {Concurrency: 16, Handle: func(ctx context.Context, t store.Timer) error {
			f.at(begun, t.Ref)
			if _, run, err := f.workflow.Runs.Claim(ctx, t.Ref); err != nil || !run {
				return err
			}
			f.at(claimed, t.Ref)
			if f.ran != nil {
				f.ran(t.Ref)
			}
			return f.workflow.Runs.Finish(ctx, t.Ref, true, "done")
		}},
	}
	for _, kind := range store.ShowTimers {
		workers[kind] = jobs.Worker{Concurrency: 8, Handle: func(ctx context.Context, t store.Timer) error { return f.show(ctx, t.Ref) }}
	}
	ctx, cancel := context.WithCancel(f.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := f.workflow.Work(ctx, workers); err != nil && !errors.Is(err, context.Canceled) {
			f.Errorf("work: %v", err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
	})
	f.Cleanup(stop)
	return stop
}

// think does the model's part of a turn. If the turn has no call yet, think proposes the call. After the call has a
// result, think writes the answer.
func (f *callFixture) think(ctx context.Context, turn string) error {
	var asked bool
	err := f.store.View(ctx, func(x store.Reader) error {
		calls, err := x.Calls(turn)
		asked = len(calls) > 0
		return err
	})
	if err != nil {
		return err
	}
	if _, err := f.workflow.Turns.Begin(ctx, turn); err != nil {
		return err
	}
	if asked {
		return f.workflow.Turns.Answer(ctx, turn, 1, "I refunded it.", nil, 100)
	}
	if err := f.propose(ctx, turn); err != nil {
		return err
	}
	r, err := f.request(turn)
	if err == nil && f.asked != nil {
		f.asked(r)
	}
	return err
}

// show marks an outbox message as shown by Slack.
func (f *callFixture) show(ctx context.Context, id string) error {
	var s store.OutboxMessage
	err := f.store.View(ctx, func(x store.Reader) (err error) {
		s, err = x.OutboxMessage(id)
		return err
	})
	if err != nil {
		return err
	}
	s.Channel, s.TS = "C0002", s.ID
	p := workflow.SentMessage{Body: []byte(`{"text":"Refund of $49.99"}`)}
	if s.Request != "" {
		p.Shows = []store.Shown{{Request: s.Request, Whole: true}}
	}
	return f.workflow.Outbox.Delivered(ctx, s, p)
}

// quiet waits until no timer of an inbox row, a turn, a run or an outbox message is set.
func (f *callFixture) quiet() {
	f.Helper()
	kinds := append([]store.TimerKind{store.TimerInbox, store.TimerThink, store.TimerRun}, store.ShowTimers...)
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var left []store.Timer
		err := f.store.View(f.Context(), func(r store.Reader) error {
			for _, kind := range kinds {
				timers, err := r.Timers(kind, 10)
				if err != nil {
					return err
				}
				left = append(left, timers...)
			}
			return nil
		})
		switch {
		case err != nil:
			f.Fatal(err)
		case len(left) == 0:
			return
		case time.Now().After(end):
			f.Fatalf("after a minute there is still work: %+v", left)
		}
	}
}
