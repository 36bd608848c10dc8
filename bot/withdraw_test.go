package bot

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// A step with more calls than its message lists: those that are not listed can be taken back too.
func TestWithdrawSome(t *testing.T) {
	w := newWorkbench(t)
	var lines []string
	for i := range maxStepCalls + 3 {
		lines = append(lines, fmt.Sprintf(`call update_shipping_address {"order_id":"ORD-%d"}`, i))
	}
	root := w.says("sam", "#support", "@bot "+strings.Join(lines, "\n"))
	step := w.finds("sam", "#support", root, "0 of 15 done, 15 waiting for people")
	w.clicks("sam", "#support", step, actWithdrawSome)
	form := w.opened("sam", actWithdrawSome)
	var ids []string
	w.until("all are listed", func() bool {
		ids = nil
		turn := strings.Fields(fmt.Sprint(form["private_metadata"]))[0]
		_ = w.store.View(context.Background(), func(r store.Reader) error {
			calls, err := r.Calls(turn)
			for _, c := range calls {
				if strings.Contains(fmt.Sprint(form["blocks"]), c.Request) {
					ids = append(ids, c.Request)
				}
			}
			return err
		})
		return len(ids) == maxStepCalls+3
	})
	if out := w.submits("sam", form, map[string]any{fieldCalls: []string{ids[13], ids[14]}}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	w.finds("sam", "#support", root, "0 of 15 done, 13 waiting for people")
	for i, id := range ids {
		r, err := w.desk.Request(context.Background(), id)
		if want := map[bool]approvers.State{true: approvers.Withdrawn, false: approvers.Pending}[i > 12]; err != nil || r.State != want {
			t.Errorf("call %d is %s, want %s (%v)", i, r.State, want, err)
		}
	}
	w.clicks("ada", "#support", step, actWithdrawSome)
	form = w.opened("ada", actWithdrawSome)
	if out := w.submits("ada", form, map[string]any{fieldCalls: []string{ids[0]}}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	w.finds("ada", "#support", root, "only somebody who asked for this can do that")
}

func TestWithdrawForm(t *testing.T) {
	var rs []approvers.Request
	for i := range 128 {
		r := refundOf(fmt.Sprint("ORD-", i), "1")
		r.Preview = strings.Repeat("𝕏", 500)
		rs = append(rs, r)
	}
	s := seen{mark: mark{Ref: "turn_1", Surface: "s_1", Post: 3, Print: "0123456789abcdef"}, Sight: bundleOf(rs...)}
	viewWithin(t, withdrawForm(s))
	s.Calls = []desk.CallSight{{Call: store.Call{Tool: "search_orders", Outcome: approvers.OutcomeExecuted}}}
	viewWithin(t, withdrawForm(s))
	s.Sight = bundleOf(refundOf("ORD-1", "1"), closed(refundOf("ORD-2", "2"), approvers.Expired, "", "", "nobody decided in time"), refundOf("ORD-3", "3"))
	golden(t, "modal_withdraw_some", withdrawForm(s))
}
