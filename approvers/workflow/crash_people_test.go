package workflow_test

import (
	"strings"
	"testing"

	"countersign/approvers"
)

// beside is a world in which people do everything with a request except let it run: they comment, ask and answer, hand
// it on, edit its arguments, and withdraw it.
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

// TestPeopleKilledAtEveryPoint checks that each action of people on a request takes effect exactly once, wherever the
// process is killed.
func TestPeopleKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	want := killedAndTheSame(t, beside, 25)
	if must := "remarked remarked remarked invited decided advanced closed returned"; !strings.Contains(want, must) {
		t.Errorf("without a crash the result is\n%s\nwant %q in it", want, must)
	}
}
