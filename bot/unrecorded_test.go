package bot

import (
	"context"
	"testing"

	"countersign/approvers"
	"countersign/bot/render"
)

// Slack may show a drawing that the bot never came to record: it was stopped in between, and the state was another when
// it drew again. A click on that decides nothing, as nobody can say what was shown; but it is no forgery. The person is
// told so, the message is drawn anew, and the next click counts.
func TestClickOnWhatWasNeverRecorded(t *testing.T) {
	h := newHarness(t)
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
	m := h.buttonOn("C0002", card, render.ActApprove)
	message, _, err := h.workflow.Delivery(context.Background(), "C0002", card.TS)
	if err != nil {
		t.Fatal(err)
	}
	unrecorded := m
	unrecorded.Print = "feedfacefeedface"
	h.delivers("on the unrecorded", click{"U0002", "T0001", "C0002", card.TS, render.ActApprove, unrecorded.String()})
	h.finds("teo", "#support-approvals", "", "It is drawn again now")
	h.until("it is drawn anew", func() bool {
		s, _, err := h.workflow.Delivery(context.Background(), "C0002", card.TS)
		return err == nil && s.Posts > message.Posts
	})
	if r, err := h.workflow.Request(context.Background(), m.Ref); err != nil || r.State != approvers.Pending || len(r.Decisions) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	h.quiet()
	h.clicks("teo", "#support-approvals", card, render.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
	h.quiet()
	s, shown, err := h.workflow.Delivery(context.Background(), "C0002", card.TS)
	if err != nil {
		t.Fatal(err)
	}
	unrecorded.Post = shown.Post // the recorded one has no button for the request any more: it is decided
	h.delivers("once it is decided", click{"U0002", "T0001", "C0002", card.TS, render.ActApprove, unrecorded.String()})
	h.until("it is recorded", func() bool { return len(h.denials(m.Ref)) == 2 })
	for _, d := range h.denials(m.Ref) {
		if want := string(approvers.DeniedUnrecorded) + " T0001/U0002 C0002 " + card.TS; d != want {
			t.Errorf("recorded %q, want %q", d, want)
		}
	}
	h.until("it is drawn anew once more", func() bool {
		now, _, err := h.workflow.Delivery(context.Background(), "C0002", card.TS)
		return err == nil && now.Posts > s.Posts
	})
	unrecorded.Ref = "req_none" // what the outbox message never was about is still a forgery
	h.delivers("about something else", click{"U0002", "T0001", "C0002", card.TS, render.ActApprove, unrecorded.String()})
	h.finds("teo", "#support-approvals", "", "nothing that I put there")
}
