package bot

import (
	"strings"

	"countersign/approvers"
	"countersign/bot/render/control"
)

// wrongForms lists submissions that no form of the bot can produce, and submissions by people without permission.
func wrongForms() []attack {
	meta := func(change func(*attackHarness, target, *control.FormToken)) func(*attackHarness, target) string {
		return func(s *attackHarness, t target) string {
			f, err := control.ParseFormToken(s.filled(t, 0))
			if err != nil {
				s.t.Fatal(err)
			}
			change(s, t, &f)
			return f.String()
		}
	}
	why := map[string]string{control.FieldReason: "no"}
	critical := func(name, typed string) attack {
		return attack{name, "", "must be exactly", func(s *attackHarness) (target, string, string) {
			t := s.critical()
			return t, "U0002", s.send(t.form("U0002", control.ActTyped, s.filled(t, 0), map[string]string{control.FieldTyped: strings.ReplaceAll(typed, "ORDER", t.order)}))
		}}
	}
	edits := func(name, words, args string) attack {
		return attack{name, "", words, func(s *attackHarness) (target, string, string) {
			t := s.address()
			return t, "U0001", s.send(t.form("U0001", control.ActModify, s.filled(t, 0), map[string]string{control.FieldRaw: strings.ReplaceAll(args, "ORDER", t.order)}))
		}}
	}
	return []attack{
		submitted("metadata that is not a token", "U0002", control.ActReject, "", madeUp, func(*attackHarness, target) string { return "reject everything" }, why),
		submitted("metadata of another print", "U0002", control.ActReject, approvers.DeniedUnrecorded, anew, meta(func(_ *attackHarness, _ target, f *control.FormToken) { f.Print = "feedfacefeedface" }), why),
		submitted("metadata of no request", "U0002", control.ActReject, approvers.DeniedForged, madeUp, meta(func(_ *attackHarness, _ target, f *control.FormToken) { f.Ref = "req_none" }), why),
		submitted("metadata of another request", "U0002", control.ActReject, approvers.DeniedForged, madeUp, meta(func(s *attackHarness, _ target, f *control.FormToken) { f.Ref = s.refund().Ref }), why),
		submitted("metadata of another card", "U0002", control.ActReject, approvers.DeniedForged, madeUp, meta(func(s *attackHarness, _ target, f *control.FormToken) { f.Message = s.refund().Message }), why),
		submitted("a form that nobody drew", "U0002", "approve_at_once", approvers.DeniedForged, madeUp, asDrawn, why),
		submitted("a form for an action without one", "U0002", control.ActApprove, approvers.DeniedForged, madeUp, asDrawn, why),
		submitted("a rejection without a reason", "U0002", control.ActReject, "", "Say why", asDrawn, noReason),
		submitted("a rejection by somebody else", "U0001", control.ActReject, approvers.DeniedNotMember, noMember, asDrawn, why),
		submitted("a rejection by a guest", "U0900", control.ActReject, approvers.DeniedGuest, "Guests can't decide", asDrawn, why),
		submitted("a rejection by the requester", "U0100", control.ActReject, approvers.DeniedSelf, "you asked for this", asDrawn, why),
		submitted("a change by somebody else", "U0001", control.ActModify, approvers.DeniedNotMember, noMember, asDrawn, map[string]string{"arg.amount": "4"}),
		submitted("a grant that the policy does not allow", "U0002", control.ActAllow, "", "Write a whole number", asDrawn, map[string]string{control.FieldUses: "5"}),
		submitted("taken back by somebody who did not approve", "U0002", control.ActTakeBack, approvers.DeniedNotApprover, "whose approval counts", asDrawn, why),
		submitted("handed on by somebody who may not", "U0001", control.ActHandOn, approvers.DeniedNotMember, noMember, asDrawn, map[string]string{control.FieldColleague: "U0003"}),
		{"a form of another workspace", approvers.DeniedWorkspace, "another workspace", func(s *attackHarness) (target, string, string) {
			t := s.refund()
			return t, "U0002", s.send(t.form("U0002", control.ActReject, s.filled(t, 0), why).and("team", payload{"id": "T0999"}))
		}},
		{"a form of another app", approvers.DeniedWorkspace, "another workspace", func(s *attackHarness) (target, string, string) {
			t := s.refund()
			return t, "U0002", s.send(t.form("U0002", control.ActReject, s.filled(t, 0), why).and("api_app_id", "A9999"))
		}},
		{"all arguments approved from the first page", approvers.DeniedUnseen, "does not show all arguments", func(s *attackHarness) (target, string, string) {
			t := s.long()
			return t, "U0002", s.send(t.form("U0002", control.ActArguments, s.filled(t, 0), nil))
		}},
		{"a call that its card can't show whole, approved from the card", approvers.DeniedForged, madeUp, func(s *attackHarness) (target, string, string) {
			t := s.long()
			return t, "U0002", s.send(t.press("U0002", control.ActApprove))
		}},
		{"all arguments of another execution", approvers.DeniedStale, "the arguments were changed", func(s *attackHarness) (target, string, string) {
			t, other := s.refund(), s.refund()
			f, _ := control.ParseFormToken(s.filled(t, 99))
			g, _ := control.ParseFormToken(s.filled(other, 0))
			f.Execution = g.Execution
			return t, "U0002", s.send(t.form("U0002", control.ActArguments, f.String(), nil))
		}},
		{"a critical call by a plain click", approvers.DeniedForged, madeUp, func(s *attackHarness) (target, string, string) {
			t := s.critical()
			return t, "U0002", s.send(t.press("U0002", control.ActApprove))
		}},
		{"a critical call by the form of all arguments", "", "must be exactly", func(s *attackHarness) (target, string, string) {
			t := s.critical()
			return t, "U0002", s.send(t.form("U0002", control.ActArguments, s.filled(t, 0), nil))
		}},
		critical("nothing typed", ""),
		critical("something else typed", "ORD-9999"),
		critical("typed with letters of another alphabet", "ОRDER"),
		critical("typed with something that can't be seen", "ORDER\u200b"),
		critical("typed in another case", "ord-1"),
		critical("typed in full-width characters", "ＯＲＤ－１"),
		critical("typed with an accent", "ORDER\u0301"),
		critical("the tool's name typed instead", "cancel_account"),
		edits("an edit that changes nothing", "Nothing was changed", `{"order_id":"ORDER"}`),
		edits("an edit that says the same in other bytes", "Nothing was changed", ` { "order_id" : "ORDER" } `),
		edits("an edit with a name twice", "are the same", `{"order_id":"ORDER","order_id":"ORD-2"}`),
		edits("an edit with names that differ in case only", "differ only in case", `{"order_id":"ORDER","Order_ID":"ORD-2"}`),
		edits("an edit that is not JSON", "not valid JSON", `{"order_id":`),
		edits("an edit that is not an object", "a JSON object is needed", `["ORDER"]`),
		edits("an edit that the tool refuses", "must be between", `{"order_id":"ORDER","amount":99999}`),
	}
}
