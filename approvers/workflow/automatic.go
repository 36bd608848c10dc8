package workflow

import (
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// automatic reports whether a call may run without approval. There are two cases: the current policy lets the call run
// and the tool's limit of automatic runs is not reached, or a grant covers the call. Otherwise automatic opens a
// request for the call. If the tool has changed, or the current policy forbids the call or only observes it, automatic
// ends the call.
func (t proposalsTx) automatic(call store.Call, e *approvers.Execution, givers grantOwners) (bool, error) {
	e.Grant = "" // removes the grant that was found when the call was proposed; below, automatic looks for a grant again
	if err := t.ClearTimer(store.TimerRun, e.ID); err != nil {
		return false, err
	}
	if err := t.runs.clearOutcome(*e); err != nil {
		return false, err
	}
	if why := t.unlike(e.Tool, e.ToolHash); why != "" {
		return false, t.voidCall(call, *e, why)
	}
	turn, err := t.Turn(call.Turn)
	if err != nil {
		return false, err
	}
	conv, err := t.Conversation(call.Conversation)
	if err != nil {
		return false, err
	}
	facts, err := t.askFactsOf(call, turn, conv)
	if err != nil {
		return false, err
	}
	if why := t.forbidden(facts.Caller, turn.Agent, e.Tool); why != "" {
		return false, t.voidCall(call, *e, why)
	}
	p, _ := t.policy.Tool(e.Tool, turn.Agent)
	args, err := approvers.StrictArgs(e.Args, p.ReadsNumbers())
	if err != nil { // the call was accepted under an earlier policy, which did not read these numbers
		return false, t.voidCall(call, *e, "the policy changed: "+plainFault(err))
	}
	r := approvers.Request{Facts: facts, Agent: turn.Agent, Tool: e.Tool, Effect: e.Effect, Preview: call.Preview, CreatedAt: t.now}
	r.Plan = t.policy.Plan(r.AsCall(args))
	if r.Plan.Verdict == approvers.Observed {
		return false, t.observe(call, *e, r.Plan, facts)
	}
	limited, err := t.limited(p, *e)
	switch {
	case err != nil:
		return false, err
	case r.Plan.Verdict == approvers.Auto && !limited:
		return true, t.countAuto(p, *e)
	case r.Plan.Verdict == approvers.Auto:
		r.Plan = t.policy.AskFor(r.AsCall(args), p.MaxAuto)
	}
	granted, err := t.grants.useGrant(e, r, args, givers)
	switch {
	case err != nil:
		return false, err
	case granted:
		return true, t.countAuto(p, *e)
	}
	return false, t.askInstead(call, *e, r)
}

// t.limited reports whether the tool's limit of automatic runs is reached in the execution's scope (autoScope).
func (t proposalsTx) limited(p approvers.ToolPolicy, e approvers.Execution) (bool, error) {
	if p.MaxAuto.Count == 0 {
		return false, nil
	}
	n, err := t.CounterSum(counterAuto(e.Tool, autoScope(e)), t.now.Add(-p.MaxAuto.Per))
	return p.MaxAuto.Reached(n), err
}

// autoScope returns the scope in which automatic runs are counted together. The scope is a conversation. For a caller,
// the scope is all requests of the caller, because each request has its own conversation.
func autoScope(e approvers.Execution) string {
	if e.Asker.Caller() != "" {
		return string(e.Asker)
	}
	return e.Conversation
}

// countAuto adds an automatic run to the tool's counter.
func (t proposalsTx) countAuto(p approvers.ToolPolicy, e approvers.Execution) error {
	if p.MaxAuto.Count == 0 {
		return nil
	}
	return t.AddCounter(store.Counter{Key: counterAuto(e.Tool, autoScope(e)), At: t.now, ID: e.ID, N: 1})
}

// authors returns all people of a conversation whose messages the model may have received.
func (t proposalsTx) authors(conversation string) ([]approvers.PersonID, error) {
	messages, err := t.Messages(conversation, 0)
	if err != nil {
		return nil, err
	}
	var out []approvers.PersonID
	for _, m := range messages {
		if m.State == store.MessageTaken && m.Author != "" && !slices.Contains(out, m.Author) {
			out = append(out, m.Author)
		}
	}
	return out, nil
}

// askInstead opens and shows a request for a call that can't run automatically. If the call is from a client that has
// reached one of its caps, askInstead refuses the call.
func (t proposalsTx) askInstead(call store.Call, e approvers.Execution, r approvers.Request) error {
	if c := r.Facts.Caller; c != nil {
		client, _ := t.policy.Client(c.Name)
		reached, err := t.callers.capReached(client)
		if err != nil {
			return err
		}
		if reached != nil {
			return t.endCall(call, e, approvers.OutcomeRefused, "it needs approval, but nobody was asked: "+reached.Detail)
		}
	}
	if err := t.ask(call, e, r); err != nil {
		return err
	}
	if err := t.outbox.changedTurn(call.Turn, store.OutboxStep, call.Step); err != nil {
		return err
	}
	turn, err := t.Turn(call.Turn)
	if err != nil || turn.State != approvers.TurnWaiting {
		return err
	}
	return t.turns.tellIfQueued(turn)
}

// voidCall voids a call that has no request.
func (t proposalsTx) voidCall(call store.Call, e approvers.Execution, reason string) error {
	return t.endCall(call, e, approvers.OutcomeVoided, reason)
}

// endCall ends a call that has no request, and whose run has not begun.
func (t proposalsTx) endCall(call store.Call, e approvers.Execution, outcome approvers.Outcome, reason string) error {
	res := approvers.NewResult(outcome, e.Tool, reason, "")
	if err := t.turns.giveResult(call, outcome, res.Text()); err != nil {
		return err
	}
	return t.runs.changedStep(e)
}

// observe ends a call in observe mode. The call does not run, and nobody is asked to approve the call. The model and
// the people read the outcome that the call would have had without observe mode.
func (t proposalsTx) observe(call store.Call, e approvers.Execution, plan approvers.Plan, facts approvers.AskFacts) error {
	if err := t.PutCall(call); err != nil {
		return err
	}
	if err := t.PutExecution(e); err != nil {
		return err
	}
	call.Version++
	if err := t.records.auditProposed(e.ID, e, plan, facts); err != nil {
		return err
	}
	res := approvers.NewResult(approvers.OutcomeObserved, e.Tool, t.wouldHave(plan), "")
	if err := t.turns.giveResult(call, approvers.OutcomeObserved, res.Text()); err != nil {
		return err
	}
	return t.runs.changedStep(e)
}

// wouldHave describes the outcome that a call would have had without observe mode.
func (t proposalsTx) wouldHave(plan approvers.Plan) string {
	switch plan.Would {
	case approvers.Ask:
		return "it would have waited for " + plan.StageList(t.policy)
	case approvers.Refuse:
		return "it would have been refused: " + strings.TrimSuffix(plan.Why[len(plan.Why)-2], ".")
	}
	return "it would have run without asking anybody"
}
