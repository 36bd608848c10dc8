package bot

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/bot/slackapi"
	"countersign/store"
)

const (
	sockets  = 2  // one stays while Slack has the other replaced
	queues   = 16 // deliveries are stored in parallel; those of one lane in order
	queueing = 256
	// steady is the minimum lifetime of a connection that does not count as broken from the start.
	steady            = time.Second
	firstWait         = 100 * time.Millisecond // before the first retry; each wait is twice the previous one
	longestRetryPause = 30 * time.Second
)

// receiver reads from sockets.
type receiver struct {
	*Bot
	in      [queues]chan socketDelivery
	reading *errgroup.Group
	ending  sync.WaitGroup // connections that are no longer read, until their last acknowledgement
}

// readSockets receives through Socket Mode until ctx ends or Slack refuses a token.
func (b *Bot) readSockets(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx)) // received deliveries are still stored and acknowledged
	defer stop()
	r := &receiver{Bot: b}
	storing := new(errgroup.Group)
	for i := range r.in {
		r.in[i] = make(chan socketDelivery, queueing)
		storing.Go(func() error {
			for d := range r.in[i] {
				b.take(work, d)
			}
			return nil
		})
	}
	r.reading, ctx = errgroup.WithContext(ctx)
	for n := range sockets {
		r.reading.Go(func() error { return r.keep(ctx, n) })
	}
	err := r.reading.Wait()
	for i := range r.in {
		close(r.in[i])
	}
	_ = storing.Wait()
	r.ending.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// keep maintains one connection until ctx ends or Slack refuses the token. When Slack asks for a replacement, it opens
// the new connection while it still reads the old one. It reopens a broken connection immediately. If that fails, it
// retries with increasing pauses, and immediately once Slack is back.
func (r *receiver) keep(ctx context.Context, n int) error {
	defer r.connected.set(n, false)
	for wait := firstWait; ; {
		once, anew := context.WithCancel(ctx)
		r.connected.tries(n, anew)
		c, err := r.open(once)
		if err == nil {
			r.read(ctx, n, c)
			select {
			case <-c.left:
			case <-c.over:
			case <-once.Done():
				c.stop()
			}
			if c.wasLeft() && ctx.Err() == nil {
				anew()
				continue
			}
		}
		r.connected.set(n, false)
		if refused := appToken(err); refused != nil {
			anew()
			return refused
		}
		if err != nil {
			r.missing(n, err)
		}
		if c != nil && c.age() > steady {
			wait = firstWait
		} else {
			_ = slackapi.Sleep(once, max(wait, slackapi.RetryDelay(err))) // ends early when a retry makes sense
			wait = min(2*wait, longestRetryPause)
		}
		if once.Err() != nil {
			wait = firstWait
		}
		anew()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// missing records that a connection could not be opened.
func (r *receiver) missing(n int, cause error) {
	if r.connected.none() {
		r.Log.Warn("no connection to Slack, so nothing is received; trying until there is one", "error", cause)
		return
	}
	r.Log.Debug("no connection to Slack; trying again", "socket", n, "error", cause)
}

// read reads a connection in the background until it ends.
func (r *receiver) read(ctx context.Context, n int, c *connection) {
	r.ending.Add(1)
	unwatched := context.AfterFunc(ctx, c.stop)
	r.reading.Go(func() error {
		for {
			f, err := c.next()
			if err != nil {
				r.Log.Debug("a connection to Slack has ended", "socket", n, "why", err)
				break
			}
			r.sort(n, c, f)
		}
		close(c.over)
		unwatched()
		go func() {
			defer r.ending.Done()
			c.end()
		}()
		return nil
	})
}

// sort handles one frame of a connection.
func (r *receiver) sort(n int, c *connection, f frame) {
	switch f.Type {
	case "hello":
		r.connected.set(n, true)
		r.Log.Info("connected to Slack", "socket", n)
		return
	case "disconnect":
		if f.Reason == "link_disabled" {
			r.Log.Error("Socket Mode was switched off for this app, so nothing is received: switch it on again on the app's page Socket Mode, or use COUNTERSIGN_TRANSPORT=http")
			c.stop()
			return
		}
		r.Log.Debug("Slack wants another connection in place of one", "socket", n, "reason", f.Reason)
		c.leave()
		return
	}
	kind, ok := kinds[f.Type]
	if !ok || f.Envelope == "" {
		r.Log.Warn("Slack sent a frame of an unknown type; it is not acknowledged", "type", f.Type)
		return
	}
	c.unacked.Add(1)
	r.in[shard(kind, f.Payload)] <- socketDelivery{through: c, envelope: f.Envelope, kind: kind, payload: f.Payload, at: r.inOrder.next(r.Now())}
}

var kinds = map[string]store.InboxKind{
	"events_api": store.InboxEvent, "interactive": store.InboxInteraction, "slash_commands": store.InboxCommand,
}

// shard returns the queue of a delivery's lane.
func shard(kind store.InboxKind, payload []byte) int {
	lane := ""
	switch kind {
	case store.InboxEvent:
		if e, err := readEnvelope(payload); err == nil {
			lane = e.lane()
		}
	case store.InboxInteraction:
		if i, err := readInteraction(payload); err == nil {
			lane = i.lane()
		}
	case store.InboxCommand:
		if c, err := readCommand(payload); err == nil {
			lane = c.lane()
		}
	}
	h := fnv.New32a()
	h.Write([]byte(lane))
	return int(h.Sum32() % queues)
}

// socketDelivery is one envelope and the connection for its acknowledgement.
type socketDelivery struct {
	through  *connection
	envelope string
	kind     store.InboxKind
	payload  json.RawMessage
	at       time.Time
}

// take makes a delivery durable, and only then acknowledges it.
func (b *Bot) take(ctx context.Context, d socketDelivery) {
	defer d.through.unacked.Done()
	answer, err := b.receive(ctx, d.kind, d.payload, d.at)
	if err != nil {
		b.Log.Error("a delivery could not be stored, so it is not acknowledged and Slack sends it again if it is an event", "kind", string(d.kind), "error", err)
		return
	}
	if err := d.through.ack(d.envelope, answer.payload); err != nil {
		b.Log.Warn("an acknowledgement could not be sent; Slack will deliver again", "error", err)
	}
}
