package slackapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slack-go/slack"
)

// limiterHarness is a stub of Slack. limiterHarness records every call that passes the rate limiter, and answers as the
// test says.
type limiterHarness struct {
	*testing.T
	api    *Client
	gov    *rateLimiter
	log    *lockedBuffer
	began  time.Time
	answer func(c passed) (*http.Response, error) // nil: every call succeeds

	mu     sync.Mutex
	calls  []passed
	counts map[Call]int
}

// passed is a call that was made.
type passed struct {
	method, channel, text string
	at                    time.Duration // time since the test began
}

func newLimiterHarness(t *testing.T, unlimited bool) *limiterHarness {
	g := &limiterHarness{T: t, log: new(lockedBuffer), began: time.Now(), counts: map[Call]int{}}
	g.api = New(Options{
		BotToken: "xoxb-1", Log: slog.New(slog.NewTextHandler(g.log, nil)), HTTP: &http.Client{Transport: g, Timeout: 20 * time.Second}, Unlimited: unlimited,
		Count: func(_ context.Context, c Call) {
			if c.Began.IsZero() || c.Began.After(time.Now()) {
				t.Errorf("the call of %s began at %s", c.Method, c.Began)
			}
			c.Began = time.Time{}
			g.mu.Lock()
			defer g.mu.Unlock()
			g.counts[c]++
		},
	})
	g.gov = g.api.limiter
	return g
}

// RoundTrip answers each call in place of Slack.
func (g *limiterHarness) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	c := passed{strings.TrimPrefix(req.URL.Path, "/api/"), form.Get("channel"), form.Get("text"), time.Since(g.began)}
	g.mu.Lock()
	g.calls = append(g.calls, c)
	answer := g.answer
	g.mu.Unlock()
	if answer != nil {
		if resp, err := answer(c); resp != nil || err != nil {
			return resp, err
		}
	}
	return response(http.StatusOK, `{"ok":true,"channel":"C1","ts":"1.1"}`), nil
}

func response(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// limited returns a refusal with the time to wait.
func limited(seconds int) *http.Response {
	resp := response(http.StatusTooManyRequests, `{"ok":false,"error":"ratelimited"}`)
	resp.Header.Set("Retry-After", fmt.Sprint(seconds))
	return resp
}

func (g *limiterHarness) post(p Priority, channel, text string) error {
	_, _, err := g.api.PostMessageContext(WithCallPriority(g.Context(), CallPriority{Priority: p}), channel, slack.MsgOptionText(text, false))
	return err
}

func (g *limiterHarness) update(p Priority) error {
	_, _, _, err := g.api.UpdateMessageContext(WithCallPriority(g.Context(), CallPriority{Priority: p}), "C1", "1.1", slack.MsgOptionText("x", false))
	return err
}

// insistInFlow is like insist, for a post of a flow.
func (g *limiterHarness) insistInFlow(flow, channel, text string) {
	g.insist(PriorityNormal, func(ctx context.Context) error {
		e := priorityOf(ctx)
		e.Flow = flow
		_, _, err := g.api.PostMessageContext(WithCallPriority(ctx, e), channel, slack.MsgOptionText(text, false))
		return err
	})
}

// insist makes a call as the scheduler does: a call that is put off is tried again at the time that the error names.
func (g *limiterHarness) insist(p Priority, call func(context.Context) error) {
	for again := false; ; again = true {
		err := call(WithCallPriority(g.Context(), CallPriority{Priority: p, Retry: again}))
		if err == nil {
			return
		}
		err = WithDelay(err)
		var put putOffError
		if !errors.As(err, &put) || put.After() <= 0 {
			g.Errorf("refused with %v", err)
			return
		}
		time.Sleep(put.After())
	}
}

func (g *limiterHarness) insistOnPost(p Priority, channel, text string) {
	g.insist(p, func(ctx context.Context) error {
		_, _, err := g.api.PostMessageContext(ctx, channel, slack.MsgOptionText(text, false))
		return err
	})
}

// made returns the calls to a method so far, in order.
func (g *limiterHarness) made(method string) (out []passed) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.calls {
		if c.method == method {
			out = append(out, c)
		}
	}
	return out
}

// The method "heard" returns the number of calls so far.
func (g *limiterHarness) heard() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.calls)
}

func (g *limiterHarness) wantPutOff(err error, least, most time.Duration) {
	g.Helper()
	var put putOffError
	if !errors.As(WithDelay(err), &put) || put.After() < least || put.After() > most {
		g.Errorf("%v (%s); want it put off for %s to %s", err, put.After(), least, most)
	}
}

// Calls within Slack's limits are made immediately.
func TestNothingWaitsBelowTheLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiterHarness(t, false)
		for minute := range 5 {
			for i := range 35 {
				if err := g.update(PriorityLast); err != nil {
					t.Fatal(err)
				}
				if err := g.post(PriorityLast, fmt.Sprint("C", i), "x"); err != nil {
					t.Fatal(err)
				}
				if _, err := g.api.GetUserInfoContext(t.Context(), "U1"); err != nil {
					t.Fatal(err)
				}
			}
			if since := time.Since(g.began); since != time.Duration(minute)*61*time.Second {
				t.Fatalf("in minute %d calls within the limits took until %s", minute, since)
			}
			time.Sleep(61 * time.Second)
		}
	})
}

// A thousand answers in one channel are posted in order: first a burst, then one each second. Cards for the same
// channel, forms and other channels do not wait for these answers.
func TestOrderOfPosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiterHarness(t, false)
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() { g.insistOnPost(PriorityLast, "C1", fmt.Sprint("answer ", i)) })
			synctest.Wait() // so that the answers arrive in this order
		}
		if at := time.Since(g.began); at != 0 {
			t.Errorf("the post was delayed by %s", at)
		}
		time.Sleep(100 * time.Second)
		at := time.Since(g.began)
		for i := range 2 {
			if err := g.post(PriorityFirst, "C1", fmt.Sprint("card ", i)); err != nil {
				t.Errorf("a card waits behind answers: %v", err)
			}
		}
		if err := g.post(PriorityLast, "C2", "elsewhere"); err != nil {
			t.Errorf("an answer in another channel waits: %v", err)
		}
		if _, err := g.api.OpenViewContext(WithCallPriority(t.Context(), CallPriority{Priority: PriorityUrgent}), "trigger", slack.ModalViewRequest{}); err != nil {
			t.Errorf("a form waits: %v", err)
		}
		if waited := time.Since(g.began) - at; waited != 0 {
			t.Errorf("they waited for %s", waited)
		}
		all.Wait()
		posts := slices.DeleteFunc(g.made(posting), func(c passed) bool { return c.channel != "C1" })
		if len(posts) != 1002 {
			t.Fatalf("%d posts; want 1002", len(posts))
		}
		for i, c := range posts {
			if i >= postBurst && c.at-posts[i-postBurst].at < postEvery {
				t.Errorf("more than %d posts from %s to %s", postBurst, posts[i-postBurst].at, c.at)
			}
		}
		if last := posts[1001].at; last > 1010*postEvery {
			t.Errorf("the last was posted after %s", last)
		}
		answers := slices.DeleteFunc(posts, func(c passed) bool { return strings.HasPrefix(c.text, "card") })
		for i, c := range answers {
			var n int
			if _, err := fmt.Sscanf(c.text, "answer %d", &n); err != nil || max(i-n, n-i) > 100 { // a post can lose its turn to another post of the same moment, and is then some turns late
				t.Errorf("answer %d was posted as number %d", n, i)
			}
		}
	})
}

// Cards for one channel were put off, because many came at once. A card of another flow does not wait behind these
// cards. A line, which is the queue of one flow's calls, is dropped when its time is over.
func TestFlowsOfPosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiterHarness(t, false)
		var all sync.WaitGroup
		post := func(flow string) {
			all.Go(func() { g.insistInFlow(flow, "C1", flow) })
			synctest.Wait()
		}
		for range 90 {
			post("flood")
		}
		time.Sleep(10500 * time.Millisecond)
		at := time.Since(g.began)
		post("mine")
		all.Wait()
		posts := g.made(posting)
		if len(posts) != 91 {
			t.Fatalf("%d posts", len(posts))
		}
		i := slices.IndexFunc(posts, func(c passed) bool { return c.text == "mine" })
		if waited := posts[i].at - at; waited > 3*time.Second {
			t.Errorf("the card was posted after %s", waited)
		}
		for i := range 3 * maxLines {
			post(fmt.Sprint("flow ", i))
			time.Sleep(500 * time.Millisecond)
		}
		all.Wait()
		time.Sleep(time.Minute)
		for i := range 10 {
			post(fmt.Sprint("later ", i))
		}
		all.Wait()
		g.gov.mu.Lock()
		defer g.gov.mu.Unlock()
		if n := len(g.gov.limitFor(posting + " C1").turns); n > maxLines {
			t.Errorf("%d lines are kept", n)
		}
	})
}

// A part of a method's calls per minute is reserved for higher priorities. Urgent calls ignore the limit.
func TestSharesOfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiterHarness(t, false)
		for _, c := range []struct {
			p     Priority
			until int
		}{{PriorityTransient, 20}, {PriorityLast, 35}, {PriorityReply, 43}, {PriorityNormal, 45}, {PriorityFirst, 50}} {
			for len(g.made("chat.update")) < c.until {
				if err := g.update(c.p); err != nil {
					t.Fatalf("update %d: %v", len(g.made("chat.update"))+1, err)
				}
			}
			g.wantPutOff(g.update(c.p), time.Minute, 62*time.Second)
		}
		if err := g.update(PriorityUrgent); err != nil {
			t.Errorf("a message that somebody waits for was put off: %v", err)
		}
		time.Sleep(61 * time.Second)
		if err := g.update(PriorityFirst); err != nil {
			t.Errorf("after a minute: %v", err)
		}
	})
}

// Calls to usergroups.list are spread over the minute: four at once, then one every five seconds. Calls for clicks may
// use the whole burst. In any minute, Slack gets at most 16 calls.
func TestSpreadCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiterHarness(t, false)
		list := func(ctx context.Context) error {
			_, err := g.api.GetUserGroupsContext(ctx)
			return err
		}
		for range 3 {
			if err := list(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		g.wantPutOff(list(t.Context()), 5*time.Second, 5*time.Second)
		if err := list(WithCallPriority(t.Context(), CallPriority{Priority: PriorityFirst})); err != nil {
			t.Fatal(err)
		}
		for time.Since(g.began) < 3*time.Minute {
			g.insist(PriorityFirst, list)
		}
		calls := g.made("usergroups.list")
		for i := 16; i < len(calls); i++ {
			if calls[i].at-calls[i-16].at < time.Minute {
				t.Errorf("17 calls from %s to %s", calls[i-16].at, calls[i].at)
			}
		}
		if len(calls) != 4+3*60/5 {
			t.Errorf("%d calls in three minutes", len(calls))
		}
	})
}

// Each of the processes that share Slack's limits uses only its part. The parts change immediately when the number of
// processes changes. A single call does not wait.
func TestSharedLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiterHarness(t, false)
		processes := 1
		g.gov.share = func() (int, time.Time) { return processes, time.Time{} }
		posts := func(channel string) (n int) { // counts the posts that are made within a minute
			for end := time.Now().Add(time.Minute); ; n++ {
				g.insistOnPost(PriorityFirst, channel, "x")
				if time.Now().After(end) {
					return n
				}
			}
		}
		if n := posts("C1"); n < 60 || n > 66 {
			t.Errorf("alone: %d posts a minute", n)
		}
		processes = 3
		time.Sleep(time.Minute)
		if err := g.post(PriorityNormal, "C2", "x"); err != nil {
			t.Errorf("a single post: %v", err)
		}
		if n := posts("C3"); n < 20 || n > 24 {
			t.Errorf("one of three: %d posts a minute", n)
		}
		for len(g.made("chat.update")) < 16 {
			if err := g.update(PriorityFirst); err != nil {
				t.Fatal(err)
			}
		}
		g.wantPutOff(g.update(PriorityFirst), 50*time.Second, 62*time.Second)
		processes = 1
		time.Sleep(2 * time.Minute)
		for n := range 50 {
			if err := g.update(PriorityFirst); err != nil {
				t.Fatalf("alone again, update %d: %v", n, err)
			}
		}
	})
}

// A single call of any priority does not wait, even if many processes share the limits.
func TestSharedLimitsLeaveOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiterHarness(t, false)
		processes := 0
		g.gov.share = func() (int, time.Time) { return processes, time.Time{} }
		for processes = 1; processes <= 10; processes++ {
			for p := range priorities {
				time.Sleep(2 * time.Minute)
				if err := g.post(p, "C1", "x"); err != nil {
					t.Errorf("one of %d processes, a post of priority %d: %v", processes, p, err)
				}
				if err := g.update(p); err != nil {
					t.Errorf("one of %d processes, an update of priority %d: %v", processes, p, err)
				}
			}
		}
	})
}

// If two processes receive each other's calls, together they use the whole limits. A call of one process also counts in
// the other process. If Slack asks one process to wait, the other process waits too. A process uses only its part until
// it has received the other process's calls for a minute.
func TestLimitsOfProcessesThatHear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newLimiterHarness(t, false), newLimiterHarness(t, false)
		hears := time.Now()
		for _, g := range []*limiterHarness{a, b} {
			g.gov.share = func() (int, time.Time) { return 2, hears }
		}
		a.gov.tell, b.gov.tell = b.gov.hear, a.gov.hear
		updates := func(g *limiterHarness, most int) (n int) {
			for n < most && g.update(PriorityFirst) == nil {
				n++
			}
			return n
		}
		if n := updates(a, 100); n != 25 {
			t.Errorf("it has not heard for a minute: %d updates; want half of the limit", n)
		}
		time.Sleep(2 * time.Minute)
		if n := updates(a, 40); n != 40 {
			t.Errorf("%d updates; want 40, as the other one makes none", n)
		}
		if n := updates(b, 100); n != 8 {
			t.Errorf("%d updates; want 8, as the other one has made 40 of 48", n)
		}
		posts := 0
		for end := time.Now().Add(time.Minute); time.Now().Before(end); posts++ {
			a.insistOnPost(PriorityFirst, "C1", "x")
			b.insistOnPost(PriorityFirst, "C1", "x")
		}
		if posts < 28 || posts > 34 {
			t.Errorf("each posted %d times in a minute; want 30, which are 60 together", posts)
		}
		time.Sleep(time.Minute)
		a.answer = func(passed) (*http.Response, error) { return limited(40), nil }
		_ = a.post(PriorityFirst, "C2", "x")
		b.wantPutOff(b.post(PriorityFirst, "C2", "x"), 40*time.Second, 41*time.Second)
		if err := b.post(PriorityFirst, "C3", "x"); err != nil {
			t.Errorf("in another channel: %v", err)
		}
		hears = time.Time{}
		time.Sleep(2 * time.Minute)
		if n := updates(b, 100); n != 25 {
			t.Errorf("it does not hear any more: %d updates; want half of the limit", n)
		}
	})
}

// A critical card of one process goes before other processes' answers in the same channel, even if the answers keep the
// channel busy.
func TestUrgentBeforeAnswersOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := newLimiterHarness(t, false), newLimiterHarness(t, false), newLimiterHarness(t, false)
		all := []*limiterHarness{a, b, c}
		for _, g := range all {
			g.gov.share = func() (int, time.Time) { return len(all), a.began }
			g.gov.tell = func(told Told) {
				for _, other := range all {
					if other != g {
						other.gov.hear(told)
					}
				}
			}
		}
		time.Sleep(2 * time.Minute) // after this time, each process counts the calls of the others
		ctx, stop := context.WithCancel(t.Context())
		var others sync.WaitGroup
		for _, g := range []*limiterHarness{b, c} {
			for range 4 {
				others.Go(func() {
					for ctx.Err() == nil {
						g.insistOnPost(PriorityReply, "C1", "answer")
					}
				})
			}
		}
		for range 20 {
			time.Sleep(5300 * time.Millisecond)
			for range 2 { // counted calls that failed before they reached Slack: only this process counts them
				a.gov.hear(Told{Method: posting, Channel: "C1"})
			}
			began, enough := time.Now(), time.AfterFunc(time.Minute, stop)
			a.insistOnPost(PriorityFirst, "C1", "card")
			enough.Stop()
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("the card waited for %s behind answers of other processes", took)
			}
		}
		stop()
		others.Wait()
	})
}

// After Slack has refused a post, an urgent post is made at the time that Slack named. This applies even if the limit
// of this process has grown after the refusal.
func TestUrgentAfterARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiterHarness(t, false)
		g.gov.share = func() (int, time.Time) { return 3, g.began }
		time.Sleep(40 * time.Second)
		g.answer = func(passed) (*http.Response, error) { return limited(30), nil }
		_ = g.post(PriorityFirst, "C1", "card")
		g.answer = nil
		g.insistOnPost(PriorityFirst, "C1", "card")
		if took := time.Since(g.began); took < 70*time.Second || took > 71*time.Second {
			t.Errorf("posted after %s; want 1m10s", took)
		}
	})
}

// After Slack refuses a post, nothing is posted in that channel before the time that Slack names. If Slack also refuses
// a second channel, the bot posts in no channel.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiterHarness(t, true)
		refuse := map[string]int{"C1": 30, "C2": 60}
		g.answer = func(c passed) (*http.Response, error) {
			wait := refuse[c.channel]
			delete(refuse, c.channel)
			if c.method != posting || wait == 0 {
				return nil, nil
			}
			return limited(wait), nil
		}
		g.wantPutOff(g.post(PriorityNormal, "C1", "x"), 30*time.Second, 30*time.Second)
		time.Sleep(10 * time.Second)
		g.wantPutOff(g.post(PriorityUrgent, "C1", "x"), 20*time.Second, 21*time.Second)
		if err := g.post(PriorityLast, "C3", "x"); err != nil {
			t.Errorf("another channel: %v", err)
		}
		if err := g.update(PriorityLast); err != nil {
			t.Errorf("another method: %v", err)
		}
		g.wantPutOff(g.post(PriorityNormal, "C2", "x"), time.Minute, time.Minute) // refused by Slack
		for _, channel := range []string{"C1", "C2", "C3"} {
			g.wantPutOff(g.post(PriorityFirst, channel, "x"), 59*time.Second, 62*time.Second)
		}
		if n := len(g.made(posting)); n != 3 {
			t.Errorf("Slack was asked %d times; want 3", n)
		}
		time.Sleep(time.Minute)
		for _, channel := range []string{"C1", "C2", "C3"} {
			if err := g.post(PriorityUrgent, channel, "x"); err != nil {
				t.Errorf("when the time is over, in %s: %v", channel, err)
			}
		}
		if got := g.counts[Call{Method: posting, Outcome: CallLimited}]; got != 2 {
			t.Errorf("%d refusals were counted", got)
		}
	})
}

// Slack refuses all posts for 20 seconds, and does not say how long to wait. After each refusal, the bot waits for
// defaultRetryAfter. In the end, every message is posted once.
func TestRefusalsWithoutATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiterHarness(t, false)
		g.answer = func(c passed) (*http.Response, error) {
			if c.at < 20*time.Second {
				return response(http.StatusTooManyRequests, ""), nil
			}
			return nil, nil
		}
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() { g.insistOnPost(PriorityNormal, "C1", fmt.Sprint(i)) })
		}
		all.Wait()
		posts := g.made(posting)
		for i, c := range posts[1:] {
			if before := posts[i]; before.at < 20*time.Second && c.at != before.at && c.at-before.at < defaultRetryAfter {
				t.Errorf("asked again after %s", c.at-before.at)
			}
		}
		if first := slices.IndexFunc(posts, func(c passed) bool { return c.at >= 20*time.Second }); first < 0 || len(posts)-first != 20 || first > 25 {
			t.Errorf("%d calls; the first accepted one is number %d", len(posts), first)
		}
	})
}

// If a message needs a later update, it is posted only if the limit allows the update. The reserved update is not
// delayed.
func TestRoomForAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiterHarness(t, false)
		post := func(i int) error {
			_, _, err := g.api.PostMessageContext(WithCallPriority(g.Context(), CallPriority{Priority: PriorityLast, WillChange: true}), fmt.Sprint("C", i), slack.MsgOptionText("x", false))
			return err
		}
		settle := func() error {
			_, _, _, err := g.api.UpdateMessageContext(WithCallPriority(g.Context(), CallPriority{Priority: PriorityLast, UsesReserved: true}), "C1", "1.1", slack.MsgOptionText("x", false))
			return err
		}
		for i := range 35 {
			if err := post(i); err != nil {
				t.Fatalf("post %d: %v", i, err)
			}
		}
		g.wantPutOff(post(35), redrawAgain, redrawAgain)
		if err := g.post(PriorityLast, "C35", "x"); err != nil {
			t.Errorf("a message that will not be updated: %v", err)
		}
		if err := g.update(PriorityTransient); err == nil {
			t.Error("a transient update used a reservation")
		}
		if !g.gov.scarce() {
			t.Error("updates do not count as scarce")
		}
		for i := range 35 {
			if err := settle(); err != nil {
				t.Fatalf("change %d: %v", i, err)
			}
		}
		time.Sleep(minute)
		if err := post(36); err != nil || g.gov.scarce() {
			t.Errorf("after a minute: %v", err)
		}
	})
}

// lockedBuffer collects the log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
