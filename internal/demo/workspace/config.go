package workspace

import (
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"countersign/internal/demo/workspace/delivery"
)

// Config configures a workspace. Every field except Seed has a default.
type Config struct {
	// Seed is the initial content of the workspace. Seed must be valid. ReadSeed and DemoSeed return valid seeds.
	Seed Seed

	// DataFile is the file that keeps the state between runs. If DataFile is empty, no state is kept. If the file
	// exists, its state replaces Seed. Only the tokens and the app's settings come from Seed.
	DataFile string

	// BaseURL is the URL of this server for clients ("http://127.0.0.1:8484"). If BaseURL is empty, the workspace uses
	// the Host of each request.
	BaseURL string

	// Now is the workspace's clock, for timestamps, do-not-disturb, response URLs, rate limits and the page. Now may
	// run ahead of the machine's clock, for example in a scenario that plays days in seconds. The app's short deadlines
	// (acknowledgements, retries, triggers and tickets) always use the machine's clock.
	Now func() time.Time

	// Log receives messages for the operator. Message text is never logged.
	Log *slog.Logger

	// AckTimeout is how long the app may take to acknowledge (Slack: 3 s).
	AckTimeout time.Duration
	// RetryDelays are the delays before each repetition of an unacknowledged event (Slack: almost none, one minute,
	// five minutes).
	RetryDelays []time.Duration
	// TriggerTTL is the lifetime of a trigger_id (Slack: 3 s).
	TriggerTTL time.Duration
	// PingInterval is the time between two pings on a socket. The first ping is sent immediately.
	PingInterval time.Duration
	// StatusTTL is how long an assistant status is shown (Slack: 2 minutes).
	StatusTTL time.Duration
	// StreamIdle is the maximum time between two appends to a streamed message. Slack ends a stream that is idle for
	// longer, but does not document the time.
	StreamIdle time.Duration

	// Mishaps returns the fault of each delivery attempt. If Mishaps is nil, no attempt has a fault. The function must
	// return immediately, and must not call the workspace.
	Mishaps func(delivery.Attempt) delivery.Mishap

	// App receives deliveries in place of sockets and request URLs.
	App delivery.App

	// HTTP is the client for the app's request URLs. If HTTP is nil, a default client is used. The client follows
	// redirects as Slack does.
	HTTP *http.Client

	// Pick chooses one of n sockets for an envelope (Slack may choose any socket).
	Pick func(n int) int

	machine func() time.Time // the machine's own clock; tests stop it

	// RealRates turns Slack's rate limits on from the start (see Server.SetRealRates).
	RealRates bool
}

func (c Config) withDefaults() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.machine == nil {
		c.machine = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.AckTimeout == 0 {
		c.AckTimeout = 3 * time.Second
	}
	if c.RetryDelays == nil {
		c.RetryDelays = []time.Duration{0, time.Minute, 5 * time.Minute}
	}
	if c.TriggerTTL == 0 {
		c.TriggerTTL = 3 * time.Second
	}
	if c.PingInterval == 0 {
		c.PingInterval = 10 * time.Second
	}
	if c.StatusTTL == 0 {
		c.StatusTTL = 2 * time.Minute
	}
	if c.StreamIdle == 0 {
		c.StreamIdle = 5 * time.Minute
	}
	if c.Pick == nil {
		c.Pick = rand.IntN
	}
	return c
}
