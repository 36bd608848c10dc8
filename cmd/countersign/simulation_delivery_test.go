package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"
	"time"

	"countersign/bot/transport"
	"countersign/store"
)

// parcel is a delivery from Slack that is on its way to the bot.
type parcel struct {
	n       int
	kind    store.InboxKind
	payload json.RawMessage
	attempt int       // number of the attempt; only for events
	due     time.Time // the delivery is not made before this time
	tried   bool      // for an interaction: the answer of the first attempt counts for the person
	reply   chan reply
}

// reply is the answer to a person's click.
type reply struct {
	payload json.RawMessage
	err     error
}

// network holds the deliveries that the bot has not received. For the workspace, network is the bot (delivery.App).
type network struct {
	mu sync.Mutex
	n  int
	on []*parcel
}

// retries are the delays before Slack delivers an unacknowledged event again.
var retries = []time.Duration{0, time.Minute, 5 * time.Minute}

// ackWithin is how long Slack waits for an acknowledgement.
const ackWithin = 3 * time.Second

func (n *network) add(kind store.InboxKind, payload json.RawMessage) *parcel {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.n++
	d := &parcel{n: n.n, kind: kind, payload: payload, due: time.Now(), reply: make(chan reply, 1)}
	n.on = append(n.on, d)
	return d
}

// Event accepts an event for delivery. Event leaves out most events about the bot's own messages, because there are too
// many.
func (n *network) Event(payload json.RawMessage) {
	if bytes.Contains(payload, []byte(`"bot_id":"B0001"`)) && crc32.ChecksumIEEE(payload)%8 > 0 {
		return
	}
	n.add(store.InboxEvent, payload)
}

// Ask accepts an interaction or a command for delivery. Ask waits for the answer as long as Slack does.
func (n *network) Ask(kind string, payload json.RawMessage) (json.RawMessage, error) {
	what := store.InboxInteraction
	if kind == "slash_commands" {
		what = store.InboxCommand
	}
	d := n.add(what, payload)
	select {
	case r := <-d.reply:
		return r.payload, r.err
	case <-time.After(ackWithin):
		return nil, errors.New("nothing came in time")
	}
}

// due lists the deliveries that can be made now, in order of time. The result next is the time of the next later
// delivery.
func (n *network) due() (now []*parcel, next time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	slices.SortFunc(n.on, func(a, b *parcel) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.n, b.n), cmp.Compare(a.attempt, b.attempt))
	})
	for _, d := range n.on {
		switch {
		case !d.due.After(time.Now()):
			now = append(now, d)
		case next.IsZero() || d.due.Before(next):
			next = d.due
		}
	}
	return now, next
}

func (n *network) take(d *parcel) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.on = slices.DeleteFunc(n.on, func(o *parcel) bool { return o == d })
}

func (n *network) put(d *parcel) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.on = append(n.on, d)
}

// The method "again" repeats an event that the bot did not acknowledge. Deliveries of other kinds are not repeated.
func (n *network) again(d *parcel) {
	if d.kind != store.InboxEvent {
		if !d.tried {
			d.tried = true
			d.reply <- reply{err: errors.New("the app did not take it")}
		}
		return
	}
	if d.attempt == len(retries) {
		return // Slack stops its retries
	}
	d.due = time.Now().Add(retries[d.attempt])
	d.attempt++
	n.put(d)
}

// deliver makes one delivery to the bot, with the given fate. Without a bot, the delivery counts as lost.
func (s *simulation) deliver(d *parcel, fate string) {
	s.deliveries++
	s.net.take(d)
	s.step("deliver %d %s, attempt %d %s", d.n, d.kind, d.attempt, fate)
	switch {
	case s.bot == nil, fate == "lost":
		s.net.again(d)
		return
	case fate == "late":
		d.due = time.Now().Add(time.Duration(s.rnd.IntN(300)) * time.Second)
		s.net.put(d)
		return
	case fate == "twice":
		twin := *d
		twin.tried = true // the waiting client gets only one answer
		s.net.put(&twin)
	}
	s.consents(d)
	p := s.bot
	go func() {
		ctx := context.WithoutCancel(labels(p.ctx, fmt.Sprintf("delivery %d.%d", d.n, d.attempt)))
		answer, err := p.bot.Receiver.Receive(ctx, transport.Delivery{Kind: d.kind, Payload: d.payload, ReceivedAt: p.receipts.Next(s.now())})
		if p.dead.Load() {
			s.net.again(d)
			return
		}
		if err != nil {
			s.net.again(d)
			return
		}
		s.acknowledged(d, answer)
		if fate == "unheard" { // the acknowledgement does not reach Slack
			s.net.again(d)
			return
		}
		if d.tried {
			return
		}
		d.tried = true
		r := reply{}
		if answer != nil {
			r.payload, r.err = json.Marshal(answer)
		}
		d.reply <- r
	}()
}
