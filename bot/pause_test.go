package bot

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/bot/render/control"
)

// leadsPause lets the people of Team Lead pause everything.
func leadsPause(h *harness) { h.policy.PausedBy = []string{"team-lead"} }

// pausedBy restarts the bot with other roles whose members may pause everything.
func (h *harness) pausedBy(roles ...string) {
	h.t.Helper()
	h.quiet()
	h.stop()
	h.policy.PausedBy = roles
	h.start()
}

// isPaused waits until everything is paused. If want is false, it waits until the pause is over.
func (h *harness) isPaused(want bool) settings.Pause {
	h.t.Helper()
	var p settings.Pause
	h.until(fmt.Sprintf("paused: %t", want), func() bool {
		var err error
		p, err = h.workflow.Views.Paused(context.Background())
		return err == nil && p.On == want
	})
	return p
}

// The command pause lists the work that a pause would stop. A click on its button pauses everything, all people see the
// pause, and another button ends the pause.
func TestPauseInSlack(t *testing.T) {
	t.Parallel()
	h := newHarness(t, leadsPause)
	root := h.says("sam", "#support", refundCall)
	h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.commands("teo", "#general", "pause wrong refunds <!channel>")
	asked := h.answered("teo", "#general", "Pause everything?", "Nothing runs now.", "wrong refunds &lt;!channel&gt;")
	h.clicks("teo", "#general", asked, control.ActPause)
	if p := h.isPaused(true); p.By.User() != "U0002" || !strings.HasPrefix(p.Reason, "wrong refunds") {
		t.Errorf("%+v", p)
	}
	h.until("the question is replaced", func() bool {
		for _, p := range h.sees("teo", "#general", "") {
			if p.TS == asked.TS {
				return !p.has(control.ActPause) && strings.Contains(p.Text, "Everything is paused.")
			}
		}
		return false
	})
	const said = "Everything has been paused by <@U0002> since"
	notice := h.finds("teo", "U0BOT", "", said, "wrong refunds", "No tool runs and no model is called")
	h.finds("sam", "#support", root, "Waits for Team Lead", said)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead", said, "an approved call that can't start in time expires")

	again := h.says("sam", "#support", "@bot hello?")
	h.finds("sam", "#support", again, said, "Your messages are kept")
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.finds("teo", "#support-approvals", "", "Approved by <@U0002>", "Paused: it starts when the pause ends, or expires")
	h.finds("sam", "#support", root, "Approved by <@U0002>", "It starts when the pause ends")
	if runs := h.runs(); len(runs) > 0 {
		t.Errorf("while everything is paused it ran %v", runs)
	}
	h.commands("teo", "#general", "pause once more")
	h.answered("teo", "#general", said, "/countersign resume")

	h.clicks("teo", "U0BOT", notice, control.ActResume)
	h.isPaused(false)
	h.finds("teo", "U0BOT", "", "The pause is over: <@U0002> ended it")
	h.finds("teo", "#support-approvals", "", "Approved by <@U0002>", "It ran")
	h.finds("sam", "#support", root, "results: executed")
	h.finds("sam", "#support", again, "This waited for a pause, which <@U0002> ended")
	h.finds("sam", "#support", again, "results:")
	for _, p := range append(h.sees("teo", "#support-approvals", ""), h.sees("sam", "#support", root)...) {
		if strings.Contains(p.Text, "paused") || p.has(control.ActResume) {
			t.Errorf("still said to be paused: %s", p.Text)
		}
	}
	h.commands("teo", "#general", "resume")
	h.answered("teo", "#general", "Nothing is paused any more: <@U0002> ended the pause")
}

// For people outside the policy's list, the answer names who can pause, and has no button. If a person loses the
// permission in the policy or in Slack, an earlier button has no effect.
func TestPauseRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(t, leadsPause)
	for user, want := range map[string]string{
		"ingrid": "only people of Team Lead and my operator can pause everything",
		"sam":    "only people of Team Lead and my operator can pause everything",
		"gus":    "only people of Team Lead and my operator can pause everything",
	} {
		for _, verb := range []string{"pause", "resume"} {
			channel := map[string]string{"gus": "#support"}[user]
			if channel == "" {
				channel = "#general"
			}
			h.commands(user, channel, verb+" I am cross")
			if p := h.answered(user, channel, want); p.has(control.ActPause) {
				t.Errorf("%s sees a button to pause everything", user)
			}
		}
	}
	h.commands("teo", "#general", "pause")
	h.answered("teo", "#general", "Nothing was changed. Say why; everybody who waits is told: /countersign pause")
	h.commands("teo", "#general", "pause "+strings.Repeat("x", 301))
	h.answered("teo", "#general", "Say why in at most 300 characters")

	h.commands("teo", "#general", "pause an incident")
	asked := h.answered("teo", "#general", "Pause everything?")
	h.pausedBy("finance-director") // changes the policy after the button was drawn
	h.clicks("teo", "#general", asked, control.ActPause)
	h.finds("teo", "#general", "", "only people of Finance Director and my operator can pause everything")
	h.isPaused(false)

	if err := h.workflow.Pauses.Pause(context.Background(), approvers.Operator("root"), "an incident"); err != nil {
		t.Fatal(err)
	}
	notice := h.finds("ingrid", "U0BOT", "", "Everything has been paused by operator root")
	h.pausedBy()
	h.clicks("ingrid", "U0BOT", notice, control.ActResume)
	h.finds("ingrid", "U0BOT", "", "the policy lets nobody pause everything from Slack")
	h.isPaused(true)
	h.pausedBy("team-lead")
	h.commands("teo", "#general", "resume it was a drill")
	h.answered("teo", "#general", "Everything is resumed.")
	h.isPaused(false)
	h.finds("ingrid", "U0BOT", "", "The pause is over: <@U0002> ended it", "it was a drill")
}

// If two people pause at the same time, only the first click counts. The other person is told who was first.
func TestTwoPauseAtOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) { h.policy.PausedBy = []string{"team-lead", "finance-director"} })
	for _, user := range []string{"teo", "ingrid"} {
		h.commands(user, "#general", "pause an incident")
	}
	teo, ingrid := h.answered("teo", "#general", "Pause everything?"), h.answered("ingrid", "#general", "Pause everything?")
	done := make(chan struct{})
	go func() {
		h.clicks("teo", "#general", teo, control.ActPause)
		close(done)
	}()
	h.clicks("ingrid", "#general", ingrid, control.ActPause)
	<-done
	p := h.isPaused(true)
	loser := map[string]string{"U0002": "ingrid", "U0003": "teo"}[p.By.User()]
	h.finds(loser, "#general", "", "Everything is paused already, by <@"+p.By.User()+">")
}
