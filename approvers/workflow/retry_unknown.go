package workflow

import (
	"context"
	"errors"

	"countersign/approvers"
	"countersign/store"
)

// RetryUnknown asks for a call again whose outcome is unknown. It creates a new execution and a new request with all
// its stages under the current policy, even if the call would now run without asking. The earlier run stays unknown,
// and can still be reported. The call's one result will be that of the new request, so RetryUnknown is denied once the
// model has a result, and while an earlier retry is open. The people who may report the outcome may do it.
func (w *Runs) RetryUnknown(ctx context.Context, c Click) error {
	return w.click(ctx, "ask again", c, func(t *tx) (*approvers.Denied, error) {
		e, denied, err := t.runs.reportable(c)
		if err != nil {
			return nil, err
		}
		if denied == nil {
			denied, err = t.runs.retryUnknown(e, c)
		}
		if denied == nil || denied.Code == approvers.DeniedNotFound || err != nil {
			return denied, err
		}
		return denied, t.auditDenied(e.Chain(), "ask again", c, denied)
	})
}

// reportable reads the execution of a click, if its outcome is unknown and the person may report it.
func (t runsTx) reportable(c Click) (approvers.Execution, *approvers.Denied, error) {
	e, err := t.Execution(c.Execution)
	if errors.Is(err, store.ErrNotFound) {
		return e, &approvers.Denied{Code: approvers.DeniedNotFound}, nil
	}
	if err != nil {
		return e, nil, err
	}
	switch e.State {
	case approvers.ExecutionUnknown:
	case approvers.ExecutionNone, approvers.ExecutionExecuting:
		return e, &approvers.Denied{Code: approvers.DeniedUnfinished}, nil
	default:
		return e, &approvers.Denied{Code: approvers.DeniedResolved, By: e.ReportedBy, At: e.FinishedAt}, nil
	}
	denied, err := t.mayReport(e, c.Who)
	return e, denied, err
}

func (t runsTx) retryUnknown(e approvers.Execution, c Click) (*approvers.Denied, error) {
	call, err := t.Call(e.Call)
	if err != nil {
		return nil, err
	}
	if call.Execution != e.ID {
		r, err := t.Request(call.Request)
		return &approvers.Denied{Code: approvers.DeniedAgain, By: r.Retry.By, At: r.Retry.At}, err
	}
	if call.Outcome != "" {
		return &approvers.Denied{Code: approvers.DeniedReturned}, nil
	}
	turn, err := t.Turn(call.Turn)
	if err != nil {
		return nil, err
	}
	tool, args, problem := t.stillAdmissible(turn.Agent, e)
	if problem != "" {
		return &approvers.Denied{Code: approvers.DeniedNotAgain, Detail: problem}, nil
	}
	r, err := t.newRetry(turn, call, e, c.Who)
	if err != nil {
		return nil, err
	}
	r.Effect = tool.Effect
	if r.Plan = t.policy.RetryPlan(r.AsCall(args)); r.Plan.Verdict != approvers.Ask {
		return &approvers.Denied{Code: approvers.DeniedNotAgain, Detail: r.Plan.Why[len(r.Plan.Why)-1]}, nil
	}
	call.Secrets = t.proposals.secrets(tool, turn.Agent)
	call.Preview, r.PreviewFault = t.proposals.preview(e.Tool, turn.Agent, approvers.MaskValues(args, call.Secrets))
	r.Preview = call.Preview
	again := t.proposals.newExecution(call, tool, e.Args)
	again.Asker, again.After = e.Asker, e.ID
	call.Execution = again.ID
	if err := t.ClearTimer(store.TimerLeave, e.ID); err != nil {
		return nil, err
	}
	if err := t.proposals.ask(call, again, r); err != nil {
		return nil, err
	}
	facts := map[string]string{"execution": e.ID, "digest": e.Digest, "report": string(Asked), "again": again.ID}
	if err := t.audit(e.Chain(), approvers.AuditReported, c.Who.ID, facts, nil); err != nil {
		return nil, err
	}
	if err := t.changedStep(e); err != nil {
		return nil, err
	}
	return nil, t.turns.tellIfQueued(turn)
}

// stillAdmissible checks the arguments of an earlier run against the current tool and policy. problem is a sentence for
// people, or "".
func (t runsTx) stillAdmissible(agent string, e approvers.Execution) (Tool, map[string]any, string) {
	tool, ok := t.tool(e.Tool)
	if a, has := t.policy.Agent(agent); !ok || !has || !a.Offers(e.Tool) {
		return tool, nil, "the agent has no such tool any more"
	}
	if tool.Blocked != "" {
		return tool, nil, tool.look()
	}
	p, _ := t.policy.Tool(e.Tool, agent)
	args, err := approvers.StrictArgs(e.Args, p.ReadsNumbers())
	if err == nil {
		err = tool.Check(e.Args)
	}
	if err != nil {
		return tool, nil, "the tool does not take these arguments any more: " + plainFault(err)
	}
	return tool, args, ""
}

// newRetry returns the request for a retry: with the same requesters and the approvers' edits, and next to the bundle
// of its step if it was in one.
func (t runsTx) newRetry(turn approvers.Turn, call store.Call, e approvers.Execution, who approvers.Identity) (r approvers.Request, err error) {
	conv, err := t.Conversation(call.Conversation)
	if err != nil {
		return r, err
	}
	authors, err := t.proposals.authors(conv.ID)
	if err != nil {
		return r, err
	}
	r.Facts, err = t.proposals.askFacts(turn, conv, authors)
	if err != nil {
		return r, err
	}
	r.Agent, r.Tool, r.CreatedAt = turn.Agent, e.Tool, t.now
	r.Retry = &approvers.Retry{Execution: e.ID, LostAt: e.FinishedAt, By: who.ID, Name: who.Name, At: t.now}
	if e.Request == "" {
		return r, nil
	}
	earlier, err := t.Request(e.Request)
	r.Edits, r.Bundle, r.Apart = earlier.Edits, earlier.Bundle, earlier.Bundle != ""
	return r, err
}

// changedEarlier refreshes the messages about the run that a request retries.
func (t runsTx) changedEarlier(r approvers.Request) error {
	if r.Retry == nil {
		return nil
	}
	e, err := t.Execution(r.Retry.Execution)
	if err != nil {
		return err
	}
	if e.Request != "" {
		if err := t.outbox.changedRef(e.Request); err != nil {
			return err
		}
	}
	return t.outbox.changedRef(e.ID)
}

// superseded records a person's report about a run whose call is being retried. If the run succeeded after all, the
// open retry is voided and the model gets the reported result. Otherwise the people who decide the retry are told.
func (t runsTx) superseded(e approvers.Execution, call store.Call) error {
	r, err := t.Request(call.Request)
	if err != nil {
		return err
	}
	if r.Retry.Execution == e.ID {
		found := *r.Retry
		found.Found, found.FoundBy = e.State, e.ReportedBy
		r.Retry = &found
		if err := t.PutRequest(r); err != nil {
			return err
		}
		r.Version++
	}
	if e.State != approvers.ExecutionSucceeded || !r.State.Open() {
		return errors.Join(t.pauses.showAgain(r), t.changedStep(e))
	}
	var before *approvers.Request
	if e.Request != "" {
		earlier, err := t.Request(e.Request)
		if err != nil {
			return err
		}
		before = &earlier
	}
	outcome, text := approvers.RunResult(t.policy, e, before)
	if err := t.turns.giveResult(call, outcome, text); err != nil {
		return err
	}
	void, events, denied := r.Void(t.deciding(), "somebody reported that the earlier run of it happened")
	if denied != nil {
		return denied // an open request is never over
	}
	if err := t.apply(void, events); err != nil {
		return err
	}
	return t.changedStep(e)
}
