package bot

import (
	"strings"
	"testing"

	"countersign/approvers/workflow"
	"countersign/bot/render"
)

// People rate an answer below it. A second click changes the rating. Guests and strangers are told that theirs does not
// count.
func TestRatingAnAnswer(t *testing.T) {
	h := newHarness(t)
	root := h.says("sam", "#support", "@bot hello")
	answer := h.finds("sam", "#support", root, "results:")
	rate := func(user, begins string) {
		t.Helper()
		_, rest, ok := strings.Cut(answer.raw, `"value":"`+begins)
		value, _, _ := strings.Cut(rest, `"`)
		if !ok {
			t.Fatalf("no button %s in %s", begins, answer.raw)
		}
		out := h.call("POST", "/people/"+user+"/actions", map[string]any{"channel": "#support", "ts": answer.TS, "action_id": render.ActFeedback, "value": begins + value})
		if out["ok"] != true {
			t.Fatalf("%s could not rate it: %v", user, out)
		}
	}
	want := func(good, poor int) {
		t.Helper()
		h.until("the ratings are as they should be", func() bool {
			got, err := h.workflow.Feedback(t.Context())
			return err == nil && got["support"] == workflow.FeedbackCounts{Good: good, Poor: poor}
		})
	}
	rate("sam", render.FeedbackGood)
	want(1, 0)
	rate("sam", render.FeedbackPoor)
	want(0, 1)
	h.finds("sam", "#support", root, "Noted, thank you. If something should be done differently")
	rate("ada", render.FeedbackPoor)
	want(0, 2)
	rate("gus", render.FeedbackGood)
	h.finds("gus", "#support", root, "Only those who may ask the agent can rate its answers.")
	want(0, 2)
	h.stop()
	h.start()
	rate("sam", render.FeedbackGood)
	want(1, 1)
}
