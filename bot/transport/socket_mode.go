package transport

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/store"
)

const (
	sockets = 2 // number of connections: one stays up while the other is replaced
	// A connection that lasts at least steady counts as one that worked. A connection that ends earlier, or that Slack
	// wants replaced earlier, counts as broken from the start.
	steady            = time.Second
	firstWait         = 100 * time.Millisecond // wait before the first retry; each further wait is twice the previous one
	longestRetryPause = 30 * time.Second
)

// errNotConnected is the error of Ready while no connection to Slack is up.
var errNotConnected = errors.New("no connection to Slack is up")

// SocketModeOptions configure Socket Mode. All fields are required.
type SocketModeOptions struct {
	Options
	// Address asks Slack for the address of a new socket. If the error of Address has a method After, the next try waits
	// at least as long as After returns.
	Address func(context.Context) (string, error)
	// Final reports whether an error of Address ends Run. Other errors are retried.
	Final func(error) bool
	HTTP  *http.Client // sockets use the same proxy and the same dialer
}

// SocketMode receives through WebSockets to Slack.
type SocketMode struct {
	SocketModeOptions
	clock ReceiptClock
	up    connections
	began interruptions
}

var _ Transport = (*SocketMode)(nil)

// NewSocketMode returns a transport that is not running yet.
func NewSocketMode(o SocketModeOptions) *SocketMode {
	return &SocketMode{SocketModeOptions: o}
}

// Ready returns nil while a connection to Slack is up.
func (s *SocketMode) Ready() error {
	if !s.up.any() {
		return errNotConnected
	}
	return nil
}

// Arriving returns nil, because Slack delivers everything over an open connection.
func (s *SocketMode) Arriving() error { return nil }

// Listening returns the last time at which a connection was up.
func (s *SocketMode) Listening() Listening {
	l := Listening{Began: s.began.count()} // read first, so that the next call sees a connection that begins meanwhile
	l.Open = s.up.lastUp(s.Now())
	l.Received = l.Open
	return l
}

// Retry makes each connection that is down retry immediately.
func (s *SocketMode) Retry() { s.up.retry() }

// Run receives until ctx ends or Address returns a final error.
func (s *SocketMode) Run(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx)) // received deliveries are still stored and acknowledged
	defer stop()
	r := &reader{SocketMode: s, work: work, lanes: newLanes()}
	r.reading, ctx = errgroup.WithContext(ctx)
	for n := range sockets {
		r.reading.Go(func() error { return r.keep(ctx, n) })
	}
	err := r.reading.Wait()
	r.lanes.finish()
	r.ending.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// reader is one run of SocketMode.
type reader struct {
	*SocketMode
	work    context.Context // context of the handler
	lanes   *lanes
	reading *errgroup.Group
	ending  sync.WaitGroup // connections that are no longer read, until their last acknowledgement
}

// keep maintains connection n until ctx ends or Slack refuses permanently. When Slack asks for a replacement, keep
// opens the new connection while it reads the old one. keep reopens a broken connection immediately. If the new
// connection can't be opened or does not work, keep retries with growing delays. keep also retries immediately when
// Slack answers after an outage.
func (r *reader) keep(ctx context.Context, n int) error {
	defer func() { r.up.set(n, false, r.Now()) }()
	for wait := firstWait; ; {
		once, anew := context.WithCancel(ctx)
		r.up.tries(n, anew)
		c, err := r.open(once)
		if err == nil {
			r.readConnection(ctx, n, c)
			select {
			case <-c.left:
			case <-c.over:
			case <-once.Done():
				c.stop()
			}
			if c.wasLeft() && c.worked() && ctx.Err() == nil {
				anew()
				wait = firstWait
				continue
			}
		}
		r.up.set(n, false, r.Now())
		if err != nil && r.Final(err) {
			anew()
			return err
		}
		if err != nil {
			r.missing(n, err)
		}
		if c != nil && c.worked() {
			wait = firstWait
		} else {
			pause(once, max(wait, delayOf(err))) // ends early when Retry is called
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

// open opens a connection to an address that Slack names.
func (r *reader) open(ctx context.Context) (*connection, error) {
	address, err := r.Address(ctx)
	if err != nil {
		return nil, err
	}
	return connect(ctx, address, r.HTTP)
}

// delayOf returns the delay before the next try from an error. If the error has no delay, delayOf returns 0.
func delayOf(err error) time.Duration {
	var delayed interface{ After() time.Duration }
	if errors.As(err, &delayed) {
		return delayed.After()
	}
	return 0
}

// pause waits for a duration, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// missing records that a connection could not be opened.
func (r *reader) missing(n int, cause error) {
	if r.up.none() {
		r.Log.Warn("no connection to Slack, so nothing is received; trying until there is one", "error", cause)
		return
	}
	r.Log.Debug("no connection to Slack; trying again", "socket", n, "error", cause)
}

// readConnection reads a connection in the background until it ends.
func (r *reader) readConnection(ctx context.Context, n int, c *connection) {
	r.ending.Add(1)
	unwatched := context.AfterFunc(ctx, c.stop)
	r.reading.Go(func() error {
		for {
			f, err := c.nextFrame()
			if err != nil {
				r.Log.DebugContext(ctx, "a connection to Slack has ended", "socket", n, "why", err)
				break
			}
			r.dispatch(n, c, f)
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

// kinds are the kinds of the frames that are deliveries.
var kinds = map[string]store.InboxKind{
	"events_api": store.InboxEvent, "interactive": store.InboxInteraction, "slash_commands": store.InboxCommand,
}

// dispatch handles one frame of a connection.
func (r *reader) dispatch(n int, c *connection, f frame) {
	switch f.Type {
	case "hello":
		c.greeted.Store(true)
		if r.up.set(n, true, r.Now()) {
			r.began.add()
		}
		r.Log.Info("connected to Slack", "socket", n)
		return
	case "disconnect":
		if f.Reason == "link_disabled" {
			r.Log.Error("Socket Mode was switched off for this app, so nothing is received: switch it on again on the app's page Socket Mode, or use COUNTERSIGN_TRANSPORT=http")
			c.stop()
			return
		}
		if f.Reason == "too_many_websockets" { // a refusal of this connection, and not a wish for a replacement
			r.Log.Warn("Slack refused a connection, because this app has as many connections as Slack allows; trying again", "socket", n)
			c.stop()
			return
		}
		r.Log.Debug("Slack wants a connection replaced", "socket", n, "reason", f.Reason)
		c.leave()
		return
	}
	kind, ok := kinds[f.Type]
	if !ok || f.Envelope == "" {
		r.Log.Warn("Slack sent a frame of an unknown type; it is not acknowledged", "type", f.Type)
		return
	}
	c.unacked.Add(1)
	d := Delivery{Kind: kind, Payload: f.Payload, ReceivedAt: r.clock.Next(r.Now())}
	r.lanes.add(r.Handler.Lane(d), func() {
		defer c.unacked.Done()
		r.process(c, f.Envelope, d)
	})
}

// process makes a delivery durable, and then acknowledges it.
func (r *reader) process(c *connection, envelope string, d Delivery) {
	answer, err := r.receive(r.work, d, &r.began)
	if err != nil {
		return
	}
	if err := c.ack(envelope, answer); err != nil {
		r.Log.Warn("an acknowledgement could not be sent; Slack will deliver again", "error", err)
	}
}
