package bot

import (
	"strings"
	"testing"

	"countersign/approvers"
)

func TestAgreedNamesAll(t *testing.T) {
	one := testRequest(refundArgs)
	three := approvedBy(approvedBy(approvedBy(one, "U0002", "Teo", "team-lead", 0), "U0003", "Ingrid", "finance-director", 1), "U0004", "Kenji", "finance-director", 1)
	fallen := approvedBy(approvedBy(one, "U0002", "Teo", "team-lead", 0), "U0004", "Kenji", "finance-director", 1)
	fallen.Decisions[0].Fallen = true
	many := one
	for range 9 {
		many = approvedBy(many, "U0002", "Teo", "team-lead", 0)
	}
	for name, c := range map[string]struct {
		r    approvers.Request
		want string
	}{
		"who closed it":       {closed(one, approvers.Consumed, "U0002", "team-lead", ""), "<@U0002> (Team Lead)"},
		"a title for a row":   {three, "<@U0002> (Team Lead), <@U0003> and <@U0004> (Finance Director)"},
		"one that fell":       {fallen, "<@U0004> (Finance Director)"},
		"more than are named": {many, "<@U0002>, <@U0002>, <@U0002>, <@U0002>, <@U0002>, <@U0002> (Team Lead) and 3 more"},
	} {
		if got := (scene{Sight: sightOf(c.r)}).agreed(c.r).plain.String(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Whoever approved in vain reads why: the call was changed, or the policy was.
func TestWhyAnApprovalFell(t *testing.T) {
	policy := approvedBy(testRequest(refundArgs), "U0002", "Teo", "team-lead", 0)
	policy.Decisions[0].Fallen = true
	edit := approvedBy(testRequest(refundArgs), "U0002", "Teo", "team-lead", 0)
	edit.Decisions[0].Fallen, edit.Decisions[0].Digest = true, "of the call before the edit"
	for want, r := range map[string]approvers.Request{"because the policy changed afterwards": policy, "because it was changed afterwards": edit} {
		if got := (scene{Sight: sightOf(r)}).decision(r, 0).plain.String(); !strings.HasSuffix(got, want) {
			t.Errorf("%q, want it to end with %q", got, want)
		}
	}
}
