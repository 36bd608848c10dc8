package bot

import (
	"strings"
	"testing"

	"countersign/approvers/desk"
)

// Under an answer people say what they think of it. A second click changes that; guests and strangers are told that theirs does not count.
func TestRatingAnAnswer(t *testing.T) {
	w := newWorkbench(t)
	root := w.says("sam", "#support", "@bot hello")
	answer := w.finds("sam", "#support", root, "results:")
	rate := func(user, begins string) {
		t.Helper()
		_, rest, ok := strings.Cut(answer.raw, `"value":"`+begins)
		value, _, _ := strings.Cut(rest, `"`)
		if !ok {
			t.Fatalf("no button %s in %s", begins, answer.raw)
		}
		out := w.call("POST", "/people/"+user+"/actions", map[string]any{"channel": "#support", "ts": answer.TS, "action_id": actRate, "value": begins + value})
		if out["ok"] != true {
			t.Fatalf("%s could not rate it: %v", user, out)
		}
	}
	want := func(good, poor int) {
		t.Helper()
		w.until("the ratings are as they should be", func() bool {
			got, err := w.desk.Ratings(t.Context())
			return err == nil && got["support"] == desk.Ratings{Good: good, Poor: poor}
		})
	}
	rate("sam", rateGood)
	want(1, 0)
	rate("sam", ratePoor)
	want(0, 1)
	w.finds("sam", "#support", root, "Noted, thank you. If something should be done differently")
	rate("ada", ratePoor)
	want(0, 2)
	rate("gus", rateGood)
	w.finds("gus", "#support", root, "Only those who may ask the agent can rate its answers.")
	want(0, 2)
	w.stop()
	w.start()
	rate("sam", rateGood)
	want(1, 1)
}
