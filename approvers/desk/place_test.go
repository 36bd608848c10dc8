package desk_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/store"
)

// hearsLog has the office's log be read. It counts what the operator is told.
func (o *office) hearsLog() func() int {
	var log bytes.Buffer
	o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
	return func() int { return strings.Count(log.String(), "can't write in a channel") }
}

// where says where the surfaces of some refs are that wait to be shown, or are.
func (o *office) where(refs ...string) string {
	o.t.Helper()
	var out []string
	for _, ref := range refs {
		for _, s := range o.surfacesOf(ref) {
			if s.State == store.SurfaceWanted || s.State == store.SurfaceShown {
				out = append(out, string(s.Kind)+" "+s.To)
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// leads is a policy in which the leads read their cards in a channel, like the support agents.
func leads(p *approvers.Policy) { p.Approvers[1].Cards = "#leads" }

// TestALostChannel: what is open there moves to each person at once, of every kind; what is over stays. The operator is told once. When the bot is back,
// new cards go there again, and the old ones show how things are.
func TestALostChannel(t *testing.T) {
	o := newOffice(t)
	told := o.hearsLog()
	o.policy.Store(policy("policy-1", leads))
	turn := o.say(alice, "one").Turn
	cs := o.propose(turn, `issue_refund {"amount":1}`, `apply_discount {}`)
	refund, discount := o.request(cs[0].Request), o.request(cs[1].Request)
	over := o.requestIn(o.sayIn("200.1", bob, "two").Turn, `issue_refund {"amount":2}`)
	lost := o.requestIn(o.sayIn("300.1", bob, "three").Turn, `issue_refund {"amount":3}`)
	shown := func(refs ...string) {
		for _, ref := range refs {
			for _, s := range o.surfacesOf(ref) {
				if s.State != store.SurfaceWanted {
					continue
				}
				s.Channel, s.TS = map[string]string{"channel:#leads": "C-leads", "channel:#support-approvals": "C-support"}[s.To], s.ID
				o.ok(o.Shown(o.ctx(), s, o.posted(s)))
			}
		}
	}
	o.approve(lead, lost.ID)
	_, _, err := o.Claim(o.ctx(), lost.Execution)
	o.ok(err)
	o.ok(o.Lose(o.ctx(), lost.Execution))
	shown(refund.ID, discount.ID, over.ID, lost.ID, lost.Execution)
	o.approve(lead, over.ID)
	o.run(over.Execution, "ok")
	shown(over.ID)

	o.ok(o.PlaceLost(o.ctx(), "", "C-other", "it was archived", "#other")) // nothing is there, and the policy does not name it
	o.due()
	if n := told(); n != 0 {
		t.Errorf("the operator was told %d times of a channel that is nobody's", n)
	}
	o.ok(o.PlaceLost(o.ctx(), "", "C-leads", "the bot was removed from it", "#leads"))
	o.ok(o.PlaceLost(o.ctx(), "", "C-leads", "it was archived", "#leads"))
	o.due()
	o.due()
	if got := o.where(refund.ID); got != "card role:team-lead" {
		t.Errorf("the open card is at: %s", got)
	}
	if got := o.where(lost.Execution); got != "unknown conversation:"+lost.Conversation+", unknown role:team-lead" {
		t.Errorf("the question about a run is at: %s", got)
	}
	if got := o.where(discount.ID, over.ID); got != "card channel:#leads, card channel:#support-approvals" {
		t.Errorf("what is elsewhere, or over, is at: %s", got)
	}
	next := o.requestIn(o.sayIn("400.1", bob, "four").Turn, `issue_refund {"amount":4}`)
	o.ok(o.Unreachable(o.ctx(), o.only(next.ID, store.SurfaceCard).ID, "not_in_channel", "C-leads"))
	o.due()
	again := o.requestIn(o.sayIn("500.1", bob, "five").Turn, `issue_refund {"amount":5}`)
	o.ok(o.Unreachable(o.ctx(), o.only(again.ID, store.SurfaceCard).ID, "channel_not_found", "#leads")) // under the other name of it
	o.due()
	if got := o.where(next.ID, again.ID); got != "card role:team-lead, card role:team-lead" {
		t.Errorf("new cards are at: %s", got)
	}
	if n := told(); n != 1 {
		t.Errorf("the operator was told %d times", n)
	}

	o.approve(lead, refund.ID)
	old := o.surfacesOf(refund.ID)[0]
	o.ok(o.PlaceBack(o.ctx(), "", "C-leads"))
	if got := o.surface(old.ID); got.State != store.SurfaceWanted || got.TS != old.TS {
		t.Errorf("the old card is %s", got.State)
	}
	if got := o.where(refund.ID); got != "card channel:#leads, card role:team-lead" {
		t.Errorf("the card is at: %s", got)
	}
	o.ok(o.PlaceLost(o.ctx(), "", "C-leads", "the bot was removed from it", "#leads"))
	o.due()
	if n := told(); n != 2 {
		t.Errorf("lost again, the operator was told %d times", n)
	}
	o.run(refund.Execution, "ok")
	o.approve(support, discount.ID)
	o.run(discount.Execution, "ok")
}

// TestALostChannelIsFoundOut at the next post: what else is open there moves too. A post that succeeds says that the bot is back.
func TestALostChannelIsFoundOut(t *testing.T) {
	o := newOffice(t)
	told := o.hearsLog()
	first, second := o.ask(`apply_discount {}`), o.requestIn(o.sayIn("200.1", bob, "two").Turn, `apply_discount {}`)
	card := o.only(first.ID, store.SurfaceCard)
	card.Channel, card.TS = "C-support", "300.1"
	o.ok(o.Shown(o.ctx(), card, o.posted(card)))
	o.ok(o.Unreachable(o.ctx(), o.only(second.ID, store.SurfaceCard).ID, "is_archived", "C-support"))
	if _, due := o.timers(store.TimerPlace)["C-support"]; !due {
		t.Fatal("nobody looks what else is there")
	}
	o.due()
	if got := o.where(first.ID, second.ID); got != "card role:support-agent, card role:support-agent" {
		t.Errorf("the cards are at: %s", got)
	}
	third := o.requestIn(o.sayIn("300.1", bob, "three").Turn, `apply_discount {}`)
	card = o.only(third.ID, store.SurfaceCard)
	card.Channel, card.TS = "C-support", "300.3"
	o.ok(o.Shown(o.ctx(), card, o.posted(card)))
	if got := o.where(third.ID, first.ID); got != "card channel:#support-approvals, card channel:#support-approvals, card role:support-agent" {
		t.Errorf("the cards are at: %s", got)
	}
	if n := told(); n != 1 {
		t.Errorf("the operator was told %d times", n)
	}
}

// TestALostConversation: what its thread shows and still matters goes to those who asked; so does what is said there later.
func TestALostConversation(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`issue_refund {"amount":1}`)
	step := o.only(r.Turn, store.SurfaceStep)
	step.Channel, step.TS = "C0001", "100.2"
	o.ok(o.Shown(o.ctx(), step, o.posted(step)))
	o.ok(o.PlaceLost(o.ctx(), "", "C0001", "it was deleted"))
	o.ok(o.Vacate(o.ctx(), o.timers(store.TimerPlace)["C0001"]))
	if got := o.where(r.Turn); got != "step user:U0100" {
		t.Errorf("the step is at: %s", got)
	}
	o.approve(lead, r.ID)
	o.run(r.Execution, "ok")
	o.answer(r.Turn)
	answer := o.only(r.Turn, store.SurfaceAnswer)
	o.ok(o.Unreachable(o.ctx(), answer.ID, "channel_not_found", "C0001"))
	if got := o.where(r.Turn); got != "answer user:U0100, step user:U0100" {
		t.Errorf("the answer is at: %s", got)
	}
}

// TestBackBeforeItWasVacated: nothing moves.
func TestBackBeforeItWasVacated(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`apply_discount {}`)
	card := o.show(o.only(r.ID, store.SurfaceCard))
	o.ok(o.PlaceLost(o.ctx(), "", card.Channel, "the bot was removed from it"))
	timer := o.timers(store.TimerPlace)[card.Channel]
	o.ok(o.PlaceBack(o.ctx(), "", card.Channel))
	o.ok(o.Vacate(o.ctx(), timer))
	if got := o.where(r.ID); got != "card channel:#support-approvals" || len(o.timers(store.TimerPlace)) != 0 {
		t.Errorf("the card is at: %s", got)
	}
}
