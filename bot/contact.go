package bot

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

// contact is whether Slack answers. While it does not, nothing is asked of it but that: thousands of calls that fail would tell nobody anything, and
// after each that got no answer it would have to be found out whether it was carried out all the same.
type contact struct {
	log   *slog.Logger
	probe func(context.Context) error // asks Slack whether it is there
	back  func()                      // is called when it is

	mu       sync.Mutex
	failures int       // calls in a row that got no answer
	since    time.Time // of the first of them
	cause    error     // of the last
	down     bool
	watched  bool // somebody looks whether it is back; otherwise those who want to call do
	probing  bool
	pause    time.Duration // between probes
	next     time.Time     // when the next one is due
}

const (
	downAfter    = 5 // failures in a row
	firstPause   = time.Second
	longestPause = 30 * time.Second
	probeTime    = 10 * time.Second // less than a call may take, for whose sake it may be asked
)

// errDown says that a call was not made because Slack does not answer.
var errDown = errors.New("Slack does not answer")

// made reports whether there is contact, or says when to try again.
func (c *contact) made(ctx context.Context) error {
	c.mu.Lock()
	down, watched, wait := c.down, c.watched, time.Until(c.next)
	c.mu.Unlock()
	switch {
	case !down:
		return nil
	case watched || wait > 0:
		return later{errDown, max(wait, firstPause)}
	}
	return c.look(ctx)
}

// look asks Slack whether it is back, if nobody asks already and it is time to.
func (c *contact) look(ctx context.Context) error {
	c.mu.Lock()
	if c.probing || !c.down || time.Until(c.next) > 0 {
		defer c.mu.Unlock()
		if !c.down {
			return nil
		}
		return later{errDown, firstPause}
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
	return later{fmt.Errorf("%w: %w", errDown, err), c.pause}
}

// answered notes that a call got an answer, whichever.
func (c *contact) answered() {
	c.mu.Lock()
	wasDown, since := c.down, c.since
	c.failures, c.down, c.cause = 0, false, nil
	c.mu.Unlock()
	if wasDown {
		c.log.Info("Slack answers again; what waited for it is shown now", "after", time.Since(since).Round(time.Second))
		c.back()
	}
}

// failed notes that a call got no answer.
func (c *contact) failed(cause error) {
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
	if lost {
		c.log.Error("Slack does not answer; what it has to show waits until it does, and deadlines hold meanwhile", "error", cause)
	}
}

// state is nil while there is contact.
func (c *contact) state() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.down {
		return nil
	}
	return fmt.Errorf("%w since %s: %w", errDown, c.since.UTC().Format(time.RFC3339), c.cause)
}

// worth reports whether there is any use in calls: there is contact, or it is time to look.
func (c *contact) worth() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.down || !c.watched && !c.probing && !c.next.After(time.Now())
}

// watch looks, while there is no contact, until there is, whether or not anybody wants to call.
func (c *contact) watch(ctx context.Context) {
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
				c.log.Debug("Slack is still away", "error", err)
			}
		}
	}
}

func (c *contact) attended(by bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched = by
}

var (
	notOK = regexp.MustCompile(`"ok": ?false`)
	// Slack's own failures: nobody knows whether it did what was asked.
	slackFailed = regexp.MustCompile(`"error": ?"(internal_error|fatal_error|service_unavailable)"`)
)

// failureIn is why an answer means nothing, or nil. It leaves the answer as it was.
func failureIn(resp *http.Response) error {
	if resp.StatusCode >= http.StatusInternalServerError {
		return errors.New(resp.Status)
	}
	body := bufio.NewReaderSize(resp.Body, 256)
	head, _ := body.Peek(128) // what can't be read is noticed by whoever reads it all
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
