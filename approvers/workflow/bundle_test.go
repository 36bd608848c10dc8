package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// putUp lists the calls that the card of a bundle offers for decision.
func putUp(s view.Model) (shows []store.Shown) {
	for _, c := range s.Calls {
		if c.Request.State == approvers.Pending && c.Request.Bundled() {
			shows = append(shows, store.Shown{Request: c.Request.ID, Digest: c.Execution.Digest, Stage: approvers.StageDigest(*c.Request), Whole: true})
		}
	}
	return shows
}

// h.bundled makes alice write a message, for which the model requests several calls in one step. h.bundled returns the
// requests of these calls.
func (h *harness) bundled(specs ...string) []approvers.Request {
	h.t.Helper()
	var out []approvers.Request
	for _, c := range h.propose(h.say(alice, "please").Turn, specs...) {
		if c.Request != "" {
			out = append(out, h.request(c.Request))
		}
	}
	return out
}

// h.cards lists the cards of a step's requests. Each entry has the card's address and the arguments of the call. For
// the card of a bundle, the arguments of its calls are in brackets.
func (h *harness) cards(requests ...approvers.Request) string {
	h.t.Helper()
	var out []string
	seen := map[string]bool{}
	for _, r := range requests {
		for _, s := range h.messagesOf(r.ID) {
			out = append(out, s.To+" "+string(r.Args))
		}
		for _, s := range h.messagesOf(r.Turn) {
			if s.Kind != store.OutboxBundle || seen[s.ID] {
				continue
			}
			seen[s.ID] = true
			vm, err := h.Views.Message(h.ctx(), s.ID)
			h.ok(err)
			var args []string
			for _, c := range vm.Calls {
				args = append(args, c.Call.Args)
			}
			out = append(out, s.To+" ["+strings.Join(args, " ")+"]")
		}
	}
	return strings.Join(out, "\n")
}

// Calls of one step that have the same approvers share a card. Every other call has its own card. A call with long
// arguments also has its own card.
func TestBundle(t *testing.T) {
	h := newHarness(t)
	long := `{"amount":7,"note":"` + strings.Repeat("x", 700) + `"}`
	rs := h.bundled(`issue_refund {"amount":1}`, `apply_discount {"a":2}`, `search_orders {}`, `issue_refund {"amount":3}`, `cancel_account {"a":4}`,
		`issue_refund {"amount":900}`, `issue_refund `+long)
	want := strings.Join([]string{
		`role:team-lead [{"amount":1} {"amount":3} {"amount":900}]`, // the last call also has a second stage
		`channel:#support-approvals {"a":2}`,
		`role:finance-director {"a":4}`,
		`role:team-lead ` + long,
	}, "\n")
	if got := h.cards(rs...); got != want {
		t.Errorf("cards\n%s\nwant\n%s", got, want)
	}
}

// Every card stays readable, even if a step has many calls.
func TestManyBundles(t *testing.T) {
	h := newHarness(t)
	for n, want := range map[int]string{2: "[2]", 6: "[3 3]", 7: "[4 3]", 13: "[4 4 4]", 1: "[]"} {
		var specs []string
		for i := range n {
			specs = append(specs, fmt.Sprintf(`issue_refund {"amount":%d}`, i+1))
		}
		rs := h.bundled(specs...)
		sizes := map[string]int{}
		var order []string
		for _, r := range rs {
			if r.Bundle != "" && !slices.Contains(order, r.Bundle) {
				order = append(order, r.Bundle)
			}
			sizes[r.Bundle]++
		}
		var got []int
		for _, b := range order {
			got = append(got, sizes[b])
		}
		if fmt.Sprint(got) != want && n != 1 {
			t.Errorf("%d calls in bundles of %v, want %s", n, got, want)
		}
		if n == 1 && order != nil {
			t.Error("a single call is in a bundle")
		}
		for _, r := range rs {
			h.reject(lead, r.ID)
		}
		h.answer(rs[0].Turn)
	}
	big := `{"amount":1,"note":"` + strings.Repeat("x", 300) + `"}`
	for _, b := range sizesOf(h.bundled("issue_refund "+big, "issue_refund "+big, "issue_refund "+big, "issue_refund "+big, "issue_refund "+big, "issue_refund "+big)) {
		if b != 2 {
			t.Errorf("%d long calls in one card", b)
		}
	}
}

func sizesOf(rs []approvers.Request) map[string]int {
	out := map[string]int{}
	for _, r := range rs {
		out[r.Bundle]++
	}
	return out
}

// Each call of a bundle runs immediately after its decision. The model continues when all calls have results. The
// bundle's card is rendered again after each change.
func TestBundleOneByOne(t *testing.T) {
	h := newHarness(t)
	rs := h.bundled(`issue_refund {"amount":1}`, `issue_refund {"amount":2}`, `issue_refund {"amount":3}`)
	turn := rs[0].Turn
	card := h.only(turn, store.OutboxBundle)
	wants := func(what string) {
		t.Helper()
		was := card.Revision
		if card = h.only(turn, store.OutboxBundle); card.Revision <= was {
			t.Errorf("%s: the bundle is not drawn again", what)
		}
	}
	card = h.show(card)
	h.approve(lead, rs[0].ID)
	wants("approved")
	h.run(rs[0].Execution, "ok")
	wants("ran")
	h.wantTurn(turn, approvers.TurnWaiting)
	h.reject(lead, rs[1].ID)
	wants("rejected")
	h.clock.pass(expiresAfter)
	h.due()
	wants("expired")
	h.wantTurn(turn, approvers.TurnThinking)
	if n := len(h.messagesOf(rs[0].ID)); n != 0 {
		t.Errorf("%d further cards of a bundled request", n)
	}
}

// decideAll makes a person click the button that decides all requests of a bundle.
func (h *harness) decideAll(who approvers.Identity, kind approvers.DecisionKind, shows []store.Shown) (approvers.Request, error) {
	h.t.Helper()
	c := workflow.Click{Inbox: h.id("click"), At: h.clock.Now(), Who: who, Kind: kind, Reason: "because", Rendering: "hash of the bundle", Channel: "C0002", MessageTS: "200.1"}
	h.receive(c)
	return h.Requests.DecideAll(h.ctx(), c, shows)
}

func (h *harness) offer(turn string) []store.Shown {
	h.t.Helper()
	vm, err := h.Views.Message(h.ctx(), h.only(turn, store.OutboxBundle).ID)
	h.ok(err)
	return putUp(vm)
}

// One click decides all calls of a bundle. The store gets one decision for each call, with the call's digest and the
// hash of the rendering that the person saw.
func TestDecideAll(t *testing.T) {
	h := newHarness(t)
	for kind, state := range map[approvers.DecisionKind]approvers.State{approvers.Approve: approvers.Approved, approvers.Reject: approvers.Rejected} {
		rs := h.bundled(`issue_refund {"amount":1}`, `issue_refund {"amount":2}`, `issue_refund {"amount":3}`)
		if _, err := h.decideAll(lead, kind, h.offer(rs[0].Turn)); err != nil {
			t.Fatal(err)
		}
		for _, r := range rs {
			now := h.wantState(r.ID, state)
			if len(now.Decisions) != 1 || now.Decisions[0].Digest != r.Digest || now.Decisions[0].Rendering != "hash of the bundle" || now.Decisions[0].By != lead.ID {
				t.Errorf("decided as %+v", now.Decisions)
			}
			if !contains(h.kinds(r.ID), "proposed decided") {
				t.Errorf("audit: %s", h.kinds(r.ID))
			}
			if state == approvers.Approved {
				h.run(r.Execution, "ok")
			}
		}
		h.answer(rs[0].Turn)
	}
}

// If one call of a bundle can't be decided, a click on all calls decides no call. The person is told which call can't
// be decided.
func TestDecideAllOrNothing(t *testing.T) {
	specs := []string{`issue_refund {"amount":1}`, `issue_refund {"amount":2}`, `issue_refund {"amount":3}`}
	director := func(p *approvers.Policy) { p.Approvers[1].Members = users("U0002", "U0003") }
	for name, tt := range map[string]struct {
		who    approvers.Identity
		before func(h *harness, rs []approvers.Request, shows []store.Shown)
		code   approvers.Code
		kind   approvers.DecisionKind
	}{
		"decided by another": {before: func(h *harness, rs []approvers.Request, _ []store.Shown) { h.approve(fin1, rs[1].ID) }, code: approvers.DeniedResolved},
		"changed meanwhile": {before: func(h *harness, rs []approvers.Request, _ []store.Shown) {
			_, err := h.Requests.Decide(h.ctx(), h.edit(fin1, rs[1].ID, `{"amount":900}`))
			h.ok(err)
		}, code: approvers.DeniedStale},
		"not shown whole":    {before: func(_ *harness, _ []approvers.Request, shows []store.Shown) { shows[1].Whole = false }, code: approvers.DeniedUnseen},
		"asks for typing":    {before: func(h *harness, rs []approvers.Request, _ []store.Shown) { h.stepUp(rs[1].ID) }, code: approvers.DeniedTyped},
		"no authority":       {who: bob, code: approvers.DeniedNotMember},
		"the requester":      {who: alice, code: approvers.DeniedSelf},
		"too late":           {before: func(h *harness, _ []approvers.Request, _ []store.Shown) { h.clock.pass(2 * expiresAfter) }, code: approvers.DeniedLate},
		"nothing to decide":  {kind: approvers.Modify, code: approvers.DeniedNothing},
		"withdrawn":          {before: func(h *harness, rs []approvers.Request, _ []store.Shown) { h.withdrawn(rs[1].ID) }, code: approvers.DeniedResolved, kind: approvers.Reject},
		"unknown altogether": {before: func(_ *harness, _ []approvers.Request, shows []store.Shown) { shows[2].Request = "req_none" }, code: approvers.DeniedNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.policy.Store(policy("policy-1", director))
			rs := h.bundled(specs...)
			shows := h.offer(rs[0].Turn)
			if tt.before != nil {
				tt.before(h, rs, shows)
			}
			who, kind := tt.who, tt.kind
			if who.ID == "" {
				who = lead
			}
			if kind == "" {
				kind = approvers.Approve
			}
			in, err := h.decideAll(who, kind, shows)
			wantDenied(t, err, tt.code)
			if want := rs[1].ID; tt.before != nil && in.ID != want && name != "too late" && name != "unknown altogether" {
				t.Errorf("told of %q, want %q", in.ID, want)
			}
			for _, i := range []int{0, 2} {
				if r := h.request(rs[i].ID); len(r.Decisions) > 0 || r.State != approvers.Pending {
					t.Errorf("request %d is %s with %d decisions", i, r.State, len(r.Decisions))
				}
			}
			if n := len(h.timers(store.TimerInbox)); n != 0 {
				t.Errorf("%d clicks are still due", n)
			}
		})
	}
}

// Requests that have reached different stages can't be decided together, even by a person who may decide all of them.
func TestDecideAllAtOneStage(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Approvers[1].Members = users("U0002", "U0003") }))
	rs := h.bundled(`issue_refund {"amount":1}`, `issue_refund {"amount":900}`)
	shows := h.offer(rs[0].Turn)
	c := h.clickOn(lead, approvers.Approve, rs[1].ID)
	_, err := h.Requests.Decide(h.ctx(), c)
	h.ok(err)
	shown := h.show(h.only(rs[0].Turn, store.OutboxBundle))
	c = workflow.Click{Inbox: h.id("click"), At: h.clock.Now(), Who: fin1, Kind: approvers.Reject, Reason: "because", Message: shown.ID}
	h.receive(c)
	in, err := h.Requests.DecideAll(h.ctx(), c, shows)
	wantDenied(t, err, approvers.DeniedStage)
	if in.ID != rs[1].ID {
		t.Errorf("told of %s", in.ID)
	}
	if s := h.only(rs[0].Turn, store.OutboxBundle); s.State != store.OutboxWanted || s.Hash != "" {
		t.Errorf("the clicked card is %s", s.State)
	}
	h.wantState(rs[0].ID, approvers.Pending)
}

// stepUp makes the approval of a request require a typed value.
func (h *harness) stepUp(id string) {
	h.t.Helper()
	h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
		r, err := tx.Request(id)
		if err != nil {
			return err
		}
		r.StepUp = "because of the test"
		return tx.PutRequest(r)
	}))
}

func (h *harness) withdrawn(id string) {
	h.t.Helper()
	_, err := h.Requests.Withdraw(h.ctx(), workflow.Click{Request: id, Who: alice, At: h.clock.Now()})
	h.ok(err)
}

// A person who has approved one request of the bundle can approve the other requests together.
func TestDecideAllAfterOne(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Tools[3].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 2}}
		p.Approvers[1].Members = users("U0002", "U0003")
	}))
	rs := h.bundled(`issue_refund {"amount":1}`, `issue_refund {"amount":2}`)
	h.approve(lead, rs[0].ID)
	_, err := h.decideAll(lead, approvers.Approve, h.offer(rs[0].Turn))
	h.ok(err)
	for _, r := range rs {
		if n := h.request(r.ID).At(0); n != 1 {
			t.Errorf("%d agreed", n)
		}
	}
	_, err = h.decideAll(lead, approvers.Approve, h.offer(rs[0].Turn))
	wantDenied(t, err, approvers.DeniedCounted)
	_, err = h.decideAll(fin1, approvers.Approve, h.offer(rs[0].Turn))
	h.ok(err)
	for _, r := range rs {
		h.wantState(r.ID, approvers.Approved)
		h.run(r.Execution, "ok")
	}
}

// If a request of a bundle is edited, or if an approver takes it out, the request leaves the bundle and gets its own
// card.
func TestBundleParts(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Tools[3].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 2}}
		p.Approvers[1].Members = users("U0002", "U0003")
	}))
	rs := h.bundled(`issue_refund {"amount":1}`, `issue_refund {"amount":2}`, `issue_refund {"amount":3}`)
	_, err := h.Requests.Decide(h.ctx(), h.edit(lead, rs[0].ID, `{"amount":5}`))
	h.ok(err)
	_, err = h.Requests.Unbundle(h.ctx(), h.clickOn(bob, "", rs[1].ID))
	wantDenied(t, err, approvers.DeniedNotMember)
	_, err = h.Requests.Unbundle(h.ctx(), h.clickOn(lead, "", rs[1].ID))
	h.ok(err)
	_, err = h.Requests.Unbundle(h.ctx(), h.clickOn(lead, "", rs[1].ID))
	wantDenied(t, err, approvers.DeniedNothing)
	for i, want := range []string{"[role:team-lead]", "[role:team-lead]", "[]"} {
		var to []string
		for _, s := range h.messagesOf(rs[i].ID) {
			to = append(to, s.To)
		}
		if got := fmt.Sprint(to); got != want {
			t.Errorf("request %d has own cards at %s, want %s", i, got, want)
		}
	}
	if shows := h.offer(rs[0].Turn); len(shows) != 1 || shows[0].Request != rs[2].ID {
		t.Errorf("the bundle puts up %v", shows)
	}
	_, err = h.Requests.Unbundle(h.ctx(), workflow.Click{Who: lead, Request: "req_none", At: h.clock.Now()})
	wantDenied(t, err, approvers.DeniedNotFound)
	h.reject(lead, rs[1].ID)
	_, err = h.Requests.Unbundle(h.ctx(), h.clickOn(lead, "", rs[1].ID))
	wantDenied(t, err, approvers.DeniedResolved)
}

func TestBundleNextStage(t *testing.T) {
	h := newHarness(t)
	rs := h.bundled(`issue_refund {"amount":900}`, `issue_refund {"amount":2}`)
	h.approve(lead, rs[0].ID)
	if s := h.only(rs[0].ID, store.OutboxCard); s.To != "role:finance-director" {
		t.Errorf("its card is at %s", s.To)
	}
	if shows := h.offer(rs[0].Turn); len(shows) != 1 || shows[0].Request != rs[1].ID {
		t.Errorf("the bundle puts up %v", shows)
	}
}

// If Slack refuses the card of a bundle, the card is shown at other addresses, and is not split. Each person gets a
// copy of the whole card.
func TestBundleElsewhere(t *testing.T) {
	h := newHarness(t)
	rs := h.bundled(`apply_discount {"a":1}`, `apply_discount {"a":2}`)
	turn := rs[0].Turn
	channel := h.only(turn, store.OutboxBundle)
	h.ok(h.Outbox.Unreachable(h.ctx(), channel.ID, "channel_not_found", ""))
	var role store.OutboxMessage
	for _, s := range h.messagesOf(turn) {
		if s.Kind == store.OutboxBundle && s.To == "role:support-agent" {
			role = s
		}
	}
	h.ok(h.Outbox.Expand(h.ctx(), role.ID, persons("U0001", "U0009")))
	h.approve(support, rs[0].ID)
	copies := 0
	for _, s := range h.messagesOf(turn) {
		if s.Kind != store.OutboxBundle || !strings.HasPrefix(s.To, "user:") {
			continue
		}
		copies++
		vm, err := h.Views.Message(h.ctx(), s.ID)
		h.ok(err)
		if len(vm.Calls) != 2 || s.Revision != 2 {
			t.Errorf("a copy shows %d calls, version %d", len(vm.Calls), s.Revision)
		}
	}
	if copies != 2 {
		t.Errorf("%d copies", copies)
	}
}

// If nobody decides the requests of a bundle, each request escalates separately.
func TestBundleEscalates(t *testing.T) {
	h := newHarness(t)
	rs := h.bundled(`issue_refund {"amount":1}`, `issue_refund {"amount":2}`)
	h.clock.pass(escalateAfter)
	h.due()
	for _, r := range rs {
		if s := h.only(r.ID, store.OutboxEscalation); s.To != "role:finance-director" || s.Role != "finance-director" {
			t.Errorf("escalated to %s as %s", s.To, s.Role)
		}
	}
	if _, err := h.decideAll(fin1, approvers.Approve, h.offer(rs[0].Turn)); err != nil {
		t.Error(err)
	}
}

// Several calls of one step are withdrawn together. Calls that have ended do not change. One click can't withdraw calls
// of two steps.
func TestWithdrawSome(t *testing.T) {
	h := newHarness(t)
	rs := h.bundled(`issue_refund {"amount":1}`, `issue_refund {"amount":2}`, `issue_refund {"amount":3}`, `issue_refund {"amount":4}`)
	other := h.asked(1)[0]
	some := func(who approvers.Identity, ids ...string) (approvers.Request, error) {
		return h.Requests.WithdrawSome(h.ctx(), workflow.Click{Turn: rs[0].Turn, Who: who, At: h.clock.Now()}, ids)
	}
	_, err := some(lead, rs[0].ID)
	wantDenied(t, err, approvers.DeniedNotRequester)
	_, err = some(alice, other.ID, "req_none")
	wantDenied(t, err, approvers.DeniedNothing)
	h.reject(lead, rs[1].ID)
	_, err = some(alice, rs[0].ID, rs[1].ID, rs[2].ID, other.ID)
	h.ok(err)
	for i, want := range []approvers.State{approvers.Withdrawn, approvers.Rejected, approvers.Withdrawn, approvers.Pending} {
		h.wantState(rs[i].ID, want)
	}
	h.wantState(other.ID, approvers.Pending)
	r, err := some(alice, rs[1].ID)
	if denied := wantDenied(t, err, approvers.DeniedResolved); r.ID != rs[1].ID || denied.By != lead.ID {
		t.Errorf("told of %s, by %s", r.ID, denied.By)
	}
}
