package workflow

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"countersign/approvers"
)

// Click is one person's action on something that Slack shows. Nothing in it grants authority: Who is looked up in Slack
// after the click, and Digest and Rendering come from the stored rendering that was clicked.
type Click struct {
	Inbox       string    // id of the delivery, closed in the same transaction
	At          time.Time // when it was received
	Who         approvers.Identity
	User        string // id of the account that clicked; recorded if Slack could not identify the person
	Request     string // for Decide, Withdraw, and remarks
	Turn        string // for WithdrawAll and TryAgain
	Execution   string // for Report and RetryUnknown
	Call        string // for Questions.Answer
	Elicitation string // for Respond and Decline
	Grant       string // for actions on a grant
	Kind        approvers.DecisionKind
	Reason      string
	Args        json.RawMessage // for approvers.Modify: the exact new bytes
	Digest      string          // of the execution that the rendering showed
	Whole       bool            // the rendering showed the arguments whole
	Typed       bool            // the required value was typed
	FirstSeen   time.Time       // when this address first showed these arguments; zero: unknown
	Rendering   string          // the rendering's hash
	Channel     string          // where it was clicked
	MessageTS   string
}

// click runs the transaction of one click, and closes its delivery. A denial is returned as an error, after the
// transaction that recorded it.
func (w *core) click(ctx context.Context, what string, c Click, fn func(*tx) (*approvers.Denied, error)) error {
	var denied *approvers.Denied
	err := w.update(ctx, what, func(t *tx) error {
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

// requestMove is one person's move on a request. It returns the new request with the events of the transition, or why
// it was denied.
type requestMove func(*tx, approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error)

// onRequest runs one person's move on a request in its current form. It records a denial under the name in what, and
// keeps the changes that a new policy made. It returns the new request.
func (w *core) onRequest(ctx context.Context, what string, c Click, move requestMove) (approvers.Request, error) {
	var out approvers.Request
	err := w.click(ctx, what, c, func(t *tx) (*approvers.Denied, error) {
		cur, denied, err := t.requests.current(c.Request)
		if err != nil || denied != nil {
			return denied, err
		}
		out = cur.now
		after, events, denied, err := move(t, cur.now)
		if err != nil {
			return nil, err
		}
		if denied != nil {
			if err := t.requests.applyIfChanged(cur); err != nil {
				return nil, err
			}
			return denied, t.auditDenied(cur.now.ID, what, c, denied)
		}
		out = after
		return nil, t.apply(after, slices.Concat(cur.events, events))
	})
	return out, err
}

// auditDenied records a denied attempt. Of repeated attempts of a kind, the first have a record each; later ones are
// counted.
func (t *tx) auditDenied(chain, what string, c Click, denied *approvers.Denied) error {
	x := denial{chain: chain, actor: string(c.Who.ID), what: what, code: string(denied.Code)}
	if c.Who.ID == "" {
		x.user = c.User
	}
	n, recorded, err := t.countDenial(x)
	if err != nil || !recorded {
		return err
	}
	facts := map[string]string{"kind": what, "code": string(denied.Code), "channel": c.Channel, "message": c.MessageTS}
	if c.Who.ID == "" && c.User != "" {
		facts["user"] = c.User
	}
	if n > denialsKept {
		facts[factTimes] = strconv.Itoa(n)
	}
	return t.audit(chain, approvers.AuditDenied, c.Who.ID, facts, nil)
}
