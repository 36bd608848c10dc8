package workflow_test

import (
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// TestTurns checks the notice to a person who got the card before the person's stage began. The person gets one notice
// when the stage begins. A person who gets the card when the stage begins gets no notice.
func TestTurns(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":900}`)
	told := func(who approvers.Identity) (n int) {
		for _, s := range h.messagesOf(r.ID) {
			if s.Note == store.NoteTurn && s.To == "user:"+who.ID.User() {
				n++
			}
		}
		return n
	}
	resolve := func(people ...approvers.Identity) {
		t.Helper()
		h.expandCards(r.ID)
		var present []approvers.Presence
		for _, who := range people {
			present = append(present, approvers.Presence{Who: who})
		}
		defer h.clock.pass(time.Second)
		for range 2 { // after a second look-up, nobody gets another notice
			snapshot, err := h.Views.StageSnapshot(h.ctx(), r.ID)
			h.ok(err)
			timer := store.Timer{Kind: store.TimerAvailability, Ref: r.ID, Due: h.clock.Now()}
			h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error { return tx.SetTimer(timer) }))
			h.ok(h.People.ResolveAvailability(h.ctx(), timer, snapshot, present))
		}
	}
	resolve(lead)
	h.approve(lead, r.ID)
	resolve(fin1, fin2)
	if told(lead)+told(fin1)+told(fin2) != 0 {
		t.Fatal("somebody whose card came with their turn also got a notice")
	}
	_, err := h.Requests.Decide(h.ctx(), h.edit(fin1, r.ID, `{"amount":800}`))
	h.ok(err)
	resolve(lead)
	if told(lead) != 1 || told(fin1)+told(fin2) != 0 {
		t.Errorf("after the edit the lead was told %d times, the directors %d and %d", told(lead), told(fin1), told(fin2))
	}
	h.approve(lead, r.ID)
	resolve(fin1, fin2)
	if told(lead) != 1 || told(fin1) != 1 || told(fin2) != 1 {
		t.Errorf("at the second stage again: told %d, %d and %d times", told(lead), told(fin1), told(fin2))
	}
}

// expandCards gives each member of a role a copy of a wanted card, as the bot does.
func (h *harness) expandCards(request string) {
	h.t.Helper()
	for _, s := range h.messagesOf(request) {
		name, toRole := strings.CutPrefix(s.To, "role:")
		if !toRole || s.State != store.OutboxWanted {
			continue
		}
		role, _ := h.policy.Load().Role(name)
		var users []string
		for _, m := range role.Members {
			users = append(users, m.Value)
		}
		h.ok(h.Outbox.Expand(h.ctx(), s.ID, persons(users...)))
	}
}
