package desk

import (
	"slices"

	"countersign/approvers"
	"countersign/store"
)

// automatic lets a call run without asking, if the policy as it is now still says so and its limit is not used up. Otherwise people are asked.
func (t *tx) automatic(call store.Call, e approvers.Execution) (bool, error) {
	if err := t.ClearTimer(store.TimerRun, e.ID); err != nil {
		return false, err
	}
	if tool, ok := t.d.Tools.Tool(e.Tool); !ok || tool.Hash != e.ToolHash {
		return false, t.voidCall(call, e, "the definition of the tool changed")
	}
	turn, err := t.Turn(call.Turn)
	if err != nil {
		return false, err
	}
	conv, err := t.Conversation(call.Conversation)
	if err != nil {
		return false, err
	}
	authors, err := t.authors(conv.ID)
	if err != nil {
		return false, err
	}
	facts, err := t.askFacts(turn, conv, authors)
	if err != nil {
		return false, err
	}
	p, _ := t.policy.Tool(e.Tool, turn.Agent)
	args, err := approvers.StrictArgs(e.Args, p.ReadsNumbers())
	if err != nil { // it was taken under a policy that did not compute with its arguments
		return false, t.voidCall(call, e, "the policy changed: "+plainFault(err))
	}
	r := approvers.Request{Facts: facts, Agent: turn.Agent, Tool: e.Tool, Effect: e.Effect, Preview: call.Preview, CreatedAt: t.now}
	r.Plan = t.policy.Plan(r.AsCall(args))
	if r.Plan.Verdict == approvers.Observed {
		return false, t.observe(call, e, r.Plan)
	}
	if r.Plan.Verdict != approvers.Auto {
		return false, t.askInstead(call, e, r)
	}
	if p.MaxAuto.Count == 0 {
		return true, nil
	}
	n, err := t.CountTally(tallyAuto(e.Tool, call.Conversation), t.now.Add(-p.MaxAuto.Per))
	if err != nil {
		return false, err
	}
	if p.MaxAuto.Reached(n) {
		r.Plan = t.policy.AskFor(r.AsCall(args), p.MaxAuto)
		return false, t.askInstead(call, e, r)
	}
	return true, t.AddTally(store.Tally{Key: tallyAuto(e.Tool, call.Conversation), At: t.now, ID: e.ID, N: 1})
}

// authors lists everybody whose words the model may have been given in a conversation.
func (t *tx) authors(conversation string) ([]approvers.PersonID, error) {
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

// askInstead has people asked about a call that was to run without asking, and has that shown.
func (t *tx) askInstead(call store.Call, e approvers.Execution, r approvers.Request) error {
	if err := t.ask(call, e, r); err != nil {
		return err
	}
	if err := t.changedTurn(call.Turn, store.SurfaceStep, call.Step); err != nil {
		return err
	}
	turn, err := t.Turn(call.Turn)
	if err != nil || turn.State != approvers.TurnWaiting {
		return err
	}
	return t.tellIfQueued(turn)
}

// voidCall ends a call that nobody was asked about, because what it would run has changed.
func (t *tx) voidCall(call store.Call, e approvers.Execution, reason string) error {
	res := approvers.NewResult(approvers.OutcomeVoided, e.Tool, reason, "")
	if err := t.giveResult(call, approvers.OutcomeVoided, res.Text()); err != nil {
		return err
	}
	return t.changedStep(e)
}
