package bot

import (
	"fmt"
	"testing"

	"countersign/store"
)

// The agent is stopped in three ways: by the word, by the button of a step, and by Slack's own stop button. What waited is taken back, and the thread says who it was.
func TestStop(t *testing.T) {
	for _, c := range []struct {
		name string
		stop func(w *workbench, root string)
	}{
		{"in words", func(w *workbench, root string) { w.saysIn("sam", "#support", "@bot stop!", root) }},
		{"by the button", func(w *workbench, root string) {
			w.clicks("sam", "#support", w.finds("sam", "#support", root, "Waits for"), actStop)
		}},
		{"by Slack's button", func(w *workbench, root string) { w.sessionStopped("U0100", "C0001", root) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorkbench(t)
			root := w.says("sam", "#support", refundCall)
			w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
			w.finds("sam", "#support", root, "Waits for")
			c.stop(w, root)
			stopped := w.finds("sam", "#support", root, "Sam stopped this.")
			step := w.finds("sam", "#support", root, "Withdrawn by")
			w.finds("teo", "#support-approvals", "", "Withdrawn by")
			if step.has(actStop) || !stopped.has(actTryAgain) {
				t.Error("what ended can still be stopped, or can't be tried again")
			}
			w.quiet()
			if n := len(w.runs()); n > 0 {
				t.Errorf("%d calls ran", n)
			}
			w.finds("sam", "#support", root, "stopped this")
		})
	}
}

// Somebody who may not ask the agent does not stop it, whichever button they found.
func TestStopByAStranger(t *testing.T) {
	w := newWorkbench(t)
	root := w.says("sam", "#support", refundCall)
	w.finds("sam", "#support", root, "Waits for")
	w.sessionStopped("U0900", "C0001", root)
	w.quiet()
	w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
}

// sessionStopped delivers the event of Slack's stop button.
func (w *workbench) sessionStopped(user, channel, thread string) {
	w.t.Helper()
	payload := fmt.Sprintf(`{"event_id":"Ev%s","team_id":"T0001","event":{"type":"agent_session_stopped","user":%q,"channel":%q,"thread_ts":%q,"streaming_message_ts":[],"event_ts":"1783536983.783769"}}`,
		thread, user, channel, thread)
	if _, err := w.bot.Receive(w.t.Context(), store.InboxEvent, []byte(payload)); err != nil {
		w.t.Fatal(err)
	}
}
