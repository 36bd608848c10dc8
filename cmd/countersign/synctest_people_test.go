package main

import (
	"encoding/json"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/internal/demo/workspaceclient"
	"countersign/store"
)

func (b *synctestHarness) as(name string) workspaceclient.Client {
	return workspaceclient.Client{Base: "http://slack.test", User: name, HTTP: b.client}
}

// The method "says" makes sam write to the bot in a new thread in #support.
func (b *synctestHarness) says(text string) (thread string) {
	b.Helper()
	return b.saysIn("#support", text)
}

func (b *synctestHarness) saysIn(channel, text string) (thread string) {
	b.Helper()
	ts, err := b.as("sam").Say(b.ctx, channel, "", "@Countersign "+text)
	b.ok(err)
	return ts
}

// request returns the request for the call with an argument. Until the request exists, the result is empty.
func (b *synctestHarness) request(n string) (found approvers.Request) {
	b.Helper()
	b.view(func(r store.Reader) (err error) {
		if b.requests[n] == "" {
			b.requests = b.allRequests(r)
		}
		found = approvers.Request{}
		if id := b.requests[n]; id != "" {
			found, err = r.Request(id)
		}
		return err
	})
	return found
}

// allRequests returns the ids of the requests of all calls, by the calls' argument n.
func (b *synctestHarness) allRequests(r store.Reader) map[string]string {
	out := map[string]string{}
	for _, turn := range b.allTurns(r) {
		calls, err := r.Calls(turn)
		b.ok(err)
		for _, c := range calls {
			var args struct{ N string }
			b.ok(json.Unmarshal([]byte(c.Args), &args))
			out[args.N] = c.Request
		}
	}
	return out
}

// The method "asked" waits until the request for a call exists.
func (b *synctestHarness) asked(n string) approvers.Request {
	b.Helper()
	var r approvers.Request
	b.within(time.Minute, "a request for "+n, func() bool {
		r = b.request(n)
		return r.ID != ""
	})
	return r
}

// card returns the message that shows a request's card, in the channel for cards.
func (b *synctestHarness) card(n string) workspaceclient.Message {
	b.Helper()
	r := b.request(n)
	var found workspaceclient.Message
	b.view(func(rd store.Reader) error {
		messages, err := rd.OutboxMessagesOf(r.ID)
		for _, s := range messages {
			if s.Kind == store.OutboxCard && strings.HasPrefix(s.To, "channel:") && s.State == store.OutboxShown {
				found = workspaceclient.Message{Channel: s.Channel, TS: s.TS}
			}
		}
		return err
	})
	messages, err := b.as("teo").Messages(b.ctx, found.Channel, "")
	b.ok(err)
	for _, m := range messages {
		if m.TS == found.TS {
			return m
		}
	}
	b.Fatalf("no card for %s is shown", n)
	return found
}

// approve clicks the "Approve" button of a request in a message. approve returns the error that the person got
// immediately.
func (b *synctestHarness) approve(who, n string, m workspaceclient.Message) error {
	b.Helper()
	e, ok := buttonFor(m, "Approve", b.request(n).ID)
	if !ok {
		b.Fatalf("%s sees no button to approve %s:\n%s", who, n, m.Text)
	}
	return b.as(who).Press(b.ctx, m, e)
}
