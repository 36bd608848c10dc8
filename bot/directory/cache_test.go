package directory

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slack-go/slack"

	"countersign/bot/bottest"
)

func TestMemory(t *testing.T) {
	now := bottest.Noon
	m := NewCache[int](func() time.Time { return now }, IdentityTTL)
	asked := 0
	ask := func() (int, error) { asked++; return asked, nil }
	get := func(fresh bool) int { v, _ := m.Get(t.Context(), "k", fresh, ask); return v }
	if get(false) != 1 || get(false) != 1 {
		t.Error("an answer is not remembered")
	}
	now = now.Add(IdentityTTL - time.Second)
	if get(false) != 1 {
		t.Error("an answer is forgotten too soon")
	}
	now = now.Add(2 * time.Second)
	if get(false) != 2 {
		t.Error("an answer is trusted too long")
	}
	if get(true) != 3 || get(false) != 3 {
		t.Error("a fresh answer is not asked for, or not remembered")
	}
	m.forget("k")
	if get(false) != 4 {
		t.Error("a forgotten answer is used")
	}
	if _, err := m.Get(t.Context(), "x", false, func() (int, error) { return 0, errors.New("no") }); err == nil {
		t.Error("an error is swallowed")
	}
	// If an event arrives while the bot asks Slack, the bot does not cache the answer, because the answer may be older
	// than the event.
	if v, _ := m.Get(t.Context(), "race", false, func() (int, error) { m.forget("race"); return 7, nil }); v != 7 {
		t.Error(v)
	}
	if v, _ := m.Get(t.Context(), "race", false, func() (int, error) { return 8, nil }); v != 8 {
		t.Error("an answer from before the change was kept")
	}
}

// requester counts the requests of a cache, and answers them one by one.
type requester struct {
	cache   *Cache[int]
	asked   int // needs no lock, because a call of ask and synctest.Wait never overlap
	proceed chan error
	got     []string // the results of all calls to Get, in the order in which they returned
}

func newRequester() *requester {
	return &requester{cache: NewCache[int](time.Now, IdentityTTL), proceed: make(chan error)}
}

func (r *requester) get(ctx context.Context, fresh bool) {
	v, err := r.cache.Get(ctx, "k", fresh, func() (int, error) {
		r.asked++
		n := r.asked
		return n, <-r.proceed
	})
	r.cache.mu.Lock()
	defer r.cache.mu.Unlock()
	r.got = append(r.got, fmt.Sprint(v, " ", err))
}

// starts starts calls to Get, and waits until all of them wait.
func (r *requester) starts(ctx context.Context, n int, fresh bool) {
	for range n {
		go r.get(ctx, fresh)
	}
	synctest.Wait()
}

// answers lets the current request end.
func (r *requester) answers(err error) {
	r.proceed <- err
	synctest.Wait()
}

func (r *requester) want(t *testing.T, asked int, got ...string) {
	t.Helper()
	if fmt.Sprint(r.got) != fmt.Sprint(got) || r.asked != asked {
		t.Errorf("%d requests, results %q; want %d, %q", r.asked, r.got, asked, got)
	}
	r.got = nil
}

// Calls without fresh share the request that is under way. A call with fresh does not use this request, because Slack
// may have read the data before the call. All calls with fresh that arrive during the request share the next one.
func TestOneRequestForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRequester()
		r.starts(t.Context(), 3, false)
		r.starts(t.Context(), 40, true)
		r.want(t, 1)
		r.answers(nil)
		r.want(t, 2, "1 <nil>", "1 <nil>", "1 <nil>")
		r.starts(t.Context(), 1, true)
		r.answers(nil)
		if len(r.got) != 40 || r.got[0] != "2 <nil>" || r.got[39] != "2 <nil>" {
			t.Errorf("40 calls with fresh got %q", r.got)
		}
		r.got = nil
		r.want(t, 3)
		r.answers(nil)
		r.want(t, 3, "3 <nil>")
		r.starts(t.Context(), 1, false)
		r.want(t, 3, "3 <nil>")
	})
}

// All calls share the error of their request. If the caller that makes the request gives up, another caller makes it.
// A caller that only waits can give up, too.
func TestRequestFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRequester()
		r.starts(t.Context(), 2, false)
		r.answers(errors.New("no"))
		r.want(t, 1, "1 no", "1 no")

		ctx, giveUp := context.WithCancel(t.Context())
		r.starts(ctx, 1, true)
		r.starts(ctx, 1, true)
		r.starts(t.Context(), 2, true)
		giveUp() // cancels two callers: one makes the current request, and the other is to make the next request
		synctest.Wait()
		r.want(t, 2, "0 context canceled")
		r.answers(ctx.Err())
		r.want(t, 3, "2 context canceled")
		r.answers(nil)
		r.want(t, 3, "3 <nil>", "3 <nil>")
	})
}

// If an event arrives during a request, later calls do not use the request's answer, because the answer may be older
// than the event.
func TestForgetDuringRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRequester()
		r.starts(t.Context(), 1, false)
		r.cache.forget("k")
		r.starts(t.Context(), 1, false)
		r.answers(nil)
		r.want(t, 2, "1 <nil>")
		r.answers(nil)
		r.want(t, 2, "2 <nil>")
	})
}

// If the rate limit puts a fresh request off for a short time, the request waits. Calls that arrive during the wait
// share the request. If the wait is too long, or the request is not fresh, all calls get the error at once.
func TestRequestWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRequester()
		r.cache.patience = 5 * time.Second
		off := func(wait time.Duration) error { return &slack.RateLimitedError{RetryAfter: wait} }
		r.starts(t.Context(), 1, true)
		r.answers(off(3 * time.Second))
		r.starts(t.Context(), 2, true)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		r.want(t, 2)
		r.answers(nil)
		r.want(t, 2, "2 <nil>", "2 <nil>", "2 <nil>")

		r.starts(t.Context(), 1, true)
		r.answers(off(3 * time.Second))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		r.answers(off(3 * time.Second))
		r.want(t, 4, fmt.Sprint("4 ", off(3*time.Second)))

		r.cache.forget("k")
		r.starts(t.Context(), 1, false)
		r.answers(off(time.Second))
		r.want(t, 5, fmt.Sprint("5 ", off(time.Second)))
	})
}
