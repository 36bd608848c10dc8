package transport

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign/store"
)

const testSecret = "c0de51c0de51c0de51c0de51c0de51c0"

// newHTTP returns a transport that accepts requests without a listener.
func newHTTP(r *recorder) *HTTP {
	h := NewHTTP(HTTPOptions{Options: options(r), SigningSecret: func() string { return testSecret }})
	h.gate.open()
	return h
}

// testRequest is a request in Slack's format.
type testRequest struct {
	path, media, body string
	secret            string
	at                time.Time
	headers           http.Header // headers that replace the usual ones
}

func event(body string) testRequest {
	return testRequest{path: EventsPath, media: typeJSON, body: body, secret: testSecret, at: time.Now()}
}

func form(path string, fields url.Values) testRequest {
	return testRequest{path: path, media: typeForm, body: fields.Encode(), secret: testSecret, at: time.Now()}
}

func click(payload string) testRequest {
	return form(InteractionsPath, url.Values{"payload": {payload}})
}

// send sends a request and returns the response.
func (q testRequest) send(h *HTTP) *httptest.ResponseRecorder {
	at := strconv.FormatInt(q.at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(q.secret))
	fmt.Fprintf(mac, "v0:%s:%s", at, q.body)
	r := httptest.NewRequest(http.MethodPost, q.path, strings.NewReader(q.body))
	r.Header = http.Header{"Content-Type": {q.media}, "X-Slack-Request-Timestamp": {at}, "X-Slack-Signature": {"v0=" + hex.EncodeToString(mac.Sum(nil))}}
	maps.Copy(r.Header, q.headers)
	w := httptest.NewRecorder()
	h.serve(w, r)
	return w
}

// The handler gets Slack's requests in the same form as over a socket. The handler gets no other requests.
func TestRequests(t *testing.T) {
	with := func(q testRequest, change func(*testRequest)) testRequest {
		change(&q)
		return q
	}
	aClick, aCommand := click(`{"type":"block_actions"}`), form(CommandsPath, url.Values{"command": {"/x"}, "text": {"y"}})
	for name, c := range map[string]struct {
		sent   testRequest
		status int
		body   string
		kind   store.InboxKind // empty: the handler gets no delivery
		came   string
	}{
		"an event":              {event(`{"type":"event_callback"}`), 200, "", store.InboxEvent, `{"type":"event_callback"}`},
		"a click":               {aClick, 200, "", store.InboxInteraction, `{"type":"block_actions"}`},
		"a command":             {aCommand, 200, "", store.InboxCommand, `{"command":"/x","text":"y"}`},
		"a menu":                {with(click(`{"type":"block_suggestion"}`), func(q *testRequest) { q.path = OptionsPath }), 200, "", store.InboxInteraction, `{"type":"block_suggestion"}`},
		"a challenge":           {event(`{"type":"url_verification","challenge":"x"}`), 200, `{"challenge":"x"}`, "", ""},
		"a certificate check":   {with(form(CommandsPath, url.Values{"ssl_check": {"1"}}), func(q *testRequest) { q.headers = http.Header{"X-Slack-Signature": nil} }), 200, "", "", ""},
		"a signed check":        {form(CommandsPath, url.Values{"ssl_check": {"1"}, "token": {"x"}}), 200, "", "", ""},
		"a signed check astray": {form(InteractionsPath, url.Values{"ssl_check": {"1"}}), 400, "", "", ""},
		"a check elsewhere":     {with(form(InteractionsPath, url.Values{"ssl_check": {"1"}}), func(q *testRequest) { q.headers = http.Header{"X-Slack-Signature": nil} }), 401, "", "", ""},
		"another secret":        {with(aClick, func(q *testRequest) { q.secret = "0" }), 401, "", "", ""},
		"no signature":          {with(aClick, func(q *testRequest) { q.headers = http.Header{"X-Slack-Signature": nil} }), 401, "", "", ""},
		"the past":              {with(aClick, func(q *testRequest) { q.at = q.at.Add(-6 * time.Minute) }), 401, "", "", ""},
		"the future":            {with(aClick, func(q *testRequest) { q.at = q.at.Add(6 * time.Minute) }), 401, "", "", ""},
		"too large":             {event(`"` + strings.Repeat("x", maxRequest) + `"`), 413, "", "", ""},
		"another path":          {with(aClick, func(q *testRequest) { q.path = "/metrics" }), 404, "", "", ""},
		"another media type":    {with(aClick, func(q *testRequest) { q.media = "text/plain" }), 415, "", "", ""},
		"a click at events":     {with(aClick, func(q *testRequest) { q.path = EventsPath }), 200, "", store.InboxInteraction, `{"type":"block_actions"}`},
		"a command at events":   {with(aCommand, func(q *testRequest) { q.path = EventsPath }), 200, "", store.InboxCommand, `{"command":"/x","text":"y"}`},
		"a menu at events":      {with(click(`{"type":"block_suggestion"}`), func(q *testRequest) { q.path = EventsPath }), 200, "", store.InboxInteraction, `{"type":"block_suggestion"}`},
		"the path of commands":  {with(aClick, func(q *testRequest) { q.path = CommandsPath }), 400, "", "", ""},
		"a challenged click":    {click(`{"type":"url_verification","challenge":"x"}`), 200, `{"challenge":"x"}`, "", ""},
		"a challenged command":  {form(CommandsPath, url.Values{"command": {"url_verification"}, "challenge": {"x"}}), 200, `{"challenge":"x"}`, "", ""},
		"a challenge astray":    {with(click(`{"type":"url_verification","challenge":"x"}`), func(q *testRequest) { q.path = CommandsPath }), 400, "", "", ""},
		"garbage":               {event(`{`), 400, "", "", ""},
		"a payload and more":    {form(InteractionsPath, url.Values{"payload": {"{}"}, "command": {"/x"}}), 400, "", "", ""},
		"two payloads":          {form(InteractionsPath, url.Values{"payload": {"{}", "{}"}}), 400, "", "", ""},
		"the missing challenge": {event(`{"type":"url_verification"}`), 400, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			h := newHTTP(r)
			counted := 0
			h.Count = func(status int) { counted += status }
			w := c.sent.send(h)
			if w.Code >= 400 {
				c.body = http.StatusText(w.Code)
			}
			if w.Code != c.status || strings.TrimSpace(w.Body.String()) != c.body || counted != c.status {
				t.Errorf("answered %d %q, counted %d; want %d %q", w.Code, w.Body, counted, c.status, c.body)
			}
			came := r.deliveries()
			if c.kind == "" && len(came) > 0 || c.kind != "" && (len(came) != 1 || came[0].Kind != c.kind || string(came[0].Payload) != c.came) {
				t.Errorf("handed over: %v", came)
			}
		})
	}
}

// The response to a delivery is the handler's answer. A delivery that the handler could not store is not acknowledged.
func TestRequestAcknowledgement(t *testing.T) {
	good, bad := click(`{"type":"good"}`), click(`{"type":"bad"}`)
	r := &recorder{says: map[string]any{`{"type":"good"}`: map[string]int{"answer": 7}}, fail: map[string]error{`{"type":"bad"}`: errors.New("no disk")}}
	h := newHTTP(r)
	if w := good.send(h); w.Code != http.StatusOK || w.Body.String() != `{"answer":7}` {
		t.Errorf("answered %d %q", w.Code, w.Body)
	}
	if w := bad.send(h); w.Code != http.StatusServiceUnavailable {
		t.Errorf("a delivery that was not stored is answered with %d", w.Code)
	}
	h.gate.shut()
	if w := event(`{}`).send(h); w.Code != http.StatusServiceUnavailable || h.Ready() == nil {
		t.Errorf("at the end it answers %d, ready: %v", w.Code, h.Ready())
	}
	if came := r.deliveries(); len(came) != 2 || !came[0].ReceivedAt.Before(came[1].ReceivedAt) {
		t.Errorf("handed over: %v", came)
	}
}

// The handler gets a request with an effect only once, even if a copy has the same signature in another spelling. The
// handler may get events and menus several times.
func TestReplayedRequests(t *testing.T) {
	r := &recorder{}
	h := newHTTP(r)
	menu := click(`{"type":"block_suggestion"}`)
	menu.path = OptionsPath
	for _, c := range []struct {
		sent   testRequest
		second int
	}{{click(`{"type":"block_actions"}`), 409}, {form(CommandsPath, url.Values{"command": {"/x"}}), 409}, {event(`{}`), 200}, {menu, 200}} {
		if w := c.sent.send(h); w.Code != http.StatusOK {
			t.Fatalf("%s is answered with %d", c.sent.path, w.Code)
		}
		before := len(r.deliveries())
		if w := c.sent.send(h); w.Code != c.second || (len(r.deliveries()) > before) != (c.second == 200) {
			t.Errorf("%s is answered with %d the second time, and came %d times more", c.sent.path, w.Code, len(r.deliveries())-before)
		}
	}
}
