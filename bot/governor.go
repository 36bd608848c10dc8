package bot

import (
	"bytes"
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

// governor stands between the bot and Slack's Web API: every call goes through it. It keeps Slack's limits, lets what matters most go first, and after
// a refusal makes no such call before the time that Slack asked for. A call that would have to wait for long is not made: whoever wanted it is told
// when to try again, and holds up nothing meanwhile. While limits aren't reached it changes nothing.
type governor struct {
	next     http.RoundTripper
	path     string // of the Web API, with its final slash
	limited  bool   // Slack's limits are kept from the start; otherwise each once Slack has refused something because of it
	count    func(Call)
	log      *slog.Logger
	contact  contact
	mu       sync.Mutex
	paces    map[string]*pace // by method, and by method and channel
	refused  string           // the channel in which a post was refused last
	refusals time.Time        // until when it has to be left alone
}

func newGovernor(c Config) *governor {
	g := &governor{
		next: c.HTTP.Transport, path: "/", limited: !c.Unlimited, count: c.Count, log: c.Log, contact: contact{log: c.Log}, paces: map[string]*pace{},
	}
	if g.next == nil {
		g.next = http.DefaultTransport
	}
	if g.count == nil {
		g.count = func(Call) {}
	}
	if api, err := url.Parse(c.APIURL); err == nil {
		g.path = api.Path
	}
	return g
}

// Call is one call of Slack's Web API that came to an end.
type Call struct {
	Method  string
	Outcome CallOutcome
}

// CallOutcome is what became of a call.
type CallOutcome string

// The outcomes of calls.
const (
	CallAnswered CallOutcome = "answered" // whatever the answer was
	CallLimited  CallOutcome = "limited"  // Slack asked to wait
	CallFailed   CallOutcome = "failed"   // there was no answer that means anything
	CallPutOff   CallOutcome = "put_off"  // it was not made: its turn has not come, or Slack is down
)

// errTurn says that a call was not made because its turn has not come yet.
var errTurn = errors.New("Slack takes no more of these for now")

// patience is how long a call may wait for its turn without being put off.
const patience = time.Second

// RoundTrip makes a call when its turn has come, or fails with a later error.
func (g *governor) RoundTrip(req *http.Request) (*http.Response, error) {
	method, ok := strings.CutPrefix(req.URL.Path, g.path)
	if !ok { // an answer to a click's own address, which has limits of its own
		return g.next.RoundTrip(req)
	}
	channel := ""
	if method == posting {
		channel = channelIn(req)
	}
	if err := g.admit(req.Context(), method, channel); err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		g.count(Call{method, CallPutOff})
		return nil, err
	}
	resp, err := g.next.RoundTrip(req)
	switch {
	case err == nil && resp.StatusCode == http.StatusTooManyRequests:
		g.hold(method, channel, retryAfter(resp.Header))
		g.count(Call{method, CallLimited})
		g.contact.answered()
	case errors.Is(err, context.Canceled): // says nothing of Slack
	case err != nil:
		g.count(Call{method, CallFailed})
		g.contact.failed(err)
	default:
		failure := failureIn(resp)
		if failure == nil {
			g.count(Call{method, CallAnswered})
			g.contact.answered()
		} else {
			g.count(Call{method, CallFailed})
			g.contact.failed(failure)
		}
	}
	return resp, err
}

// channelIn reads the channel that a form is for.
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

// admit waits until a call may be made, or says when it may.
func (g *governor) admit(ctx context.Context, method, channel string) error {
	e := errandOf(ctx)
	if !e.probe && method != "apps.connections.open" { // those are how it is noticed that Slack is back
		if err := g.contact.made(ctx); err != nil {
			return err
		}
	}
	wait, err := g.take(method, channel, e)
	if err != nil || wait == 0 {
		return err
	}
	if err := pause(ctx, wait); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	for _, p := range g.pacesOf(method, channel) {
		if p.until.After(now) { // Slack has refused another one meanwhile
			return later{errTurn, p.turn(now, e).Sub(now)}
		}
	}
	return nil
}

// take gives a call its turn, if that is now or soon, and says how long to wait for it.
func (g *governor) take(method, channel string, e errand) (time.Duration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	paces := g.pacesOf(method, channel)
	var wait, turn time.Duration
	for _, p := range paces {
		need := p.wait(now, e)
		if need > patience || p.queued(now, e) {
			turn = max(turn, p.turn(now, e).Sub(now))
		}
		wait = max(wait, need)
	}
	if turn > 0 {
		return 0, later{errTurn, max(turn, wait)}
	}
	for _, p := range paces {
		p.take(now.Add(wait))
	}
	return wait, nil
}

// maxPaces bounds how many channels are remembered.
const maxPaces = 1000

// pacesOf are the paces that hold for a call: its method's, and for posts the channel's. g.mu is held.
func (g *governor) pacesOf(method, channel string) []*pace {
	out := []*pace{g.pace(method)}
	if channel != "" {
		out = append(out, g.pace(method+" "+channel))
	}
	return out
}

func (g *governor) pace(key string) *pace {
	if p, ok := g.paces[key]; ok {
		return p
	}
	if now := time.Now(); len(g.paces) >= maxPaces {
		for k, p := range g.paces {
			if _, lasting := limits[k]; !lasting && p.over(now) {
				delete(g.paces, k)
			}
		}
	}
	p := &pace{key: key}
	if g.limited {
		p.meter = published(key)
	}
	g.paces[key] = p
	return p
}

// hold has a method left alone for as long as Slack asked. Where that is for posts, Slack does not say whether it meant the channel or the workspace:
// it is the channel, unless another one is refused too.
func (g *governor) hold(method, channel string, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	until := now.Add(wait)
	paces := g.pacesOf(method, channel)
	p := paces[len(paces)-1]
	if channel != "" {
		if g.refused == channel || !g.refusals.After(now) {
			paces = paces[1:]
		}
		g.refused, g.refusals = channel, until
	}
	for _, held := range paces {
		held.until = latest(held.until, until)
	}
	if p.meter == nil { // it has limits after all
		p.meter = published(p.key)
	}
	if b, ok := p.meter.(*bucket); ok { // it was not as full as we thought
		b.paid = latest(b.paid, until.Add(time.Duration(b.burst-1)*b.every))
	}
	g.log.Warn("Slack asks to wait", "method", method, "channel", channel, "for", wait)
}

// unsaid is how long is waited where Slack does not say how long.
const unsaid = 5 * time.Second

// retryAfter is how long Slack asks to wait.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return unsaid
	}
	return max(time.Duration(seconds)*time.Second, time.Second)
}
