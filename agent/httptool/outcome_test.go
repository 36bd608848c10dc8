package httptool_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign/agent"
)

// Declarations of three tools: one reads, one writes, and one makes idempotent writes.
const (
	reads    = "url: SITE/it\n"
	writes   = "url: SITE/it\nmethod: POST\n"
	repeated = "url: SITE/it\nmethod: POST\nidempotency_key: Idempotency-Key\n"
)

// broken closes the connection instead of answering.
func broken(w http.ResponseWriter, _ *http.Request) {
	if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
		c.Close()
	}
}

// cutOff answers with fewer bytes than it announces.
func cutOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	fmt.Fprint(w, "the beginning")
}

// silent does not answer until the client has gone.
func silent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// raw answers with bytes that are not HTTP.
func raw(w http.ResponseWriter, _ *http.Request) {
	if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
		fmt.Fprint(c, "220 mail.example ESMTP\r\n")
		c.Close()
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"error": "code %d"}`, code)
	}
}

func elsewhere(code int, location string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/there" {
			fmt.Fprint(w, "there")
			return
		}
		w.Header().Set("Location", location)
		w.WriteHeader(code)
	}
}

// The test checks the outcome of a call for every way in which its request can end. docs/http.md has the same table.
func TestOutcomes(t *testing.T) {
	for _, tt := range []struct {
		name                 string
		answer               http.HandlerFunc
		read, write, repeats string // the outcome for each of the three tools above
	}{
		{"200", status(200), "done", "done", "done"},
		{"201", status(201), "done", "done", "done"},
		{"204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, "done", "done", "done"},
		{"301 to here", elsewhere(301, "/there"), "done", "unknown", "unknown"},
		{"302 to here", elsewhere(302, "/there"), "done", "unknown", "unknown"},
		{"303 to here", elsewhere(303, "/there"), "done", "unknown", "unknown"},
		{"307 to here", elsewhere(307, "/there"), "done", "done", "done"},
		{"308 to here", elsewhere(308, "/there"), "done", "done", "done"},
		{"307 to elsewhere", elsewhere(307, "http://169.254.169.254/there"), "failed", "failed", "failed"},
		{"302 to elsewhere", elsewhere(302, "http://169.254.169.254/there"), "failed", "unknown", "unknown"},
		{"307 to nowhere", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTemporaryRedirect) }, "failed", "failed", "failed"},
		{"304", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, "failed", "unknown", "unknown"},
		{"400", status(400), "failed", "failed", "failed"},
		{"401", status(401), "failed", "failed", "failed"},
		{"404", status(404), "failed", "failed", "failed"},
		{"409", status(409), "failed", "failed", "failed"},
		{"429", status(429), "failed", "failed", "failed"},
		{"500", status(500), "failed", "unknown", "unknown"},
		{"501", status(501), "failed", "failed", "failed"},
		{"502", status(502), "failed", "unknown", "unknown"},
		{"503", status(503), "failed", "unknown", "unknown"},
		{"504", status(504), "failed", "unknown", "unknown"},
		{"599", status(599), "failed", "unknown", "unknown"},
		{"the connection breaks before the answer", broken, "failed", "unknown", "unknown"},
		{"the connection breaks in the answer", cutOff, "failed", "done", "done"},
		{"no answer in time", silent, "failed", "unknown", "unknown"},
		{"no HTTP", raw, "failed", "unknown", "unknown"},
		{"packed", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, "packed")
		}, "failed", "unknown", "unknown"},
		{"too large a header", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Large", strings.Repeat("x", 70<<10))
			fmt.Fprint(w, "ok")
		}, "failed", "unknown", "unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for yaml, want := range map[string]string{reads: tt.read, writes: tt.write, repeated: tt.repeats} {
				s := serve(t, tt.answer)
				tool := declared(t, s, yaml+"timeout: 1s\n")
				text, _, err := run(t, tool, `{}`)
				if outcome(err) != want {
					t.Errorf("%s: %s, %q, %v; want %s", yaml, outcome(err), text, err, want)
				}
				if err != nil && (strings.Contains(err.Error(), s.URL) || strings.Contains(err.Error(), "\n")) {
					t.Errorf("no plain sentence: %v", err)
				}
				if want == "failed" && yaml != reads && !strings.HasPrefix(err.Error(), "nothing was done: ") {
					t.Errorf("does not say that nothing was done: %v", err)
				}
			}
		})
	}
}

// If a call ends before the request is sent, the call is not run. Invalid arguments are a failure.
func TestNothingWasSent(t *testing.T) {
	s := serve(t, status(200))
	for name, c := range map[string]struct{ yaml, want string }{
		"nobody listens":   {"url: http://127.0.0.1:1/it\n", "not run"},
		"no such host":     {"url: http://no-such-host.invalid/it\n", "not run"},
		"no TLS":           {"url: " + strings.Replace(s.URL, "http:", "https:", 1) + "/it\n", "not run"},
		"a slash":          {"url: 'SITE/{a}'\narguments: {type: object, properties: {a: {type: string}}, required: [a]}\n", "failed"},
		"too long a query": {"url: 'SITE/it?a={b}'\narguments: {type: object, properties: {b: {type: string}}}\n", "failed"},
	} {
		args := fmt.Sprintf(`{"a":"x/y","b":%q}`, strings.Repeat("x", 9000))
		_, _, err := run(t, declared(t, s, c.yaml+"method: POST\ntimeout: 5s\n"), args)
		if outcome(err) != c.want || c.want == "failed" && !strings.HasPrefix(err.Error(), "nothing was sent: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, n := s.last(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// An address that the guard always refuses is reported when the tool is made.
func TestRefusedAddresses(t *testing.T) {
	s := serve(t, status(200))
	for address, want := range map[string]string{
		"http://10.0.0.1/it":              `http.it.url: "10.0.0.1" is a private address, which an entry "10.0.0.1" in allow would permit; if that address is right, add allow: [10.0.0.1]`,
		"http://169.254.169.254/{a}":      `http.it.url: "169.254.169.254" is the cloud's metadata`,
		"http://[::1]:8080/":              `http.it.url: "::1" is this machine`,
		"http://[64:ff9b::a00:1]/?a={a}x": `http.it.url: "64:ff9b::a00:1" is an IPv4 address behind NAT64`,
	} {
		tools, errs := declare(t, s, "url: '"+address+"'\nmethod: POST\narguments: {type: object, properties: {a: {}}, required: [a]}\n")
		if len(tools) != 0 || len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), want) {
			t.Errorf("%s: %d tools, %v", address, len(tools), errs)
		}
	}
	// A host name is resolved only when a connection is made.
	tool := declared(t, s, "url: '"+strings.Replace(s.URL, "127.0.0.1", "localhost", 1)+"/it'\nallow: [10.0.0.1]\nmethod: POST\n")
	if _, _, err := run(t, tool, `{}`); outcome(err) != "not run" || !strings.HasPrefix(err.Error(), `it was not run: "localhost" resolves to `) || !strings.Contains(err.Error(), `in allow would permit`) {
		t.Errorf("%v", err)
	}
	if _, n := s.last(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// If a call to a tool that writes is stopped during its request, the outcome is unknown.
func TestStopped(t *testing.T) {
	for yaml, want := range map[string]string{reads: "failed", writes: "unknown"} {
		arrived := make(chan struct{}, 1)
		s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			arrived <- struct{}{}
			<-r.Context().Done()
		})
		tool := declared(t, s, yaml)
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			<-arrived
			stop()
		}()
		_, err := tool.Run(ctx, agent.Invocation{Args: []byte(`{}`)})
		if outcome(err) != want || !strings.Contains(err.Error(), "it was stopped") {
			t.Errorf("%s: %v", yaml, err)
		}
	}
}

func TestStatuses(t *testing.T) {
	for _, tt := range []struct {
		status, result string
		code           int
		want           string
	}{
		{"[200]", "", 200, "done"},
		{"[200]", "", 201, "unknown"},
		{"[2xx, 404]", "", 404, "done"},
		{"[2xx, 404]", "", 403, "failed"},
		{"[303]", "", 303, "done"},
		{"[303]", "", 200, "unknown"}, // the write may have succeeded
	} {
		s := serve(t, status(tt.code))
		if _, _, err := run(t, declared(t, s, writes+"result: {status: "+tt.status+"}\n"), `{}`); outcome(err) != tt.want {
			t.Errorf("%d with %s: %v", tt.code, tt.status, err)
		}
	}
}

// A run has a slightly longer time limit than its request, so that the run can report the outcome.
func TestTimeouts(t *testing.T) {
	s := serve(t, status(200))
	if tool := declared(t, s, reads+"timeout: 7s\n"); tool.Timeout != 12*time.Second {
		t.Error(tool.Timeout)
	}
	if tool := declared(t, s, reads); tool.Timeout != 35*time.Second {
		t.Error(tool.Timeout)
	}
}
