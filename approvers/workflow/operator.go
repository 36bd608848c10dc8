package workflow

import (
	"context"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// BreakGlass lets the operator at the command line approve a call for all remaining stages, if the policy in force
// allows it. Everybody who was passed over is notified, and so are their leads.
func (w *Requests) BreakGlass(ctx context.Context, c Click) (approvers.Request, error) {
	r, err := w.onRequest(ctx, "break glass", c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := r.BreakGlass(t.deciding(), t.requests.action(c))
		if denied != nil {
			return r, nil, denied, nil
		}
		var left []string
		for _, s := range r.Plan.Stages[r.Stage:] {
			left = append(left, s.String())
		}
		return after, events, nil, t.records.auditOperator(after, c, map[string]string{"break_glass": "true", "stages": strings.Join(left, ",")})
	})
	if err == nil {
		w.Log.Warn("an operator allowed a call in place of its approvers, who are told", "request", r.ID, "tool", r.Tool, "operator", c.Who.ID.Login())
	}
	return r, err
}

// Overrule lets the operator at the command line stop a call whose run has not begun.
func (w *Requests) Overrule(ctx context.Context, c Click) (approvers.Request, error) {
	r, err := w.onRequest(ctx, "overrule", c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := r.Overrule(t.deciding(), t.requests.action(c))
		if denied != nil {
			return r, nil, denied, nil
		}
		return after, events, nil, t.records.auditOperator(after, c, map[string]string{})
	})
	if err == nil {
		w.Log.Info("an operator stopped a call", "request", r.ID, "tool", r.Tool, "operator", c.Who.ID.Login())
	}
	return r, err
}

// auditOperator records an operator's decision, and the digest of the arguments.
func (t recordsTx) auditOperator(r approvers.Request, c Click, facts map[string]string) error {
	facts["kind"], facts["digest"] = string(c.Kind), r.Digest
	return t.audit(r.ID, approvers.AuditDecided, c.Who.ID, facts, map[string]string{"reason": c.Reason})
}

// tellBroken tells everybody concerned that an operator approved a call.
func (t noticesTx) tellBroken(r approvers.Request) error {
	for _, role := range r.Concerned(t.policy) {
		s := store.OutboxMessage{Kind: store.OutboxNotice, Ref: r.ID, Request: r.ID, Step: len(r.Decisions), To: store.ToRole + role, Note: store.NoteBreakGlass}
		if err := t.outbox.add(s); err != nil {
			return err
		}
	}
	for _, i := range r.Invited {
		if err := t.outbox.notify(r.ID, i.Who, store.NoteBreakGlass, len(r.Decisions)); err != nil {
			return err
		}
	}
	return nil
}
