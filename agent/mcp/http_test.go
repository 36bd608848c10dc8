package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/agent"
	"countersign/config"
	"countersign/internal/redact"
	"countersign/internal/testkit"
	"countersign/internal/tracing"
	"countersign/internal/tracing/tracingtest"
)

// TestExactArgumentsOverHTTP checks that the arguments arrive unchanged over HTTP. Line breaks also stay, because a
// message over HTTP may have several lines.
func TestExactArgumentsOverHTTP(t *testing.T) {
	a := &address{}
	s := a.at(t)
	t.Setenv("FAR_TOKEN", "far-secret-value")
	s.Headers = map[string]string{"Authorization": "Bearer ${FAR_TOKEN}", "X-Team": "support"}
	_, o := running(t, quick(), s)
	args := "{\n\t\"first\" : 1.0,\r\n" + oddArguments[1:]
	if text, err := call(t, o.tool(t, "far.act"), args); text != "done" || err != nil {
		t.Fatalf("%q, %v", text, err)
	}
	sent, head := a.sent(`"tools/call"`)
	if !strings.Contains(sent, `"arguments":`+args) {
		t.Errorf("what went out differs:\n%s", sent)
	}
	if head.Get("Authorization") != "Bearer far-secret-value" || head.Get("X-Team") != "support" || head.Get("Mcp-Session-Id") != "session-1" {
		t.Errorf("%v", head)
	}
}

// TestHostileAddresses is like TestHostileServers, for servers over HTTP.
func TestHostileAddresses(t *testing.T) {
	testkit.SkipIfShort(t)
	status := func(code int) func(http.ResponseWriter, *http.Request, wire) {
		return func(w http.ResponseWriter, _ *http.Request, _ wire) { http.Error(w, "no", code) }
	}
	tests := []struct {
		name string
		act  func(w http.ResponseWriter, r *http.Request, m wire)
		want outcome
		says string
	}{
		{"plain", nil, answers, "done"},
		{"401", status(401), fails, "set oauth or the header"},
		{"403", status(403), fails, "give it the permission"},
		{"404", status(404), fails, "answers 404"},
		{"400", status(400), fails, "400 Bad Request; nothing was done"},
		{"429", status(429), fails, "429 Too Many Requests; nothing was done"},
		{"500", status(500), unclear, "500"},
		{"503", status(503), unclear, "503"},
		{"hangs", func(_ http.ResponseWriter, r *http.Request, _ wire) { <-r.Context().Done() }, unclear, "had not answered"},
		{"breaks off", func(w http.ResponseWriter, _ *http.Request, _ wire) { panic(http.ErrAbortHandler) }, unclear, ""},
		{"breaks off within its answer", func(w http.ResponseWriter, _ *http.Request, m wire) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"cont`, m.ID)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, unclear, ""},
		{"a page", func(w http.ResponseWriter, _ *http.Request, _ wire) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<h1>Welcome</h1>")
		}, unclear, "broke"},
		{"another answer", func(w http.ResponseWriter, _ *http.Request, m wire) {
			m.ID = json.RawMessage("987654")
			answerJSON(w, m, `{"content":[]}`)
		}, unclear, "can't be used"},
		{"no message", func(w http.ResponseWriter, _ *http.Request, _ wire) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `"done"`)
		}, unclear, "can't be used"},
		{"no end", func(w http.ResponseWriter, r *http.Request, m wire) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, m.ID)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("x", 64<<10)); err != nil {
					return
				}
			}
		}, unclear, "too large"},
		{"too much", func(w http.ResponseWriter, _ *http.Request, m wire) {
			answerJSON(w, m, `{"content":[{"type":"text","text":"`+strings.Repeat("x", 2<<20)+`"}]}`)
		}, unclear, "1048576 are allowed"},
		{"no UTF-8", func(w http.ResponseWriter, _ *http.Request, m wire) {
			answerJSON(w, m, "{\"content\":[{\"type\":\"text\",\"text\":\"\xff\"}]}")
		}, unclear, "invalid UTF-8"},
		{"an event", func(w http.ResponseWriter, r *http.Request, m wire) {
			say := stream(w, r)
			say(": a comment\r\nid: 1\r\n\r\n")
			say("event: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"on two lines\"}]}}\n\n", m.ID)
		}, answers, "on two lines"},
		{"an event of another name", func(w http.ResponseWriter, r *http.Request, m wire) {
			say := stream(w, r)
			say("event: other\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", m.ID)
		}, unclear, ""},
		{"events that end", func(w http.ResponseWriter, r *http.Request, _ wire) { stream(w, r)("data: \n\n") }, unclear, "broke"},
		{"an event without end", func(w http.ResponseWriter, r *http.Request, _ wire) {
			say := stream(w, r)
			say("data: ")
			for say("%s", strings.Repeat("x", 64<<10)) {
			}
		}, unclear, ""},
		{"an event of many lines", func(w http.ResponseWriter, r *http.Request, _ wire) {
			say := stream(w, r)
			for say("data: %s\n", strings.Repeat("x", 64<<10)) {
			}
		}, unclear, ""},
		{"comments without end", func(w http.ResponseWriter, r *http.Request, _ wire) {
			say := stream(w, r)
			for say(": still here\n\n") {
			}
		}, unclear, "had not answered"},
		{"a flood of progress", func(w http.ResponseWriter, r *http.Request, m wire) {
			say := stream(w, r)
			for say("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%q,\"progress\":1}}\n\n", tokenOf(m)) {
			}
		}, unclear, "had not answered"},
		{"a redirect elsewhere", func(w http.ResponseWriter, r *http.Request, _ wire) {
			http.Redirect(w, r, "http://127.0.0.1:1/mcp", http.StatusTemporaryRedirect)
		}, fails, "redirects to another URL"},
		{"a look elsewhere", func(w http.ResponseWriter, r *http.Request, _ wire) {
			http.Redirect(w, r, "http://127.0.0.1:1/mcp", http.StatusSeeOther)
		}, unclear, "303"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			memory := watchMemory(t)
			far := (&address{act: tt.act}).at(t)
			c, o := running(t, quick(), far, saneAddress(t))
			beside := keepCalling(t, o.tool(t, "sane.echo"))
			tool := o.tool(t, "far.act")
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if tt.says == "had not answered" {
				go endOnceSent(c.servers[0], cancel)
			}
			began := time.Now()
			text, err := tool.Run(ctx, agent.Invocation{Key: "exec-1", Args: []byte(`{}`)})
			if got := outcomeOf(err); got != tt.want || !strings.Contains(text+said(err), tt.says) {
				t.Errorf("it %v: %.300q, %v; want that it %v with %q", got, text, err, tt.want, tt.says)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("the call took %s", took)
			}
			if calls := beside(); calls == 0 {
				t.Error("the sane server beside it was not called meanwhile")
			}
			memory()
		})
	}
}

// TestRefusedAtTheDoor checks the error for a refused login: it must name the setting to change. No secret may be
// logged or returned.
func TestRefusedAtTheDoor(t *testing.T) {
	t.Setenv("FAR_TOKEN", "far-secret-value")
	for _, tt := range []struct {
		name    string
		status  int
		headers map[string]string
		oauth   *config.OAuth
		want    string
	}{
		{"nothing is set", 401, nil, nil, "set oauth or the header"},
		{"the token is wrong", 401, map[string]string{"Authorization": "Bearer ${FAR_TOKEN}"}, nil, "rejects the token"},
		{"the token may not", 403, map[string]string{"Authorization": "Bearer ${FAR_TOKEN}"}, nil, "may not do this"},
		{"the variable is missing", 200, map[string]string{"Authorization": "Bearer ${NO_SUCH_TOKEN}"}, nil, "NO_SUCH_TOKEN is not set"},
		{"no issuer", 401, nil, &config.OAuth{Issuer: "https://login.example.com", ClientID: "a", ClientSecret: "${FAR_TOKEN}"}, "check oauth"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &address{gate: func(w http.ResponseWriter, r *http.Request) bool {
				if tt.status != 200 {
					http.Error(w, "go away, "+r.Header.Get("Authorization"), tt.status)
				}
				return tt.status == 200
			}}
			s := a.at(t)
			s.Headers, s.OAuth = tt.headers, tt.oauth
			var log lockedBuffer
			l := quick()
			l.ready = 300 * time.Millisecond
			c := open(Config{Servers: []config.Server{s}, Log: slog.New(slog.NewTextHandler(&log, nil))}, l)
			runUntilEnd(t, c)
			if err := c.Settled(t.Context()); err != nil {
				t.Fatal(err)
			}
			problem := c.Status()[0].Problem
			if !strings.Contains(problem, tt.want) {
				t.Errorf("%q does not say %q", problem, tt.want)
			}
			tool, err := c.Tool("far", []byte(aTool))
			if err != nil {
				t.Fatal(err)
			}
			_, err = call(t, tool, `{}`)
			if outcomeOf(err) != fails || !strings.Contains(said(err), tt.want) {
				t.Errorf("%v", err)
			}
			if shown := redact.Text(problem); shown != problem {
				t.Errorf("/readyz shows %q instead of %q", shown, problem)
			}
			if all := log.String() + problem + said(err); strings.Contains(all, "far-secret-value") {
				t.Errorf("a secret was written: %s", all)
			}
		})
	}
}

// TestAcknowledgedNotification checks that the empty response to a notification does not count as a bad message of the
// server.
func TestAcknowledgedNotification(t *testing.T) {
	a := &address{}
	var log lockedBuffer
	c := open(Config{Servers: []config.Server{a.at(t)}, Log: slog.New(slog.NewTextHandler(&log, nil))}, quick())
	runUntilEnd(t, c)
	if err := c.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, heads := a.sent("notifications/initialized"); heads == nil || strings.Contains(log.String(), "ignored") {
		t.Errorf("log: %s", log.String())
	}
}

// TestUnfitAddresses checks the problem that is reported for an unusable address. No connection is made to a forbidden
// address.
func TestUnfitAddresses(t *testing.T) {
	t.Setenv("FAR_URL", "no address")
	t.Setenv("OPEN_URL", "http://crm.example.com/mcp")
	t.Setenv("FAR_TOKEN", "far-secret-value")
	a := &address{}
	private := a.at(t)
	private.Allow = nil
	for name, tt := range map[string]struct {
		s    config.Server
		want string
	}{
		"private":       {private, "this machine"},
		"no address":    {config.Server{Name: "far", URL: "${FAR_URL}"}, "is not a URL"},
		"not encrypted": {config.Server{Name: "far", URL: "${OPEN_URL}", Headers: map[string]string{"X": "${FAR_TOKEN}"}}, "without encryption"},
		"a bad network": {config.Server{Name: "far", URL: "https://example.com", Allow: []string{"a b"}}, "allow"},
		"nobody there":  {config.Server{Name: "far", URL: "http://127.0.0.1:1/mcp", Allow: []string{"127.0.0.1"}}, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.s.Timeout = patience
			c, _ := running(t, quick(), tt.s)
			if err := c.Settled(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := c.Status()[0].Problem; !strings.Contains(got, tt.want) {
				t.Errorf("%q does not say %q", got, tt.want)
			}
		})
	}
	if a.bodies != nil {
		t.Error("the private address was called")
	}
}

// TestRedirects checks that headers and secrets are sent only to the address that the policy names.
func TestRedirects(t *testing.T) {
	other := &address{}
	elsewhere := other.at(t)
	a := &address{gate: func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		return false
	}}
	s := a.at(t)
	s.Headers = map[string]string{"X-Key": "secret"}
	c, _ := running(t, quick(), s)
	if err := c.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.Status()[0].Connected {
		t.Error("it is connected")
	}
	if other.bodies != nil {
		t.Errorf("the other address was called: %v", other.heads)
	}
}

// TestStreamUnasked checks the stream of unsolicited messages. If a server does not answer the request for the
// stream, the connection works without the stream. A server can announce changes of its list on the stream.
func TestStreamUnasked(t *testing.T) {
	l := quick()
	l.stream = 100 * time.Millisecond
	silent := &address{get: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}
	_, o := running(t, l, silent.at(t))
	if _, err := call(t, o.tool(t, "far.act"), `{}`); err != nil {
		t.Error(err)
	}
	told := make(chan struct{})
	news := &address{get: func(w http.ResponseWriter, r *http.Request) {
		say := stream(w, r)
		say(": here it is\n\n")
		<-told
		say("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
		<-r.Context().Done()
	}}
	_, o = running(t, quick(), news.at(t))
	o.tool(t, "far.act")
	news.mu.Lock()
	before := len(news.bodies)
	news.mu.Unlock()
	close(told)
	deadline := time.Now().Add(patience)
	for {
		news.mu.Lock()
		lists := strings.Count(strings.Join(news.bodies[before:], "\n"), `"tools/list"`)
		news.mu.Unlock()
		if lists > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the list was not read again")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestStreamEndsAgainAndAgain checks a proxy that ends each idle stream of unsolicited messages. The connection stays,
// with its running call. The server gets only the ids of its own events.
func TestStreamEndsAgainAndAgain(t *testing.T) {
	var mu sync.Mutex
	var last []string
	enough := make(chan struct{})
	a := &address{get: func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch last = append(last, r.Header.Get("Last-Event-ID")); {
		case len(last) == 12:
			close(enough)
		case len(last) == 6:
			stream(w, r)("id: own-6\n\n")
		case len(last) < 12:
			stream(w, r)("retry: 5\n\n")
		}
	}, act: func(w http.ResponseWriter, r *http.Request, m wire) {
		select {
		case <-enough:
			answerJSON(w, m, `{"content":[{"type":"text","text":"done"}]}`)
		case <-r.Context().Done():
		}
	}}
	c, o := running(t, quick(), a.at(t))
	if text, err := call(t, o.tool(t, "far.act"), `{}`); text != "done" || c.Status()[0].Restarts != 0 {
		t.Errorf("%q, %v; connected again %d times", text, err, c.Status()[0].Restarts)
	}
	mu.Lock()
	defer mu.Unlock()
	if ids := strings.Join(last[:min(len(last), 12)], ","); ids != ",,,,,,own-6,,,,," {
		t.Errorf("the server got the ids %s", ids)
	}
}

// TestAskOverHTTP checks that a question on a call's own stream is put to a person, even if several calls are in
// progress.
func TestAskOverHTTP(t *testing.T) {
	answered := make(chan string, 10)
	a := &address{act: func(w http.ResponseWriter, r *http.Request, m wire) {
		say := stream(w, r)
		say("data: {\"jsonrpc\":\"2.0\",\"id\":\"ask-%s\",\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\",\"message\":\"Who?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}}}\n\n", m.ID)
		select {
		case reply := <-answered:
			say("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":%s}]}}\n\n", m.ID, quoted(reply))
		case <-r.Context().Done():
		}
	}}
	a.gate = func(_ http.ResponseWriter, r *http.Request) bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		if last := a.bodies[len(a.bodies)-1]; strings.Contains(last, `"id":"ask-`) {
			answered <- last
		}
		return true
	}
	_, o := running(t, quick(), a.at(t))
	tool := o.tool(t, "far.act")
	var runs sync.WaitGroup
	both := make(chan struct{}, 2)
	for _, name := range []string{"Ada", "Grace"} {
		runs.Go(func() {
			_, err := tool.Run(t.Context(), agent.Invocation{Args: []byte(`{}`), Ask: func(context.Context, agent.Form) (agent.Reply, error) {
				both <- struct{}{}
				for len(both) < 2 { // wait until both questions are asked
					time.Sleep(time.Millisecond)
				}
				return agent.Reply{Action: agent.ReplyAccepted, Values: fmt.Appendf(nil, `{"name":%q}`, name)}, nil
			}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	runs.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if all := strings.Join(a.bodies, "\n"); !strings.Contains(all, `"Ada"`) || !strings.Contains(all, `"Grace"`) {
		t.Error("not both were asked")
	}
}

// TestLostSession checks a server that has lost the session, for example after a restart. The client opens a new
// session and makes the next call in it.
func TestLostSession(t *testing.T) {
	var mu sync.Mutex
	lost := false
	a := &address{}
	a.gate = func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if lost && r.Header.Get("Mcp-Session-Id") != "" && r.Method == http.MethodPost {
			lost = false
			http.Error(w, "no such session", http.StatusNotFound)
			return false
		}
		return true
	}
	c, o := running(t, quick(), a.at(t))
	tool := o.tool(t, "far.act")
	if _, err := call(t, tool, `{}`); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	lost = true
	mu.Unlock()
	if _, err := call(t, tool, `{}`); outcomeOf(err) != fails {
		t.Errorf("%v", err)
	}
	deadline := time.Now().Add(patience)
	for {
		_, err := call(t, tool, `{}`)
		if err == nil {
			break
		}
		if errors.Is(err, agent.ErrOutcomeUnknown) || time.Now().After(deadline) {
			t.Fatalf("%v, %+v", err, c.Status())
		}
	}
	if c.Status()[0].Restarts == 0 {
		t.Error("it was not connected again")
	}
}

// TestForgottenSession checks a server that has lost the session when a call reads the list. The call waits for the new
// session.
func TestForgottenSession(t *testing.T) {
	for name, refuse := range map[string]func(http.ResponseWriter){
		"a text": func(w http.ResponseWriter) { http.Error(w, "no such session", http.StatusNotFound) },
		"JSON": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var lost, refused atomic.Bool
			a := &address{}
			a.gate = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("Mcp-Session-Id") == "" {
					lost.Store(false) // a new session
				}
				if lost.Load() {
					refused.Store(true)
					refuse(w)
				}
				return !lost.Load()
			}
			l := quick()
			l.fresh = 0
			_, o := running(t, l, a.at(t))
			tool := o.tool(t, "far.act")
			lost.Store(true)
			if text, err := call(t, tool, `{}`); text != "done" || !refused.Load() {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

// TestRefusedBesideACall checks a call that the server refuses with a status and without a JSON-RPC error. The server's
// other calls go on.
func TestRefusedBesideACall(t *testing.T) {
	for _, code := range []int{303, 400, 409, 413, 501} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			began, release := make(chan struct{}), make(chan struct{})
			a := &address{act: func(w http.ResponseWriter, r *http.Request, m wire) {
				if strings.Contains(m.raw, "large") {
					http.Error(w, "no", code)
					return
				}
				if strings.Contains(m.raw, "small") {
					answerJSON(w, m, `{"content":[]}`)
					return
				}
				close(began)
				select {
				case <-release:
					answerJSON(w, m, `{"content":[{"type":"text","text":"done"}]}`)
				case <-r.Context().Done():
				}
			}}
			c, o := running(t, quick(), a.at(t))
			tool := o.tool(t, "far.act")
			var slow sync.WaitGroup
			slow.Go(func() {
				if text, err := call(t, tool, `{}`); text != "done" {
					t.Errorf("the other call: %q, %v", text, err)
				}
			})
			<-began
			if _, err := call(t, tool, `{"large":1}`); !strings.Contains(said(err), strconv.Itoa(code)) || (outcomeOf(err) == fails) != (code/100 == 4) {
				t.Errorf("the refused call: %v", err)
			}
			if _, err := call(t, tool, `{"small":1}`); err != nil {
				t.Errorf("the next call: %v", err)
			}
			close(release)
			slow.Wait()
			if n := c.Status()[0].Restarts; n != 0 {
				t.Errorf("it was connected again %d times", n)
			}
		})
	}
}

// A traced call has traceparent as a header. It also has traceparent in its metadata, because servers over pipes get
// no headers.
func TestTraceparent(t *testing.T) {
	a := &address{}
	far := a.at(t)
	near, read := recorded(t, "plain")
	ctx, traceparent, _ := tracingtest.Within(t, tracing.Options{})
	_, o := running(t, quick(), far, near)
	for _, name := range []string{"far.act", "bad.act"} {
		if _, err := o.tool(t, name).Run(ctx, agent.Invocation{Key: "exec_1", Args: json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	inMetadata := `"traceparent":"` + traceparent + `"`
	sent, head := a.sent(`"tools/call"`)
	if !strings.Contains(sent, inMetadata) || head.Get("Traceparent") != traceparent {
		t.Errorf("the header is %q, and the message %s", head.Get("Traceparent"), sent)
	}
	if sent := recordedLine(t, read, `"tools/call"`); !strings.Contains(sent, inMetadata) {
		t.Errorf("the message is %s", sent)
	}
}

// TestLostSessionByMethod checks which refused requests show that the session is lost. The SDK keeps the connection
// after server/discover and subscriptions/listen, so these requests must not show it.
func TestLostSessionByMethod(t *testing.T) {
	for method, want := range map[string]bool{"tools/list": true, "ping": true, "server/discover": false, "subscriptions/listen": false} {
		c := &carrier{tap: newTap(discard, redact.Values{}, 1000, func() {}, nil)}
		r := &http.Request{Header: http.Header{"Mcp-Session-Id": {"session-1"}}}
		resp := &http.Response{StatusCode: http.StatusNotFound, Request: r, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("not found"))}
		if c.refusal(resp, nil, "1", method); c.lost.Load() != want {
			t.Errorf("%s: lost %t", method, c.lost.Load())
		}
	}
}
