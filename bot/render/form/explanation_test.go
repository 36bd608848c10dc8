package form

import (
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
)

// The timeline says who asked, who agreed, and where a request went. The expected texts are without times.
func TestTimelineWords(t *testing.T) {
	type facts = map[string]string
	record := func(kind approvers.AuditKind, actor approvers.PersonID, f facts) approvers.AuditRecord {
		return approvers.AuditRecord{At: time.Unix(1, 0), Kind: kind, Actor: actor, Facts: f}
	}
	x := Explainer{Policy: &approvers.Policy{}}
	var got []string
	for _, line := range x.Timeline([]approvers.AuditRecord{
		record(approvers.AuditProposed, "", facts{"asker": string(approvers.CallerID("ci"))}),
		record(approvers.AuditEscalated, "", facts{"role": "director", "why": "too_few"}),
		record(approvers.AuditDecided, "T1/U00000001", facts{"kind": "approve", "role": "lead"}),
		record(approvers.AuditAdvanced, "", facts{"stage": "2", "risk": "high"}),
		record(approvers.AuditAdvanced, "", facts{"stage": "1", "risk": "high"}),
		record(approvers.AuditDecided, approvers.Operator("ann"), facts{"kind": "approve", "break_glass": "true"}),
		record(approvers.AuditApproved, "", nil),
		record(approvers.AuditReopened, "", nil),
		record(approvers.AuditDecided, "T1/U00000001", facts{"kind": "approve", "role": "lead"}),
		record(approvers.AuditApproved, "", nil),
	}) {
		_, words, _ := strings.Cut(line.Mrkdwn(), " · ")
		got = append(got, words)
	}
	want := []string{
		"The client ci asked for it.",
		"Fewer people could decide it than the stage needs: director was asked.",
		"<@U00000001> approved it as lead.",
		"The next stage began, with high risk.",
		"The first stage began again, with high risk.",
		"operator ann approved it.",
		"That replaced the approvals that were missing.",
		"The policy became stricter, so it waits again.",
		"<@U00000001> approved it as lead.",
		"All who were needed have agreed.",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the lines are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
