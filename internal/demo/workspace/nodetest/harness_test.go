package nodetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign/internal/demo/workspace"
	"countersign/internal/demo/workspace/delivery"
)

// harness is a workspace with the Bolt app, and people who use the page's API.
type harness struct {
	*app
	srv  *workspace.Server
	http *httptest.Server
}

// overSockets returns a harness whose app uses Socket Mode.
func overSockets(t *testing.T) *harness {
	t.Helper()
	d := newHarness(t, "SLACK_APP_TOKEN="+workspace.DemoAppToken)
	d.see("started")
	return d
}

// overHTTP returns a harness whose app gets signed requests.
func overHTTP(t *testing.T) *harness {
	t.Helper()
	d := newHarness(t, "SLACK_SIGNING_SECRET="+workspace.DemoSigningSecret)
	if err := d.srv.SetRequestURLs(t.Context(), delivery.URLsAt(d.url())); err != nil {
		t.Fatal(err)
	}
	return d
}

// url returns the app's URL for requests.
func (d *harness) url() string {
	d.t.Helper()
	port, _ := d.see("started")["port"].(float64)
	return fmt.Sprintf("http://127.0.0.1:%.0f/slack/events", port)
}

func newHarness(t *testing.T, env ...string) *harness {
	t.Helper()
	srv, err := workspace.New(workspace.Config{
		Seed: workspace.OpenSeed(), AckTimeout: patience, TriggerTTL: patience, // other tests check Slack's 3 s; this machine may be busy
	})
	if err != nil {
		t.Fatal(err)
	}
	d := &harness{srv: srv, http: httptest.NewServer(srv.Handler())}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		d.http.Close()
	})
	d.app = start(t, append(env, "SLACK_API_URL="+d.http.URL+"/api/", "SLACK_BOT_TOKEN="+workspace.DemoBotToken)...)
	return d
}

// person calls the people's API.
func (d *harness) person(method, path string, body obj) (int, obj) {
	d.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		d.t.Fatal(err)
	}
	req, err := http.NewRequest(method, d.http.URL+"/people/"+path, bytes.NewReader(raw))
	if err != nil {
		d.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	var out obj
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		d.t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, out
}

// does calls the people's API. The test fails if the call fails.
func (d *harness) does(path string, body obj) obj {
	d.t.Helper()
	status, out := d.person("POST", path, body)
	if status != http.StatusOK {
		d.t.Fatalf("POST /people/%s %v: %d %v", path, body, status, out)
	}
	return out
}

func (d *harness) reads(path string) obj {
	d.t.Helper()
	status, out := d.person("GET", path, nil)
	if status != http.StatusOK {
		d.t.Fatalf("GET /people/%s: %d %v", path, status, out)
	}
	return out
}

// says writes a message as a person and returns its timestamp.
func (d *harness) says(user, channel, text, thread string) string {
	d.t.Helper()
	return text1(d.does(user+"/messages", obj{"channel": channel, "text": text, "thread_ts": thread}), "ts")
}

// The method "sees" waits until wanted returns true for a message that the person sees in the channel or thread. It
// returns this message.
func (d *harness) sees(user, channel, thread, what string, wanted func(m obj) bool) obj {
	d.t.Helper()
	var found obj
	d.until(user+" never saw in "+channel+": "+what, func() bool {
		list, _ := d.reads(user + "/channels/" + url.PathEscape(channel) + "/messages?thread_ts=" + thread)["messages"].([]any)
		for _, item := range list {
			if m, ok := item.(obj); ok && wanted(m) {
				found = m
			}
		}
		return found != nil
	})
	return found
}

// until polls a condition until it is true.
func (d *harness) until(otherwise string, so func() bool) {
	d.t.Helper()
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	for limit := time.After(patience); !so(); {
		select {
		case <-ticks.C:
		case <-limit:
			d.t.Fatal(otherwise)
		}
	}
}

// view waits for the person's top modal with this title.
func (d *harness) view(user, title string) obj {
	d.t.Helper()
	var top obj
	d.until(user+" never saw a form "+title, func() bool {
		list, _ := d.reads(user + "/views")["views"].([]any)
		if len(list) > 0 {
			top, _ = list[len(list)-1].(obj)
		}
		return len(list) > 0 && text1(top, "title", "text") == title
	})
	return top
}

func texted(text string) func(obj) bool {
	return func(m obj) bool { return m["text"] == text }
}

// dig returns the part of a JSON value at a path of keys and indexes.
func dig(v any, keys ...string) any {
	for _, key := range keys {
		switch at := v.(type) {
		case obj:
			v = at[key]
		case arr:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

func text1(v any, keys ...string) string {
	s, _ := dig(v, keys...).(string)
	return s
}

// The function "same" fails the test if the value at a path differs from the wanted value. keys is the path, such as
// a.b.0.c.
func same(t *testing.T, v any, keys string, want any) {
	t.Helper()
	if got := dig(v, strings.Split(keys, ".")...); got != want {
		t.Errorf("%s is %#v instead of %#v in %v", keys, got, want, v)
	}
}

// The function "there" fails the test if the value at any of the paths is empty.
func there(t *testing.T, v any, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if got := dig(v, strings.Split(key, ".")...); got == nil || got == "" {
			t.Errorf("%s is missing in %v", key, v)
		}
	}
}
