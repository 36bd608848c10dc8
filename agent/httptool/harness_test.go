package httptool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"countersign/agent"
	"countersign/agent/httptool"
	"countersign/config"
)

// environment has the environment variables for the tests' declarations.
var environment = map[string]string{"API_TOKEN": "S3cr3t/Va+lue=1", "API_KEY": "k3y&with=odd chars", "REGION": "eu-1"}

func lookup(name string) (string, bool) {
	v, ok := environment[name]
	return v, ok
}

// received is a request that a server has received.
type received struct {
	Method, Target, Body string
	Path                 string // decoded
	Query                url.Values
	Header               http.Header
}

// site is a server that records its requests.
type site struct {
	*httptest.Server
	mu  sync.Mutex
	got []received
}

// serve starts a server. The server's address is not on the public internet, so declarations allow it.
func serve(t *testing.T, answer http.HandlerFunc) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			t.Errorf("a query that can't be read: %s", r.URL.RawQuery)
		}
		s.mu.Lock()
		s.got = append(s.got, received{Method: r.Method, Target: r.RequestURI, Body: string(body), Path: r.URL.Path, Query: query, Header: r.Header})
		s.mu.Unlock()
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// last returns the last request and the number of requests.
func (s *site) last() (received, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.got) == 0 {
		return received{}, 0
	}
	return s.got[len(s.got)-1], len(s.got)
}

// declared returns the only tool of a declaration. The word SITE in the declaration is replaced by the server's
// address.
func declared(t *testing.T, s *site, yaml string) agent.Tool {
	t.Helper()
	tools, errs := declare(t, s, yaml)
	if len(errs) > 0 || len(tools) != 1 {
		t.Fatalf("%d tools, %v", len(tools), errs)
	}
	return tools[0]
}

// declaredWithout returns the only tool of a declaration, without values of environment variables.
func declaredWithout(t *testing.T, s *site, yaml string) agent.Tool {
	t.Helper()
	tools, errs := httptool.Tools(policy(t, s, yaml).HTTP, nil)
	if len(errs) > 0 || len(tools) != 1 {
		t.Fatalf("%d tools, %v", len(tools), errs)
	}
	return tools[0]
}

// policy returns a policy with one declaration.
func policy(t *testing.T, s *site, yaml string) *config.File {
	t.Helper()
	if !strings.Contains(yaml, "allow:") {
		yaml += "\nallow: [127.0.0.1]\n"
	}
	text := "version: 1\nhttp:\n  it:\n    description: A tool of a test.\n" + indented(strings.ReplaceAll(yaml, "SITE", s.URL))
	f, err := config.ParsePolicy("countersign.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return f
}

func declare(t *testing.T, s *site, yaml string) ([]agent.Tool, []error) {
	t.Helper()
	tools, errs := httptool.Tools(policy(t, s, yaml).HTTP, lookup)
	var r agent.Registry
	if more := r.Replace("http", tools); len(more) > 0 {
		t.Fatalf("not registered: %v", more)
	}
	return tools, errs
}

// indented indents a declaration by four spaces, so that it can stand below two keys of a policy file.
func indented(yaml string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.Trim(yaml, "\n"), "\n") {
		b.WriteString("    " + strings.TrimPrefix(line, "\t") + "\n")
	}
	return b.String()
}

// run calls a tool, and collects the files that it attaches.
func run(t *testing.T, tool agent.Tool, args string) (string, []agent.File, error) {
	t.Helper()
	var files []agent.File
	text, err := tool.Run(t.Context(), agent.Invocation{Key: "exec_1", Args: json.RawMessage(args), Attach: func(f agent.File) error {
		files = append(files, f)
		return nil
	}})
	return text, files, err
}

// outcome returns the outcome of a run in one word.
func outcome(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, agent.ErrOutcomeUnknown):
		return "unknown"
	case errors.Is(err, agent.ErrNotRun):
		return "not run"
	}
	return "failed"
}

func TestWeather(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		fmt.Fprint(w, `{"place": "Köln", "current": {"temperature": 21.50, "station": 12345678901234567890}}`)
	})
	tool := declared(t, s, `
method: GET
url: "SITE/v1/places/{place}/weather?units={units}&region=${REGION}"
headers: {Authorization: "Bearer ${API_TOKEN}"}
arguments: {type: object, properties: {place: {type: string}, units: {enum: [metric, imperial]}}, required: [place]}
result: {pointer: /current, status: [200]}
`)
	text, _, err := run(t, tool, `{"place":"Köln & more?","units":"metric"}`)
	if err != nil || text != `{"temperature": 21.50, "station": 12345678901234567890}` {
		t.Errorf("%q, %v", text, err)
	}
	got, _ := s.last()
	if got.Target != "/v1/places/K%C3%B6ln%20%26%20more%3F/weather?units=metric&region=eu-1" || got.Header.Get("Authorization") != "Bearer "+environment["API_TOKEN"] || got.Body != "" {
		t.Errorf("it received %+v", got)
	}
	if _, _, err := run(t, tool, `{"place":"Bonn"}`); err != nil {
		t.Error(err)
	}
	if got, _ := s.last(); got.Target != "/v1/places/Bonn/weather?region=eu-1" {
		t.Errorf("without the optional argument: %s", got.Target)
	}
}
