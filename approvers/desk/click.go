package desk

import (
	"context"
	"encoding/json"
	"time"

	"countersign/approvers"
)

// Click is one person's act on something that was shown. Nothing in it grants anything: Who was asked of Slack after
// the click, Digest and Rendering come from the stored rendering that was clicked.
type Click struct {
	Inbox       string    // the delivery that it came in; closed in the same transaction
	At          time.Time // when it was received
	Who         approvers.Identity
	User        string // the account that Slack delivered it for, which the record names where Slack could not say whose it is
	Request     string // for Decide, Withdraw, and what people say and do beside deciding
	Turn        string // for GoOn and TryAgain
	Execution   string // for Report
	Call        string // for Choose
	Elicitation string // for Respond and Decline
	Grant       string // for what people do with a grant
	Kind        approvers.DecisionKind
	Reason      string
	Args        json.RawMessage // for approvers.Modify: the exact new bytes
	Digest      string          // of the execution that the rendering showed
	Whole       bool            // the rendering showed the arguments whole
	Typed       bool            // the value that has to be typed was
	FirstSeen   time.Time       // when what was clicked first showed these arguments there; zero: not known
	Rendering   string          // the rendering's hash
	Channel     string          // where it was clicked
	MessageTS   string
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

// onRequest runs one person's move on a request as it is now: move returns the request as it is afterwards, or why it was denied. A denial is
// recorded under what, and what the policy changed meanwhile is kept. It returns the request as it is then.
func (d *Desk) onRequest(ctx context.Context, what string, c Click, move func(*tx, approvers.Request) (approvers.Request, *approvers.Denied, error)) (approvers.Request, error) {
	var out approvers.Request
	err := d.click(ctx, what, c, func(t *tx) (*approvers.Denied, error) {
		before, r, denied, err := t.current(c.Request)
		if err != nil || denied != nil {
			return denied, err
		}
		out = r
		after, denied, err := move(t, r)
		if err != nil {
			return nil, err
		}
		if denied != nil {
			if err := t.followIfChanged(before, r); err != nil {
				return nil, err
			}
			return denied, t.auditDenied(r.ID, what, c, denied)
		}
		out = after
		return nil, t.follow(before, after)
	})
	return out, err
}

// auditDenied records that somebody tried.
func (t *tx) auditDenied(chain, what string, c Click, denied *approvers.Denied) error {
	facts := map[string]string{"kind": what, "code": string(denied.Code), "channel": c.Channel, "message": c.MessageTS}
	if c.Who.ID == "" && c.User != "" {
		facts["user"] = c.User
	}
	return t.audit(chain, approvers.AuditDenied, c.Who.ID, facts, nil)
}
