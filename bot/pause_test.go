package bot

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// leadsPause lets the people of Team Lead pause everything.
func leadsPause(w *workbench) { w.policy.PausedBy = []string{"team-lead"} }

// pausedBy has the bot start anew with other roles whose people may pause everything.
func (w *workbench) pausedBy(roles ...string) {
	w.t.Helper()
	w.quiet()
	w.stop()
	w.policy.PausedBy = roles
	w.start()
}

// isPaused waits until everything is paused, or is not.
func (w *workbench) isPaused(want bool) desk.Pause {
	w.t.Helper()
	var p desk.Pause
	w.until(fmt.Sprintf("paused: %t", want), func() bool {
		var err error
		p, err = w.desk.Paused(context.Background())
		return err == nil && p.On == want
	})
	return p
}

// From /countersign pause over what it would stop, the click, what everybody sees meanwhile, to the button that ends it.
func TestPauseInSlack(t *testing.T) {
	w := newWorkbench(t, leadsPause)
	root := w.says("sam", "#support", refundCall)
	w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.commands("teo", "#general", "pause wrong refunds <!channel>")
	asked := w.answered("teo", "#general", "Pause everything?", "Nothing runs at this moment.", "wrong refunds &lt;!channel&gt;")
	w.clicks("teo", "#general", asked, actPause)
	if p := w.isPaused(true); p.By.User() != "U0002" || !strings.HasPrefix(p.Reason, "wrong refunds") {
		t.Errorf("%+v", p)
	}
	w.until("what asked is replaced", func() bool {
		for _, p := range w.sees("teo", "#general", "") {
			if p.TS == asked.TS {
				return !p.has(actPause) && strings.Contains(p.Text, "Everything is paused.")
			}
		}
		return false
	})
	const said = "Everything is paused by <@U0002> since"
	notice := w.finds("teo", "U0BOT", "", said, "wrong refunds", "No tool runs and no model is called")
	w.finds("sam", "#support", root, "Waits for Team Lead", said)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead", said, "what is approved and can't start in its time expires")

	again := w.says("sam", "#support", "@bot hello?")
	w.finds("sam", "#support", again, said, "What was said here is kept")
	w.clicks("teo", "#support-approvals", card, actApprove)
	w.finds("teo", "#support-approvals", "", "Approved by <@U0002>", said, "It starts when everything goes on. If that is not by")
	w.finds("sam", "#support", root, "Approved by <@U0002>", "It starts when everything goes on")
	if runs := w.runs(); len(runs) > 0 {
		t.Errorf("while everything is paused it ran %v", runs)
	}
	w.commands("teo", "#general", "pause once more")
	w.answered("teo", "#general", said, "/countersign resume")

	w.clicks("teo", "U0BOT", notice, actResume)
	w.isPaused(false)
	w.finds("teo", "U0BOT", "", "Everything goes on since", "<@U0002> ended the pause")
	w.finds("teo", "#support-approvals", "", "Approved by <@U0002>", "It ran")
	w.finds("sam", "#support", root, "results: executed")
	w.finds("sam", "#support", again, "A pause held this up. It went on", "<@U0002> ended the pause")
	w.finds("sam", "#support", again, "results:")
	for _, p := range append(w.sees("teo", "#support-approvals", ""), w.sees("sam", "#support", root)...) {
		if strings.Contains(p.Text, "paused") || p.has(actResume) {
			t.Errorf("still said to be paused: %s", p.Text)
		}
	}
	w.commands("teo", "#general", "resume")
	w.answered("teo", "#general", "Nothing is paused any more: <@U0002> let everything go on")
}

// What people see whom the policy does not name: a sentence that says who can, and no button. A button that was theirs grants nothing any more once
// the policy or Slack says otherwise.
func TestPauseRefused(t *testing.T) {
	w := newWorkbench(t, leadsPause)
	for user, want := range map[string]string{
		"ingrid": "only people of Team Lead can pause everything",
		"sam":    "only people of Team Lead can pause everything",
		"gus":    "only people of Team Lead can pause everything",
	} {
		for _, verb := range []string{"pause", "resume"} {
			channel := map[string]string{"gus": "#support"}[user]
			if channel == "" {
				channel = "#general"
			}
			w.commands(user, channel, verb+" I am cross")
			if p := w.answered(user, channel, want); p.has(actPause) {
				t.Errorf("%s sees a button to pause everything", user)
			}
		}
	}
	w.commands("teo", "#general", "pause")
	w.answered("teo", "#general", "Nothing was changed. Say why, everybody who waits is told: /countersign pause")
	w.commands("teo", "#general", "pause "+strings.Repeat("x", 301))
	w.answered("teo", "#general", "Say why in at most 300 characters")

	w.commands("teo", "#general", "pause an incident")
	asked := w.answered("teo", "#general", "Pause everything?")
	w.pausedBy("finance-director") // since it was drawn
	w.clicks("teo", "#general", asked, actPause)
	w.finds("teo", "#general", "", "only people of Finance Director can pause everything")
	w.isPaused(false)

	if err := w.desk.Pause(context.Background(), approvers.Operator("root"), "an incident"); err != nil {
		t.Fatal(err)
	}
	notice := w.finds("ingrid", "U0BOT", "", "Everything is paused by operator root")
	w.pausedBy()
	w.clicks("ingrid", "U0BOT", notice, actResume)
	w.finds("ingrid", "U0BOT", "", "the policy names nobody who may pause everything from Slack")
	w.isPaused(true)
	w.pausedBy("team-lead")
	w.commands("teo", "#general", "resume it was a drill")
	w.answered("teo", "#general", "Everything goes on.")
	w.isPaused(false)
	w.finds("ingrid", "U0BOT", "", "<@U0002> ended the pause: it was a drill")
}

// Of two who pause at once one is first, and the other is told who.
func TestTwoPauseAtOnce(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) { w.policy.PausedBy = []string{"team-lead", "finance-director"} })
	for _, user := range []string{"teo", "ingrid"} {
		w.commands(user, "#general", "pause an incident")
	}
	teo, ingrid := w.answered("teo", "#general", "Pause everything?"), w.answered("ingrid", "#general", "Pause everything?")
	done := make(chan struct{})
	go func() {
		w.clicks("teo", "#general", teo, actPause)
		close(done)
	}()
	w.clicks("ingrid", "#general", ingrid, actPause)
	<-done
	p := w.isPaused(true)
	loser := map[string]string{"U0002": "ingrid", "U0003": "teo"}[p.By.User()]
	w.finds(loser, "#general", "", "Everything is paused already, by <@"+p.By.User()+">")
}
