package view

import (
	"context"
	"fmt"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// CallerRequest is the state of a caller's request. A caller is another agent that calls a tool through Countersign.
type CallerRequest struct {
	Conversation store.Conversation
	Call         store.Call
	Request      *approvers.Request   // the latest approval request of the call; nil: nobody was asked
	Execution    *approvers.Execution // nil: there is none, because the call was refused at once
	ReportBy     time.Time            // deadline for the claim of a call without approval, or for the report of the outcome; zero: none
	Policy       *approvers.Policy
}

// CallerCall reads a caller's request by the id that the caller received. If the request belongs to another caller, the
// error is store.ErrNotFound.
func CallerCall(r store.Reader, client, id string) (conv store.Conversation, call store.Call, err error) {
	if call, err = r.Call(id); err != nil {
		return conv, call, err
	}
	if conv, err = r.Conversation(call.Conversation); err != nil {
		return conv, call, err
	}
	if conv.Caller == nil || conv.Caller.Caller.Name != client || conv.Caller.Request != id {
		return conv, call, fmt.Errorf("request %q of %s: %w", id, client, store.ErrNotFound)
	}
	return conv, call, nil
}

// Caller reads a caller's request. The arguments and results are not masked, because the caller wrote the arguments and
// gets the results.
func (v *Reader) Caller(ctx context.Context, client, id string) (c CallerRequest, err error) {
	err = v.store.View(ctx, func(r store.Reader) (err error) {
		conv, call, err := CallerCall(r, client, id)
		if err != nil {
			return err
		}
		if c, err = ReadCaller(r, conv, call); err != nil || c.Execution == nil {
			return err
		}
		timer, err := r.Timer(store.TimerOutcome, c.Execution.ID)
		c.ReportBy = timer.Due
		return store.IgnoreNotFound(err)
	})
	c.Policy = v.Policy()
	return c, err
}

// Patience returns how long the bot may delay the response to a client before the client hangs up. If the client's time
// limit is unknown, patience is 0.
func (v *Reader) Patience(ctx context.Context, client string) (patience time.Duration, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		known, err := settings.ReadPatience(r, client)
		patience = known.Patience(v.now())
		return err
	})
	return patience, err
}

// CallerPending lists the ids of a client's requests that wait for people.
func (v *Reader) CallerPending(ctx context.Context, client string) (ids []string, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		known, _, err := settings.ReadCaller(r, client)
		ids = known.Pending
		return err
	})
	return ids, err
}

// ReadCaller reads the approval request and the execution of a caller's call.
func ReadCaller(r store.Reader, conv store.Conversation, call store.Call) (CallerRequest, error) {
	c := CallerRequest{Conversation: conv, Call: call}
	if call.Request != "" {
		req, err := r.Request(call.Request)
		if err != nil {
			return c, err
		}
		c.Request = &req
	}
	if call.Execution == "" {
		return c, nil
	}
	e, err := r.Execution(call.Execution)
	c.Execution = &e
	return c, err
}

// A caller's request can have these statuses, which are not states of a stored request.
const (
	CallerRunning   = "running"
	CallerSucceeded = "succeeded"
	CallerFailed    = "failed"
	CallerUnknown   = "unknown"
)

// Status returns the status of a request for its caller. Status prefers the outcome of the run to the call's result,
// because people may report the outcome after the call got its result.
func (c CallerRequest) Status() string {
	if e := c.Execution; e != nil {
		switch e.State {
		case approvers.ExecutionExecuting:
			return CallerRunning
		case approvers.ExecutionSucceeded:
			return CallerSucceeded
		case approvers.ExecutionFailed:
			return CallerFailed
		case approvers.ExecutionUnknown:
			return CallerUnknown
		}
	}
	switch c.Call.Outcome {
	case "":
	case approvers.OutcomeError:
		return CallerFailed
	default:
		return string(c.Call.Outcome)
	}
	if c.Request != nil && c.Request.State == approvers.Pending {
		return string(approvers.Pending)
	}
	return string(approvers.Approved)
}

// Lost reports whether it is unknown what happened to the call, and nobody has reported an outcome. There are two
// reasons: the records of the call's run are lost, or the call was open in a backup from which the store was restored.
// In the second case, the call may have been decided and run after the backup.
func (c CallerRequest) Lost() bool {
	if c.Execution == nil && c.Call.Outcome == approvers.OutcomeUnknown {
		return true
	}
	if e := c.Execution; e != nil && e.State != approvers.ExecutionNone {
		return false
	}
	return c.OpenInBackup()
}

// OpenInBackup reports whether the call's run had not begun in a backup from which the store was restored. The call may
// have been decided and run after the backup.
func (c CallerRequest) OpenInBackup() bool {
	if c.Request != nil {
		return c.Request.Lost
	}
	return c.Execution != nil && c.Execution.Loss == approvers.LossRestored && c.Call.Outcome == approvers.OutcomeVoided
}

// Change is a change of a caller's request. The caller's webhook is notified of the change.
type Change struct {
	Type   string    // such as "request.decided"
	Status string    // the status of the request
	At     time.Time // when the change happened; zero: unknown
	Key    string    // distinguishes the change from the other changes of the request
}

// Change returns the latest change for a notification of the caller's webhook. If the webhook needs no notification, ok
// is false. For example, a waiting request has no change until an approver asks a question about it. If the policy
// allowed a call without asking people, the call has no change before its run ends, because its caller got the answer
// immediately.
func (c CallerRequest) Change() (change Change, ok bool) {
	change = Change{Status: c.Status(), At: c.Call.ReturnedAt}
	r := c.Request
	switch change.Status {
	case string(approvers.Pending):
		questions := 0
		for _, m := range r.Remarks {
			if m.Kind == approvers.Question {
				questions, change.At = questions+1, m.At
			}
		}
		change.Type, change.Key = "request.asked", fmt.Sprint("asked ", questions)
		return change, questions > 0
	case string(approvers.Approved), CallerRunning, string(approvers.Rejected), string(approvers.Refused), string(approvers.OutcomeObserved):
		if change.Type = "request.decided"; r != nil {
			change.At = r.ClosedAt
		} else if change.Status == string(approvers.Approved) || change.Status == CallerRunning {
			return change, false // nobody was asked, so the caller has got the answer
		}
	case CallerSucceeded, CallerFailed, CallerUnknown:
		change.Type = "execution.finished"
		if c.Execution != nil && !c.Execution.FinishedAt.IsZero() {
			change.At = c.Execution.FinishedAt
		}
	default:
		change.Type = "request." + change.Status
	}
	change.Key = change.Type
	if change.Status != CallerRunning && change.Status != string(approvers.Approved) {
		change.Key += " " + change.Status // after an approval, the status is left out, so that the beginning of the run is no new change
	}
	if !change.At.IsZero() {
		change.Key += " " + change.At.UTC().Format(time.RFC3339Nano)
	}
	return change, true
}

// Webhook reads the failures of deliveries to a caller's webhook.
func (v *Reader) Webhook(ctx context.Context, client, target string) (w settings.Webhook, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		w, _, err = settings.ReadWebhook(r, client, target)
		return err
	})
	return w, err
}

// ReceiptKeys reads the public keys that verify receipts.
func (v *Reader) ReceiptKeys(ctx context.Context) (keys []settings.ReceiptKey, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		k, _, err := settings.ReadReceiptKeys(r)
		keys = k.Keys
		return err
	})
	return keys, err
}

// BrokenWebhook is a client's webhook whose deliveries fail.
type BrokenWebhook struct {
	Client string
	settings.Webhook
}

// BrokenWebhooks returns the webhooks in the policy whose last delivery failed.
func (v *Reader) BrokenWebhooks(ctx context.Context) (broken []BrokenWebhook, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		broken = nil
		for _, c := range v.Policy().Clients {
			if c.Webhook == nil {
				continue
			}
			w, _, err := settings.ReadWebhook(r, c.Name, c.Webhook.Target())
			if err != nil {
				return err
			}
			if w.Failures > 0 {
				broken = append(broken, BrokenWebhook{c.Name, w})
			}
		}
		return nil
	})
	return broken, err
}
