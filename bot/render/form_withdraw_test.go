package render

import (
	"fmt"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/store"
)

func TestWithdrawForm(t *testing.T) {
	var rs []approvers.Request
	for i := range 128 {
		r := refundOf(fmt.Sprint("ORD-", i), "1")
		r.Preview = strings.Repeat("𝕏", 500)
		rs = append(rs, r)
	}
	s := ClickTarget{Token: ButtonToken{Ref: "turn_1", Message: "s_1", Post: 3, Print: "0123456789abcdef"}, Model: bundleOf(rs...)}
	viewWithin(t, WithdrawForm(s))
	s.Calls = []view.Call{{Call: store.Call{Tool: "search_orders", Outcome: approvers.OutcomeExecuted}}}
	viewWithin(t, WithdrawForm(s))
	s.Model = bundleOf(refundOf("ORD-1", "1"), bottest.Closed(refundOf("ORD-2", "2"), approvers.Expired, "", "", "nobody decided in time"), refundOf("ORD-3", "3"))
	bottest.Golden(t, "modal_withdraw_some", WithdrawForm(s))
}
