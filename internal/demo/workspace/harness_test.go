package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"countersign/internal/testkit"
)

// clock is a clock whose time changes only when advance is called.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// harness is a workspace with a real slack-go client and people who use the HTTP API.
type harness struct {
	t     testing.TB
	srv   *Server
	http  *httptest.Server
	app   *testkit.Network // network between the workspace and the app's request URLs; only in faked time
	api   *slack.Client
	clock *clock // the workspace's clock
	ticks *clock // the machine's clock

	dialContext func(ctx context.Context, network, addr string) (net.Conn, error) // connects to the server in the field http
}

// newHarness starts a workspace on a real network. The app may take a minute to acknowledge, because a test on a real
// network must not depend on the machine's speed. Tests of deadlines use inFakedTime.
func newHarness(t testing.TB, adjust ...func(*Config)) *harness {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &harness{t: t, dialContext: new(net.Dialer).DialContext}
	b.start(l, append([]func(*Config){func(c *Config) { c.AckTimeout = testkit.Patience }}, adjust...))
	return b
}

// inFakedTime runs a test with a workspace in faked time, over networks in memory. All deadlines are Slack's. The
// function adjust, which may be nil, changes the configuration.
func inFakedTime(t *testing.T, adjust func(*Config), test func(*testing.T, *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		slackSide := testkit.NewNetwork()
		b := &harness{t: t, dialContext: slackSide.DialContext, app: testkit.NewNetwork()}
		all := []func(*Config){func(c *Config) {
			c.HTTP = &http.Client{Transport: &http.Transport{DialContext: b.app.DialContext}}
		}}
		if adjust != nil {
			all = append(all, adjust)
		}
		b.start(slackSide, all)
		test(t, b)
	})
}

// start starts the workspace on a listener.
func (b *harness) start(l net.Listener, adjust []func(*Config)) {
	b.t.Helper()
	b.clock, b.ticks = newClock(), newClock()
	cfg := Config{Seed: OpenSeed(), Now: b.clock.Now, machine: b.ticks.Now}
	for _, f := range adjust {
		f(&cfg)
	}
	srv, err := New(cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.srv, b.http = srv, &httptest.Server{Listener: l, Config: &http.Server{Handler: noteRefusals(srv.Handler())}}
	b.http.Start()
	b.t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			b.t.Error(err)
		}
		b.http.Close()
	})
	b.http.Client().Transport = &http.Transport{DialContext: b.dialContext}
	b.api = slack.New(DemoBotToken, slack.OptionAppLevelToken(DemoAppToken), slack.OptionAPIURL(b.http.URL+"/api/"),
		slack.OptionHTTPClient(b.http.Client()))
}

// websockets returns a dialer of WebSockets over the harness's network.
func (b *harness) websockets() *websocket.Dialer {
	return &websocket.Dialer{NetDialContext: b.dialContext}
}

// bot is a connected app and the events that it got.
type bot struct {
	client *socketmode.Client
	events chan socketmode.Event
	stop   func()
}

// connect runs a slack-go Socket Mode client. For every request, the client calls the function in the parameter on. Its
// first result says whether the client acknowledges the request. Its second result is the payload of the
// acknowledgement.
func (b *harness) connect(on func(socketmode.Event) (bool, any)) *bot {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	client := socketmode.New(b.api, socketmode.OptionDialer(b.websockets()))
	out := &bot{client: client, events: make(chan socketmode.Event, 1000)}
	ready := make(chan struct{})
	var once sync.Once
	var running sync.WaitGroup
	running.Go(func() {
		if err := client.RunContext(ctx); err != nil && !errors.Is(err, context.Canceled) {
			b.t.Errorf("socket mode client: %v", err)
		}
	})
	running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-client.Events:
				if e.Type == socketmode.EventTypeHello {
					once.Do(func() { close(ready) })
				}
				if e.Request == nil || e.Request.EnvelopeID == "" {
					continue
				}
				ack, payload := true, any(nil)
				if on != nil {
					ack, payload = on(e)
				}
				if ack {
					if err := client.Ack(*e.Request, payload); err != nil {
						b.t.Error(err)
					}
				}
				out.events <- e
			}
		}
	})
	out.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	b.t.Cleanup(out.stop)
	wait(b.t, ready)
	return out
}

// wait returns the next value of the channel. If no value arrives within testkit.Patience, wait fails the test.
func wait[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(testkit.Patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// reply is an answer of the people's API.
type reply struct {
	status int
	body   map[string]any
}

func (r reply) code() string { code, _ := r.body["error"].(string); return code }
func (r reply) text(keys ...string) string {
	s, _ := dig(r.body, keys...).(string)
	return s
}

func dig(v any, keys ...string) any {
	for _, key := range keys {
		switch at := v.(type) {
		case map[string]any:
			v = at[key]
		case []any:
			n := 0
			if key == "last" {
				n = len(at) - 1
			} else if err := json.Unmarshal([]byte(key), &n); err != nil {
				return nil
			}
			if n < 0 || n >= len(at) {
				return nil
			}
			v = at[n]
		default:
			return nil
		}
	}
	return v
}

func (b *harness) do(method, path string, body any) reply {
	b.t.Helper()
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			b.t.Fatal(err)
		}
		reader = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, b.http.URL+path, reader)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := b.http.Client().Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	out := reply{status: resp.StatusCode}
	if err := json.NewDecoder(resp.Body).Decode(&out.body); err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	return out
}

func (b *harness) get(path string) reply            { b.t.Helper(); return b.do("GET", path, nil) }
func (b *harness) post(path string, body any) reply { b.t.Helper(); return b.do("POST", path, body) }

// The method "must" fails the test if the answer is not ok.
func (b *harness) must(r reply) reply {
	b.t.Helper()
	if r.status != 200 || r.body["ok"] != true {
		b.t.Fatalf("answered %d %v", r.status, r.body)
	}
	return r
}

// say writes a message as a person and returns its ts.
func (b *harness) say(user, channel, text, thread string) string {
	b.t.Helper()
	return b.must(b.post("/people/"+user+"/messages", obj{"channel": channel, "text": text, "thread_ts": thread})).text("ts")
}

func (b *harness) messages(user, channel, thread string) []any {
	b.t.Helper()
	list, _ := b.must(b.get("/people/" + user + "/channels/" + url.PathEscape(channel) + "/messages?thread_ts=" + thread)).body["messages"].([]any)
	return list
}

// form calls a Web API method as slack-go does, but without slack-go's own checks.
func (b *harness) form(method string, args map[string]any) reply {
	b.t.Helper()
	values := url.Values{"token": {DemoBotToken}}
	for k, v := range args {
		if text, ok := v.(string); ok {
			values.Set(k, text)
			continue
		}
		raw, err := json.Marshal(v)
		if err != nil {
			b.t.Fatal(err)
		}
		values.Set(k, string(raw))
	}
	resp, err := b.http.Client().PostForm(b.http.URL+"/api/"+method, values)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	out := reply{status: resp.StatusCode}
	if err := json.NewDecoder(resp.Body).Decode(&out.body); err != nil {
		b.t.Fatal(err)
	}
	return out
}

type obj = map[string]any
type arr = []any

func plain(s string) obj  { return obj{"type": "plain_text", "text": s} }
func mrkdwn(s string) obj { return obj{"type": "mrkdwn", "text": s} }

// chars returns n characters of two bytes each.
func chars(n int) string { return strings.Repeat("é", n) }
