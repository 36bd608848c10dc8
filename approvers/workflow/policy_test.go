package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// After a change of the policy, the bot immediately checks waiting requests against the new policy. A request then has
// the new risk. If nobody can approve a request under the new policy, the request is voided without a click.
func TestReconsider(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":10}`)
	h.ok(h.Requests.Reevaluate(h.ctx()))
	same := h.request(r.ID)

	h.policy.Store(policy("policy-2", func(p *approvers.Policy) {
		for i := range p.Tools {
			if p.Tools[i].Name == "issue_refund" {
				p.Tools[i].Risk = approvers.Critical
			}
		}
	}))
	h.ok(h.Requests.Reevaluate(h.ctx()))
	now := h.request(r.ID)
	if same.Plan.Risk != approvers.High || now.Plan.Risk != approvers.Critical || now.State != approvers.Pending {
		t.Errorf("%s under the first policy, %s and %s under the second", same.Plan.Risk, now.Plan.Risk, now.State)
	}
	again := now.Version
	h.ok(h.Requests.Reevaluate(h.ctx()))
	if v := h.request(r.ID).Version; v != again {
		t.Errorf("version %d after a second look, want %d: nothing changed", v, again)
	}

	h.policy.Store(policy("policy-3", func(p *approvers.Policy) { p.Approvers = nil }))
	h.ok(h.Requests.Reevaluate(h.ctx()))
	if r := h.request(r.ID); r.State != approvers.Voided {
		t.Errorf("%s although nobody can allow it any more", r.State)
	}
}

// The bot voids an agent's waiting, approved and automatic calls if the policy does not name the agent any more, or
// does not let the agent call the tool.
func TestReconsiderAgentsTools(t *testing.T) {
	for name, change := range map[string]func(*approvers.Policy){
		"without the tools": func(p *approvers.Policy) { p.Agents[0].Tools = []string{"apply_discount"} },
		"without the agent": func(p *approvers.Policy) { p.Agents = nil },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			waiting, approved := h.ask(`issue_refund {"amount":10}`), h.requestIn(h.sayIn("200.1", bob, "two").Turn, `issue_refund {"amount":11}`)
			h.approve(lead, approved.ID)
			automatic := h.propose(h.sayIn("300.1", bob, "which orders?").Turn, `search_orders {}`)[0]
			h.policy.Store(policy("policy-2", change))
			h.ok(h.Requests.Reevaluate(h.ctx()))
			h.wantState(waiting.ID, approvers.Voided)
			if r := h.wantState(approved.ID, approvers.Voided); r.Reason != "the policy does not let the agent support call issue_refund any more" {
				t.Errorf("the reason is %q", r.Reason)
			}
			h.notRun(automatic.Execution)
		})
	}
}

// The policy changes several times. A request's plan names the change of the policy as a reason only once. The times of
// the request's deadline, reminder and escalation do not change.
func TestReconsiderAgainAndAgain(t *testing.T) {
	h := newHarness(t)
	const remindAfter = escalateAfter / 2
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Defaults.RemindAfter, p.Defaults.Reminders = remindAfter, 3 }))
	r := h.ask(`issue_refund {"amount":10}`)
	quorum := 1
	again := func(hash string) approvers.Request {
		h.clock.pass(escalateAfter / 10)
		h.policy.Store(policy(hash, func(p *approvers.Policy) {
			p.Tools[3].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: quorum}}
			p.Defaults.RemindAfter, p.Defaults.Reminders = remindAfter, 3
		}))
		h.ok(h.Requests.Reevaluate(h.ctx()))
		return h.request(r.ID)
	}
	second := again("policy-2")
	if again("policy-3"); quorum == 1 {
		quorum = 2
	}
	last := again("policy-4")
	n := 0
	for _, why := range last.Plan.Why {
		if why == "the policy changed while this waited" {
			n++
		}
	}
	if n != 1 || len(last.Plan.Why) != len(second.Plan.Why)+1 {
		t.Errorf("after the first change it gave the reasons %q, and after another change %q", second.Plan.Why, last.Plan.Why)
	}
	if r.RemindAt.IsZero() || !last.RemindAt.Equal(r.RemindAt) || !last.EscalateAt.Equal(r.EscalateAt) || !last.ExpiresAt.Equal(r.ExpiresAt) {
		t.Errorf("reminds at %s, escalates at %s and expires at %s; it said %s, %s and %s",
			last.RemindAt, last.EscalateAt, last.ExpiresAt, r.RemindAt, r.EscalateAt, r.ExpiresAt)
	}
	h.wantKinds(r.ID, "proposed replanned replanned")
}

// If an approval lapses because of a new policy, the cards show the change and the audit gets a record of it, even if
// nobody clicks.
func TestReconsiderTakesApprovalsBack(t *testing.T) {
	h := newHarness(t)
	two := func(self bool) func(*approvers.Policy) {
		return func(p *approvers.Policy) {
			p.Approvers[2].Members = append(p.Approvers[2].Members, users("U0100")...)
			p.Tools[4].Stages, p.Tools[4].SelfApproval = []approvers.Stage{{Approver: "finance-director", Quorum: 2}}, self
		}
	}
	h.policy.Store(policy("policy-2", two(true)))
	r := h.ask(`cancel_account {}`)
	h.approve(alice, r.ID)
	card := h.messagesOf(r.ID)[0].Revision
	h.policy.Store(policy("policy-3", two(false)))
	h.ok(h.Requests.Reevaluate(h.ctx()))
	if r := h.wantState(r.ID, approvers.Pending); len(r.ValidApprovals()) != 0 {
		t.Error("an approval counts although its giver may not approve any more")
	}
	if h.messagesOf(r.ID)[0].Revision == card {
		t.Error("the card is not shown again")
	}
	h.wantKinds(r.ID, "proposed decided replanned")
	if facts, _ := h.lastFacts(r.ID, approvers.AuditReplanned); facts[approvers.FactRestarted] != "true" {
		t.Errorf("the facts of the new plan are %v", facts)
	}
}

// A policy changes only a setting of a later stage that is not in the audit's facts. The record of the new plan says
// that the stages did not start again.
func TestReconsiderKeepsApprovals(t *testing.T) {
	h := newHarness(t)
	rejects := func(n int) func(*approvers.Policy) {
		return func(p *approvers.Policy) {
			p.Approvers[2].Members = append(p.Approvers[2].Members, users("U0005")...)
			p.Tools[4].Stages = []approvers.Stage{{Approver: "finance-director", Quorum: 2}, {Approver: "finance-director", Quorum: 1, Rejects: n}}
		}
	}
	h.policy.Store(policy("policy-2", rejects(2)))
	r := h.approve(fin1, h.ask(`cancel_account {}`).ID)
	h.policy.Store(policy("policy-3", rejects(1)))
	h.ok(h.Requests.Reevaluate(h.ctx()))
	if r := h.wantState(r.ID, approvers.Pending); len(r.ValidApprovals()) != 1 {
		t.Errorf("%d approvals count", len(r.ValidApprovals()))
	}
	h.wantKinds(r.ID, "proposed decided replanned")
	if facts, _ := h.lastFacts(r.ID, approvers.AuditReplanned); facts[approvers.FactRestarted] != "false" {
		t.Errorf("the facts of the new plan are %v", facts)
	}
}

// slow is a store that can delay the end of a write transaction.
type slow struct {
	store.Store
	mu    sync.Mutex
	begun chan struct{} // closed when the next transaction is held; nil: no transaction is to be held
	end   chan struct{}
}

func (s *slow) hold() (begun <-chan struct{}, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun, s.end = make(chan struct{}), make(chan struct{})
	return s.begun, func() { close(s.end) }
}

func (s *slow) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.Store.Update(ctx, func(t store.Tx) error {
		err := fn(t)
		s.mu.Lock()
		begun, end := s.begun, s.end
		s.begun = nil
		s.mu.Unlock()
		if begun != nil {
			close(begun)
			<-end
		}
		return err
	})
}

// A request that is written while the policy changes has a plan under the old policy. Reevaluate must also check this
// request.
func TestReconsiderWhatIsBeingWritten(t *testing.T) {
	h := newHarness(t)
	s := &slow{}
	h.ok(h.store.Close())
	h.open(func(inner store.Store) store.Store { s.Store = inner; return s })
	b := h.begin(h.say(alice, "please").Turn)
	begun, end := s.hold()
	proposed, looked := make(chan error, 1), make(chan error, 1)
	go func() {
		proposed <- h.Turns.Propose(h.ctx(), workflow.Proposal{Turn: b.Turn.ID, Step: b.Turn.Step, Calls: calls(`issue_refund {"amount":10}`)})
	}()
	<-begun
	h.policy.Store(stricter("policy-2"))
	go func() { looked <- h.Requests.Reevaluate(h.ctx()) }()
	end()
	h.ok(<-proposed)
	h.ok(<-looked)
	if r := h.request(h.callsOf(b.Turn.ID)[0].Request); r.Plan.Risk != approvers.Critical {
		t.Errorf("it waits under %s as %s risk", r.Plan.PolicyHash, r.Plan.Risk)
	}
}

func stricter(hash string) *approvers.Policy {
	return policy(hash, func(p *approvers.Policy) { p.Tools[3].Risk = approvers.Critical })
}

// Several goroutines load one policy after the other and call Reevaluate, and people decide at the same time. At the
// end, every request must have been checked against the last policy.
func TestReconsiderDuringReloads(t *testing.T) {
	h := newHarness(t)
	var ids []string
	for i := range 50 {
		turn := h.sayIn(fmt.Sprint(i, ".1"), alice, "please").Turn
		ids = append(ids, h.propose(turn, `issue_refund {"amount":10}`)[0].Request)
		h.clock.pass(time.Millisecond)
	}
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for i := range 5 {
				h.policy.Store(stricter(fmt.Sprintf("policy-%d-%d", n, i)))
				if err := h.Requests.Reevaluate(h.ctx()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for _, id := range ids[:10] {
			err := error(&approvers.Denied{Code: approvers.DeniedStage})
			for denied := new(approvers.Denied); errors.As(err, &denied) && denied.Code == approvers.DeniedStage; { // the card shows the plan of an earlier policy
				_, err = h.Requests.Decide(h.ctx(), h.clickOn(lead, approvers.Reject, id))
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	last := h.policy.Load().Hash
	for i, id := range ids {
		r := h.request(id)
		if rejected := r.State == approvers.Rejected; rejected != (i < 10) || !rejected && r.Plan.PolicyHash != last {
			t.Errorf("request %d is %s under %s, the last policy is %s", i, r.State, r.Plan.PolicyHash, last)
		}
		if want := []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 1}}; i >= 10 && !slices.EqualFunc(r.Plan.Stages, want, approvers.Stage.Equal) {
			t.Errorf("request %d waits for %v", i, r.Plan.Stages)
		}
	}
	noted := readStore(h, func(r store.Reader) (store.Setting, error) { return r.Setting(store.SettingPolicy) })
	var hash string
	if h.ok(json.Unmarshal(noted.Value, &hash)); !strings.HasPrefix(hash, last+" ") {
		t.Errorf("noted is %s, the last policy is %s", hash, last)
	}
}
