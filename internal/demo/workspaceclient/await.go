package workspaceclient

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Await calls the function done after each change that the person can see, and at least every quarter of a second. When
// done returns true, Await returns. When ctx ends, Await returns an error that contains the text what.
func (v Client) Await(ctx context.Context, what string, done func() (bool, error)) error {
	changed, stop, err := v.listen(ctx)
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	defer stop()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s: %w", what, ctx.Err())
		case <-changed:
		case <-tick.C:
		}
	}
}

// listen returns a channel that signals changes in the workspace.
func (v Client) listen(ctx context.Context) (<-chan struct{}, func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	path := strings.TrimSuffix(v.Base, "/") + "/events?user=" + url.QueryEscape(v.User)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	resp, err := v.client().Do(req) // the goroutine that reads the body closes it
	if err != nil {
		cancel()
		return nil, nil, err
	}
	changed, over := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(over)
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			if !strings.HasPrefix(lines.Text(), "data:") {
				continue
			}
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}()
	return changed, func() { cancel(); <-over }, nil
}
