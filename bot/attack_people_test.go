package bot

import (
	"context"
	"net/url"

	"countersign/approvers"
	"countersign/bot/render/control"
	"countersign/internal/demo/workspace"
)

// wrongPeople lists clicks by people without permission. Some of these people lost their permission shortly before the
// click.
func wrongPeople() []attack {
	turned := func(name string, change, back workspace.UserChange, code approvers.Code, words string) attack {
		return by(name, "U0002", code, words, func(s *attackHarness) {
			if err := s.slack.ChangeUser("U0002", change); err != nil {
				s.t.Fatal(err)
			}
			s.restore = func() {
				if err := s.slack.ChangeUser("U0002", back); err != nil {
					s.t.Fatal(err)
				}
			}
		})
	}
	answers := func(name, method, answer string) attack {
		return by(name, "U0002", approvers.DeniedUnidentified, "Slack could not tell who clicked", func(s *attackHarness) {
			s.tap.answering(method, func(url.Values) string { return answer })
			s.restore = func() { s.tap.answering(method, nil) }
		})
	}
	policy := func(name string, code approvers.Code, words string, change func(*approvers.Policy)) attack {
		return by(name, "U0002", code, words, func(s *attackHarness) {
			was := s.policy
			s.changes(change)
			s.restore = func() { s.setPolicy(was) }
		})
	}
	yes, no, here, there := true, false, "T0001", "T0999"
	return []attack{
		by("somebody of another role", "U0001", approvers.DeniedNotMember, noMember, nil),
		by("somebody of no role", "U0101", approvers.DeniedNotMember, noMember, nil),
		by("the lead before it is escalated", "U0003", approvers.DeniedNotMember, noMember, nil),
		by("a guest whom the policy names", "U0900", approvers.DeniedGuest, "Guests can't decide", nil),
		by("a guest of one channel whom the policy names", "U0901", approvers.DeniedGuest, "Guests can't decide", nil),
		by("a deactivated account that the policy names", "U0902", approvers.DeniedDeactivated, "deactivated", nil),
		by("a stranger whom the policy names", "U0903", approvers.DeniedForeign, "Only members of this workspace", nil),
		by("a bot that the policy names", "U0904", approvers.DeniedBot, "Bots can't decide", nil),
		by("somebody whom Slack does not know", "U9999", approvers.DeniedUnidentified, "Slack could not tell", nil),
		by("the requester", "U0100", approvers.DeniedSelf, "you asked for this", nil),
		turned("somebody who became a guest a moment ago", workspace.UserChange{Guest: &yes}, workspace.UserChange{Guest: &no, SingleGuest: &no}, approvers.DeniedGuest, "Guests can't decide"),
		turned("somebody who moved to another workspace", workspace.UserChange{Team: &there}, workspace.UserChange{Team: &here}, approvers.DeniedForeign, "Only members"),
		turned("somebody who became a stranger", workspace.UserChange{Stranger: &yes}, workspace.UserChange{Stranger: &no}, approvers.DeniedForeign, "Only members"),
		turned("somebody whose account was closed a moment ago", workspace.UserChange{Deactivated: &yes}, workspace.UserChange{Deactivated: &no}, approvers.DeniedDeactivated, "deactivated"),
		answers("Slack can't be reached", "users.info", noAnswer),
		answers("a scope is missing", "users.info", `{"ok":false,"error":"missing_scope"}`),
		answers("an answer that can't be read", "users.info", `{"ok":true,"user":[`),
		answers("an answer about somebody else", "users.info", `{"ok":true,"user":{"id":"U0003","team_id":"T0001"}}`),
		answers("an answer about nobody", "users.info", `{"ok":true}`),
		policy("the role was taken from them", approvers.DeniedNotMember, noMember, func(p *approvers.Policy) {
			p.Approvers[1].Members = []approvers.Member{{Kind: approvers.MemberUser, Value: "U0004"}}
		}),
		policy("the tool was taken from their role", approvers.DeniedResolved, tooLate, func(p *approvers.Policy) { p.Approvers[1].CanApprove = []string{"cancel_account"} }),
		policy("the ceiling of their role was lowered, and nobody else may", approvers.DeniedResolved, tooLate, func(p *approvers.Policy) {
			p.Approvers[1].MaxRisk = approvers.Medium
			p.Approvers[2].CanApprove = []string{"cancel_account"}
		}),
		policy("the tool became critical", approvers.DeniedStage, "the policy changed", func(p *approvers.Policy) {
			p.Tools[toolIndex(p, "issue_refund")].Risk = approvers.Critical
			p.Tools[toolIndex(p, "issue_refund")].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2}}
		}),
		{"somebody who left the user group a second ago", approvers.DeniedNotMember, noMember, func(s *attackHarness) (target, string, string) {
			t := s.address()
			if _, err := s.bot.users.Clicker(context.Background(), "U0101", s.policy, "update_shipping_address", approvers.Medium, nil); err != nil { // fills the cache
				s.t.Fatal(err)
			}
			if err := s.slack.SetGroupUsers("S0001", []string{"U0001"}); err != nil {
				s.t.Fatal(err)
			}
			s.restore = func() {
				if err := s.slack.SetGroupUsers("S0001", []string{"U0001", "U0101"}); err != nil {
					s.t.Fatal(err)
				}
			}
			email := "priya@elsewhere.example"
			if err := s.slack.ChangeUser("U0101", workspace.UserChange{Email: &email}); err != nil {
				s.t.Fatal(err)
			}
			s.until("Slack has told of it", func() bool {
				who, err := s.bot.users.Clicker(context.Background(), "U0101", s.policy, "update_shipping_address", approvers.Medium, nil)
				return err == nil && len(who.Groups) == 0 && who.Email == ""
			})
			return t, "U0101", s.send(t.press("U0101", control.ActApprove))
		}},
		{"a member by an address that is not confirmed", approvers.DeniedNotMember, noMember, func(s *attackHarness) (target, string, string) {
			t := s.address()
			s.tap.answering("users.info", person(func(u, profile map[string]any) {
				profile["email"], u["is_email_confirmed"] = "support-oncall@example.com", false
			}))
			s.bot.users.Forget()
			s.restore = func() { s.tap.answering("users.info", nil); s.bot.users.Forget() }
			return t, "U0002", s.send(t.press("U0002", control.ActApprove))
		}},
		{"a member of a user group that Slack does not name", approvers.DeniedUnnamed, "who is in the user group @support", func(s *attackHarness) (target, string, string) {
			t := s.address()
			s.tap.answering("usergroups.list", func(url.Values) string { return `{"ok":false,"error":"missing_scope"}` })
			s.bot.users.Forget()
			s.restore = func() { s.tap.answering("usergroups.list", nil) }
			return t, "U0101", s.send(t.press("U0101", control.ActApprove))
		}},
		{"one person for two of the quorum", approvers.DeniedCounted, "counts already", func(s *attackHarness) (target, string, string) {
			s.stages(approvers.Stage{Approver: "finance-director", Quorum: 2})
			t := s.refund()
			s.decides(t, "U0003", control.ActApprove)
			return t, "U0003", s.send(t.press("U0003", control.ActApprove))
		}},
		{"one person in two roles for two stages", approvers.DeniedCounted, "counts already", func(s *attackHarness) (target, string, string) {
			s.stages(approvers.Stage{Approver: "team-lead", Quorum: 1}, approvers.Stage{Approver: "finance-director", Quorum: 1})
			t := s.refund()
			s.decides(t, "U0002", control.ActApprove)
			return t, "U0002", s.send(t.press("U0002", control.ActApprove))
		}},
		{"a stand-in of a stand-in without the role", approvers.DeniedNotMember, noMember, func(s *attackHarness) (target, string, string) {
			s.commands("teo", "#support-approvals", "away for 2 hours, delegate to @ingrid")
			s.commands("ingrid", "#support-approvals", "away for 2 hours, delegate to @priya")
			s.restore = func() {
				s.commands("teo", "#support-approvals", "back")
				s.commands("ingrid", "#support-approvals", "back")
				s.quiet()
			}
			t := s.refund()
			return t, "U0101", s.send(t.press("U0101", control.ActApprove))
		}},
		{"a withdrawal by somebody else", approvers.DeniedNotRequester, "only somebody who asked", func(s *attackHarness) (target, string, string) {
			t := s.refund()
			step := s.finds("sam", "#support", t.root, "Waits for")
			asked := s.buttonOn("C0001", step, control.ActWithdraw)
			return t, "U0001", s.send(t.press("U0001", control.ActWithdraw).with(asked.String()).at("C0001", step.TS))
		}},
	}
}
