package audit

import (
	"strings"
	"testing"

	"countersign/approvers"
)

// The filter for a person selects what the person did, and the calls that the person asked for.
func TestFilterActor(t *testing.T) {
	records := []approvers.AuditRecord{
		{Chain: "decided", Actor: "T0001/U0002"},
		{Chain: "asked", Facts: map[string]string{"asker": "T0001/U0002", "requesters": "T0001/U0002,T0001/U0003"}},
		{Chain: "alone", Facts: map[string]string{"asker": "T0001/U0002"}},
		{Chain: "client", Facts: map[string]string{"asker": "caller:ci", "requesters": "caller:ci,T0001/U0003"}},
		{Chain: "bot"},
	}
	for actor, want := range map[string]string{
		"": "decided asked alone client bot", "U0002": "decided asked alone", "T0001/U0002": "decided asked alone", "U0003": "asked client", "caller:ci": "client", "U000": "",
		"bot": "asked alone client bot",
	} {
		taken := []string{}
		for _, r := range records {
			if (Filter{Actor: actor}).takes(r) {
				taken = append(taken, r.Chain)
			}
		}
		if got := strings.Join(taken, " "); got != want {
			t.Errorf("%q: %q, want %q", actor, got, want)
		}
	}
}
