package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/store"
)

// describe returns the state of a call on one line. If there is nothing to report, describe returns "".
func describe(r store.Reader, c store.Call) (string, error) {
	about := c.Tool
	if c.Preview != "" {
		about += ": " + c.Preview
	}
	if q := c.ModelQuestion; q != nil {
		return questionState(*q, c.Outcome), nil
	}
	if c.Request == "" {
		if c.Outcome == "" {
			return "", nil
		}
		ran, err := unasked(r, c)
		return verdict(about, c, " ran "+ran), err
	}
	req, err := r.Request(c.Request)
	if err != nil {
		return "", err
	}
	if req.State == approvers.Pending {
		return fmt.Sprintf("%s waits for %s%s%s", c.Tool, cli.WaitsFor(req), progress(req), strings.TrimPrefix(about, c.Tool)), nil
	}
	if c.Outcome == "" {
		return "", nil
	}
	return decided(c, req), nil
}

// questionState describes the state of a question from the model.
func questionState(q approvers.ModelQuestion, outcome approvers.Outcome) string {
	switch outcome {
	case "":
		return fmt.Sprintf("the agent asks: %s (%s)", q.Question, strings.Join(q.Options, " · "))
	case approvers.OutcomeExecuted:
		return fmt.Sprintf("%s answered: %s", q.Name, q.Answer)
	}
	return fmt.Sprintf("the agent's question was not answered: %s", outcome)
}

// The function "unasked" describes why a call ran without a request.
func unasked(r store.Reader, c store.Call) (string, error) {
	if c.Execution == "" {
		return "without asking", nil
	}
	e, err := r.Execution(c.Execution)
	if err != nil || e.Grant == "" {
		return "without asking", err
	}
	g, err := r.Grant(e.Grant)
	return fmt.Sprintf("under the grant of %s (%s)", g.Name, g.Role), err
}

func remarked(tool string, m approvers.Remark) string {
	who := m.Name
	if m.Role != "" {
		who += " (" + m.Role + ")"
	}
	verb := map[approvers.RemarkKind]string{
		approvers.Question: " asked about ", approvers.Answer: " answered about ", approvers.Comment: " commented on ",
	}[m.Kind]
	return who + verb + tool + ": " + oneLine(m.Text)
}

// progress describes what has happened in the current stage: its approvals, if it needs several, its votes against, and
// a typed confirmation. If the policy has changed since the request was made, progress also describes the next stages.
func progress(req approvers.Request) string {
	var notes []string
	if quorum := req.CurrentStage().Quorum; quorum > 1 {
		notes = append(notes, fmt.Sprintf("%d of %d", req.At(req.Stage), quorum))
	}
	if stage := req.CurrentStage(); len(req.Against(req.Stage)) > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d against", len(req.Against(req.Stage)), stage.Rejects))
	}
	if req.StepUp != "" {
		notes = append(notes, "typed: "+req.StepUp)
	}
	if slices.Contains(req.Plan.Why, approvers.ChangedMeanwhile) {
		for _, next := range req.Plan.Stages[min(req.Stage+1, len(req.Plan.Stages)):] {
			notes = append(notes, "then "+next.Approver)
		}
		notes = append(notes, approvers.ChangedMeanwhile)
	}
	if len(notes) == 0 {
		return ""
	}
	return " (" + strings.Join(notes, "; ") + ")"
}

func verdict(about string, c store.Call, ran string) string {
	if c.Outcome == approvers.OutcomeExecuted {
		tool, preview, _ := strings.Cut(about, ": ")
		if preview != "" {
			preview = ": " + preview
		}
		return tool + ran + preview
	}
	return fmt.Sprintf("%s: %s: %s", c.Tool, c.Outcome, reasonIn(c.Result))
}

// The function "decided" describes who decided a call, and the call's outcome.
func decided(c store.Call, req approvers.Request) string {
	by := make([]string, 0, len(req.Decisions))
	for _, d := range req.ValidApprovals() {
		verb := map[approvers.DecisionKind]string{approvers.Approve: "approved", approvers.Modify: "changed and approved"}[d.Kind]
		by = append(by, fmt.Sprintf("%s by %s (%s)", verb, d.Name, d.Role))
	}
	if c.Outcome == approvers.OutcomeExecuted {
		return fmt.Sprintf("%s was %s and done", c.Tool, strings.Join(by, ", "))
	}
	if req.ClosedName != "" && (req.State == approvers.Rejected || req.State == approvers.Revoked) {
		return fmt.Sprintf("%s was %s by %s (%s): %s", c.Tool, req.State, req.ClosedName, req.ClosedRole, req.Reason)
	}
	if req.ClosedName != "" && req.State != approvers.Consumed {
		return fmt.Sprintf("%s was %s by %s", c.Tool, req.State, req.ClosedName)
	}
	return fmt.Sprintf("%s: %s: %s", c.Tool, c.Outcome, reasonIn(c.Result))
}

// reasonIn returns the reason in a structured result. Any other result is returned whole.
func reasonIn(result string) string {
	var r approvers.Result
	if json.Unmarshal([]byte(result), &r) == nil && r.Reason != "" {
		return r.Reason
	}
	return result
}
