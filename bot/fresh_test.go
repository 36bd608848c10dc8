package bot

import (
	"net/url"
	"sync/atomic"
	"testing"

	"countersign/approvers"
)

// From high risk on Slack is asked anew at each click; below that an answer of the last minute does, unless the policy changed since, or arguments are changed.
func TestWhenSlackIsAskedAnew(t *testing.T) {
	s := newSiege(t)
	var asked atomic.Int32
	s.tap.answering("users.info", func(url.Values) string { asked.Add(1); return "" })
	times := func(what string, p payload, want bool) {
		t.Helper()
		if _, err := s.bot.user(t.Context(), p["user"].(payload)["id"].(string), false); err != nil { // remembered
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
	stranger := "U0004" // is refused, so that the request stays as it is
	times("medium risk", s.address().press(stranger, actApprove), false)
	times("high risk", s.refund().press(stranger, actApprove), true)
	address := s.address()
	times("a change", address.form(stranger, actModify, s.filled(address, 0), map[string]string{"arg.order_id": `"ORD-1"`}), true)
	s.changes(func(p *approvers.Policy) { p.Caps.Approver = 500 })
	times("medium risk, by another policy", address.press(stranger, actApprove), true)
}
