package bot

import (
	"context"
	"testing"

	"countersign/approvers"
)

// Slack may show a drawing that the bot never came to record: it was stopped in between, and the state was another when it drew again. A click on that
// decides nothing, as nobody can say what was shown; but it is no forgery. The person is told so, the message is drawn anew, and the next click counts.
func TestClickOnWhatWasNeverRecorded(t *testing.T) {
	w := newWorkbench(t)
	root := w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.quiet()
	m := w.buttonOn("C0002", card, actApprove)
	surface, _, err := w.desk.Showing(context.Background(), "C0002", card.TS)
	if err != nil {
		t.Fatal(err)
	}
	unrecorded := m
	unrecorded.Print = "feedfacefeedface"
	w.delivers("on the unrecorded", click{"U0002", "T0001", "C0002", card.TS, actApprove, unrecorded.String()})
	w.finds("teo", "#support-approvals", "", "It is drawn again now")
	w.until("it is drawn anew", func() bool {
		s, _, err := w.desk.Showing(context.Background(), "C0002", card.TS)
		return err == nil && s.Posts > surface.Posts
	})
	if r, err := w.desk.Request(context.Background(), m.Ref); err != nil || r.State != approvers.Pending || len(r.Decisions) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	w.quiet()
	w.clicks("teo", "#support-approvals", card, actApprove)
	w.finds("sam", "#support", root, "results: executed")
	w.quiet()
	s, shown, err := w.desk.Showing(context.Background(), "C0002", card.TS)
	if err != nil {
		t.Fatal(err)
	}
	unrecorded.Post = shown.Post // the recorded one has no button for the request any more: it is decided
	w.delivers("once it is decided", click{"U0002", "T0001", "C0002", card.TS, actApprove, unrecorded.String()})
	w.until("it is recorded", func() bool { return len(w.denials(m.Ref)) == 2 })
	for _, d := range w.denials(m.Ref) {
		if want := string(approvers.DeniedUnrecorded) + " T0001/U0002 C0002 " + card.TS; d != want {
			t.Errorf("recorded %q, want %q", d, want)
		}
	}
	w.until("it is drawn anew once more", func() bool {
		now, _, err := w.desk.Showing(context.Background(), "C0002", card.TS)
		return err == nil && now.Posts > s.Posts
	})
	unrecorded.Ref = "req_none" // what the surface never was about is still a forgery
	w.delivers("about something else", click{"U0002", "T0001", "C0002", card.TS, actApprove, unrecorded.String()})
	w.finds("teo", "#support-approvals", "", "nothing that I put there")
}
