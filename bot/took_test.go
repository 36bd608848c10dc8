package bot

import (
	"context"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// asked finds the request that a card is about.
func (w *workbench) asked(channel string, card posted) approvers.Request {
	w.t.Helper()
	var r approvers.Request
	w.until("the card is recorded", func() bool {
		_, shown, err := w.desk.Showing(context.Background(), channel, card.TS)
		if err != nil {
			return false
		}
		r, err = w.desk.Request(context.Background(), shown.Shows[0].Request)
		return err == nil
	})
	return r
}

// wantTook holds the time of a request's last decision against when Slack showed what was decided on, and when the click was received.
func (w *workbench) wantTook(request string) {
	w.t.Helper()
	var decided approvers.AuditRecord
	var since time.Time
	var r approvers.Request
	w.until("it is decided", func() bool {
		err := w.store.View(context.Background(), func(s store.Reader) (err error) {
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
			card, err := s.SurfaceAt(decided.Facts["channel"], decided.Facts["message"])
			if err != nil {
				return err
			}
			shown, err := s.Rendering(card.ID, 1)
			since = shown.At
			return err
		})
		if err != nil {
			w.t.Fatal(err)
		}
		return !since.IsZero()
	})
	received, err := time.Parse(time.RFC3339Nano, decided.Facts["received"])
	if err != nil {
		w.t.Fatal(err)
	}
	d := r.Decisions[len(r.Decisions)-1]
	if want := max(time.Millisecond, received.Sub(since)); d.Took != want || d.Took > time.Minute {
		w.t.Errorf("%s by %s took %v; the card was there for %v", d.Kind, d.Name, d.Took, want)
	}
}

// The time to a decision is known wherever people decide: on the card in a channel, in a form, in the form that shows all arguments, and in a
// direct message.
func TestTook(t *testing.T) {
	w := newWorkbench(t)
	w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	r := w.asked("C0002", card)
	w.clicks("teo", "#support-approvals", card, actApprove)
	w.wantTook(r.ID)

	w.says("sam", "#support", `@bot call cancel_account {"user_id":"C-77"}`)
	card = w.finds("teo", "#support-approvals", "", "Stage 1 of 2")
	r = w.asked("C0002", card)
	w.clicks("teo", "#support-approvals", card, actTyped)
	w.submits("teo", w.opened("teo", actTyped), map[string]any{fieldTyped: "C-77"})
	w.wantTook(r.ID)
	card = w.finds("ingrid", "U0BOT", "", "Stage 2 of 2")
	w.clicks("ingrid", "U0BOT", card, actReject)
	w.submits("ingrid", w.opened("ingrid", actReject), map[string]any{fieldReason: "no"})
	w.finds("ingrid", "U0BOT", "", "Rejected by")
	w.wantTook(r.ID)

	w.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-124","reason":"`+strings.Repeat("long ", 600)+`"}`)
	card = w.finds("teo", "#support-approvals", "", "ORD-124", "Waits for")
	r = w.asked("C0002", card)
	w.clicks("teo", "#support-approvals", card, actArguments)
	w.submits("teo", w.opened("teo", actArguments), nil)
	w.wantTook(r.ID)
}
