package bot

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"log"
	"time"

	"github.com/slack-go/slack/socketmode"
	"golang.org/x/sync/errgroup"

	"countersign/store"
)

const (
	sockets  = 2  // so that one stays while Slack has the other refreshed
	queues   = 16 // deliveries are stored side by side; those of one lane in order
	queueing = 256
	ackWait  = 10 * time.Second
)

// Run receives from Slack through Socket Mode until ctx ends. It returns early only where Slack refuses a token: while Slack can't be
// reached it tries again.
func (b *Bot) Run(ctx context.Context) error {
	if err := b.Check(ctx); errors.Is(err, ErrToken) {
		return err
	}
	defer b.side.Wait()
	work, stop := context.WithCancel(context.WithoutCancel(ctx)) // what was taken in is stored and acknowledged to the end
	defer stop()
	var in [queues]chan socketDelivery
	storing := new(errgroup.Group)
	for i := range in {
		in[i] = make(chan socketDelivery, queueing)
		storing.Go(func() error {
			for d := range in[i] {
				b.take(work, d)
			}
			return nil
		})
	}
	reading, readCtx := errgroup.WithContext(ctx)
	for n := range sockets {
		reading.Go(func() error { return b.socket(readCtx, n, &in) })
	}
	err := reading.Wait()
	for i := range in {
		close(in[i])
	}
	_ = storing.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// socketDelivery is one envelope and the connection that wants its acknowledgement.
type socketDelivery struct {
	client   *socketmode.Client
	envelope string
	kind     store.InboxKind
	payload  []byte
	at       time.Time
}

// socket keeps one connection and passes on what comes through it.
func (b *Bot) socket(ctx context.Context, n int, in *[queues]chan socketDelivery) error {
	client := socketmode.New(b.api, socketmode.OptionLog(log.New(io.Discard, "", 0)))
	ctx, cancel := context.WithCancel(ctx)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer cancel()
		return client.RunContext(ctx)
	})
	g.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case e := <-client.Events:
				b.sort(client, n, e, in)
			}
		}
	})
	err := g.Wait()
	b.connected.set(n, false)
	if refused := appToken(err); refused != nil {
		return refused
	}
	return err
}

// sort takes an event off the connection at once: while its channel is full, pings go unanswered and the connection drops.
func (b *Bot) sort(client *socketmode.Client, n int, e socketmode.Event, in *[queues]chan socketDelivery) {
	request := e.Request
	switch e.Type {
	case socketmode.EventTypeConnected:
		b.connected.set(n, true)
		b.Log.Info("connected to Slack", "socket", n)
	case socketmode.EventTypeDisconnect, socketmode.EventTypeConnecting:
		b.connected.set(n, false)
	case socketmode.EventTypeConnectionError:
		b.Log.Warn("no connection to Slack; trying again", "socket", n, "error", e.Data)
	case socketmode.EventTypeErrorWriteFailed:
		b.Log.Warn("an acknowledgement did not reach Slack, which will deliver again", "socket", n)
	case socketmode.EventTypeErrorBadMessage:
		// The library could not read it, blocks that it does not know for one. We read it ourselves.
		bad, _ := e.Data.(*socketmode.ErrorBadMessage)
		request = new(socketmode.Request)
		if bad == nil || json.Unmarshal(bad.Message, request) != nil {
			b.Log.Error("Slack sent a frame that can't be read", "socket", n)
			return
		}
	}
	if request == nil || request.EnvelopeID == "" {
		return
	}
	kind, ok := kinds[request.Type]
	if !ok {
		b.Log.Warn("Slack sent an envelope of an unknown type; it is not acknowledged", "type", request.Type)
		return
	}
	d := socketDelivery{client: client, envelope: request.EnvelopeID, kind: kind, payload: request.Payload, at: b.inOrder.next(b.Now())}
	in[shard(kind, request.Payload)] <- d
}

var kinds = map[string]store.InboxKind{
	socketmode.RequestTypeEventsAPI: store.InboxEvent, socketmode.RequestTypeInteractive: store.InboxInteraction,
	socketmode.RequestTypeSlashCommands: store.InboxCommand,
}

// shard picks the queue of a delivery's lane.
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

// take makes a delivery durable, and only then acknowledges it.
func (b *Bot) take(ctx context.Context, d socketDelivery) {
	answer, err := b.receive(ctx, d.kind, d.payload, d.at)
	if err != nil {
		b.Log.Error("a delivery could not be stored, so it is not acknowledged and Slack sends it again", "kind", string(d.kind), "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, ackWait)
	defer cancel()
	if err := d.client.AckCtx(ctx, d.envelope, answer.payload); err != nil && !errors.Is(err, context.Canceled) {
		b.Log.Warn("an acknowledgement could not be sent; Slack will deliver again", "error", err)
	}
}
