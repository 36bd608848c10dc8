package workflow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// show acts as Slack, and shows an outbox message in the message's current state.
func (h *harness) show(s store.OutboxMessage) store.OutboxMessage {
	h.t.Helper()
	s.Channel, s.TS = "C-"+s.To, "ts-"+s.ID
	h.ok(h.Outbox.Delivered(h.ctx(), s, h.posted(s)))
	return h.message(s.ID)
}

func (h *harness) posted(s store.OutboxMessage) workflow.SentMessage {
	h.t.Helper()
	p := workflow.SentMessage{Body: fmt.Appendf(nil, `{"text":"%s %d"}`, s.Kind, s.Revision)}
	if vm, err := h.Views.Message(h.ctx(), s.ID); err != nil {
		h.t.Fatal(err)
	} else if vm.Request != nil && vm.Execution != nil {
		p.Shows = []store.Shown{{Request: vm.Request.ID, Digest: vm.Execution.Digest, Stage: approvers.StageDigest(*vm.Request), Whole: true}}
	} else if s.Kind == store.OutboxBundle {
		p.Shows = putUp(vm)
	}
	return p
}

func (h *harness) message(id string) store.OutboxMessage {
	h.t.Helper()
	return readStore(h, func(r store.Reader) (store.OutboxMessage, error) { return r.OutboxMessage(id) })
}

// h.only returns the outbox message of a kind for a ref. The test fails unless the ref has exactly one message of this
// kind.
func (h *harness) only(ref string, kind store.OutboxKind) store.OutboxMessage {
	h.t.Helper()
	var found []store.OutboxMessage
	for _, s := range h.messagesOf(ref) {
		if s.Kind == kind {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		h.t.Fatalf("%d outbox messages of kind %s; want 1", len(found), kind)
	}
	return found[0]
}

// h.wanted lists the addresses of outbox messages whose current state Slack does not show yet.
func (h *harness) wanted(ref string) string {
	h.t.Helper()
	var out []string
	for _, s := range h.messagesOf(ref) {
		if s.State == store.OutboxWanted {
			out = append(out, string(s.Kind)+" "+s.To)
		}
	}
	return strings.Join(out, ", ")
}

func TestMessagesFollowTheState(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`apply_discount {}`)
	card := h.show(h.only(r.ID, store.OutboxCard))
	if card.State != store.OutboxShown || card.Posts != 1 || len(h.timers(store.ShowTimers...)) != 1 { // Slack does not show the step yet
		t.Errorf("%s after it was shown %d times; %d more to show", card.State, card.Posts, len(h.timers(store.ShowTimers...)))
	}
	step := h.only(r.Turn, store.OutboxStep)
	if step.State != store.OutboxWanted || step.Revision < 2 {
		t.Error("the step in the asker's thread will not link to the card")
	}
	h.show(step)
	h.approve(support, r.ID)
	if got := h.wanted(r.ID); got != "card channel:#support-approvals" {
		t.Errorf("after the approval, to be shown: %s", got)
	}
	if got := h.wanted(r.Turn); !contains(got, "step conversation:") {
		t.Errorf("after the approval, to be shown in the thread: %s", got)
	}
	card = h.show(h.only(r.ID, store.OutboxCard))
	h.run(r.Execution, "ok")
	if got := h.wanted(r.ID); got != "card channel:#support-approvals" {
		t.Errorf("after the run, to be shown: %s", got)
	}
	card = h.show(h.message(card.ID))
	if card.Posts != 3 {
		t.Errorf("%d versions were posted", card.Posts)
	}
	h.wantKinds(r.ID, "proposed shown decided approved shown executing executed returned shown")

	found, shown, err := h.Views.Delivery(h.ctx(), card.Channel, card.TS)
	h.ok(err)
	if found.ID != card.ID || shown.Post != 3 || shown.Hash != card.Hash ||
		shown.Of(r.ID) != (store.Shown{Request: r.ID, Digest: r.Digest, Stage: approvers.StageDigest(r), Whole: true, Since: h.clock.Now()}) {
		t.Errorf("the message shows %s, version %d, %s", found.ID, shown.Post, shown.Hash)
	}
	first, err := h.Views.Rendering(h.ctx(), card.ID, 1)
	h.ok(err)
	if first.Hash == shown.Hash || len(first.Body) == 0 {
		t.Error("the first version was not kept")
	}
	if _, _, err := h.Views.Delivery(h.ctx(), "C1", "no such"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a message that is not the bot's: %v", err)
	}
}

// TestAChangeDuringTheDelivery checks a request that changes while its card is sent to Slack. The card is then sent a
// second time, with the change.
func TestAChangeDuringTheDelivery(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`apply_discount {}`)
	read := h.only(r.ID, store.OutboxCard)
	h.approve(support, r.ID) // while the card is sent to Slack
	after := h.show(read)
	if after.State != store.OutboxWanted || after.ShownRevision != read.Revision || after.Revision == read.Revision || after.TS == "" {
		t.Errorf("%s, shown %d of %d", after.State, after.ShownRevision, after.Revision)
	}
	if _, ok := h.timers(store.ShowTimers...)[read.ID]; !ok {
		t.Error("the change will never be shown")
	}
	if after = h.show(after); after.State != store.OutboxShown {
		t.Errorf("%s after the second delivery", after.State)
	}
}

// The channel is recorded as lost while a message is updated, but Slack accepts the update. Later changes of the
// message must also be shown.
func TestADeliveryToALostChannel(t *testing.T) {
	for name, still := range map[string]bool{"something new": false, "nothing new": true} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			r := h.ask(`issue_refund {"amount":1}`)
			read := h.show(h.only(r.ID, store.OutboxCard))
			h.approve(lead, r.ID) // the card must show the approval
			h.ok(h.Outbox.Unreachable(h.ctx(), read.ID, "not_in_channel", "C1"))
			if still {
				h.ok(h.Outbox.Unchanged(h.ctx(), read))
			} else {
				h.ok(h.Outbox.Delivered(h.ctx(), read, h.posted(read)))
			}
			_, due := h.timers(read.Rank.Timer())[read.ID]
			if s := h.message(read.ID); s.State != store.OutboxWanted || !due {
				t.Errorf("it is %s, to be shown: %t", s.State, due)
			}
		})
	}
}

// TestATransactionIsOneChange checks that a transaction that changes both a request and its run increases the revision
// of each outbox message once.
func TestATransactionIsOneChange(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`apply_discount {}`)
	h.approve(support, r.ID)
	before := h.only(r.ID, store.OutboxCard).Revision
	if _, run, err := h.Runs.Claim(h.ctx(), r.Execution); err != nil || !run {
		t.Fatalf("run: %t, %v", run, err)
	}
	if now := h.only(r.ID, store.OutboxCard).Revision; now != before+1 {
		t.Errorf("version %d after version %d", now, before)
	}
}

func TestExpand(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`cancel_account {}`)
	role := h.only(r.ID, store.OutboxCard)
	if role.To != "role:finance-director" {
		t.Fatalf("the card goes to %s", role.To)
	}
	h.ok(h.Outbox.Expand(h.ctx(), role.ID, persons("U0003", "U0004")))
	h.ok(h.Outbox.Expand(h.ctx(), role.ID, persons("U0003", "U0004"))) // again, after a crash
	if got := h.wanted(r.ID); got != "card user:U0003, card user:U0004" {
		t.Errorf("to be shown: %s", got)
	}
	for _, s := range h.messagesOf(r.ID) {
		if s.State == store.OutboxWanted {
			h.show(s)
		}
	}
	h.approve(fin1, r.ID)
	if got := h.wanted(r.ID); got != "card user:U0003, card user:U0004" {
		t.Errorf("after the approval, to be shown: %s; every copy follows", got)
	}
}

func TestUnreachablePlacesAreReplaced(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`apply_discount {}`)
	card := h.only(r.ID, store.OutboxCard)
	for range 2 { // again, after a crash
		h.ok(h.Outbox.Unreachable(h.ctx(), card.ID, "not_in_channel", ""))
		if got := h.wanted(r.ID); got != "card role:support-agent" {
			t.Errorf("to be shown: %s; want each member told", got)
		}
	}
	if s := h.message(card.ID); s.State != store.OutboxUnreachable || s.LastError != "not_in_channel" {
		t.Errorf("%s: %s", s.State, s.LastError)
	}
	role := h.messagesOf(r.ID)[1]
	h.ok(h.Outbox.Expand(h.ctx(), role.ID, nil)) // no member can get messages
	if got := h.wanted(r.ID); got != "" {
		t.Errorf("to be shown: %s", got)
	}
	h.approve(support, r.ID)
	if got := h.wanted(r.ID); got != "" {
		t.Errorf("a message that Slack refused for good is wanted again: %s", got)
	}

	step := h.only(r.Turn, store.OutboxStep)
	h.ok(h.Outbox.Unreachable(h.ctx(), step.ID, "channel_not_found", ""))
	if got := h.wanted(r.Turn); got != "step user:U0100" {
		t.Errorf("to be shown: %s; want the requester told", got)
	}
	h.run(r.Execution, "ok")
	if got := h.wanted(r.Turn); got != "step user:U0100" {
		t.Errorf("after the run, to be shown: %s", got)
	}
	h.ok(h.Outbox.Unreachable(h.ctx(), "s_none", "x", ""))
}

// TestTheQuestionAboutARunFindsAnotherPlace checks the question about the outcome of a run. If Slack refuses the
// question at its first address, the question goes to other addresses. At each address, the question must name its
// execution and be readable.
func TestTheQuestionAboutARunFindsAnotherPlace(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Approvers[1].Cards = "#leads" }))
	r := h.ask(`issue_refund {"amount":1}`)
	h.ok(h.Outbox.Unreachable(h.ctx(), h.only(r.ID, store.OutboxCard).ID, "not_in_channel", "")) // the card went to the role already
	h.approve(lead, r.ID)
	_, _, err := h.Runs.Claim(h.ctx(), r.Execution)
	h.ok(err)
	h.ok(h.Runs.MarkUnknown(h.ctx(), r.Execution))
	for _, s := range h.messagesOf(r.Execution) {
		h.ok(h.Outbox.Unreachable(h.ctx(), s.ID, "channel_not_found", ""))
	}
	if got := h.wanted(r.Execution); got != "unknown role:team-lead, unknown user:U0100" && got != "unknown user:U0100, unknown role:team-lead" {
		t.Errorf("to be asked: %q; want the leads and the requester", got)
	}
	for _, s := range h.messagesOf(r.Execution) {
		if vm, err := h.Views.Message(h.ctx(), s.ID); err != nil || vm.Execution == nil {
			t.Errorf("%s to %s can't be rendered: %v", s.Kind, s.To, err)
		}
	}
	for _, s := range h.messagesOf(r.ID) {
		if s.Kind == store.OutboxUnknown {
			t.Error("a question about a run names its request")
		}
	}
	h.ok(h.Runs.Report(h.ctx(), workflow.Click{Execution: r.Execution, Who: lead}, workflow.Happened))
	h.answer(r.Turn)
}

// TestEveryOutboxMessageCanBeRead reads the records that outbox messages of several kinds need, without rendering the
// messages.
func TestEveryOutboxMessageCanBeRead(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "one").Turn
	cs := h.propose(turn, `search_orders {}`, `apply_discount {}`)
	h.say(bob, "two")
	h.clock.pass(escalateAfter)
	h.due()
	h.approve(support, cs[1].Request)
	_, _, err := h.Runs.Claim(h.ctx(), cs[1].Execution)
	h.ok(err)
	h.ok(h.Runs.MarkUnknown(h.ctx(), cs[1].Execution))
	h.run(cs[0].Execution, "found")
	h.ok(h.Runs.Report(h.ctx(), workflow.Click{Execution: cs[1].Execution, Who: alice}, workflow.DidNot))
	h.answer(turn)
	next := readStore(h, func(r store.Reader) (store.Conversation, error) { return r.Conversation(h.turn(turn).Conversation) }).Turn
	h.turns = append(h.turns, next)
	b := h.begin(next)
	h.ok(h.Turns.Stop(h.ctx(), next, b.Turn.Step, "The model can't be reached.", true))

	seen := map[store.OutboxKind]bool{}
	for _, ref := range []string{turn, next, cs[1].Request, cs[1].Execution} {
		for _, s := range h.messagesOf(ref) {
			vm, err := h.Views.Message(h.ctx(), s.ID)
			h.ok(err)
			seen[s.Kind] = true
			if vm.Conversation.Channel != "C0001" || vm.Policy == nil || vm.Turn.ID == "" {
				t.Errorf("%s: read without its conversation, policy or turn", s.Kind)
			}
			switch s.Kind {
			case store.OutboxCard, store.OutboxEscalation, store.OutboxUnknown:
				if vm.Request == nil || vm.Execution == nil || vm.Call == nil {
					t.Errorf("%s: request %v, execution %v, call %v", s.Kind, vm.Request, vm.Execution, vm.Call)
				}
			case store.OutboxStep:
				if len(vm.Calls) != 2 || vm.Text != "Let me see." || vm.Calls[1].Request == nil || vm.Calls[0].Execution == nil {
					t.Errorf("step with %d calls, %q", len(vm.Calls), vm.Text)
				}
			case store.OutboxAnswer:
				if vm.Text != "Done." {
					t.Errorf("answer %q", vm.Text)
				}
			case store.OutboxProblem:
				if vm.Turn.Problem == "" || !vm.Turn.CanRetry {
					t.Errorf("problem %q", vm.Turn.Problem)
				}
			}
		}
	}
	for _, kind := range []store.OutboxKind{
		store.OutboxCard, store.OutboxEscalation, store.OutboxStep, store.OutboxAnswer, store.OutboxProblem, store.OutboxQueued, store.OutboxUnknown,
	} {
		if !seen[kind] {
			t.Errorf("no outbox message of kind %s came up", kind)
		}
	}
}

// TestStillShown checks a message whose new rendering equals the version in Slack. The bot does not send the new
// rendering, and the store gets no new version and no audit record.
func TestStillShown(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`apply_discount {}`)
	card := h.only(r.ID, store.OutboxCard)
	p := h.posted(card)
	card.Channel, card.TS = "C0002", "300.1"
	h.ok(h.Outbox.Delivered(h.ctx(), card, p))
	kinds := h.kinds(r.ID)
	h.ok(h.Outbox.Unchanged(h.ctx(), h.message(card.ID)))
	after := h.message(card.ID)
	if !workflow.Same(after, p.Body) || workflow.Same(after, []byte("{}")) || after.Posts != 1 || after.State != store.OutboxShown || h.kinds(r.ID) != kinds {
		t.Errorf("%+v, records %q", after, h.kinds(r.ID))
	}
	if _, due := h.timers(store.ShowTimers...)[card.ID]; due {
		t.Error("it is due to be shown again")
	}
	h.approve(support, r.ID) // a change of the request, which the card must show
	h.ok(h.Outbox.Unchanged(h.ctx(), after))
	if s := h.message(card.ID); s.State != store.OutboxWanted || h.timers(store.ShowTimers...)[card.ID].Ref == "" {
		t.Errorf("a change meanwhile: %s", s.State)
	}
}
