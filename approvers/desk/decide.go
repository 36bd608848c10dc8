package desk

import (
	"context"
	"errors"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Decide approves, rejects or modifies a request. It returns the request as it is afterwards.
func (d *Desk) Decide(ctx context.Context, c Click) (approvers.Request, error) {
	return d.onRequest(ctx, string(c.Kind), c, func(t *tx, r approvers.Request) (approvers.Request, *approvers.Denied, error) {
		after, denied := t.decide(r, c)
		if denied != nil {
			return r, denied, nil
		}
		if err := t.auditDecided(after, c); err != nil {
			return r, nil, err
		}
		if after.Execution == r.Execution {
			return after, nil, nil
		}
		return after, nil, t.replaceExecution(after)
	})
}

// current reads a request and brings it up to the tools and the policy as they are now.
func (t *tx) current(id string) (before, r approvers.Request, denied *approvers.Denied, err error) {
	before, err = t.Request(id)
	if errors.Is(err, store.ErrNotFound) {
		return before, before, &approvers.Denied{Code: approvers.DeniedNotFound}, nil
	}
	if err != nil || !before.State.Open() {
		return before, before, nil, err
	}
	if why := t.unlike(before.Tool, before.ToolHash); why != "" {
		r, denied = before.Void(t.deciding(), why)
		return before, r, denied, nil
	}
	p, _ := t.policy.Tool(before.Tool, before.Agent)
	args, err := approvers.StrictArgs(before.Args, p.ReadsNumbers())
	if err != nil { // they were taken under a policy that did not compute with them
		r, denied = before.Void(t.deciding(), "the policy changed: "+plainFault(err))
		return before, r, denied, nil
	}
	return before, before.Refresh(t.deciding(), args), nil, nil
}

func (t *tx) followIfChanged(before, r approvers.Request) error {
	if before.State == r.State && before.Plan.PolicyHash == r.Plan.PolicyHash {
		return nil
	}
	return t.follow(before, r)
}

func (t *tx) decide(r approvers.Request, c Click) (approvers.Request, *approvers.Denied) {
	m := t.move(c)
	m.Took = took(r, c.FirstSeen, m.At)
	if denied := r.MayDecide(t.deciding(), m); denied != nil {
		return r, denied // before anything is said of the arguments
	}
	switch c.Kind {
	case approvers.Approve:
		if !c.Whole {
			return r, &approvers.Denied{Code: approvers.DeniedUnseen}
		}
		return r.Approve(t.deciding(), m)
	case approvers.Reject:
		return r.Reject(t.deciding(), m)
	case approvers.Modify:
		edited, denied := t.edit(r, c.Args)
		if denied != nil {
			return r, denied
		}
		return r.Modify(t.deciding(), m, edited)
	}
	return r, &approvers.Denied{Code: approvers.DeniedNothing}
}

// move is a click as the domain sees it.
func (t *tx) move(c Click) approvers.Move {
	if c.At.IsZero() {
		c.At = t.now // no time of receipt is not the beginning of time: a deadline holds for it
	}
	return approvers.Move{Who: c.Who, At: c.At, Digest: c.Digest, Partly: !c.Whole, Typed: c.Typed, Rendering: c.Rendering, Reason: c.Reason}
}

// auditDecided records a decision with what was shown to whoever made it.
func (t *tx) auditDecided(r approvers.Request, c Click) error {
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
	if d.Unforetold {
		facts["preview"] = "not there yet"
	}
	if d.Took > 0 {
		facts["took"] = strconv.FormatInt(d.Took.Milliseconds(), 10)
	}
	return t.audit(r.ID, approvers.AuditDecided, c.Who.ID, facts, body)
}
