package bot

import (
	"context"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/bot/render/control"
	"countersign/store"
)

// asked returns the request of a card.
func (h *harness) asked(channel string, card posted) approvers.Request {
	h.t.Helper()
	var r approvers.Request
	h.until("the card is recorded", func() bool {
		_, shown, err := h.workflow.Views.Delivery(context.Background(), channel, card.TS)
		if err != nil {
			return false
		}
		r, err = h.workflow.Views.Request(context.Background(), shown.Shows[0].Request)
		return err == nil
	})
	return r
}

// wantDecisionTime checks the decision time of a request's last decision. The decision time must be the time between
// the delivery of the card and the click.
func (h *harness) wantDecisionTime(request string) {
	h.t.Helper()
	var decided approvers.AuditRecord
	var since time.Time
	var r approvers.Request
	h.until("it is decided", func() bool {
		err := h.store.View(context.Background(), func(s store.Reader) (err error) {
			if r, err = s.Request(request); err != nil || len(r.Decisions) == 0 {
				return err
			}
			records, err := s.Audit(request)
			for _, a := range records {
				if a.Kind == approvers.AuditDecided {
					decided = a
				}
			}
			if err != nil {
				return err
			}
			card, err := s.OutboxMessageAt(decided.Facts["channel"], decided.Facts["message"])
			if err != nil {
				return err
			}
			shown, err := s.Rendering(card.ID, 1)
			since = shown.At
			return err
		})
		if err != nil {
			h.t.Fatal(err)
		}
		return !since.IsZero()
	})
	received, err := time.Parse(time.RFC3339Nano, decided.Facts["received"])
	if err != nil {
		h.t.Fatal(err)
	}
	d := r.Decisions[len(r.Decisions)-1]
	if want := max(time.Millisecond, received.Sub(since)); d.Took != want || d.Took > time.Minute {
		h.t.Errorf("%s by %s took %v; the card was there for %v", d.Kind, d.Name, d.Took, want)
	}
}

// The bot records the decision time wherever people decide: on a card in a channel, in a form, in the form with all
// arguments, and in a direct message.
func TestDecisionTime(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	r := h.asked("C0002", card)
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.wantDecisionTime(r.ID)

	h.says("sam", "#support", `@bot call cancel_account {"user_id":"C-77"}`)
	card = h.finds("teo", "#support-approvals", "", "Waits for Team Lead", "Then Finance Director")
	r = h.asked("C0002", card)
	h.clicks("teo", "#support-approvals", card, control.ActTyped)
	h.submits("teo", h.opened("teo", control.ActTyped), map[string]any{control.FieldTyped: "C-77"})
	h.wantDecisionTime(r.ID)
	card = h.finds("ingrid", "U0BOT", "", "Waits for Finance Director")
	h.clicks("ingrid", "U0BOT", card, control.ActReject)
	h.submits("ingrid", h.opened("ingrid", control.ActReject), map[string]any{control.FieldReason: "no"})
	h.finds("ingrid", "U0BOT", "", "Rejected by")
	h.wantDecisionTime(r.ID)

	h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-124","reason":"`+strings.Repeat("long ", 600)+`"}`)
	card = h.finds("teo", "#support-approvals", "", "ORD-124", "Waits for")
	r = h.asked("C0002", card)
	h.clicks("teo", "#support-approvals", card, control.ActArguments)
	h.submits("teo", h.opened("teo", control.ActArguments), nil)
	h.wantDecisionTime(r.ID)
}
