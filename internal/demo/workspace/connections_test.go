package workspace

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slack-go/slack"

	"countersign/internal/demo/workspace/delivery"
	"countersign/internal/testkit"
)

// arrived is a request that the app received.
type arrived struct {
	path, contentType, retry, reason string
	body                             []byte
	givenUp                          <-chan struct{} // closed when the workspace stops waiting
}

func (a arrived) object() (out obj) {
	_ = json.Unmarshal(a.body, &out) // an unreadable body gives an empty object
	return out
}

// payload returns the content of the form field payload.
func (a arrived) payload() (out obj) {
	form, _ := url.ParseQuery(string(a.body))
	_ = json.Unmarshal([]byte(form.Get("payload")), &out)
	return out
}

// httpApp is an app that receives requests over HTTP. httpApp verifies every signature with slack-go.
type httpApp struct {
	t    *testing.T
	url  string
	seen chan arrived

	mu     sync.Mutex
	answer func(arrived, http.ResponseWriter)
}

// serveApp starts an app that receives the workspace's requests, each kind at its own path.
func (b *harness) serveApp(t *testing.T) *httpApp {
	t.Helper()
	a := &httpApp{t: t, seen: make(chan arrived, 100)}
	srv := &httptest.Server{Listener: b.app, Config: &http.Server{Handler: a}}
	srv.Start()
	t.Cleanup(srv.Close)
	a.url = srv.URL
	b.must(b.post("/app/request_urls", obj{"events": a.url + "/events", "interactivity": a.url + "/interactivity", "options": a.url + "/options", "commands": a.url + "/commands"}))
	return a
}

// The method "answers" sets the answers to the next requests.
func (a *httpApp) answers(f func(arrived, http.ResponseWriter)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = f
}

// says makes the app answer every request with a status, and a text or JSON.
func (a *httpApp) says(status int, body string) {
	a.answers(func(_ arrived, w http.ResponseWriter) {
		if strings.HasPrefix(body, "{") {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	})
}

func (a *httpApp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the workspace has given up
	}
	verifier, err := slack.NewSecretsVerifier(r.Header, DemoSigningSecret)
	if err == nil {
		_, _ = verifier.Write(body)
		err = verifier.Ensure()
	}
	if err != nil || r.Method != http.MethodPost {
		a.t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	got := arrived{r.URL.Path, r.Header.Get("Content-Type"), r.Header.Get("X-Slack-Retry-Num"), r.Header.Get("X-Slack-Retry-Reason"), body, r.Context().Done()}
	if challenge, ok := got.object()["challenge"].(string); ok {
		_, _ = io.WriteString(w, challenge)
		return
	}
	a.seen <- got
	a.mu.Lock()
	answer := a.answer
	a.mu.Unlock()
	if answer != nil {
		answer(got, w)
	}
}

// The workspace sends events as signed JSON. A retry has its number and the reason. The app can stop the retries.
func TestEventsOverHTTP(t *testing.T) {
	inFakedTime(t, nil, func(t *testing.T, b *harness) {
		app := b.serveApp(t)
		if b.get("/people").body["connected"] != true {
			t.Error("the app is not reachable")
		}
		fails := func(status int, h http.Header) func(arrived, http.ResponseWriter) {
			return func(got arrived, w http.ResponseWriter) {
				if got.retry == "" {
					for name := range h {
						w.Header().Set(name, h.Get(name))
					}
					w.WriteHeader(status)
				}
			}
		}
		for name, c := range map[string]struct {
			answer func(arrived, http.ResponseWriter)
			reason string // retry reason of the second attempt; empty: there is no second attempt
		}{
			"acknowledged":     {nil, ""},
			"created":          {fails(http.StatusCreated, nil), ""},
			"an error":         {fails(http.StatusInternalServerError, nil), "http_error"},
			"refused":          {fails(http.StatusUnauthorized, nil), "http_error"},
			"for good":         {fails(http.StatusBadRequest, http.Header{"X-Slack-No-Retry": {"1"}}), ""},
			"sent in a circle": {fails(http.StatusTemporaryRedirect, http.Header{"Location": {"/events"}}), "too_many_redirects"},
			"too late": {func(got arrived, _ http.ResponseWriter) {
				if got.retry == "" {
					<-got.givenUp
				}
			}, "http_timeout"},
			"broken off": {func(got arrived, _ http.ResponseWriter) {
				if got.retry == "" {
					panic(http.ErrAbortHandler)
				}
			}, "connection_failed"},
		} {
			app.answers(c.answer)
			b.say("sam", "C0001", name, "")
			first := wait(t, app.seen)
			if first.path != "/events" || first.contentType != "application/json" || first.retry != "" || dig(first.object(), "event", "text") != name || first.object()["type"] != "event_callback" {
				t.Fatalf("%s: %+v %s", name, first, first.body)
			}
			if c.reason != "" {
				var again arrived
				for again.retry == "" {
					again = wait(t, app.seen)
				}
				if again.retry != "1" || again.reason != c.reason || string(again.body) != string(first.body) {
					t.Errorf("%s: again %q for %q; want %q", name, again.retry, again.reason, c.reason)
				}
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if _, all := b.srv.Delivered(); !all {
				t.Errorf("%s: still not delivered", name)
			}
			for len(app.seen) > 0 {
				if more := <-app.seen; more.retry != "" {
					t.Errorf("%s: once more, %s for %s", name, more.retry, more.reason)
				}
			}
		}
	})
}

// While an app is unreachable, people get an error. An event that the app answers with an error is sent again: at once,
// after one minute, and after five minutes.
func TestNobodyListens(t *testing.T) {
	inFakedTime(t, nil, func(t *testing.T, b *harness) {
		app := b.serveApp(t)
		urls := delivery.RequestURLs{Events: app.url + "/events", Commands: app.url + "/commands"}
		if err := b.srv.SetRequestURLs(t.Context(), urls); err != nil {
			t.Fatal(err)
		}
		b.app.SetState(testkit.NetworkRefuses)
		if r := b.post("/people/sam/commands", obj{"channel": "#support", "command": "/countersign", "text": "help"}); r.code() != "app_did_not_respond" {
			t.Errorf("a command that nobody takes: %v", r)
		}
		if r := b.post("/people/sam/shortcuts", obj{"callback_id": "ask_countersign"}); r.code() != "app_did_not_respond" {
			t.Errorf("a shortcut without a URL: %v", r)
		}
		if b.get("/people").body["connected"] != false {
			t.Error("the app seems reachable")
		}
		b.app.SetState(testkit.NetworkWorks)
		app.says(http.StatusBadGateway, "")
		b.say("sam", "C0001", "hello", "")
		for _, attempt := range []struct {
			number string
			delay  time.Duration
		}{{"", 0}, {"1", 0}, {"2", time.Minute}, {"3", 5 * time.Minute}} {
			if attempt.delay > 0 {
				time.Sleep(attempt.delay - time.Nanosecond)
				synctest.Wait()
				if len(app.seen) > 0 {
					t.Errorf("attempt %s comes earlier than after %s", attempt.number, attempt.delay)
				}
			}
			if got := wait(t, app.seen); got.retry != attempt.number {
				t.Errorf("attempt %q; want %q", got.retry, attempt.number)
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(app.seen) > 0 {
			t.Error("a fifth attempt")
		}
	})
}

// Answers over HTTP to commands, forms and menus have the same effect as in Slack.
func TestAnswersOverHTTP(t *testing.T) {
	inFakedTime(t, nil, func(t *testing.T, b *harness) {
		app := b.serveApp(t)
		command := obj{"channel": "#support", "command": "/countersign", "text": "help & more"}
		for _, c := range []struct {
			status      int
			body, shown string // if the shown text is empty, there must be no message
			code        string
		}{
			{200, "", "", ""}, {200, "in plain text", "in plain text", ""}, {200, `{"text":"as JSON"}`, "as JSON", ""}, {200, `{}`, "", ""},
			{200, `{"blocks":7}`, "", "invalid_app_response"}, {500, "broken", "", "app_did_not_respond"}, {404, "", "", "app_did_not_respond"},
		} {
			app.says(c.status, c.body)
			r := b.post("/people/sam/commands", command)
			if r.code() != c.code || r.text("message", "text") != c.shown {
				t.Errorf("%d %q: %v", c.status, c.body, r.body)
			}
			got := wait(t, app.seen)
			form, err := url.ParseQuery(string(got.body))
			if err != nil || got.path != "/commands" || got.contentType != "application/x-www-form-urlencoded" || form.Get("text") != "help &amp; more" || form.Get("user_id") != "U0100" {
				t.Errorf("the app was sent %s %s", got.path, got.body)
			}
		}
		form := obj{"type": "modal", "title": plain("T"), "submit": plain("Send"), "blocks": arr{
			obj{"type": "input", "block_id": "a", "label": plain("L"), "element": obj{"type": "external_select", "action_id": "order", "min_query_length": 0}}}}
		open := func() string {
			return b.must(b.form("views.open", obj{"trigger_id": b.trigger("U0100", ""), "view": form})).text("view", "id")
		}
		view := open()
		app.says(200, `{"options":[{"text":{"type":"plain_text","text":"One"},"value":"1"}]}`)
		b.must(b.post("/people/sam/options", obj{"view_id": view, "action_id": "order", "value": "o"}))
		if got := wait(t, app.seen); got.path != "/options" || got.payload()["type"] != "block_suggestion" {
			t.Errorf("the app was sent %s %v", got.path, got.payload())
		}
		for body, code := range map[string]string{
			"": "", `{}`: "", `{"response_action":"clear"}`: "", `{"response_action":"errors","errors":{"a":"No."}}`: "view_errors",
			"ok": "invalid_app_response", `{"response_action":"close"}`: "invalid_app_response",
		} {
			app.says(200, body)
			r := b.post("/people/sam/views/"+view+"/submit", obj{"values": obj{"a": "1"}})
			if r.code() != code {
				t.Errorf("a form that is answered with %q: %v", body, r.body)
			}
			if got := wait(t, app.seen); got.path != "/interactivity" || got.payload()["type"] != "view_submission" {
				t.Errorf("the app was sent %s %v", got.path, got.payload())
			}
			b.post("/people/sam/views/"+view+"/close", obj{})
			view = open()
			app.says(200, `{"options":[{"text":{"type":"plain_text","text":"One"},"value":"1"}]}`)
			b.must(b.post("/people/sam/options", obj{"view_id": view, "action_id": "order", "value": "o"}))
			wait(t, app.seen)
		}
		app.answers(func(got arrived, _ http.ResponseWriter) { <-got.givenUp })
		if r := b.post("/people/sam/commands", command); r.code() != "app_did_not_respond" {
			t.Errorf("a late answer: %v", r.body)
		}
	})
}

// A URL for events must repeat the challenge, in one of three ways, before it gets events. After the challenge, Socket
// Mode is switched off. Without URLs, Socket Mode is on again.
func TestURLVerification(t *testing.T) {
	b := newHarness(t)
	respond := map[string]func(http.ResponseWriter, string){
		"/text": func(w http.ResponseWriter, c string) { fmt.Fprintln(w, c) },
		"/json": func(w http.ResponseWriter, c string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"challenge":%q}`, c)
		},
		"/form": func(w http.ResponseWriter, c string) {
			w.Header().Set("Content-Type", "application/x-www-form-urlencoded")
			fmt.Fprint(w, "challenge="+c)
		},
		"/other":  func(w http.ResponseWriter, c string) { fmt.Fprint(w, c+"x") },
		"/silent": func(http.ResponseWriter, string) {},
		"/broken": func(w http.ResponseWriter, c string) { w.WriteHeader(http.StatusInternalServerError); fmt.Fprint(w, c) },
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a := arrived{body: body}
		challenge, _ := a.object()["challenge"].(string)
		if a.object()["type"] != "url_verification" || challenge == "" {
			t.Errorf("the app was sent %s", body)
		}
		respond[r.URL.Path](w, challenge)
	}))
	defer srv.Close()
	for path, good := range map[string]bool{"/text": true, "/json": true, "/form": true, "/other": false, "/silent": false, "/broken": false} {
		r := b.post("/app/request_urls", obj{"events": srv.URL + path})
		if good != (r.status == 200) || !good && r.code() != "invalid_request_url" {
			t.Errorf("%s: %d %v", path, r.status, r.body)
		}
	}
	for _, bad := range []obj{{"events": "127.0.0.1:8080"}, {"commands": "/slack"}, {"event": srv.URL}} {
		if r := b.post("/app/request_urls", bad); r.code() != "invalid_request_url" {
			t.Errorf("%v: %v", bad, r.body)
		}
	}
	resp, err := http.PostForm(b.http.URL+"/api/apps.connections.open", url.Values{"token": {DemoAppToken}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(answer), "Socket Mode is not turned on") {
		t.Errorf("a socket is opened with %s (%v)", answer, err)
	}
	b.must(b.post("/app/request_urls", obj{}))
	b.dial()
	if b.get("/people").body["connected"] != true {
		t.Error("Socket Mode is not on again")
	}
}
