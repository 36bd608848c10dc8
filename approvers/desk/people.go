package desk

import (
	"context"
	"strconv"

	"countersign/approvers"
	"countersign/store"
)

// Revoke takes an approval back before it ran.
func (d *Desk) Revoke(ctx context.Context, c Click) (approvers.Request, error) {
	return d.onRequest(ctx, "revoke", c, func(t *tx, r approvers.Request) (approvers.Request, *approvers.Denied, error) {
		after, denied := r.Revoke(t.deciding(), t.move(c))
		return after, denied, nil
	})
}

// Say puts an approver's question to those who asked for the call, or their comment beside the request.
func (d *Desk) Say(ctx context.Context, c Click, kind approvers.RemarkKind) (approvers.Request, error) {
	return d.onRequest(ctx, string(kind), c, func(t *tx, r approvers.Request) (approvers.Request, *approvers.Denied, error) {
		after, denied := r.Say(t.deciding(), t.move(c), kind)
		if denied != nil {
			return r, denied, nil
		}
		if err := t.auditRemarked(after, c); err != nil || kind != approvers.Question {
			return after, nil, err
		}
		return after, nil, t.want(store.Surface{
			Kind: store.SurfaceQuestion, Ref: r.ID, Request: r.ID, Step: len(r.Remarks), To: toConversation + r.Conversation,
		})
	})
}

// Reply answers a question for those who asked for the call. Whoever put it is told.
func (d *Desk) Reply(ctx context.Context, c Click, question int) (approvers.Request, error) {
	return d.onRequest(ctx, string(approvers.Answer), c, func(t *tx, r approvers.Request) (approvers.Request, *approvers.Denied, error) {
		after, denied := r.Reply(t.deciding(), t.move(c), question)
		if denied != nil {
			return r, denied, nil
		}
		if err := t.auditRemarked(after, c); err != nil {
			return r, nil, err
		}
		return after, nil, t.notify(r.ID, r.Remarks[question].By, store.NoteAnswered, question)
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
func (d *Desk) HandOn(ctx context.Context, c Click, to approvers.Identity) (approvers.Request, error) {
	return d.onRequest(ctx, "hand on", c, func(t *tx, r approvers.Request) (approvers.Request, *approvers.Denied, error) {
		after, denied := r.HandOn(t.deciding(), t.move(c), to)
		if denied != nil {
			return r, denied, nil
		}
		return after, nil, t.invited(after, after.Invited[len(after.Invited)-1])
	})
}
