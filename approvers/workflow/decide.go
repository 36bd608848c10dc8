package workflow

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Decide approves, rejects or modifies a request. It returns the new request.
func (w *Requests) Decide(ctx context.Context, c Click) (approvers.Request, error) {
	return w.onRequest(ctx, string(c.Kind), c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := t.requests.decide(r, c)
		if denied != nil {
			return r, nil, denied, nil
		}
		return after, events, nil, t.records.auditDecided(after, c)
	})
}

// standing is a stored request, and the request updated to the current tools and policy.
type standing struct {
	stored approvers.Request
	now    approvers.Request
	events []approvers.Event // between the two
}

// current reads a request and updates it to the current tools and policy.
func (t requestsTx) current(id string) (standing, *approvers.Denied, error) {
	r, err := t.Request(id)
	cur := standing{stored: r, now: r}
	if errors.Is(err, store.ErrNotFound) {
		return cur, &approvers.Denied{Code: approvers.DeniedNotFound}, nil
	}
	if err != nil || !r.State.Open() {
		return cur, nil, err
	}
	why, err := t.unrecorded(r)
	if err != nil {
		return cur, nil, err
	}
	if why != "" {
		t.note(slog.LevelError, "a stored request does not match its history; it is voided and does not run", "request", r.ID, "tool", r.Tool, "why", why)
		return t.void(cur, "its record does not match its history, so nothing was run: "+why)
	}
	if why := t.unlike(r.Tool, r.ToolHash); why != "" {
		return t.void(cur, why)
	}
	p, _ := t.policy.Tool(r.Tool, r.Agent)
	args, err := approvers.StrictArgs(r.Args, p.ReadsNumbers())
	if err != nil { // they were taken under a policy that did not compute with them
		return t.void(cur, "the policy changed: "+plainFault(err))
	}
	cur.now, cur.events = r.Refresh(t.deciding(), args)
	return cur, nil, nil
}

// void ends a request that can't run in its stored form.
func (t requestsTx) void(cur standing, why string) (standing, *approvers.Denied, error) {
	var denied *approvers.Denied
	cur.now, cur.events, denied = cur.stored.Void(t.deciding(), why)
	return cur, denied, nil
}

// unrecorded returns how an open request differs from its history, or "". A damaged history counts as a difference.
func (t requestsTx) unrecorded(r approvers.Request) (string, error) {
	chain, err := t.Audit(r.ID)
	if errors.Is(err, store.ErrDamaged) {
		return "its history is damaged", nil
	}
	if err != nil {
		return "", err
	}
	return r.Unrecorded(chain), nil
}

// applyIfChanged writes a request if the current tools or policy changed it and nothing else happens to it.
func (t requestsTx) applyIfChanged(cur standing) error {
	if cur.stored.State == cur.now.State && cur.stored.Plan.PolicyHash == cur.now.Plan.PolicyHash {
		return nil
	}
	return t.apply(cur.now, cur.events)
}

func (t requestsTx) decide(r approvers.Request, c Click) (approvers.Request, []approvers.Event, *approvers.Denied) {
	m := t.move(c)
	m.Took = decisionTime(r, c.FirstSeen, m.At)
	if denied := r.MayDecide(t.deciding(), m); denied != nil {
		return r, nil, denied // before the arguments are mentioned
	}
	switch c.Kind {
	case approvers.Approve:
		if !c.Whole {
			return r, nil, &approvers.Denied{Code: approvers.DeniedUnseen}
		}
		return r.Approve(t.deciding(), m)
	case approvers.Reject:
		return r.Reject(t.deciding(), m)
	case approvers.Modify:
		edited, denied := t.edit(r, c.Args)
		if denied != nil {
			return r, nil, denied
		}
		return r.Modify(t.deciding(), m, edited)
	}
	return r, nil, &approvers.Denied{Code: approvers.DeniedNothing}
}

// move is a click as the domain sees it.
func (t requestsTx) move(c Click) approvers.Action {
	if c.At.IsZero() {
		c.At = t.now // no time of receipt is not the beginning of time: a deadline holds for it
	}
	return approvers.Action{Who: c.Who, At: c.At, Digest: c.Digest, Partly: !c.Whole, Typed: c.Typed, Rendering: c.Rendering, Reason: c.Reason}
}

// auditDecided records a decision, with the version that the person was shown.
func (t recordsTx) auditDecided(r approvers.Request, c Click) error {
	d := r.Decisions[len(r.Decisions)-1]
	body := map[string]any{}
	if c.Reason != "" {
		body["reason"] = c.Reason
	}
	if c.Kind == approvers.Modify {
		body["args"] = string(c.Args)
	}
	facts := map[string]string{
		"kind": string(c.Kind), "role": d.Role, "digest": d.Digest, "shown": c.Digest, "rendering": c.Rendering,
		"channel": c.Channel, "message": c.MessageTS, "received": c.At.UTC().Format(time.RFC3339Nano),
	}
	if d.WithoutToolPreview {
		facts["preview"] = "not there yet"
	}
	if d.Took > 0 {
		facts["took"] = strconv.FormatInt(d.Took.Milliseconds(), 10)
	}
	return t.audit(r.ID, approvers.AuditDecided, c.Who.ID, facts, body)
}
