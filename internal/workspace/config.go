package workspace

import (
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"
)

// Config says how a workspace starts and how it keeps time. The zero value of every
// field but Seed has a default.
type Config struct {
	// Seed is who and what is in the workspace at its first start. It must be valid
	// (ReadSeed and DemoSeed return valid ones).
	Seed Seed

	// DataFile is where the workspace keeps itself between runs; empty keeps nothing.
	// An existing file wins over Seed, except for tokens and the app's settings.
	DataFile string

	// BaseURL is how others reach this server ("http://127.0.0.1:8484"). Empty takes
	// it from each request's Host.
	BaseURL string

	// Now is the workspace's clock. Timestamps, do-not-disturb, response URLs, rate limits and what the page shows go by it. It may jump
	// ahead of the machine's, as in a scenario that plays days in seconds. What an app has to do within moments doesn't: acknowledgements,
	// retries, triggers and tickets always go by the machine's own clock.
	Now func() time.Time

	// Log receives what an operator may want to know; message text is never logged.
	Log *slog.Logger

	// AckTimeout is how long the app may take to acknowledge (Slack: 3 s).
	AckTimeout time.Duration
	// RetryDelays are the waits before an unacknowledged event is sent again
	// (Slack: nearly at once, one minute, five minutes).
	RetryDelays []time.Duration
	// TriggerTTL is how long a trigger_id lives (Slack: 3 s).
	TriggerTTL time.Duration
	// PingInterval is the time between two pings on a socket; one is sent at once.
	PingInterval time.Duration
	// StatusTTL is how long an assistant status is shown (Slack: 2 minutes).
	StatusTTL time.Duration
	// StreamIdle is how long a streamed message may go without an append (Slack ends
	// such a stream; the exact time is not documented).
	StreamIdle time.Duration

	// Mishaps says what becomes of each attempt to deliver something; nil: it arrives. It must return at once, and call nothing of the
	// workspace.
	Mishaps func(Attempt) Mishap

	// App takes deliveries in place of the app's sockets and request URLs.
	App App

	// HTTP is what the app's request URLs are called with; nil: a client of its own. Redirects are followed as Slack follows them.
	HTTP *http.Client

	// Pick chooses one of n sockets for an envelope (Slack: any of them).
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
