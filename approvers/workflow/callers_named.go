package workflow

import (
	"context"
	"fmt"

	"countersign/approvers"
	"countersign/store"
)

// Last returns the id and the state of the client's last request for an identical call with a key. If there is no such
// request, Last returns "".
func (w *Callers) Last(ctx context.Context, p CallerCall) (id, state string, err error) {
	p.Key = "any"
	err = w.view(ctx, func(r store.Reader) error {
		for _, place := range placesOf(p) {
			conv, err := r.ConversationAt(place)
			if err != nil {
				if store.IgnoreNotFound(err) != nil {
					return err
				}
				continue
			}
			if conv.Caller != nil && p.Client.Owns(conv.Caller.Caller) {
				id, state = conv.Caller.Request, conv.Caller.State
				return nil
			}
		}
		return nil
	})
	return id, state, err
}

// Named returns the id of the client's request that has a key, or "".
func (w *Callers) Named(ctx context.Context, client approvers.Client, key string) (id string, err error) {
	err = w.view(ctx, func(r store.Reader) error {
		conv, err := r.Conversation(conversationOf(client, key))
		if err != nil || conv.Caller == nil {
			return store.IgnoreNotFound(err)
		}
		id = conv.Caller.Request
		return nil
	})
	return id, err
}

// view reads the store. If a record is damaged, view closes the record, and reads again.
func (w *Callers) view(ctx context.Context, read func(store.Reader) error) error {
	err := w.Store.View(ctx, read)
	if w.Mend(ctx, err) {
		err = w.Store.View(ctx, read)
	}
	return err
}

// Name gives a request of the client one more key. The key gets a conversation that only refers to the request. If the
// key already refers to another request, Name moves the key.
func (w *Callers) Name(ctx context.Context, client approvers.Client, key, request string) error {
	return w.update(ctx, "name a request of a caller", func(t *tx) error {
		of, _, err := t.callers.own(client, request)
		if err != nil {
			return err
		}
		id := conversationOf(client, key)
		conv, err := t.Conversation(id)
		if store.IgnoreNotFound(err) != nil {
			return err
		}
		own, err := callOfCaller(t, id)
		if err != nil {
			return err
		}
		if len(own) > 0 {
			return fmt.Errorf("the key of request %s can't be moved", own[0].ID)
		}
		refers := *of.Caller
		refers.Request, refers.Body, refers.Summary, refers.State, refers.Told = request, "", "", "", ""
		conv.ID, conv.Place, conv.Team, conv.Agent = id, of.Place+"/"+id, of.Team, of.Agent
		conv.CreatedAt, conv.LastAt, conv.Caller = t.now, t.now, &refers
		return t.PutConversation(conv)
	})
}
