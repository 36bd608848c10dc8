package doctor

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/config"
)

// found returns the findings of a check as lines, and their highest exit code.
func found(check func(*Doctor)) (lines string, code int) {
	d := new(Doctor)
	check(d)
	for _, f := range d.findings {
		lines += fmt.Sprintf("%s %s\n", f.State, f.What)
		code = max(code, f.code)
	}
	return lines, code
}

// The doctor finds a heads file that can't be written, and a syslog server that does not answer.
func TestHeads(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := func(network, address string) config.Syslog { return config.Syslog{Network: network, Address: address} }
	for name, c := range map[string]struct {
		to   config.Audit
		want string
		code int
	}{
		"nowhere":             {},
		"a new file":          {config.Audit{Heads: filepath.Join(dir, "heads")}, "ok DIR/heads can be written\n", 0},
		"a file":              {config.Audit{Heads: filepath.Join(dir, "file")}, "ok DIR/file can be written\n", 0},
		"a missing directory": {config.Audit{Heads: filepath.Join(dir, "none/heads")}, "fail DIR/none/heads can't be written: ", 2},
		"a directory":         {config.Audit{Heads: dir}, "fail DIR can't be written: ", 2},
		"syslog":              {config.Audit{Syslog: at("tcp", l.Addr().String())}, "ok tcp://ADDRESS can be reached\n", 0},
		"no syslog":           {config.Audit{Syslog: at("unix", filepath.Join(dir, "log"))}, "fail unix://DIR/log can't be reached: ", 3},
		"syslog over UDP":     {config.Audit{Syslog: at("udp", l.Addr().String())}, "ok heads are sent to udp://ADDRESS; over UDP, ", 0},
	} {
		lines, code := found(func(d *Doctor) { d.heads(t.Context(), c.to) })
		want := strings.NewReplacer("DIR", dir, "ADDRESS", l.Addr().String()).Replace(c.want)
		if !strings.HasPrefix(lines, want) || code != c.code || want == "" && lines != "" {
			t.Errorf("%s: exit code %d\n%s", name, code, lines)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 1 {
		t.Errorf("the doctor left %v, %v", left, err)
	}
}

// The doctor finds wrong variables of traces, and a receiver that does not accept traces.
func TestTraces(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("authorization") != "Bearer sesame-open" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		io.Copy(io.Discard, r.Body)
	}))
	defer receiver.Close()
	for _, name := range []string{"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		t.Setenv(name, "")
	}
	for name, c := range map[string]struct {
		endpoint, protocol, headers, want string
		code                              int
	}{
		"no traces":              {},
		"accepted":               {receiver.URL, "", "authorization=Bearer%20sesame-open", "ok " + receiver.URL + " accepts traces\n", 0},
		"a wrong key":            {receiver.URL, "", "authorization=Bearer%20sesame", "warn " + receiver.URL + " does not accept traces: ", 0},
		"nobody listens":         {"http://127.0.0.1:1", "", "", "warn http://127.0.0.1:1 does not accept traces: ", 0},
		"a protocol of the past": {receiver.URL, "http/json", "", "fail environment: OTEL_EXPORTER_OTLP_PROTOCOL is \"http/json\"; it can be http/protobuf or grpc\n", 2},
	} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.endpoint)
		t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", c.protocol)
		lines, code := found(func(d *Doctor) { d.traces(t.Context(), config.Env{TraceHeaders: config.Secret(c.headers)}) })
		if !strings.HasPrefix(lines, c.want) || code != c.code || c.want == "" && lines != "" || strings.Contains(lines, "sesame") {
			t.Errorf("%s: exit code %d\n%s", name, code, lines)
		}
	}
}
