package desk

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Click is one person's act on something that was shown. Nothing in it grants anything: Who was asked of Slack after
// the click, Digest and Rendering come from the stored rendering that was clicked.
type Click struct {
	Inbox     string    // the delivery that it came in; closed in the same transaction
	At        time.Time // when it was received
	Who       approvers.Identity
	Request   string // for Decide and Withdraw
	Turn      string // for GoOn and TryAgain
	Execution string // for Report
	Kind      approvers.DecisionKind
	Reason    string
	Args      json.RawMessage // for approvers.Modify: the exact new bytes
	Digest    string          // of the execution that the rendering showed
	Whole     bool            // the rendering showed the arguments whole
	Rendering string          // the rendering's hash
	Channel   string          // where it was clicked
	MessageTS string
}

// click runs one act: it closes the delivery, and returns the denial as an error after the transaction that recorded it.
func (d *Desk) click(ctx context.Context, what string, c Click, fn func(*tx) (*approvers.Denied, error)) error {
	var denied *approvers.Denied
	err := d.update(ctx, what, func(t *tx) error {
		denied = nil
		if err := t.settle(c.Inbox, ""); err != nil {
			return err
		}
		var err error
		denied, err = fn(t)
		return err
	})
	if err == nil && denied != nil {
		return denied
	}
	return err
}

// Decide approves, rejects or modifies a request. It returns the request as it is afterwards.
func (d *Desk) Decide(ctx context.Context, c Click) (approvers.Request, error) {
	var out approvers.Request
	err := d.click(ctx, "decide", c, func(t *tx) (*approvers.Denied, error) {
		before, r, denied, err := t.current(c.Request)
		if err != nil || denied != nil {
			return denied, err
		}
		after, denied := t.decide(r, c)
		if denied != nil {
			out = r
			if err := t.followIfChanged(before, r); err != nil {
				return nil, err
			}
			return denied, t.auditDenied(r.ID, c, denied)
		}
		if err := t.auditDecided(after, c); err != nil {
			return nil, err
		}
		if after.Execution != r.Execution {
			if err := t.replaceExecution(after); err != nil {
				return nil, err
			}
		}
		out = after
		return nil, t.follow(before, after)
	})
	return out, err
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
	if tool, ok := t.d.Tools.Tool(before.Tool); !ok || tool.Hash != before.ToolHash {
		r, denied = before.Void(t.deciding(), "the definition of the tool changed")
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
	if c.At.IsZero() {
		c.At = t.now // no time of receipt is not the beginning of time: a deadline holds for it
	}
	m := approvers.Move{Who: c.Who, At: c.At, Digest: c.Digest, Rendering: c.Rendering, Reason: c.Reason}
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

// edit prepares changed arguments: checked against the schema, with a new execution, digest, preview and plan.
func (t *tx) edit(r approvers.Request, args json.RawMessage) (approvers.Edited, *approvers.Denied) {
	tool, _ := t.d.Tools.Tool(r.Tool)
	p, _ := t.policy.Tool(r.Tool, r.Agent)
	values, err := approvers.StrictArgs(args, p.ReadsNumbers())
	if err == nil {
		err = tool.Check(args)
	}
	if err != nil {
		return approvers.Edited{}, &approvers.Denied{
			Code: approvers.DeniedInvalidArgs, Detail: plainFault(err),
		}
	}
	if approvers.EqualArgs(args, r.Args) {
		return approvers.Edited{}, &approvers.Denied{Code: approvers.DeniedUnchanged}
	}
	e := approvers.Edited{Execution: newID("exec"), Args: args}
	e.Digest = approvers.Digest(e.Execution, r.Tool, r.ToolHash, args)
	e.Preview, e.PreviewFault = t.preview(r.Tool, r.Agent, values)
	e.Plan = t.policy.Plan(r.AsCall(values))
	return e, nil
}

// replaceExecution makes the execution of edited arguments the call's current one.
func (t *tx) replaceExecution(r approvers.Request) error {
	call, err := t.Call(r.Call)
	if err != nil {
		return err
	}
	e := approvers.Execution{
		ID: r.Execution, State: approvers.ExecutionNone, Conversation: r.Conversation, Turn: r.Turn, Call: r.Call,
		Request: r.ID, Tool: r.Tool, ToolHash: r.ToolHash, Effect: r.Effect, Args: r.Args, Digest: r.Digest, CreatedAt: t.now,
	}
	if err := t.PutExecution(e); err != nil {
		return err
	}
	call.Execution, call.Preview = e.ID, r.Preview
	return t.PutCall(call)
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
	return t.audit(r.ID, approvers.AuditDecided, c.Who.ID, map[string]string{
		"kind": string(c.Kind), "role": d.Role, "digest": d.Digest, "shown": c.Digest, "rendering": c.Rendering,
		"channel": c.Channel, "message": c.MessageTS, "received": c.At.UTC().Format(time.RFC3339Nano),
	}, body)
}

// auditDenied records that somebody tried.
func (t *tx) auditDenied(chain string, c Click, denied *approvers.Denied) error {
	return t.audit(chain, approvers.AuditDenied, c.Who.ID, map[string]string{
		"kind": string(c.Kind), "code": string(denied.Code), "channel": c.Channel, "message": c.MessageTS,
	}, nil)
}

// Withdraw takes a request back for one of its requesters.
func (d *Desk) Withdraw(ctx context.Context, c Click) (approvers.Request, error) {
	var out approvers.Request
	err := d.click(ctx, "withdraw", c, func(t *tx) (*approvers.Denied, error) {
		r, err := t.Request(c.Request)
		if errors.Is(err, store.ErrNotFound) {
			return &approvers.Denied{Code: approvers.DeniedNotFound}, nil
		}
		if err != nil {
			return nil, err
		}
		after, denied := r.Withdraw(t.deciding(), c.Who, false, c.Reason)
		out = after
		if denied != nil {
			return denied, t.auditDenied(r.ID, c, denied)
		}
		return nil, t.follow(r, after)
	})
	return out, err
}

// GoOn withdraws everything that a turn waits for and hands the messages that wait behind it to the model. A requester
// can do it, and whoever wrote one of those messages.
func (d *Desk) GoOn(ctx context.Context, c Click) error {
	return d.click(ctx, "go on", c, func(t *tx) (*approvers.Denied, error) {
		turn, err := t.Turn(c.Turn)
		if errors.Is(err, store.ErrNotFound) {
			return &approvers.Denied{Code: approvers.DeniedNotFound}, nil
		}
		if err != nil {
			return nil, err
		}
		if turn.State != approvers.TurnWaiting {
			return &approvers.Denied{Code: approvers.DeniedNothing}, nil
		}
		if c.Who.ID == "" || c.Who.Deleted { // as for Withdraw, but before anything is written
			return &approvers.Denied{Code: approvers.DeniedUnidentified}, nil
		}
		queued, err := t.queued(turn.Conversation)
		if err != nil {
			return nil, err
		}
		sender := slices.ContainsFunc(queued, func(m store.Message) bool { return m.Author == c.Who.ID })
		if !sender && !slices.Contains(turn.Requesters, c.Who.ID) {
			return &approvers.Denied{Code: approvers.DeniedNotRequester}, nil
		}
		if turn, err = t.takeQueued(turn, queued); err != nil {
			return nil, err
		}
		calls, err := t.Calls(turn.ID)
		if err != nil {
			return nil, err
		}
		for _, call := range calls {
			if call.Step != turn.Step || call.Outcome != "" {
				continue
			}
			if denied, err := t.letGo(call, c); denied != nil || err != nil {
				return denied, err
			}
		}
		return nil, t.changedTurn(turn.ID, store.SurfaceQueued, 0)
	})
}

// queued lists the messages that wait for a turn to end.
func (t *tx) queued(conversation string) ([]store.Message, error) {
	messages, err := t.Messages(conversation, 0)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(messages, func(m store.Message) bool { return m.State != store.MessageQueued }), nil
}

// takeQueued makes messages that wait part of the turn.
func (t *tx) takeQueued(turn approvers.Turn, queued []store.Message) (approvers.Turn, error) {
	for _, m := range queued {
		m.State, m.Turn = store.MessageTaken, turn.ID
		turn = turn.Speak(m.Author)
		if err := t.PutMessage(m); err != nil {
			return turn, err
		}
	}
	if err := t.PutTurn(turn); err != nil {
		return turn, err
	}
	turn.Version++
	return turn, nil
}

// letGo ends what one call waits for: its request is withdrawn; an unknown outcome is told to the model as it is.
func (t *tx) letGo(call store.Call, c Click) (*approvers.Denied, error) {
	if call.Request != "" {
		r, err := t.Request(call.Request)
		if err != nil {
			return nil, err
		}
		if r.State.Open() {
			after, denied := r.Withdraw(t.deciding(), c.Who, true, "the conversation went on to something else")
			if denied != nil {
				return denied, t.auditDenied(r.ID, c, denied)
			}
			return nil, t.follow(r, after)
		}
	}
	e, err := t.Execution(call.Execution)
	if err != nil {
		return nil, err
	}
	if e.State == approvers.ExecutionUnknown {
		return nil, t.leave(e)
	}
	return nil, nil // it is running: its result comes by itself
}
