package workflow

import (
	"context"
	"errors"
	"slices"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// Report is what a person found out about a run whose outcome is unknown.
type Report string

// The reports.
const (
	Happened Report = "happened" // with the result in Click.Reason
	DidNot   Report = "did_not"
	Leave    Report = "leave" // tell the model that nobody knows
	Asked    Report = "again" // nobody knows, and it was asked for again: see RetryUnknown
)

// askWhatHappened asks the approvers and the requester about a run whose process stopped.
func (t runsTx) askWhatHappened(e approvers.Execution) error {
	places := []string{store.ToConversation + e.Conversation}
	p, _ := t.policy.Tool(e.Tool, "")
	if e.Request != "" {
		r, err := t.Request(e.Request)
		if err != nil {
			return err
		}
		places = append(places, t.cards.addresses(r)...)
		if to := t.cards.cardAddress(r.ClosedRole); r.ClosedRole != "" && !slices.Contains(places, to) { // the operator who allowed it has none
			places = append(places, to)
		}
	}
	giver, err := view.GrantOwnerOf(t, e)
	if err != nil {
		return err
	}
	if onSlack(giver) {
		places = append(places, store.ToUser+giver.User())
	}
	for _, to := range places {
		s := store.OutboxMessage{Kind: store.OutboxUnknown, Ref: e.ID, Request: e.Request, To: to}
		if err := t.outbox.add(s); err != nil {
			return err
		}
	}
	if err := t.SetTimer(store.Timer{Kind: store.TimerLeave, Ref: e.ID, Due: t.now.Add(p.ExpiresAfter)}); err != nil {
		return err
	}
	return t.changedStep(e)
}

// Report takes in what a person found out. The people who may are those who could have approved the call, its
// requesters, and the operator.
func (w *Runs) Report(ctx context.Context, c Click, what Report) error {
	return w.click(ctx, "report", c, func(t *tx) (*approvers.Denied, error) {
		e, denied, err := t.runs.reportable(c)
		if err != nil || denied != nil && denied.Code == approvers.DeniedNotFound {
			return denied, err
		}
		call := store.Call{}
		if denied == nil {
			if call, err = t.Call(e.Call); err != nil {
				return nil, err
			}
			if what == Leave && (call.Outcome != "" || call.Execution != e.ID) {
				denied = &approvers.Denied{Code: approvers.DeniedNothing}
			}
		}
		if denied != nil {
			return denied, t.auditDenied(e.Chain(), "report", c, denied)
		}
		facts := map[string]string{"execution": e.ID, "digest": e.Digest, "report": string(what)}
		if err := t.audit(e.Chain(), approvers.AuditReported, c.Who.ID, facts, []byte(c.Reason)); err != nil {
			return nil, err
		}
		if what == Leave {
			if e, err = e.Leave(c.Who.ID); err != nil {
				return nil, err
			}
			return nil, errors.Join(t.PutExecution(e), t.runs.leave(e))
		}
		if e, err = e.Report(what == Happened, c.Reason, c.Who.ID, t.now); err != nil {
			return nil, err
		}
		if err := t.PutExecution(e); err != nil {
			return nil, err
		}
		if err := t.ClearTimer(store.TimerLeave, e.ID); err != nil {
			return nil, err
		}
		if call.Execution != e.ID {
			return nil, t.runs.superseded(e, call)
		}
		return nil, t.runs.returnResult(e)
	})
}

// mayReport says why a person may not report on an execution, or nil. The operator at the command line may.
func (t runsTx) mayReport(e approvers.Execution, who approvers.Identity) (*approvers.Denied, error) {
	if who.ID.Login() != "" {
		return nil, nil // the operator can find out what the tool did
	}
	turn, err := t.Turn(e.Turn)
	if err != nil {
		return nil, err
	}
	if slices.Contains(turn.Requesters, who.ID) && !who.Deleted {
		return nil, nil
	}
	if giver, err := view.GrantOwnerOf(t, e); err != nil || who.ID != "" && who.ID == giver && !who.Deleted {
		return nil, err
	}
	if e.Request == "" {
		return &approvers.Denied{Code: approvers.DeniedNotRequester}, nil
	}
	r, err := t.Request(e.Request)
	if err != nil {
		return nil, err
	}
	_, denied := r.Authority(t.policy, who)
	return denied, nil
}

// leave tells the model that the outcome is unknown. People may still report on it later.
func (t runsTx) leave(e approvers.Execution) error {
	if err := t.ClearTimer(store.TimerLeave, e.ID); err != nil {
		return err
	}
	return t.returnResult(e)
}

// LeaveUnknown tells the model of an outcome that nobody reported on in time. Reports that were received before the
// deadline are handled first.
func (w *Runs) LeaveUnknown(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "leave", func(t *tx) error {
		e, err := t.Execution(timer.Ref)
		if err != nil || e.State != approvers.ExecutionUnknown {
			return errors.Join(store.IgnoreNotFound(err), t.ClearTimer(store.TimerLeave, timer.Ref))
		}
		p, _ := t.policy.Tool(e.Tool, "")
		deadline := e.FinishedAt.Add(p.ExpiresAfter)
		if timer.Due.Before(deadline) { // the policy gives more time by now than when people were asked
			deadline = timer.Due
		}
		if early, err := t.handledFirst(timer, deadline); early || err != nil {
			return err
		}
		return t.runs.leave(e)
	})
}
