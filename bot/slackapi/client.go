package slackapi

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/slack-go/slack"
)

// Options configure a client. BotToken and Log are required.
type Options struct {
	BotToken string       // xoxb-…
	AppToken string       // xapp-…, for Socket Mode
	URL      string       // base of the Web API; empty: Slack's
	HTTP     *http.Client // nil: a client with a timeout
	// Share returns the number of processes that share Slack's limits. The result hears is the time at which this process
	// began to receive the messages of the other processes (Tell). If this process does not receive them, hears is zero.
	// If Share is nil, this process is the only one.
	Share     func() (processes int, hears time.Time)
	Tell      func(Told)                  // sends a message to the other processes; may be nil
	Unlimited bool                        // do not apply Slack's published limits; a limit applies only after Slack has refused a call because of it
	Count     func(context.Context, Call) // is called after each call that its caller did not cancel; may be nil
	Recovered func()                      // is called when Slack answers again after an outage; may be nil
	Rescoped  func()                      // is called when Slack says that the bot token has other scopes than before; may be nil
	// Expired is called when Slack refuses a call because the bot token is no longer valid. Such a call counts as a call
	// without an answer, because it succeeds with the next token. If Expired is nil, the call counts as refused.
	Expired func()
	Log     *slog.Logger
}

// Client calls Slack's Web API within its limits. Client is safe for concurrent use.
type Client struct {
	*slack.Client
	limiter *rateLimiter
	scopes  *scopeReader
	tokens  *tokenWriter
	made    Options // the options, with the tokens that slack.Client has
}

// New returns a client. New makes no call.
func New(o Options) *Client {
	if o.HTTP == nil {
		o.HTTP = &http.Client{Timeout: 20 * time.Second}
	}
	if o.URL == "" {
		o.URL = slack.APIURL
	}
	o.URL = strings.TrimSuffix(o.URL, "/") + "/"
	if o.Count == nil {
		o.Count = func(context.Context, Call) {}
	}
	if o.Tell == nil {
		o.Tell = func(Told) {}
	}
	if o.Recovered == nil {
		o.Recovered = func() {}
	}
	if o.Rescoped == nil {
		o.Rescoped = func() {}
	}
	limiter := newRateLimiter(o)
	tokens := &tokenWriter{next: limiter.next}
	limiter.next = tokens
	c := &Client{limiter: limiter, tokens: tokens, made: o, scopes: &scopeReader{next: limiter, changed: o.Rescoped}}
	guarded := *o.HTTP
	guarded.Transport = sizeGuard{c.scopes, o.Log}
	c.Client = slack.New(o.BotToken, slack.OptionHTTPClient(&guarded), slack.OptionAppLevelToken(o.AppToken), slack.OptionAPIURL(o.URL))
	c.limiter.breaker.probe = func(ctx context.Context) error {
		_, err := c.AuthTestContext(WithCallPriority(ctx, CallPriority{probe: true}))
		return err
	}
	return c
}

// SetTokens replaces the tokens of all later calls. An empty argument leaves the token of this kind unchanged.
func (c *Client) SetTokens(bot, app string) {
	replacements := map[string]string{c.made.BotToken: bot, c.made.AppToken: app}
	delete(replacements, "") // an empty old token would match a call without a token
	c.tokens.rotate(replacements)
}

// Available returns nil while Slack answers. During an outage, its error says since when Slack has not answered.
func (c *Client) Available() error { return c.limiter.breaker.state() }

// Worth reports whether a call may succeed now. The result is true if Slack answers, or if the next call would test
// whether Slack answers.
func (c *Client) Worth() bool { return c.limiter.breaker.worth() }

// Watch runs until ctx ends. During an outage, Watch tests whether Slack answers again.
func (c *Client) Watch(ctx context.Context) { c.limiter.breaker.watch(ctx) }

// Hear handles a message (Told) from another process that shares Slack's limits.
func (c *Client) Hear(t Told) { c.limiter.hear(t) }

// UpdatesScarce reports whether the rate limit of chat.update is nearly reached. If so, the caller should use
// alternatives to chat.update.
func (c *Client) UpdatesScarce() bool { return c.limiter.scarce() }

// Sleep waits for a duration. If ctx ends first, Sleep returns the context's error.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
