package desk

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// follow writes a request that moved from one state to another, and everything that follows from it: timers, the
// call's result, the audit and what Slack shows. Every change of a request goes through here.
func (t *tx) follow(before, r approvers.Request) error {
	r, moved, err := t.leaveLines(before, parted(before, r))
	if err != nil {
		return err
	}
	if err := t.PutRequest(r); err != nil {
		return err
	}
	if err := t.arm(before, r); err != nil {
		return err
	}
	if err := t.auditReplanned(before, r); err != nil {
		return err
	}
	if err := t.auditMove(before, r); err != nil {
		return err
	}
	t.countMove(before, r)
	if err := t.changedRef(r.ID); err != nil {
		return err
	}
	if err := t.changedEarlier(r); err != nil {
		return err
	}
	if err := t.changedBundle(r); err != nil {
		return err
	}
	if err := t.tellFallen(before, r); err != nil {
		return err
	}
	if err := t.doubt(before, r); err != nil {
		return err
	}
	if r.State == approvers.Pending && (before.State != r.State || before.Execution != r.Execution || asked(before) != asked(r) || before.Bundled() != r.Bundled() || moved) {
		if err := t.wantCard(r); err != nil {
			return err
		}
		if before.ID != "" {
			if err := t.cardsAgain(r); err != nil {
				return err
			}
		}
	}
	call, err := t.Call(r.Call)
	if err != nil {
		return err
	}
	if before.ID != "" {
		for _, kind := range []store.SurfaceKind{store.SurfaceStep, store.SurfaceReworded} {
			if err := t.changedTurn(r.Turn, kind, call.Step); err != nil {
				return err
			}
		}
	}
	if r.State.Open() || r.State == approvers.Consumed {
		return nil
	}
	return t.giveResult(call, approvers.Outcome(r.State), r.ClosedResult(t.policy).Text())
}

// asked names the people that the current stage belongs to.
func asked(r approvers.Request) string {
	if r.Stage >= len(r.Plan.Stages) {
		return ""
	}
	s := r.Plan.Stages[r.Stage]
	return strings.Join(s.Roles(), " ") + " @" + s.Group
}

// arm sets the request's timers to what its state needs.
func (t *tx) arm(before, r approvers.Request) error {
	switch r.State {
	case approvers.Pending:
		if err := t.SetTimer(store.Timer{Kind: store.TimerExpire, Ref: r.ID, Due: r.ExpiresAt}); err != nil {
			return err
		}
		if err := t.setOrClear(store.TimerRemind, r.ID, r.RemindNext()); err != nil {
			return err
		}
		if newPeople(before, r) {
			if err := t.musterNow(r); err != nil {
				return err
			}
		}
		if err := t.armForecast(before, r); err != nil {
			return err
		}
		return t.setOrClear(store.TimerEscalate, r.ID, r.EscalateAt)
	case approvers.Approved:
		if before.State == approvers.Approved {
			return nil
		}
		if err := t.quiet(r.ID); err != nil {
			return err
		}
		if err := t.SetTimer(store.Timer{Kind: store.TimerExpire, Ref: r.ID, Due: r.RunBy}); err != nil {
			return err
		}
		return t.SetTimer(store.Timer{Kind: store.TimerRun, Ref: r.Execution, Due: t.now})
	}
	if err := t.quiet(r.ID); err != nil {
		return err
	}
	return t.ClearTimer(store.TimerExpire, r.ID)
}

// auditReplanned records that a policy which changed meanwhile asks for something else than the one under which the call was proposed.
func (t *tx) auditReplanned(before, r approvers.Request) error {
	if before.State != approvers.Pending || before.Execution != r.Execution || before.Plan.PolicyHash == r.Plan.PolicyHash ||
		before.Plan.Risk == r.Plan.Risk && slices.EqualFunc(before.Plan.Stages, r.Plan.Stages, approvers.Stage.Equal) && !fell(before, r) {
		return nil
	}
	return t.audit(r.ID, approvers.AuditReplanned, "", map[string]string{
		"policy": r.Plan.PolicyHash, "risk": r.Plan.Risk.String(), "stages": stageFacts(r.Plan), "digest": r.Digest,
	}, nil)
}

// fell reports whether approvals fell.
func fell(before, r approvers.Request) bool {
	for i, d := range before.Decisions {
		if r.Decisions[i].Fallen != d.Fallen {
			return true
		}
	}
	return false
}

// setOrClear sets a timer, or clears it where there is no time for it.
func (t *tx) setOrClear(kind store.TimerKind, ref string, due time.Time) error {
	if due.IsZero() {
		return t.ClearTimer(kind, ref)
	}
	return t.SetTimer(store.Timer{Kind: kind, Ref: ref, Due: due})
}

// quiet clears what would tell more people about a request.
func (t *tx) quiet(request string) error {
	t.stops[handled{store.TimerPreview, request}] = true // what it would do is decided on: nobody needs to be told any more
	for _, kind := range []store.TimerKind{store.TimerEscalate, store.TimerRemind, store.TimerMuster, store.TimerPreview} {
		if err := t.ClearTimer(kind, request); err != nil {
			return err
		}
	}
	return nil
}

// auditMove records what became true of the request by this move.
func (t *tx) auditMove(before, r approvers.Request) error {
	facts := map[string]string{"tool": r.Tool, "state": string(r.State), "digest": r.Digest}
	switch {
	case before.State == r.State && before.Stage == r.Stage && before.Execution == r.Execution:
		return nil
	case r.State == approvers.Pending && before.State == approvers.Approved:
		facts["why"] = "the policy became stricter after the approval"
		return t.audit(r.ID, approvers.AuditReopened, "", facts, nil)
	case r.State == approvers.Pending && before.ID != "":
		facts["stage"] = fmt.Sprint(r.Stage + 1)
		facts["risk"] = r.Plan.Risk.String()
		return t.audit(r.ID, approvers.AuditAdvanced, "", facts, nil)
	case r.State == approvers.Approved:
		return t.audit(r.ID, approvers.AuditApproved, "", facts, nil)
	case r.State == approvers.Pending, r.State == approvers.Consumed:
		return nil // recorded as proposed, and as executing
	}
	return t.audit(r.ID, approvers.AuditClosed, r.ClosedBy, facts, map[string]string{"reason": r.Reason})
}

// giveResult gives a call its one result. When it was the step's last, the model goes on.
func (t *tx) giveResult(call store.Call, outcome approvers.Outcome, text string) error {
	if call.Outcome != "" {
		return nil
	}
	call.Outcome, call.Result, call.ReturnedAt = outcome, text, t.now
	if err := t.PutCall(call); err != nil {
		return err
	}
	chain := call.Request
	if chain == "" {
		chain = call.Execution
	}
	if chain == "" {
		chain = call.ID
	}
	if err := t.audit(chain, approvers.AuditReturned, "", map[string]string{"outcome": string(outcome)}, []byte(text)); err != nil {
		return err
	}
	turn, err := t.Turn(call.Turn)
	if err != nil {
		return err
	}
	if turn.State != approvers.TurnWaiting || turn.Step != call.Step {
		return nil
	}
	calls, err := t.Calls(call.Turn)
	if err != nil {
		return err
	}
	for _, c := range calls {
		if c.Step == turn.Step && c.Outcome == "" {
			return nil
		}
	}
	if turn.Halted != "" {
		conv, err := t.Conversation(turn.Conversation)
		if err != nil {
			return err
		}
		return t.stop(turn, conv, turn.Halted, true)
	}
	if turn, err = turn.Think(); err != nil {
		return err
	}
	if err := t.PutTurn(turn); err != nil {
		return err
	}
	return t.think(turn)
}
