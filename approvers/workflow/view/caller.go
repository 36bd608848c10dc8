package view

import (
	"context"
	"fmt"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// CallerRequest is the state of a caller's request.
type CallerRequest struct {
	Conversation store.Conversation
	Call         store.Call
	Request      *approvers.Request   // the latest; nil: nobody was asked
	Execution    *approvers.Execution // nil: none, because the call was refused before
	ReportBy     time.Time            // until when the caller has to claim a call that needs nobody, or to report; zero: neither
	Policy       *approvers.Policy
}

// CallerCall reads a request by the id that its caller has. For other callers it does not exist.
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

// Caller reads a caller's request. Its arguments and results are not masked: the caller wrote them, or gets them.
func (v *Reader) Caller(ctx context.Context, client, id string) (c CallerRequest, err error) {
	err = v.store.View(ctx, func(r store.Reader) (err error) {
		c = CallerRequest{Policy: v.Policy()}
		if c.Conversation, c.Call, err = CallerCall(r, client, id); err != nil {
			return err
		}
		if c.Call.Request != "" {
			req, err := r.Request(c.Call.Request)
			if err != nil {
				return err
			}
			c.Request = &req
		}
		if c.Call.Execution == "" {
			return nil
		}
		e, err := r.Execution(c.Call.Execution)
		if err != nil {
			return err
		}
		c.Execution = &e
		timer, err := r.Timer(store.TimerOutcome, e.ID)
		c.ReportBy = timer.Due
		return store.IgnoreNotFound(err)
	})
	return c, err
}

// Patience returns how long a client's call can be held before the client would hang up, as far as it is known.
func (v *Reader) Patience(ctx context.Context, client string) (patience time.Duration, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		known, _, err := settings.ReadCaller(r, client)
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

// ReceiptKeys reads the public keys that verify receipts.
func (v *Reader) ReceiptKeys(ctx context.Context) (keys []settings.ReceiptKey, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		k, _, err := settings.ReadReceiptKeys(r)
		keys = k.Keys
		return err
	})
	return keys, err
}
