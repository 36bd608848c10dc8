package workflow_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"countersign/approvers/workflow"
	"countersign/store"
)

// leftover creates an outbox message with a leftover, which is a Slack message that Slack refused to delete. leftover
// returns the id of the outbox message.
func (h *harness) leftover() (message string) {
	h.t.Helper()
	r := h.requestIn(h.say(alice, "one").Turn, `issue_refund {"amount":1}`)
	s := h.only(r.ID, store.OutboxCard)
	s.Channel, s.TS = "C", "1.0"
	h.ok(h.Outbox.Delivered(h.ctx(), s, h.posted(s)))
	h.ok(h.Outbox.Replace(h.ctx(), h.message(s.ID)))
	if got := h.message(s.ID); got.ReplacedTS != "1.0" {
		h.t.Fatalf("it replaces %q", got.ReplacedTS)
	}
	for range 2 { // a handler may be called again
		h.ok(h.Outbox.LeftOver(h.ctx(), s.ID, "C", "1.0", "cant_delete_message"))
	}
	return s.ID
}

// tryLeftovers records the results of the due deletions. The parameter refused is Slack's reason for refusing the
// deletions. If this parameter is "", the deletions succeed. tryLeftovers returns the number of deletions.
func (h *harness) tryLeftovers(message, refused string) (n int) {
	h.t.Helper()
	for range h.dueOf(store.TimerLeftover) {
		list, err := h.Views.Leftovers(h.ctx(), message)
		h.ok(err)
		var tried []workflow.TriedDeletion
		for _, l := range list {
			if !l.Next.After(h.clock.Now()) {
				tried = append(tried, workflow.TriedDeletion{Leftover: l.Leftover, Refused: refused})
				n += len(l.Delete)
			}
		}
		h.ok(h.Outbox.TriedLeftovers(h.ctx(), message, tried))
	}
	return n
}

func (h *harness) dueOf(kind store.TimerKind) []store.Timer {
	h.t.Helper()
	return readStore(h, func(r store.Reader) ([]store.Timer, error) {
		return r.TimersIn(store.AllShares, kind, h.clock.Now(), 10)
	})
}

// TestLeftoverIsGivenUp checks that the bot tries the deletion of a leftover again and again. The delay doubles up to
// six hours, and a restart does not change it. After three days, the bot stops trying.
func TestLeftoverIsGivenUp(t *testing.T) {
	h := newHarness(t)
	var log bytes.Buffer
	message := h.leftover()
	began := h.clock.Now()
	if got := h.message(message); len(got.Leftovers) != 1 || got.ReplacedTS != "" || got.Leftovers[0].TS != "1.0" {
		t.Fatalf("leftovers %+v", got.Leftovers)
	}
	for i, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute} {
		h.clock.pass(pause - time.Second)
		if n := h.tryLeftovers(message, "cant_delete_message"); n != 0 {
			t.Fatalf("%d: tried too early", i)
		}
		h.clock.pass(time.Second)
		if i == 1 {
			h.reopen()
			h.Log = slog.New(slog.NewTextHandler(&log, nil))
		}
		if n := h.tryLeftovers(message, "cant_delete_message"); n != 1 {
			t.Fatalf("%d: tried %d times", i, n)
		}
		h.invariants()
	}
	tries := 0
	for len(h.timers(store.TimerLeftover)) > 0 {
		next := h.timers(store.TimerLeftover)[message].Due
		if pause := next.Sub(h.clock.Now()); pause > 6*time.Hour {
			t.Fatalf("a pause of %s", pause)
		}
		h.clock.pass(next.Sub(h.clock.Now()))
		tries += h.tryLeftovers(message, "cant_delete_message")
	}
	if lasted := h.clock.Now().Sub(began); lasted != 3*24*time.Hour || tries > 20 {
		t.Errorf("given up after %s and %d more tries", lasted, tries)
	}
	if got := h.message(message); len(got.Leftovers) != 0 {
		t.Errorf("leftovers %+v", got.Leftovers)
	}
	if n := strings.Count(log.String(), "it stays, and its buttons do nothing"); n != 1 {
		t.Errorf("the operator was told %d times:\n%s", n, log.String())
	}
	h.invariants()
}

// TestLeftoversOfOneMessage checks an outbox message with several leftovers. The bot tries to delete each leftover at
// its own times. A deleted leftover is removed from the list.
func TestLeftoversOfOneMessage(t *testing.T) {
	h := newHarness(t)
	message := h.leftover()
	h.clock.pass(30 * time.Second)
	h.ok(h.Outbox.LeftOver(h.ctx(), message, "C", "2.0", "cant_delete_message"))
	h.clock.pass(30 * time.Second)
	if n := h.tryLeftovers(message, "cant_delete_message"); n != 1 {
		t.Fatalf("tried %d", n)
	}
	h.clock.pass(30 * time.Second)
	if n := h.tryLeftovers(message, ""); n != 1 {
		t.Fatalf("tried %d", n)
	}
	if got := h.message(message).Leftovers; len(got) != 1 || got[0].TS != "1.0" {
		t.Errorf("leftovers %+v", got)
	}
	h.invariants()
	u, err := h.Views.Undelivered(h.ctx())
	h.ok(err)
	if len(u.Leftovers) != 1 || u.Leftovers[0].TS != "1.0" || len(u.Refused) != 0 || u.Deferred.Count != 0 {
		t.Errorf("undelivered: %+v", u)
	}
}

// If Slack does not let the bot change an answer that has several Slack messages, the bot posts all of them again, and
// deletes all old ones, also if the new answer has only one message. The first old one is deleted when the new ones are
// posted.
func TestReplacedAnswerOfSeveralMessages(t *testing.T) {
	for _, posted := range []bool{false, true} {
		t.Run(fmt.Sprint("posted ", posted), func(t *testing.T) {
			h := newHarness(t)
			answer := h.only(h.requestIn(h.say(alice, "one").Turn, `issue_refund {"amount":1}`).ID, store.OutboxCard)
			answer.Channel, answer.TS, answer.Parts = "C", "1.0", []string{"1.1", "1.2"}
			h.ok(h.Outbox.Delivered(h.ctx(), answer, h.posted(answer)))
			h.ok(h.Outbox.Replace(h.ctx(), h.message(answer.ID)))
			got := h.message(answer.ID)
			if got.ReplacedTS != "1.0" || len(got.Parts) != 0 || got.State != store.OutboxWanted {
				t.Errorf("the answer is %+v", got)
			}
			if posted {
				got.Channel, got.TS = "C", "2.0"
				h.ok(h.Outbox.Delivered(h.ctx(), got, h.posted(got)))
			}
			if n := h.tryLeftovers(answer.ID, ""); n != 2 {
				t.Errorf("%d further messages are deleted", n)
			}
			h.invariants()
		})
	}
}

// takenOver is the store of a replica that has lost every claim.
type takenOver struct{ store.Store }

func (s takenOver) Update(ctx context.Context, fn func(store.Tx) error) error {
	if len(store.ClaimsOf(ctx)) > 0 {
		return store.ErrFenced
	}
	return s.Store.Update(ctx, fn)
}

// TestSentLate checks a card that a replica sent although another replica had taken over the delivery. In the end,
// Slack shows the card once, in its newest version.
func TestSentLate(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after string // the ts of what the other replica posts before and after the late post, with those of further Slack messages
		deleted       int    // number of deletions of the late post's Slack messages
		sendsAgain    bool
		parts         []string // ts of the late post's further Slack messages
	}{
		{name: "the other replica had posted the card", before: "2.0", deleted: 1},
		{name: "the other replica posts the card", after: "2.0", deleted: 1},
		{name: "the other replica finds the late post", after: "1.0"},
		{name: "the late call was a change", before: "1.0", sendsAgain: true},
		{name: "the other replica had posted several", before: "2.0 2.1 2.2", deleted: 3, parts: []string{"1.1", "1.2"}},
		{name: "the other replica posts several", after: "2.0 2.1 2.2", deleted: 3, parts: []string{"1.1", "1.2"}},
		{name: "the other replica finds all", after: "1.0 1.1 1.2", parts: []string{"1.1", "1.2"}},
		{name: "the other replica finds some", after: "1.0 1.1 2.2", deleted: 1, parts: []string{"1.1", "1.2"}},
		{name: "the other replica finds only a further one", after: "2.0 1.1 2.2", deleted: 2, parts: []string{"1.1", "1.2"}},
		{name: "the other replica has an earlier program", after: "2.0", deleted: 1, parts: []string{"1.1", "1.2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t)
			card := h.only(h.requestIn(h.say(alice, "one").Turn, `issue_refund {"amount":1}`).ID, store.OutboxCard)
			post := func(parts string) {
				if ts := strings.Fields(parts); len(ts) > 0 {
					s := h.message(card.ID)
					s.Channel, s.TS, s.Parts = "C", ts[0], ts[1:]
					h.ok(h.Outbox.Delivered(h.ctx(), s, h.posted(s)))
				}
			}
			post(c.before)
			late := workflow.New(workflow.Config{Store: takenOver{h.store}, Policy: h.policy.Load, Tools: h.tools, Now: h.clock.Now, Log: slog.New(slog.DiscardHandler)})
			card.Channel, card.TS, card.Parts = "C", "1.0", c.parts
			if err := late.Outbox.Delivered(store.WithClaims(h.ctx(), store.Claim{Name: store.ShareClaim(1)}), card, h.posted(card)); !errors.Is(err, store.ErrFenced) {
				t.Fatalf("the late delivery: got %v, want ErrFenced", err)
			}
			again := h.message(card.ID)
			if wanted := again.State == store.OutboxWanted && c.before != ""; wanted != c.sendsAgain || wanted && again.Hash != "" {
				t.Errorf("the card is sent again: %v, want %v; its hash is %q", wanted, c.sendsAgain, again.Hash)
			}
			deleted := 0
			if c.after != "" {
				if deleted = h.tryLeftovers(card.ID, ""); deleted != 0 || len(h.dueOf(store.TimerLeftover)) != 0 {
					t.Errorf("the deletion of the late post does not wait, but the other replica may still find the post")
				}
				post(c.after)
				h.clock.pass(time.Minute)
			}
			if deleted += h.tryLeftovers(card.ID, ""); deleted != c.deleted {
				t.Errorf("%d deletions, want %d", deleted, c.deleted)
			}
			want, _, _ := strings.Cut(cmp.Or(c.after, c.before), " ")
			if got := h.message(card.ID); got.TS != want || len(got.Leftovers) != 0 || len(h.timers(store.TimerLeftover)) != 0 {
				t.Errorf("the card is %q with leftovers %v, want %q and none", got.TS, got.Leftovers, want)
			}
			h.invariants()
		})
	}
}
