package bot

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/bot/render/control"
	"countersign/bot/render/thread"
	"countersign/store"
)

// If a step has more calls than its message lists, people can also withdraw the remaining calls.
func TestWithdrawSome(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	var lines []string
	for i := range thread.MaxStepCalls + 3 {
		lines = append(lines, fmt.Sprintf(`call update_shipping_address {"order_id":"ORD-%d"}`, i))
	}
	root := h.says("sam", "#support", "@bot "+strings.Join(lines, "\n"))
	step := h.finds("sam", "#support", root, "0 of 15 done, 15 waiting for people")
	h.clicks("sam", "#support", step, control.ActWithdrawSome)
	form := h.opened("sam", control.ActWithdrawSome)
	var ids []string
	h.until("all are listed", func() bool {
		ids = nil
		turn := strings.Fields(fmt.Sprint(form["private_metadata"]))[0]
		_ = h.store.View(context.Background(), func(r store.Reader) error {
			calls, err := r.Calls(turn)
			for _, c := range calls {
				if strings.Contains(fmt.Sprint(form["blocks"]), c.Request) {
					ids = append(ids, c.Request)
				}
			}
			return err
		})
		return len(ids) == thread.MaxStepCalls+3
	})
	if out := h.submits("sam", form, map[string]any{control.FieldCalls: []string{ids[13], ids[14]}}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	h.finds("sam", "#support", root, "0 of 15 done, 13 waiting for people")
	for i, id := range ids {
		r, err := h.workflow.Views.Request(context.Background(), id)
		if want := map[bool]approvers.State{true: approvers.Withdrawn, false: approvers.Pending}[i > 12]; err != nil || r.State != want {
			t.Errorf("call %d is %s, want %s (%v)", i, r.State, want, err)
		}
	}
	h.clicks("ada", "#support", step, control.ActWithdrawSome)
	form = h.opened("ada", control.ActWithdrawSome)
	if out := h.submits("ada", form, map[string]any{control.FieldCalls: []string{ids[0]}}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	h.finds("ada", "#support", root, "only somebody who asked for this can do that")
}
