package workflow

import (
	"context"
	"strconv"

	"countersign/approvers"
)

// Revoke takes an approval back before it ran.
func (w *Workflow) Revoke(ctx context.Context, c Click) (approvers.Request, error) {
	return w.onRequest(ctx, "revoke", c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := r.Revoke(t.deciding(), t.move(c))
		return after, events, denied, nil
	})
}

// Say puts an approver's question to those who asked for the call, or their comment beside the request.
func (w *Workflow) Say(ctx context.Context, c Click, kind approvers.RemarkKind) (approvers.Request, error) {
	return w.onRequest(ctx, string(kind), c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := r.Say(t.deciding(), t.move(c), kind)
		if denied != nil {
			return r, nil, denied, nil
		}
		return after, events, nil, t.auditRemarked(after, c)
	})
}

// Reply answers a question for those who asked for the call. Whoever put it is told.
func (w *Workflow) Reply(ctx context.Context, c Click, question int) (approvers.Request, error) {
	return w.onRequest(ctx, string(approvers.Answer), c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := r.Reply(t.deciding(), t.move(c), question)
		if denied != nil {
			return r, nil, denied, nil
		}
		return after, events, nil, t.auditRemarked(after, c)
	})
}

// auditRemarked records what was said last.
func (t *tx) auditRemarked(r approvers.Request, c Click) error {
	m := r.Remarks[len(r.Remarks)-1]
	facts := map[string]string{"kind": string(m.Kind), "role": m.Role, "remark": strconv.Itoa(len(r.Remarks)), "channel": c.Channel, "message": c.MessageTS}
	if m.Kind == approvers.Answer {
		facts["question"] = strconv.Itoa(m.To + 1)
	}
	return t.audit(r.ID, approvers.AuditRemarked, c.Who.ID, facts, []byte(m.Text))
}

// HandOn adds a colleague to the current stage, who is asked by direct message. Slack said who they are just now.
func (w *Workflow) HandOn(ctx context.Context, c Click, to approvers.Identity) (approvers.Request, error) {
	return w.onRequest(ctx, "hand on", c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := r.HandOn(t.deciding(), t.move(c), to)
		return after, events, denied, nil
	})
}
