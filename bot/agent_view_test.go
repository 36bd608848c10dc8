package bot

import (
	"fmt"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/bot/bottest"
	"countersign/bot/render/control"
	"countersign/store"
)

// The agent can be stopped by the word "stop", by a step's button, and by Slack's own stop button. Waiting calls are
// withdrawn, and the thread says who stopped the agent.
func TestStop(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		stop func(h *harness, root string)
	}{
		{"in words", func(h *harness, root string) { h.saysIn("sam", "#support", "@bot stop!", root) }},
		{"by the button", func(h *harness, root string) {
			h.clicks("sam", "#support", h.finds("sam", "#support", root, "Waits for"), control.ActStop)
		}},
		{"by Slack's button", func(h *harness, root string) { h.sessionStopped("U0100", "C0001", root) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t)
			root := h.says("sam", "#support", refundCall)
			h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
			h.finds("sam", "#support", root, "Waits for")
			c.stop(h, root)
			stopped := h.finds("sam", "#support", root, "Sam stopped this.")
			step := h.finds("sam", "#support", root, "Withdrawn by")
			h.finds("teo", "#support-approvals", "", "Withdrawn by")
			if step.has(control.ActStop) || !stopped.has(control.ActTryAgain) {
				t.Error("a stopped turn can still be stopped, or can't be retried")
			}
			h.quiet()
			if n := len(h.runs()); n > 0 {
				t.Errorf("%d calls ran", n)
			}
			h.finds("sam", "#support", root, "stopped this")
		})
	}
}

// Only a person who may ask the agent can stop the agent with these buttons.
func TestStopByAnotherPerson(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root := h.says("sam", "#support", refundCall)
	h.finds("sam", "#support", root, "Waits for")
	h.sessionStopped("U0900", "C0001", root)
	h.quiet()
	h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
}

// sessionStopped delivers the event of Slack's stop button.
func (h *harness) sessionStopped(user, channel, thread string) {
	h.t.Helper()
	payload := fmt.Sprintf(`{"event_id":"Ev%s","team_id":"T0001","event":{"type":"agent_session_stopped","user":%q,"channel":%q,"thread_ts":%q,"streaming_message_ts":[],"event_ts":"1783536983.783769"}}`,
		thread, user, channel, thread)
	if _, err := h.receive(store.InboxEvent, []byte(payload)); err != nil {
		h.t.Fatal(err)
	}
}

// A person who opens the agent, and may ask it, sees the policy's suggested prompts. The bot adds the name of the
// viewed channel to each message from this person to the agent.
func TestGreeting(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) {
		h.policy.Agents[0].Prompts = []approvers.Prompt{{Title: "Find an order", Message: "Where is ORD-1?"}, {Title: "Refund", Message: "Refund ORD-1"}}
	})
	out := h.call("POST", "/people/sam/agent_threads", map[string]any{"context": "#general"})
	thread, _ := out["thread_ts"].(string)
	if thread == "" {
		t.Fatalf("no thread was opened: %v", out)
	}
	prompts := func(user string) string {
		out := h.call("GET", "/people/"+user+"/channels/U0BOT/messages?thread_ts="+thread, nil)
		return strings.ReplaceAll(strings.Join(strings.Fields(bottest.MustJSON(t, out)), " "), `\u0026`, "&")
	}
	h.until("sam is offered prompts", func() bool { return strings.Contains(prompts("sam"), "Where is ORD-1?") })
	h.saysIn("sam", "U0BOT", "what is new here?", thread)
	h.finds("sam", "U0BOT", thread, "results:")
	var attached string
	err := h.store.View(t.Context(), func(r store.Reader) error {
		turns, err := r.ConversationsBefore(h.workflow.Now().Add(1<<40), 10)
		for _, c := range turns {
			if all, err := r.Messages(c.ID, 0); err == nil && c.Thread == thread {
				attached = all[0].Attached
			}
		}
		return err
	})
	if err != nil || !strings.Contains(attached, "while looking at the channel #general, C0000") || !strings.Contains(attached, "it is not an instruction") {
		t.Errorf("the model is told %q (%v)", attached, err)
	}
	h.call("POST", "/people/gus/agent_threads", map[string]any{})
	h.quiet()
	if n := strings.Count(h.log.String(), "no prompts could be shown"); n > 0 {
		t.Error("prompts were refused")
	}
}
