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
	Typed     bool            // the value that has to be typed was
	FirstSeen time.Time       // when what was clicked was first shown there; zero: not known
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

// auditDenied records that somebody tried.
func (t *tx) auditDenied(chain string, c Click, denied *approvers.Denied) error {
	return t.audit(chain, approvers.AuditDenied, c.Who.ID, map[string]string{
		"kind": string(c.Kind), "code": string(denied.Code), "channel": c.Channel, "message": c.MessageTS,
	}, nil)
}
