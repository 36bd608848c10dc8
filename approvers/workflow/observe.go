package workflow

import (
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// observe ends a call that the policy only observes: it does not run, and nobody is asked. The model and the people are
// told what would have happened.
func (t proposalsTx) observe(call store.Call, e approvers.Execution, plan approvers.Plan, requesters []approvers.PersonID) error {
	if err := t.PutCall(call); err != nil {
		return err
	}
	if err := t.PutExecution(e); err != nil {
		return err
	}
	call.Version++
	if err := t.records.auditProposed(e.ID, e, plan, requesters); err != nil {
		return err
	}
	res := approvers.NewResult(approvers.OutcomeObserved, e.Tool, t.wouldHave(plan), "")
	if err := t.turns.giveResult(call, approvers.OutcomeObserved, res.Text()); err != nil {
		return err
	}
	return t.runs.changedStep(e)
}

// wouldHave says what would have happened to a call without observe mode.
func (t proposalsTx) wouldHave(plan approvers.Plan) string {
	switch plan.Would {
	case approvers.Ask:
		return "it would have waited for " + plan.StageList(t.policy)
	case approvers.Refuse:
		return "it would have been refused: " + strings.TrimSuffix(plan.Why[len(plan.Why)-2], ".")
	}
	return "it would have run without asking anybody"
}
