package wording

import (
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/bot/bottest"
)

func TestAgreedNamesAll(t *testing.T) {
	one := bottest.Request(bottest.RefundArgs)
	three := bottest.ApprovedBy(bottest.ApprovedBy(bottest.ApprovedBy(one, "U0002", "Teo", "team-lead", 0), "U0003", "Ingrid", "finance-director", 1), "U0004", "Kenji", "finance-director", 1)
	fallen := bottest.ApprovedBy(bottest.ApprovedBy(one, "U0002", "Teo", "team-lead", 0), "U0004", "Kenji", "finance-director", 1)
	fallen.Decisions[0].Fallen = true
	many := one
	for range 9 {
		many = bottest.ApprovedBy(many, "U0002", "Teo", "team-lead", 0)
	}
	for name, c := range map[string]struct {
		r    approvers.Request
		want string
	}{
		"who closed it":       {bottest.Closed(one, approvers.Consumed, "U0002", "team-lead", ""), "<@U0002> (Team Lead)"},
		"a title for a row":   {three, "<@U0002> (Team Lead), <@U0003> and <@U0004> (Finance Director)"},
		"one that fell":       {fallen, "<@U0004> (Finance Director)"},
		"more than are named": {many, "<@U0002>, <@U0002>, <@U0002>, <@U0002>, <@U0002>, <@U0002> (Team Lead) and 3 more"},
	} {
		if got := Under(bottest.ViewModel(c.r).Policy).countedApprovals(c.r).Mrkdwn(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A person whose approval no longer counts is told why: the call or the policy changed.
func TestWhyAnApprovalFell(t *testing.T) {
	policy := bottest.ApprovedBy(bottest.Request(bottest.RefundArgs), "U0002", "Teo", "team-lead", 0)
	policy.Decisions[0].Fallen = true
	edit := bottest.ApprovedBy(bottest.Request(bottest.RefundArgs), "U0002", "Teo", "team-lead", 0)
	edit.Decisions[0].Fallen, edit.Decisions[0].Digest = true, "of the call before the edit"
	for want, r := range map[string]approvers.Request{"because the policy changed afterwards": policy, "because it was changed afterwards": edit} {
		if got := Under(bottest.ViewModel(r).Policy).decision(r, 0).Mrkdwn(); !strings.HasSuffix(got, want) {
			t.Errorf("%q, want it to end with %q", got, want)
		}
	}
}
