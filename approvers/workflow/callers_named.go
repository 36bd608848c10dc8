package workflow

import (
	"context"
	"fmt"

	"countersign/approvers"
	"countersign/store"
)

// Last returns the id of the client's last request that has a key, the ClientState of p, and a call identical to p. If
// there is no such request, Last returns "". There is one exception: if a request had its result before an identical
// call with another ClientState was proposed, Last no longer finds the request.
func (w *Callers) Last(ctx context.Context, p CallerCall) (id string, err error) {
	p.Key = "any"
	same := fingerprint(p)
	err = w.view(ctx, func(r store.Reader) error {
		conv, err := r.ConversationAt(same)
		if err == nil && (conv.Caller == nil || conv.Caller.ClientState != p.ClientState) {
			conv, err = r.Conversation(conversationOf(p.Client, earlierKey(same, p.ClientState)))
		}
		if err != nil || conv.Caller == nil || !p.Client.Owns(conv.Caller.Caller) {
			return store.IgnoreNotFound(err)
		}
		id = conv.Caller.Request
		return nil
	})
	return id, err
}

// earlierKey returns the key that keepLast gives to a request. No client can send this key.
func earlierKey(fingerprint, clientState string) string {
	return "state\x00" + fingerprint + "\x00" + clientState
}

// keepLast gives a key to the last request with the fingerprint of p, so that Last still finds this request later. The
// store finds only the last request with a fingerprint, so keepLast must be called before p becomes the last request.
// keepLast does nothing if the request has a result, has no ClientState, or has the ClientState of p.
func (t callersTx) keepLast(p CallerCall) error {
	same := fingerprint(p)
	last, err := t.ConversationAt(same)
	if err != nil || last.Caller == nil || last.Caller.ClientState == "" || last.Caller.ClientState == p.ClientState {
		return store.IgnoreNotFound(err)
	}
	call, err := t.Call(last.Caller.Request)
	if err != nil || call.Outcome != "" {
		return store.IgnoreNotFound(err)
	}
	return t.name(p.Client, earlierKey(same, last.Caller.ClientState), last, "")
}

// Named returns the id of the client's request with the given key, or "" if there is none. Named also returns the run
// that was given to Name. If a call was proposed with the key, this is the call's first run.
func (w *Callers) Named(ctx context.Context, client approvers.Client, key string) (id, run string, err error) {
	err = w.view(ctx, func(r store.Reader) error {
		conv, err := r.Conversation(conversationOf(client, key))
		if err != nil || conv.Caller == nil {
			return store.IgnoreNotFound(err)
		}
		id, run = conv.Caller.Request, conv.Caller.Run
		own, err := callOfCaller(r, conv.ID)
		if err == nil && len(own) > 0 {
			run, err = firstRun(r, own[0])
		}
		return err
	})
	return id, run, err
}

// firstRun returns the id of the run that was approved before anybody asked for the call again.
func firstRun(r store.Reader, call store.Call) (string, error) {
	run := call.Execution
	for run != "" {
		e, err := r.Execution(run)
		if err != nil || e.After == "" {
			return run, store.IgnoreNotFound(err)
		}
		run = e.After
	}
	return run, nil
}

// view reads the store. If a record is damaged, view calls Mend, and reads again.
func (w *Callers) view(ctx context.Context, read func(store.Reader) error) error {
	err := w.Store.View(ctx, read)
	if w.Mend(ctx, err) {
		err = w.Store.View(ctx, read)
	}
	return err
}

// Name adds a key to a request of the client, and to one of the request's runs. The key gets a conversation that only
// refers to the request. If Name gave the key to another request before, Name moves the key. A key with which a call was
// proposed can't be moved.
func (w *Callers) Name(ctx context.Context, client approvers.Client, key, request, run string) error {
	return w.change(ctx, client, "name a request of a caller", func(t *tx) error {
		of, _, err := t.callers.own(client, request)
		if err != nil {
			return err
		}
		return t.callers.name(client, key, of, run)
	})
}

// name makes a key refer to a request. The parameter "of" is the request's conversation.
func (t callersTx) name(client approvers.Client, key string, of store.Conversation, run string) error {
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
	refers.Body, refers.Summary, refers.ClientState, refers.Told = "", "", "", ""
	refers.Run = run
	conv.ID, conv.Place, conv.Team, conv.Agent = id, of.Place+"/"+id, of.Team, of.Agent
	conv.CreatedAt, conv.LastAt, conv.Caller = t.now, t.now, &refers
	return t.PutConversation(conv)
}
