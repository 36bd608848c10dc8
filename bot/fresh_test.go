package bot

import (
	"net/url"
	"sync/atomic"
	"testing"

	"countersign/approvers"
	"countersign/bot/render"
)

// From high risk on Slack is asked at each click. Below that an answer of the last minute suffices, unless the policy
// has changed or arguments are edited.
func TestWhenSlackIsAskedAnew(t *testing.T) {
	s := newAttackHarness(t)
	var asked atomic.Int32
	s.tap.answering("users.info", func(url.Values) string { asked.Add(1); return "" })
	times := func(what string, p payload, want bool) {
		t.Helper()
		if _, err := s.bot.users.User(t.Context(), p["user"].(payload)["id"].(string), false); err != nil { // now cached
			t.Fatal(err)
		}
		s.quiet()
		before := asked.Load()
		s.send(p)
		s.quiet()
		if again := asked.Load() > before; again != want {
			t.Errorf("%s: asked anew: %t, want %t", what, again, want)
		}
	}
	stranger := "U0004" // is refused, so the request stays unchanged
	times("medium risk", s.address().press(stranger, render.ActApprove), false)
	times("high risk", s.refund().press(stranger, render.ActApprove), true)
	address := s.address()
	times("a change", address.form(stranger, render.ActModify, s.filled(address, 0), map[string]string{"arg.order_id": `"ORD-1"`}), true)
	s.changes(func(p *approvers.Policy) { p.Caps.Approver = 500 })
	times("medium risk, by another policy", address.press(stranger, render.ActApprove), true)
}
