package workflow_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/store"
)

// errors captures the errors in the harness's log.
func (h *harness) errors() *bytes.Buffer {
	var log bytes.Buffer
	h.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
	return &log
}

// hearsLog captures the harness's log, and returns a function. This function counts the log's lines about lost
// channels.
func (h *harness) hearsLog() func() int {
	log := h.errors()
	return func() int { return strings.Count(log.String(), "can't write in a channel") }
}

// h.where lists the outbox messages of the given refs that are shown in Slack or wait for delivery. Each entry has the
// kind and the address of the message.
func (h *harness) where(refs ...string) string {
	h.t.Helper()
	var out []string
	for _, ref := range refs {
		for _, s := range h.messagesOf(ref) {
			if s.State == store.OutboxWanted || s.State == store.OutboxShown {
				out = append(out, string(s.Kind)+" "+s.To)
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// The function leads changes a policy so that the leads read their cards in the channel #leads.
func leads(p *approvers.Policy) { p.Approvers[1].Cards = "#leads" }

// TestALostChannel checks that the open messages of each kind immediately move from a lost channel to direct messages.
// Messages about finished work stay in the channel. The log has one error. When the bot is back in the channel, new
// cards go to the channel, and the old cards show the current state.
func TestALostChannel(t *testing.T) {
	h := newHarness(t)
	told := h.hearsLog()
	h.policy.Store(policy("policy-1", leads))
	turn := h.say(alice, "one").Turn
	cs := h.propose(turn, `issue_refund {"amount":1}`, `apply_discount {}`)
	refund, discount := h.request(cs[0].Request), h.request(cs[1].Request)
	over := h.requestIn(h.sayIn("200.1", bob, "two").Turn, `issue_refund {"amount":2}`)
	lost := h.requestIn(h.sayIn("300.1", bob, "three").Turn, `issue_refund {"amount":3}`)
	shown := func(refs ...string) {
		for _, ref := range refs {
			for _, s := range h.messagesOf(ref) {
				if s.State != store.OutboxWanted {
					continue
				}
				s.Channel, s.TS = map[string]string{"channel:#leads": "C-leads", "channel:#support-approvals": "C-support"}[s.To], s.ID
				h.ok(h.Outbox.Delivered(h.ctx(), s, h.posted(s)))
			}
		}
	}
	h.approve(lead, lost.ID)
	_, _, err := h.Runs.Claim(h.ctx(), lost.Execution)
	h.ok(err)
	h.ok(h.Runs.MarkUnknown(h.ctx(), lost.Execution))
	shown(refund.ID, discount.ID, over.ID, lost.ID, lost.Execution)
	h.approve(lead, over.ID)
	h.run(over.Execution, "ok")
	shown(over.ID)

	h.ok(h.Intake.ChannelLost(h.ctx(), "", "C-other", "it was archived", "#other")) // nothing is open there, and the policy does not name the channel
	h.due()
	if n := told(); n != 0 {
		t.Errorf("the operator was told %d times of a channel that nothing uses", n)
	}
	h.wantLostChannels("")
	h.ok(h.Intake.ChannelLost(h.ctx(), "", "C-leads", "the bot was removed from it", "#leads"))
	h.ok(h.Intake.ChannelLost(h.ctx(), "", "C-leads", "it was archived", "#leads"))
	h.due()
	h.due()
	h.wantLostChannels("#leads: the bot was removed from it")
	if got := h.where(refund.ID); got != "card role:team-lead" {
		t.Errorf("the open card is at: %s", got)
	}
	if got := h.where(lost.Execution); got != "unknown conversation:"+lost.Conversation+", unknown role:team-lead" {
		t.Errorf("the question about a run is at: %s", got)
	}
	if got := h.where(discount.ID, over.ID); got != "card channel:#leads, card channel:#support-approvals" {
		t.Errorf("messages that are elsewhere, or have ended, are at: %s", got)
	}
	next := h.requestIn(h.sayIn("400.1", bob, "four").Turn, `issue_refund {"amount":4}`)
	h.ok(h.Outbox.Unreachable(h.ctx(), h.only(next.ID, store.OutboxCard).ID, "not_in_channel", "C-leads"))
	h.due()
	again := h.requestIn(h.sayIn("500.1", bob, "five").Turn, `issue_refund {"amount":5}`)
	h.ok(h.Outbox.Unreachable(h.ctx(), h.only(again.ID, store.OutboxCard).ID, "channel_not_found", "#leads")) // the channel has another name here
	h.due()
	if got := h.where(next.ID, again.ID); got != "card role:team-lead, card role:team-lead" {
		t.Errorf("new cards are at: %s", got)
	}
	if n := told(); n != 1 {
		t.Errorf("the operator was told %d times", n)
	}

	h.approve(lead, refund.ID)
	old := h.messagesOf(refund.ID)[0]
	h.ok(h.Intake.ChannelRestored(h.ctx(), "", "C-leads"))
	h.wantLostChannels("")
	if got := h.message(old.ID); got.State != store.OutboxWanted || got.TS != old.TS {
		t.Errorf("the old card is %s", got.State)
	}
	if got := h.where(refund.ID); got != "card channel:#leads, card role:team-lead" {
		t.Errorf("the card is at: %s", got)
	}
	h.ok(h.Intake.ChannelLost(h.ctx(), "", "C-leads", "the bot was removed from it", "#leads"))
	h.due()
	if n := told(); n != 2 {
		t.Errorf("after the second loss, the operator was told %d times", n)
	}
	h.run(refund.Execution, "ok")
	h.approve(support, discount.ID)
	h.run(discount.Execution, "ok")
}

// wantLostChannels checks the names and causes of the policy's lost channels.
func (h *harness) wantLostChannels(want string) {
	h.t.Helper()
	list, err := h.Views.LostChannels(h.ctx())
	h.ok(err)
	got := ""
	for _, c := range list {
		got += c.Name + ": " + c.Cause
	}
	if got != want {
		h.t.Errorf("the lost channels of the policy are %q, not %q", got, want)
	}
}

// TestALostChannelIsFoundOut checks that a failed post marks the channel as lost, and moves the channel's other open
// messages. A successful post marks the channel as not lost.
func TestALostChannelIsFoundOut(t *testing.T) {
	h := newHarness(t)
	told := h.hearsLog()
	first, second := h.ask(`apply_discount {}`), h.requestIn(h.sayIn("200.1", bob, "two").Turn, `apply_discount {}`)
	card := h.only(first.ID, store.OutboxCard)
	card.Channel, card.TS = "C-support", "300.1"
	h.ok(h.Outbox.Delivered(h.ctx(), card, h.posted(card)))
	h.ok(h.Outbox.Unreachable(h.ctx(), h.only(second.ID, store.OutboxCard).ID, "is_archived", "C-support"))
	h.wantLostChannels("#support-approvals: is_archived")
	if _, due := h.timers(store.TimerChannel)["C-support"]; !due {
		t.Fatal("the channel's other messages are not about to move")
	}
	h.due()
	if got := h.where(first.ID, second.ID); got != "card role:support-agent, card role:support-agent" {
		t.Errorf("the cards are at: %s", got)
	}
	third := h.requestIn(h.sayIn("300.1", bob, "three").Turn, `apply_discount {}`)
	card = h.only(third.ID, store.OutboxCard)
	card.Channel, card.TS = "C-support", "300.3"
	h.ok(h.Outbox.Delivered(h.ctx(), card, h.posted(card)))
	h.wantLostChannels("")
	if got := h.where(third.ID, first.ID); got != "card channel:#support-approvals, card channel:#support-approvals, card role:support-agent" {
		t.Errorf("the cards are at: %s", got)
	}
	if n := told(); n != 1 {
		t.Errorf("the operator was told %d times", n)
	}
}

// TestALostConversation checks a conversation whose channel is lost. The open messages of its thread go to the
// requesters by direct message, and so do later messages.
func TestALostConversation(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1}`)
	step := h.only(r.Turn, store.OutboxStep)
	step.Channel, step.TS = "C0001", "100.2"
	h.ok(h.Outbox.Delivered(h.ctx(), step, h.posted(step)))
	h.ok(h.Intake.ChannelLost(h.ctx(), "", "C0001", "it was deleted"))
	h.ok(h.Intake.LeaveChannel(h.ctx(), h.timers(store.TimerChannel)["C0001"]))
	if got := h.where(r.Turn); got != "step user:U0100" {
		t.Errorf("the step is at: %s", got)
	}
	h.approve(lead, r.ID)
	h.run(r.Execution, "ok")
	h.answer(r.Turn)
	answer := h.only(r.Turn, store.OutboxAnswer)
	h.ok(h.Outbox.Unreachable(h.ctx(), answer.ID, "channel_not_found", "C0001"))
	if got := h.where(r.Turn); got != "answer user:U0100, step user:U0100" {
		t.Errorf("the answer is at: %s", got)
	}
}

// TestLostUnderItsName checks a channel that was lost under its name in the policy. An event with the channel's id
// restores the channel, and the old card is then shown again.
func TestLostUnderItsName(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`apply_discount {}`)
	card := h.show(h.only(r.ID, store.OutboxCard))
	h.ok(h.Outbox.Unreachable(h.ctx(), card.ID, "channel_not_found", "#support-approvals"))
	h.ok(h.Intake.ChannelRestored(h.ctx(), "", card.Channel, "#support-approvals"))
	if got := h.where(r.ID); got != "card channel:#support-approvals, card role:support-agent" {
		t.Errorf("the cards are at: %s", got)
	}
}

// TestBackBeforeItWasVacated checks that no message moves if the bot returns to a channel before the move.
func TestBackBeforeItWasVacated(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`apply_discount {}`)
	card := h.show(h.only(r.ID, store.OutboxCard))
	h.ok(h.Intake.ChannelLost(h.ctx(), "", card.Channel, "the bot was removed from it"))
	timer := h.timers(store.TimerChannel)[card.Channel]
	h.ok(h.Intake.ChannelRestored(h.ctx(), "", card.Channel))
	h.ok(h.Intake.LeaveChannel(h.ctx(), timer))
	if got := h.where(r.ID); got != "card channel:#support-approvals" || len(h.timers(store.TimerChannel)) != 0 {
		t.Errorf("the card is at: %s", got)
	}
}
