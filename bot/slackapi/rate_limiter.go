package slackapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// rateLimiter is the transport of every call to Slack's Web API. rateLimiter applies Slack's limits and lets urgent
// calls go first. If Slack has refused a call because of a limit, the bot makes no call of the same kind before the
// time that Slack named. A call that would wait longer than patience is not made. Such a call fails with the time of
// its next try. A call within the limits passes unchanged.
type rateLimiter struct {
	next     http.RoundTripper
	base     *url.URL // base of the Web API; its path has a final slash
	limited  bool     // the published limits apply from the start; otherwise a limit applies after Slack has refused a call because of it
	count    func(context.Context, Call)
	tell     func(Told) // sends a message to the other processes
	expired  func()     // see Options.Expired; may be nil
	log      *slog.Logger
	breaker  circuitBreaker
	mu       sync.Mutex
	share    func() (n int, hears time.Time) // see Options.Share
	sharedBy sharing                         // the latest result of share
	limits   map[string]*callLimit           // the limits so far, by callLimit.key
	refused  string                          // the channel of the last refused post
	refusals time.Time                       // the end of that refusal
}

func newRateLimiter(o Options) *rateLimiter {
	l := &rateLimiter{
		next: o.HTTP.Transport, base: &url.URL{Path: "/"}, limited: !o.Unlimited, count: o.Count, tell: o.Tell, expired: o.Expired, log: o.Log,
		breaker: circuitBreaker{log: o.Log, back: o.Recovered}, share: o.Share, sharedBy: sharing{processes: 1}, limits: map[string]*callLimit{},
	}
	if l.share == nil {
		l.share = func() (int, time.Time) { return 1, time.Time{} }
	}
	if l.next == nil {
		l.next = http.DefaultTransport
	}
	if api, err := url.Parse(o.URL); err == nil {
		l.base = api
	}
	return l
}

// Call is one call to Slack's Web API that has ended.
type Call struct {
	Method  string
	Outcome CallOutcome
	Began   time.Time // when the call began, before it waited for its turn
}

// CallOutcome says how a call ended.
type CallOutcome string

// These are the outcomes of calls.
const (
	CallAnswered CallOutcome = "answered" // Slack answered with success or with a refusal
	CallLimited  CallOutcome = "limited"  // Slack asked the bot to wait
	CallFailed   CallOutcome = "failed"   // there was no usable answer
	CallPutOff   CallOutcome = "put_off"  // the call was not made: its turn has not come, or Slack does not answer
)

// errNoTurn says that a call was not made, because it is too early for the call.
var errNoTurn = errors.New("Slack's rate limit for this call is reached")

// patience is the maximum time that a call waits for its turn. A call with a longer wait is put off.
const patience = time.Second

// RoundTrip makes a call when its turn has come, or fails with the time of its next try.
func (l *rateLimiter) RoundTrip(req *http.Request) (*http.Response, error) {
	method, ok := l.methodOf(req)
	if !ok { // the response_url of a click, which has limits of its own, or the upload of a file
		resp, err := l.next.RoundTrip(req)
		if err == nil && isReply(req) {
			replied(resp)
		}
		return resp, err
	}
	began := time.Now()
	count := func(o CallOutcome) { l.count(req.Context(), Call{method, o, began}) }
	channel := ""
	if method == posting {
		channel = channelIn(req)
	}
	if err := l.admit(req.Context(), method, channel); err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		count(CallPutOff)
		return nil, err
	}
	resp, err := l.next.RoundTrip(req)
	switch {
	case err == nil && resp.StatusCode == http.StatusTooManyRequests:
		l.noteRetryAfter(method, channel, retryAfter(resp.Header))
		count(CallLimited)
		l.breaker.noteAnswer()
	case err != nil && errors.Is(req.Context().Err(), context.Canceled): // the caller cancelled the call, so err says nothing about Slack
	case err != nil:
		count(CallFailed)
		l.breaker.noteFailure(err)
	default:
		failure := failureIn(resp)
		unusable := cmp.Or(notJSON(resp), l.renewing(method, resp))
		if failure = cmp.Or(failure, unusable, refusesToken(method, resp)); failure == nil {
			count(CallAnswered)
			l.breaker.noteAnswer()
		} else {
			count(CallFailed)
			l.breaker.noteFailure(failure)
		}
		if unusable != nil {
			resp.Body.Close()
			return nil, unusable
		}
		if asksToWait(resp) {
			l.noteRetryAfter(method, channel, defaultRetryAfter)
		}
	}
	return resp, err
}

// methodOf returns the method of the Web API that a request calls. If the request calls no method, ok is false. The base
// of the Web API may be the root of a host, so the host of a response_url may also be the host of the Web API.
func (l *rateLimiter) methodOf(req *http.Request) (method string, ok bool) {
	method, ok = strings.CutPrefix(req.URL.Path, l.base.Path)
	return method, ok && req.URL.Host == l.base.Host && strings.Contains(method, ".") && !strings.Contains(method, "/")
}

// errRenewing says that a call must wait for the next bot token.
var errRenewing = errors.New("the bot token is no longer valid, and must be renewed")

// renewing returns an error if Slack refused a call because the bot token has ended, and the token can be renewed.
func (l *rateLimiter) renewing(method string, resp *http.Response) error {
	if l.expired == nil || method == opening || !tokenEnded(resp) {
		return nil
	}
	l.expired()
	return putOffError{errRenewing, firstPause}
}

// refusesToken returns an error if Slack refused a call because of the bot token.
func refusesToken(method string, resp *http.Response) error {
	if method == opening {
		return nil
	}
	if code := answersWith(resp, refusesTokenIn); code != "" {
		return tokenError(code)
	}
	return nil
}

// channelIn returns the value of the form field channel in a request.
func channelIn(req *http.Request) string {
	if req.GetBody == nil {
		return ""
	}
	body, err := req.GetBody()
	if err != nil {
		return ""
	}
	defer body.Close()
	form, err := io.ReadAll(body)
	if err != nil {
		return ""
	}
	_, rest, _ := bytes.Cut(append([]byte("&"), form...), []byte("&channel=")) // an & within a value is encoded
	value, _, _ := bytes.Cut(rest, []byte("&"))
	channel, err := url.QueryUnescape(string(value))
	if err != nil {
		return ""
	}
	return channel
}

// admit waits for the turn of a call, or fails with the time of its next try.
func (l *rateLimiter) admit(ctx context.Context, method, channel string) error {
	e := priorityOf(ctx)
	if !e.probe && method != opening { // all calls except those that detect the end of an outage
		if err := l.breaker.made(ctx); err != nil {
			return err
		}
	}
	wait, counted, err := l.take(method, channel, e)
	var put putOffError
	switch {
	case counted:
		l.tell(Told{Method: method, Channel: channel})
	case e.Priority == PriorityFirst && errors.As(err, &put):
		l.tell(Told{Method: method, Channel: channel, First: put.After()})
	}
	if err != nil || wait == 0 {
		return err
	}
	if err := Sleep(ctx, wait); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, p := range l.limitsOf(method, channel) {
		if p.until.After(now) { // Slack has refused another call meanwhile
			return putOffError{errNoTurn, p.turn(now, e).Sub(now)}
		}
	}
	return nil
}

// take reserves the turn of a call if the turn is now or soon, and returns the call's waiting time. counted is set if
// the call counts against a limit.
func (l *rateLimiter) take(method, channel string, e CallPriority) (wait time.Duration, counted bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.divide()
	applicable := l.limitsOf(method, channel)
	changes, limited := l.limitFor(changing).meter.(*window)
	if e.WillChange && creating[method] && limited && !changes.room(now, PriorityLast) {
		return 0, false, putOffError{errNoTurn, redrawAgain}
	}
	var turn time.Duration
	for _, p := range applicable {
		need := p.wait(now, e)
		if need > patience || p.queued(now, e) {
			turn = max(turn, p.turn(now, e).Sub(now))
		}
		wait = max(wait, need)
	}
	if turn > 0 {
		return 0, false, putOffError{errNoTurn, max(turn, wait)}
	}
	for _, p := range applicable {
		p.take(now.Add(wait))
		counted = counted || p.meter != nil
	}
	switch {
	case !limited:
	case e.WillChange && creating[method]:
		changes.keep(now)
	case e.UsesReserved && method == changing:
		changes.use()
	}
	return wait, counted, nil
}

// redrawAgain is the pause before the next try of a post, if the limit does not allow the message's later update.
const redrawAgain = 5 * time.Second

// The map "creating" lists the methods for new messages that may need an update later.
var creating = map[string]bool{posting: true, "chat.startStream": true}

// scarce reports whether the limit of chat.update is nearly used up. Then the bot should use alternatives.
func (l *rateLimiter) scarce() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	changes, counted := l.limitFor(changing).meter.(*window)
	return counted && !changes.room(time.Now(), PriorityTransient)
}

// maxLimits limits the number of callLimits in memory. Each channel has one callLimit.
const maxLimits = 1000

// limitsOf returns the limits that apply to a call: the limit of its method and, for a post, also the limit of its
// channel. The caller holds l.mu.
func (l *rateLimiter) limitsOf(method, channel string) []*callLimit {
	out := []*callLimit{l.limitFor(method)}
	if channel != "" {
		out = append(out, l.limitFor(method+" "+channel))
	}
	return out
}

func (l *rateLimiter) limitFor(key string) *callLimit {
	if p, ok := l.limits[key]; ok {
		return p
	}
	if now := time.Now(); len(l.limits) >= maxLimits {
		for k, p := range l.limits {
			if _, lasting := limits[k]; !lasting && p.isIdle(now) {
				delete(l.limits, k)
			}
		}
	}
	p := &callLimit{key: key}
	if l.limited {
		l.meter(p)
	}
	l.limits[key] = p
	return p
}

// meter sets the published limit of calls of one kind. The caller holds l.mu.
func (l *rateLimiter) meter(p *callLimit) {
	if p.meter = published(p.key); p.meter != nil {
		p.meter.setShare(time.Now(), l.sharedBy)
	}
}

// divide adapts the limits to a changed number of processes that share them. The caller holds l.mu.
func (l *rateLimiter) divide() {
	n, hears := l.share()
	now := time.Now()
	by := sharing{max(n, 1), !hears.IsZero() && now.Sub(hears) >= minute}
	if by == l.sharedBy {
		return
	}
	l.sharedBy = by
	for _, p := range l.limits {
		if p.meter != nil {
			p.meter.setShare(now, by)
		}
	}
}

// Told is a message between the processes of an app, because Slack's limits apply to the whole app. A Told reports one
// of three events: a process made a call that counts against a limit, Slack asked a process to wait, or an urgent call
// waits.
type Told struct {
	Method  string        `json:"method"`
	Channel string        `json:"channel,omitempty"` // channel of a post
	Wait    time.Duration `json:"wait,omitempty"`    // for this time, no process may make such a call
	First   time.Duration `json:"first,omitempty"`   // how long a call of PriorityFirst waits for its turn
}

// noteRetryAfter handles an answer in which Slack asks the bot to wait.
func (l *rateLimiter) noteRetryAfter(method, channel string, wait time.Duration) {
	l.hold(method, channel, wait)
	l.log.Warn("Slack asks the bot to wait", "method", method, "channel", channel, "for", wait)
	l.tell(Told{Method: method, Channel: channel, Wait: wait})
}

// hear handles a message from another process.
func (l *rateLimiter) hear(t Told) {
	if t.Wait > 0 {
		l.hold(t.Method, t.Channel, t.Wait)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	applicable := l.limitsOf(t.Method, t.Channel)
	if t.First > 0 {
		p := applicable[len(applicable)-1]
		p.first = latest(p.first, time.Now().Add(t.First+patience)) // patience covers the time until this process learns that the call was made
		return
	}
	for _, p := range applicable {
		p.take(time.Now())
	}
}

// hold stops the calls to a method for as long as Slack asked. For posts Slack does not say whether the refusal
// concerns the channel or the workspace. hold assumes the channel, unless another channel is refused at the same time.
func (l *rateLimiter) hold(method, channel string, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	until := now.Add(wait)
	applicable := l.limitsOf(method, channel)
	p := applicable[len(applicable)-1]
	if channel != "" {
		if l.refused == channel || !l.refusals.After(now) {
			applicable = applicable[1:]
		}
		l.refused, l.refusals = channel, until
	}
	for _, held := range applicable {
		held.until = latest(held.until, until)
	}
	if p.meter == nil { // the limits were switched off, but Slack applies them
		l.meter(p)
	}
	if b, ok := p.meter.(*bucket); ok { // Slack counted more calls than the bot did
		b.held = latest(b.held, until)
	}
}

// defaultRetryAfter is the delay if Slack asks the bot to wait without a time.
const defaultRetryAfter = 5 * time.Second

// retryAfter returns how long Slack asks to wait.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return defaultRetryAfter
	}
	return max(time.Duration(seconds)*time.Second, time.Second)
}
