package view

import (
	"context"
	"slices"

	"countersign/approvers"
	"countersign/store"
)

// PendingItem is an item that waits: an open request, a run with an unknown outcome, or a question of the model. An
// open request may be approved already.
type PendingItem struct {
	Request   *approvers.Request   // the request that waits, or the request that allowed the run
	Execution *approvers.Execution // the run; nil for a request and a question
	Call      *store.Call          // the call of the run or of the question; nil for a request
	Turn      approvers.Turn       // the call's turn
}

// w.named returns the Ref of the outbox messages that show the item, and the id of the item's call.
func (w PendingItem) named() (ref, call string) {
	switch {
	case w.Execution != nil:
		return w.Execution.ID, w.Execution.Call
	case w.Call != nil:
		return w.Call.ID, w.Call.ID
	}
	return w.Request.ID, w.Request.Call
}

// maxPendingItems is the maximum number of items of each kind that are read.
const maxPendingItems = 2000

func readUnknownRun(r store.Reader, execution string) (w PendingItem, err error) {
	e, err := r.Execution(execution)
	if err != nil {
		return w, err
	}
	if w, err = readModelQuestion(r, e.Call); err != nil || e.Request == "" {
		w.Execution = &e
		return w, err
	}
	req, err := r.Request(e.Request)
	w.Execution, w.Request = &e, &req
	return w, err
}

func readModelQuestion(r store.Reader, id string) (w PendingItem, err error) {
	call, err := r.Call(id)
	if err != nil {
		return w, err
	}
	w.Call = &call
	w.Turn, err = r.Turn(call.Turn)
	return w, err
}

// showsCall reports whether an outbox message of a turn shows a call. Two outbox messages show a call: the message
// about the call's step, and the card of the bundle with the call's request.
func showsCall(s store.OutboxMessage, c store.Call, r *approvers.Request) bool {
	return s.Step == c.Step && (s.Kind == store.OutboxStep || s.Kind == store.OutboxBundle && r != nil && r.Bundled() && s.Bundle == r.Bundle)
}

// PendingItems lists the items that wait. The items are grouped by kind. Requests are listed oldest first, and other
// items in the order of their timers. If the store may have more items, the second result is true.
func (v *Reader) PendingItems(ctx context.Context) (list []PendingItem, more bool, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		list, more = nil, false
		open, err := r.OpenRequests(store.RequestCursor{}, maxPendingItems)
		if err != nil {
			return err
		}
		for _, req := range open {
			mask(v.Policy(), &req, nil)
			list = append(list, PendingItem{Request: &req})
		}
		more = len(open) == maxPendingItems
		for _, kind := range []store.TimerKind{store.TimerLeave, store.TimerModelQuestion} {
			timers, err := r.Timers(kind, maxPendingItems)
			if err != nil {
				return err
			}
			more = more || len(timers) == maxPendingItems
			for _, t := range timers {
				read := map[store.TimerKind]func(store.Reader, string) (PendingItem, error){store.TimerLeave: readUnknownRun, store.TimerModelQuestion: readModelQuestion}[kind]
				w, err := read(r, t.Ref)
				if err != nil {
					return err
				}
				mask(v.Policy(), w.Request, w.Call)
				list = append(list, w)
			}
		}
		return nil
	})
	return list, more, err
}

// Unreached lists the pending requests that can't be decided until somebody changes Slack or the policy
// (approvers.NeedsOperator). The oldest request is first.
func (v *Reader) Unreached(ctx context.Context) (requests []approvers.Request, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		requests, err = UnreachedRequests(r)
		return err
	})
	return requests, err
}

// UnreachedRequests is like Unreached, but reads from r, which may be a transaction.
func UnreachedRequests(r store.Reader) ([]approvers.Request, error) {
	open, err := r.OpenRequests(store.RequestCursor{}, maxPendingItems)
	return slices.DeleteFunc(open, func(r approvers.Request) bool { return !approvers.NeedsOperator(r) }), err
}

// Locate returns the conversation of an item, and the outbox messages that show the item.
func (v *Reader) Locate(ctx context.Context, w PendingItem) (conv store.Conversation, messages []store.OutboxMessage, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		messages = nil
		ref, call := w.named()
		c, err := r.Call(call)
		if err != nil {
			return err
		}
		for _, ref := range []string{ref, c.Turn} {
			of, err := r.OutboxMessagesOf(ref)
			if err != nil {
				return err
			}
			for _, s := range of {
				if ref == c.Turn && !showsCall(s, c, w.Request) || s.Kind == store.OutboxNotice {
					continue
				}
				messages = append(messages, s)
			}
		}
		conv, err = r.Conversation(c.Conversation)
		return err
	})
	return conv, messages, err
}
