package workflow_test

import (
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/internal/testkit"
)

// beside returns an environment in which people comment on a request, ask and answer questions, hand the request on,
// edit its arguments, and withdraw it. They do not approve it.
func beside(t testing.TB, kill func(point string) bool) *environment {
	w := newEnvironment(t, kill)
	w.script = []string{`issue_refund {"amount":49.99}`}
	w.aside = []act{
		{Who: lead, Remark: approvers.Question}, {Who: alice, Remark: approvers.Answer}, {Who: lead, Remark: approvers.Comment},
		{Who: lead, HandOn: true, Other: fin1}, {Who: lead, Click: approvers.Modify, Args: `{"amount":900}`}, {Who: alice, Take: true},
	}
	w.through()
	return w
}

// TestPeopleKilledAtEveryPoint kills the process at every point. Each action of people on a request must take effect
// exactly once.
func TestPeopleKilledAtEveryPoint(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	want := killedAndTheSame(t, beside, 25)
	if must := "remarked remarked remarked invited decided advanced closed returned"; !strings.Contains(want, must) {
		t.Errorf("without a crash the result is\n%s\nwant %q in it", want, must)
	}
}
