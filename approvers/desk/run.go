package desk

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// lease is how long past its own timeout a run may take before it counts as lost.
const lease = time.Minute

// maxTries bounds how often a tool that may be run again is run again after a process stopped.
const maxTries = 5

// Claim uses up the permission for one run, and makes executing durable before the tool is called. It reports false where
// there is nothing to run: the request is not approved any more, the automatic runs are used up and people are
// asked instead, or an earlier run was lost and a person must say what happened.
func (d *Desk) Claim(ctx context.Context, execution string) (e approvers.Execution, run bool, err error) {
	err = d.update(ctx, "claim", func(t *tx) error {
		run = false
		var err error
		e, err = t.Execution(execution)
		if errors.Is(err, store.ErrNotFound) {
			return t.ClearTimer(store.TimerRun, execution)
		}
		if err != nil {
			return err
		}
		switch e.State {
		case approvers.ExecutionNone:
			run, err = t.claim(&e)
		case approvers.ExecutionExecuting:
			run, err = t.recover(&e)
		default:
			err = t.ClearTimer(store.TimerRun, execution)
		}
		return err
	})
	return e, run, err
}

func (t *tx) claim(e *approvers.Execution) (bool, error) {
	call, err := t.Call(e.Call)
	if err != nil {
		return false, err
	}
	allowed := false
	if e.Request != "" {
		allowed, err = t.consume(*e)
	} else {
		allowed, err = t.automatic(call, *e)
	}
	if err != nil || !allowed {
		return false, err
	}
	return t.start(e, approvers.Execution.Start)
}

// start makes executing durable. Bytes that don't match their digest never run.
func (t *tx) start(e *approvers.Execution, move func(approvers.Execution, string, time.Time) (approvers.Execution, error)) (bool, error) {
	started, err := move(*e, t.d.owner, t.now)
	if errors.Is(err, approvers.ErrDigest) {
		t.d.Log.Error("the stored arguments of a call do not match what was signed; it was not run", "tool", e.Tool, "request", e.Request, "execution", e.ID)
		e.State, e.Result, e.FinishedAt = approvers.ExecutionFailed, err.Error(), t.now
		return false, t.finished(*e)
	}
	if err != nil {
		return false, err
	}
	if err := t.PutExecution(started); err != nil {
		return false, err
	}
	*e = started
	e.Version++
	due := t.now.Add(lease)
	if tool, ok := t.d.Tools.Tool(e.Tool); ok {
		due = due.Add(tool.Timeout)
	}
	if err := t.SetTimer(store.Timer{Kind: store.TimerRun, Ref: e.ID, Due: due}); err != nil {
		return false, err
	}
	facts := map[string]string{"execution": e.ID, "digest": e.Digest, "process": e.Owner, "try": strconv.Itoa(e.Tries)}
	if err := t.audit(e.Chain(), approvers.AuditExecuting, "", facts, nil); err != nil {
		return false, err
	}
	return true, t.changedStep(*e)
}

// consume uses a request's approval up, under the policy and the tool as they are now.
func (t *tx) consume(e approvers.Execution) (bool, error) {
	before, r, denied, err := t.current(e.Request)
	if err != nil {
		return false, err
	}
	if denied == nil && r.State == approvers.Approved && r.Execution == e.ID {
		args, err := approvers.StrictArgs(e.Args, false)
		if err != nil {
			return false, err
		}
		r = r.Recheck(t.deciding(), args)
	}
	if r.State == approvers.Approved && r.Execution == e.ID {
		consumed, denied := r.Consume(t.deciding())
		if denied == nil {
			return true, t.follow(before, consumed)
		}
		r, _ = r.Expire(t.deciding())
	}
	if err := t.followIfChanged(before, r); err != nil {
		return false, err
	}
	return false, t.ClearTimer(store.TimerRun, e.ID)
}

// voidCall ends a call that nobody was asked about, because what it would run has changed.
func (t *tx) voidCall(call store.Call, e approvers.Execution, reason string) error {
	res := approvers.NewResult(approvers.OutcomeVoided, e.Tool, reason, "")
	if err := t.giveResult(call, approvers.OutcomeVoided, res.Text()); err != nil {
		return err
	}
	return t.changedStep(e)
}

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
	r := approvers.Request{Facts: facts, Agent: turn.Agent, Tool: e.Tool, Preview: call.Preview, CreatedAt: t.now}
	r.Plan = t.policy.Plan(r.AsCall(args))
	if r.Plan.Verdict != approvers.Auto {
		return false, t.askInstead(call, e, r)
	}
	if p.MaxAuto.Count == 0 {
		return true, nil
	}
	n, err := t.CountRuns(e.Tool, call.Conversation, t.now.Add(-p.MaxAuto.Per))
	if err != nil {
		return false, err
	}
	if p.MaxAuto.Reached(n) {
		r.Plan = t.policy.AskFor(r.AsCall(args), p.MaxAuto)
		return false, t.askInstead(call, e, r)
	}
	return true, t.AddRun(store.Run{Tool: e.Tool, Conversation: call.Conversation, At: t.now, Execution: e.ID})
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

// recover takes up an execution whose process stopped while it ran. One whose second run would act again is never
// run blindly: its outcome is unknown, and people are asked.
func (t *tx) recover(e *approvers.Execution) (bool, error) {
	if e.Effect != approvers.Unprotected && e.Tries < maxTries {
		return t.start(e, approvers.Execution.Retry)
	}
	return false, t.lose(*e)
}

// lose marks a run's outcome as unknown, and asks people.
func (t *tx) lose(e approvers.Execution) error {
	lost, err := e.Lose(t.now)
	if err != nil {
		return err
	}
	if err := t.PutExecution(lost); err != nil {
		return err
	}
	if err := t.audit(lost.Chain(), approvers.AuditUnknown, "", map[string]string{"execution": lost.ID, "digest": lost.Digest}, nil); err != nil {
		return err
	}
	if err := t.ClearTimer(store.TimerRun, lost.ID); err != nil {
		return err
	}
	t.d.Log.Warn("nobody knows whether a run acted; people are asked", "tool", lost.Tool, "request", lost.Request, "execution", lost.ID)
	return t.askWhatHappened(lost)
}

// Finish records what a tool answered, and hands it to the model.
func (d *Desk) Finish(ctx context.Context, execution string, ok bool, result string) error {
	return d.update(ctx, "finish", func(t *tx) error {
		e, err := t.Execution(execution)
		if err != nil {
			return err
		}
		if e, err = e.Finish(ok, result, t.now); err != nil {
			return err
		}
		return t.finished(e)
	})
}

// finished writes an execution that ended, with everything that follows from it.
func (t *tx) finished(e approvers.Execution) error {
	if err := t.PutExecution(e); err != nil {
		return err
	}
	if err := t.ClearTimer(store.TimerRun, e.ID); err != nil {
		return err
	}
	if err := t.audit(e.Chain(), approvers.AuditExecuted, "", map[string]string{"execution": e.ID, "digest": e.Digest, "state": string(e.State)}, []byte(e.Result)); err != nil {
		return err
	}
	return t.returnResult(e)
}

// returnResult hands the outcome of a run to the model and has it shown.
func (t *tx) returnResult(e approvers.Execution) error {
	var request *approvers.Request
	if e.Request != "" {
		r, err := t.Request(e.Request)
		if err != nil {
			return err
		}
		request = &r
	}
	call, err := t.Call(e.Call)
	if err != nil {
		return err
	}
	outcome, text := approvers.RunResult(t.policy, e, request)
	if err := t.giveResult(call, outcome, text); err != nil {
		return err
	}
	return t.changedStep(e)
}

// changedStep has everything that shows an execution shown again.
func (t *tx) changedStep(e approvers.Execution) error {
	call, err := t.Call(e.Call)
	if err != nil {
		return err
	}
	if e.Request != "" {
		if err := t.changedRef(e.Request); err != nil {
			return err
		}
	}
	if err := t.changedRef(e.ID); err != nil {
		return err
	}
	return t.changedTurn(e.Turn, store.SurfaceStep, call.Step)
}

// mostRuns bounds how many runs are looked at when a process starts. It is far above what can be under way at once; a run beyond it
// is taken up when its lease ends.
const mostRuns = 10_000

// Recover is called once at the start: executions that an earlier process left running fall due at once.
func (d *Desk) Recover(ctx context.Context) error {
	return d.update(ctx, "recover", func(t *tx) error {
		timers, err := t.Timers(store.TimerRun, mostRuns)
		if err != nil {
			return err
		}
		for _, timer := range timers {
			if !timer.Due.After(t.now) {
				continue
			}
			e, err := t.Execution(timer.Ref)
			if err != nil {
				return err
			}
			if e.State == approvers.ExecutionExecuting && e.Owner != d.owner {
				timer.Due = t.now
				if err := t.SetTimer(timer); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Lose records that a run ended without anybody knowing whether it acted: its tool could not tell. People are asked.
func (d *Desk) Lose(ctx context.Context, execution string) error {
	return d.update(ctx, "lose", func(t *tx) error {
		e, err := t.Execution(execution)
		if err != nil {
			return err
		}
		return t.lose(e)
	})
}
