package transport

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"countersign/store"
)

// Delivery is one event, interaction or slash command from Slack.
type Delivery struct {
	Kind       store.InboxKind
	Payload    []byte // JSON, in the same form from both transports
	ReceivedAt time.Time
}

// Handler receives deliveries. The methods of a Handler are called concurrently.
type Handler interface {
	// Lane returns the name of a delivery's lane. Socket Mode calls Receive in order for the deliveries of one lane.
	Lane(Delivery) string
	// Receive makes a delivery durable. If Receive returns an error, the delivery is not acknowledged. If Receive
	// returns no error, the delivery is acknowledged. The acknowledgement contains answer as JSON, if answer is not
	// nil.
	Receive(context.Context, Delivery) (answer any, err error)
}

// Transport receives deliveries from Slack.
type Transport interface {
	// Run receives until ctx ends. Run returns earlier only with a permanent error.
	Run(ctx context.Context) error
	// Ready returns nil while Slack can deliver.
	Ready() error
	// Arriving returns an error if the transport is ready, but Slack's requests probably do not reach it.
	Arriving() error
	// Listening returns the time up to which Slack could deliver.
	Listening() Listening
	// Retry reconnects to Slack immediately instead of at the next try. Retry is called at the end of an outage of
	// Slack.
	Retry()
}

// Options are common to both transports. All fields are required.
type Options struct {
	Handler Handler
	Log     *slog.Logger
	Now     func() time.Time // the clock for the times of receipt
}

// receive makes a delivery durable. If receive returns an error, the delivery must not be acknowledged. An event that
// could not be stored counts as a gap, because the bot can then read missed messages in Slack. Slack keeps no history of
// other deliveries.
func (o Options) receive(ctx context.Context, d Delivery, began *interruptions) (answer any, err error) {
	answer, err = o.Handler.Receive(ctx, d)
	if err != nil {
		if d.Kind == store.InboxEvent {
			began.add()
		}
		o.Log.ErrorContext(ctx, "a delivery could not be stored, so it is not acknowledged and Slack sends it again if it is an event", "kind", string(d.Kind), "error", err)
	}
	return answer, err
}

// Listening describes up to which time Slack could deliver. If Slack could never deliver, the times are zero.
type Listening struct {
	Open     time.Time // the last time at which deliveries were accepted
	Received time.Time // everything that Slack sent before this time was received; for HTTP, this is the time of Slack's last request
	Began    int       // how often listening began: at the start, and after each gap. An event that could not be stored counts as a gap
}

// interruptions counts how often a transport began to listen.
type interruptions struct{ n atomic.Int64 }

func (i *interruptions) add() { i.n.Add(1) }

func (i *interruptions) count() int { return int(i.n.Load()) }
