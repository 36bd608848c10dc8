package workflow

import (
	"context"
	"fmt"

	"countersign/approvers"
	"countersign/store"
)

// Last returns the id of the client's last request for an identical call, among the requests that have a key and the
// State of p. If there is none, Last returns "".
func (w *Callers) Last(ctx context.Context, p CallerCall) (id string, err error) {
	p.Key = "any"
	place := placeOf(p)
	err = w.view(ctx, func(r store.Reader) error {
		conv, err := r.ConversationAt(place)
		if err == nil && (conv.Caller == nil || conv.Caller.State != p.State) {
			conv, err = r.Conversation(conversationOf(p.Client, stateKey(place, p.State)))
		}
		if err != nil || conv.Caller == nil || !p.Client.Owns(conv.Caller.Caller) {
			return store.IgnoreNotFound(err)
		}
		id = conv.Caller.Request
		return nil
	})
	return id, err
}

// stateKey returns the key of a request that is no longer the last one at its place. No client can send this key.
func stateKey(place, state string) string { return "state\x00" + place + "\x00" + state }

// keepLast gives the last request at a place a key, if its state differs from the state of p. Then p becomes the last
// request at the place, and Last finds the earlier request by the key.
func (t callersTx) keepLast(p CallerCall, place string) error {
	last, err := t.ConversationAt(place)
	if err != nil || last.Caller == nil || last.Caller.State == "" || last.Caller.State == p.State {
		return store.IgnoreNotFound(err)
	}
	call, err := t.Call(last.Caller.Request)
	if err != nil || call.Outcome != "" {
		return store.IgnoreNotFound(err)
	}
	return t.name(p.Client, stateKey(place, last.Caller.State), last)
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
		return t.callers.name(client, key, of)
	})
}

// name lets a key refer to the request of a conversation.
func (t callersTx) name(client approvers.Client, key string, of store.Conversation) error {
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
	refers.Body, refers.Summary, refers.State, refers.Told = "", "", "", ""
	conv.ID, conv.Place, conv.Team, conv.Agent = id, of.Place+"/"+id, of.Team, of.Agent
	conv.CreatedAt, conv.LastAt, conv.Caller = t.now, t.now, &refers
	return t.PutConversation(conv)
}
