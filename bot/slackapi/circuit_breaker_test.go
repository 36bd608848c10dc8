package slackapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// outages lists the kinds of Slack's failures, each with the time until a call has failed.
var outages = map[string]struct {
	took   time.Duration
	answer func() (*http.Response, error)
}{
	"unreachable": {0, func() (*http.Response, error) { return nil, errors.New("connection refused") }},
	"overloaded":  {0, func() (*http.Response, error) { return response(http.StatusServiceUnavailable, "<html>"), nil }},
	"broken": {0, func() (*http.Response, error) {
		return response(http.StatusOK, `{"ok":false,"error":"internal_error"}`), nil
	}},
	"never answers": {20 * time.Second, nil},
	"hangs up":      {time.Second, func() (*http.Response, error) { return nil, io.ErrUnexpectedEOF }},
	"fails slowly":  {10 * time.Second, func() (*http.Response, error) { return response(http.StatusBadGateway, ""), nil }},
	"fails its work": {0, func() (*http.Response, error) {
		return response(http.StatusOK, `{"error":"fatal_error","ok":false}`), nil
	}},
}

// During an outage only probes are sent. The bot tells the operator once when Slack is down, and once when Slack
// answers again.
func TestSlackIsDown(t *testing.T) {
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newLimiterHarness(t, true)
				var back atomic.Int64
				var down atomic.Bool
				g.gov.breaker.back = func() { back.Add(1) }
				g.answer = func(passed) (*http.Response, error) {
					if !down.Load() {
						return nil, nil
					}
					time.Sleep(outage.took)
					if outage.answer == nil {
						return nil, context.DeadlineExceeded
					}
					return outage.answer()
				}
				ctx, stop := context.WithCancel(t.Context())
				go g.gov.breaker.watch(ctx)
				if err := g.post(PriorityNormal, "C1", "x"); err != nil || g.gov.breaker.state() != nil || !g.gov.breaker.worth() {
					t.Fatalf("before: %v, %v", err, g.gov.breaker.state())
				}
				down.Store(true)
				for i := range downAfter {
					if err := g.post(PriorityNormal, "C1", "x"); err == nil || errors.Is(err, errDown) || IsNotSent(err) {
						t.Fatalf("failure %d: %v", i+1, err)
					}
				}
				asked := g.heard()
				for range 100 {
					err := g.post(PriorityUrgent, "C1", "x")
					g.wantPutOff(err, time.Second, longestPause)
					if !IsNotSent(err) {
						t.Errorf("%v: the error does not say that the call was not made", err)
					}
				}
				if n := g.heard(); n != asked {
					t.Errorf("%d calls were made although Slack is down", n-asked)
				}
				synctest.Wait()
				if g.gov.breaker.worth() {
					t.Error("calls count as worth making although Slack is down")
				}
				if state := g.gov.breaker.state(); !errors.Is(state, errDown) || !strings.Contains(state.Error(), "since 2000-01-01T00:00") {
					t.Errorf("the state is %v", state)
				}
				time.Sleep(9*time.Hour + 30*time.Minute)
				if n := len(g.made("auth.test")); n < 500 || n > 1200 || g.heard()-asked != n {
					t.Errorf("Slack was probed %d times, and called %d times in all", n, g.heard()-asked)
				}
				down.Store(false)
				time.Sleep(longestPause + outage.took)
				if err := g.post(PriorityNormal, "C1", "x"); err != nil || g.gov.breaker.state() != nil || back.Load() != 1 {
					t.Errorf("when it is back: %v, %v; noticed %d times", err, g.gov.breaker.state(), back.Load())
				}
				said := g.log.String()
				if strings.Count(said, "\n") != 2 || !strings.Contains(said, "Slack does not answer") || !strings.Contains(said, "Slack answers again") {
					t.Errorf("the operator was told:\n%s", said)
				}
				stop()
			})
		})
	}
}

// If Slack refuses the bot token of each call, this is an outage. It ends when the bot has another token. If Slack
// refuses the app-level token, this is not an outage of the Web API.
func TestTokenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiterHarness(t, true)
		var token atomic.Pointer[string]
		refused, accepted := `{"ok":false,"error":"account_inactive"}`, `{"ok":true,"channel":"C1","ts":"1.1"}`
		token.Store(&refused)
		g.answer = func(passed) (*http.Response, error) { return response(http.StatusOK, *token.Load()), nil }
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go g.gov.breaker.watch(ctx)
		for range 2 * downAfter {
			if _, _, err := g.api.StartSocketModeContext(ctx); ErrorCode(err) != "account_inactive" || g.api.Available() != nil {
				t.Fatalf("the app-level token: %v, and the outage: %v", err, g.api.Available())
			}
		}
		for i := range downAfter {
			if err := g.post(PriorityNormal, "C1", "x"); ErrorCode(err) != "account_inactive" || !IsRefused(err) {
				t.Fatalf("refusal %d: %v", i+1, err)
			}
		}
		g.wantPutOff(g.post(PriorityUrgent, "C1", "x"), time.Second, longestPause)
		if state := g.api.Available(); state == nil || !strings.HasPrefix(state.Error(), "since 2000-01-01T00:00:00Z, Slack refuses the bot token (account_inactive)") {
			t.Errorf("the state is %v", state)
		}
		time.Sleep(time.Hour)
		token.Store(&accepted)
		time.Sleep(longestPause)
		if err := g.post(PriorityNormal, "C1", "x"); err != nil || g.api.Available() != nil {
			t.Errorf("with another token: %v, and the outage: %v", err, g.api.Available())
		}
		said := g.log.String()
		if strings.Count(said, "\n") != 2 || !strings.Contains(said, "level=ERROR msg=\"Slack refuses the bot token;") || !strings.Contains(said, "Slack answers again") {
			t.Errorf("the operator was told:\n%s", said)
		}
	})
}

// Single failures and refusals are not an outage.
func TestSlackIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiterHarness(t, true)
		var n atomic.Int64
		answers := []func() (*http.Response, error){
			func() (*http.Response, error) {
				return response(http.StatusOK, `{"ok":false,"error":"channel_not_found"}`), nil
			},
			func() (*http.Response, error) { return limited(0), nil },
			func() (*http.Response, error) {
				return response(http.StatusOK, `{"ok":true,"message":{"text":"\"ok\":false,\"error\":\"internal_error\""}}`), nil
			},
			func() (*http.Response, error) { return response(http.StatusNotFound, ""), nil },
		}
		g.answer = func(passed) (*http.Response, error) {
			n := int(n.Add(1))
			if n%downAfter > 0 { // four of five fail
				return nil, io.ErrUnexpectedEOF
			}
			return answers[n/downAfter%len(answers)]()
		}
		for range 200 {
			if err := g.post(PriorityNormal, "C1", "x"); errors.Is(err, errDown) {
				t.Fatalf("call %d: %v", n.Load(), err)
			}
			time.Sleep(time.Second)
		}
	})
}

// Calls that the bot itself cancels do not count as an outage. For example, a replica that must stop its work cancels
// many calls.
func TestEndedCallsAreNoOutage(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	slack := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice a disconnected client
		begun <- struct{}{}
		<-r.Context().Done()
	}))
	defer slack.Close()
	c := New(Options{BotToken: "xoxb-1", URL: slack.URL + "/api", Log: slog.New(slog.DiscardHandler)})
	lost := errors.New("another replica has taken over")
	for i := range 2 * downAfter {
		ctx, end := context.WithCancelCause(t.Context())
		go func() {
			<-begun
			end(lost)
		}()
		if _, err := c.AuthTestContext(ctx); !errors.Is(err, lost) {
			t.Fatalf("call %d: got error %v, want that it was ended", i, err)
		}
	}
	if err := c.Available(); err != nil {
		t.Errorf("Slack counts as down: %v", err)
	}
}

// Without Watch, the callers test whether Slack answers. Only one caller tests at a time.
func TestSlackIsDownUnwatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiterHarness(t, true)
		var down atomic.Bool
		down.Store(true)
		g.answer = func(passed) (*http.Response, error) {
			if time.Sleep(time.Second); down.Load() {
				return nil, io.ErrUnexpectedEOF
			}
			return nil, nil
		}
		for range downAfter {
			_ = g.post(PriorityNormal, "C1", "x")
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { g.insistOnPost(PriorityNormal, "C1", "x") })
		}
		time.Sleep(time.Hour)
		if n := len(g.made("auth.test")); n < 60 || n > 130 || len(g.made(posting)) != downAfter {
			t.Errorf("Slack was probed %d times, and asked %d times to post", n, len(g.made(posting)))
		}
		down.Store(false)
		all.Wait()
		if n := len(g.made(posting)) - downAfter; n != 10 || g.gov.breaker.state() != nil {
			t.Errorf("%d posts when it was back: %v", n, g.gov.breaker.state())
		}
	})
}
