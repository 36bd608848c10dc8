package visitor

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Await looks until done reports true, each time that something changed for the person, and at the latest each quarter of a
// second. It gives up with ctx, and then says what it waited for.
func (v Visitor) Await(ctx context.Context, what string, done func() (bool, error)) error {
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

// listen rings when the workspace says that something changed.
func (v Visitor) listen(ctx context.Context) (<-chan struct{}, func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	path := strings.TrimSuffix(v.Base, "/") + "/events?user=" + url.QueryEscape(v.User)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	resp, err := v.client().Do(req) // closed by the goroutine that reads it
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
