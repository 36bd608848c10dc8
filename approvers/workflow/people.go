package workflow

import (
	"context"
	"strconv"

	"countersign/approvers"
)

// Revoke takes an approval back before the call runs.
func (w *Requests) Revoke(ctx context.Context, c Click) (approvers.Request, error) {
	return w.onRequest(ctx, "revoke", c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := r.Revoke(t.deciding(), t.requests.move(c))
		return after, events, denied, nil
	})
}

// Say records an approver's question to the requesters, or a comment on the request.
func (w *Requests) Say(ctx context.Context, c Click, kind approvers.RemarkKind) (approvers.Request, error) {
	return w.onRequest(ctx, string(kind), c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := r.Say(t.deciding(), t.requests.move(c), kind)
		if denied != nil {
			return r, nil, denied, nil
		}
		return after, events, nil, t.records.auditRemarked(after, c)
	})
}

// Reply records an answer to a question about a request. The person who asked the question is told.
func (w *Requests) Reply(ctx context.Context, c Click, question int) (approvers.Request, error) {
	return w.onRequest(ctx, string(approvers.Answer), c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := r.Reply(t.deciding(), t.requests.move(c), question)
		if denied != nil {
			return r, nil, denied, nil
		}
		return after, events, nil, t.records.auditRemarked(after, c)
	})
}

// auditRemarked records the last remark.
func (t recordsTx) auditRemarked(r approvers.Request, c Click) error {
	m := r.Remarks[len(r.Remarks)-1]
	facts := map[string]string{"kind": string(m.Kind), "role": m.Role, "remark": strconv.Itoa(len(r.Remarks)), "channel": c.Channel, "message": c.MessageTS}
	if m.Kind == approvers.Answer {
		facts["question"] = strconv.Itoa(m.To + 1)
	}
	return t.audit(r.ID, approvers.AuditRemarked, c.Who.ID, facts, []byte(m.Text))
}

// HandOn adds a colleague to the current stage, and asks them by direct message. Slack has just confirmed their
// identity.
func (w *Requests) HandOn(ctx context.Context, c Click, to approvers.Identity) (approvers.Request, error) {
	return w.onRequest(ctx, "hand on", c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := r.HandOn(t.deciding(), t.requests.move(c), to)
		return after, events, denied, nil
	})
}
