package slackapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"sync"
	"time"
)

// circuitBreaker tracks whether Slack answers. During an outage, it lets only probes pass. A probe is a call that tests
// whether Slack answers. Any other call would fail without an answer, and the bot would have to find out whether the
// call had an effect. If Slack refuses the bot token, this counts as an outage, too, because all calls fail until the
// bot has another token.
type circuitBreaker struct {
	log   *slog.Logger
	probe func(context.Context) error // tests whether Slack answers
	back  func()                      // is called after an outage

	mu       sync.Mutex
	failures int       // consecutive calls without an answer
	since    time.Time // time of the first of these failures
	cause    error     // error of the last of these failures
	down     bool
	watched  bool // the method watch sends the probes; otherwise the callers send them
	probing  bool
	pause    time.Duration // time between two probes
	next     time.Time     // when the next probe is due
}

const (
	downAfter    = 5 // number of consecutive failures after which Slack counts as down
	firstPause   = time.Second
	longestPause = 30 * time.Second
	probeTime    = 10 * time.Second // less than the timeout of the call that may have started the probe
)

// errDown says that a call was not made, because Slack does not answer.
var errDown = errors.New("Slack does not answer")

// tokenError is Slack's code in an answer that refuses the bot token.
type tokenError string

func (e tokenError) Error() string {
	return fmt.Sprintf("Slack refuses the bot token (%s). Reinstall the app, and give the bot the new token", string(e))
}

// made returns nil if a call may be made now. Otherwise made returns an error with the time of the next try.
func (c *circuitBreaker) made(ctx context.Context) error {
	c.mu.Lock()
	down, watched, wait := c.down, c.watched, time.Until(c.next)
	c.mu.Unlock()
	switch {
	case !down:
		return nil
	case watched || wait > 0:
		return putOffError{errDown, max(wait, firstPause)}
	}
	return c.look(ctx)
}

// look sends a probe to Slack if no probe is in progress, and the next probe is due.
func (c *circuitBreaker) look(ctx context.Context) error {
	c.mu.Lock()
	if c.probing || !c.down || time.Until(c.next) > 0 {
		defer c.mu.Unlock()
		if !c.down {
			return nil
		}
		return putOffError{errDown, firstPause}
	}
	c.probing = true
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	err := c.probe(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = false
	if !c.down {
		return nil
	}
	c.pause = min(2*c.pause, longestPause)
	c.next = time.Now().Add(c.pause)
	return putOffError{fmt.Errorf("%w: %w", errDown, err), c.pause}
}

// noteAnswer records that a call got an answer, successful or not.
func (c *circuitBreaker) noteAnswer() {
	c.mu.Lock()
	wasDown, since := c.down, c.since
	c.failures, c.down, c.cause = 0, false, nil
	c.mu.Unlock()
	if wasDown {
		c.log.Info("Slack answers again; waiting messages are sent now", "after", time.Since(since).Round(time.Second))
		c.back()
	}
}

// noteFailure records that a call got no answer.
func (c *circuitBreaker) noteFailure(cause error) {
	c.mu.Lock()
	now := time.Now()
	if c.failures == 0 {
		c.since = now
	}
	c.failures++
	c.cause = cause
	lost := c.failures >= downAfter && !c.down
	if lost {
		c.down, c.pause, c.next = true, firstPause, now.Add(firstPause)
	}
	c.mu.Unlock()
	switch {
	case !lost:
	case errors.As(cause, new(tokenError)):
		c.log.Error("Slack refuses the bot token; messages wait until the bot has another one, and deadlines are not extended", "error", cause)
	default:
		c.log.Error("Slack does not answer; messages wait until it does, and deadlines are not extended", "error", cause)
	}
}

// state returns nil while Slack answers.
func (c *circuitBreaker) state() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := c.since.UTC().Format(time.RFC3339)
	switch {
	case !c.down:
		return nil
	case errors.As(c.cause, new(tokenError)):
		return fmt.Errorf("since %s, %w", since, c.cause)
	}
	return fmt.Errorf("%w since %s: %w", errDown, since, c.cause)
}

// worth reports whether calls may succeed. The result is true if Slack answers, or if the next call would send a probe.
func (c *circuitBreaker) worth() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.down || !c.watched && !c.probing && !c.next.After(time.Now())
}

// watch sends probes during outages, independently of callers, until ctx ends.
func (c *circuitBreaker) watch(ctx context.Context) {
	c.attended(true)
	defer c.attended(false)
	tick := time.NewTicker(firstPause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := c.look(ctx); err != nil {
				c.log.DebugContext(ctx, "Slack still does not answer", "error", err)
			}
		}
	}
}

func (c *circuitBreaker) attended(by bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched = by
}

var (
	notOK = regexp.MustCompile(`"ok": ?false`)
	// slackFailed matches the codes of Slack's own failures. After such a failure, it is unknown whether the call took
	// effect.
	slackFailed = regexp.MustCompile(`"error": ?"(internal_error|fatal_error|service_unavailable)"`)
)

// failureIn returns the reason why a response is not a usable answer, or nil. After the check, the response can be read
// from its start.
func failureIn(resp *http.Response) error {
	if resp.StatusCode >= http.StatusInternalServerError {
		return errors.New(resp.Status)
	}
	body := bufio.NewReaderSize(resp.Body, 256)
	head, _ := body.Peek(128) // an error also reaches the reader of the body
	resp.Body = readCloser{body, resp.Body}
	if m := slackFailed.FindSubmatch(head); m != nil && notOK.Match(head) {
		return fmt.Errorf("Slack says %s", m[1])
	}
	return nil
}

type readCloser struct {
	io.Reader
	io.Closer
}
