package hookserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"countersign/agent/gateway"
	"countersign/approvers"
)

// noCallers is the workflow of the tests in which no request may reach the workflow.
type noCallers struct{ gateway.Callers }

func (noCallers) PublishReceiptKey(context.Context, string, []byte) error { return nil }

// newGateway returns a gateway with the clients laptop and phone, whose tokens are cs_laptop and cs_phone.
func newGateway(t *testing.T) *gateway.Gateway {
	t.Helper()
	return newLoggingGateway(t, slog.New(slog.DiscardHandler))
}

func newLoggingGateway(t *testing.T, log *slog.Logger) *gateway.Gateway {
	t.Helper()
	policy := &approvers.Policy{}
	for _, name := range []string{"laptop", "phone"} {
		hash := sha256.Sum256([]byte("cs_" + name))
		policy.Clients = append(policy.Clients, approvers.Client{Name: name, Token: hex.EncodeToString(hash[:])})
	}
	g, err := gateway.New(t.Context(), gateway.Config{Callers: noCallers{}, Policy: func() *approvers.Policy { return policy }, Key: gateway.NewReceiptKey(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	Attach(Config{Gateway: g, Log: log})
	return g
}

// post sends an event, and returns the answer, which must have the status 200.
func post(t *testing.T, g *gateway.Gateway, token, query string, body io.Reader, header ...string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/hooks/claude-code"+query, body)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	return w.Body.String()
}

const (
	call = `{"session_id":"s-1","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"make deploy"},"tool_use_id":"t1"}`
	stop = `{"session_id":"s-1","hook_event_name":"Stop"}` // needs no decision
)

// unread is a body that must not be read.
type unread struct{ *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.Error("the body was read")
	return 0, io.EOF
}

// A gateway that does not handle events denies every call, and other events have no effect.
func TestDeny(t *testing.T) {
	h := Deny(errors.New("The bot is held."), slog.New(slog.DiscardHandler))
	for _, c := range []struct {
		path, want string
		status     int
	}{
		{"claude-code?event=PreToolUse", `"permissionDecision":"deny"`, http.StatusOK},
		{"claude-code", `"permissionDecision":"deny"`, http.StatusOK},
		{"claude-code?event=PreToolUse", "The bot is held.", http.StatusOK},
		{"claude-code?event=Stop&event=PreToolUse", `"permissionDecision":"deny"`, http.StatusOK},
		{"claude-code?event=PermissionRequest", `"behavior":"deny"`, http.StatusOK},
		{"claude-code?event=PermissionRequest&profile=control", `"behavior":"deny"`, http.StatusOK},
		{"claude-code?event=PermissionRequest&profile=comfort", "Decide here instead.", http.StatusOK},
		{"claude-code?event=PermissionRequest&profile=comfort&profile=comfort", `"behavior":"deny"`, http.StatusOK},
		{"nobody", "not found", http.StatusNotFound},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/hooks/"+c.path, strings.NewReader(call)))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %s", c.path, w.Code, w.Body)
		}
	}
}

// No input from an attacker or a wrong setting lets a call run, or reaches the workflow. Each answer has the status
// 200, because Claude Code takes other statuses as a failure of the hook, and by default runs the call after a
// failure. The log has the reason, but does not quote the request, which can contain secrets.
func TestRefused(t *testing.T) {
	var log bytes.Buffer
	g := newLoggingGateway(t, slog.New(slog.NewTextHandler(&log, nil)))
	with := func(old, text string) string { return strings.Replace(call, old, text, 1) }
	for _, attack := range []struct{ name, query, body, words string }{
		{"an unknown parameter", "?timeout=2&wait=1", call, "wait"},
		{"a parameter twice", "?timeout=2&timeout=3600", call, "timeout"},
		{"no time", "?timeout=0", call, "timeout"},
		{"a time that is no number", "?timeout=1e3", call, "timeout"},
		{"more time than a day", "?timeout=86401", call, "timeout"},
		{"another profile", "?profile=none", call, "profile"},
		{"the other profile", "?profile=comfort", call, "profile"},
		{"a person who is none", "?on_behalf_of=sam", call, "on_behalf_of"},
		{"a semicolon, which would hide the parameters", "?timeout=2;on_behalf_of=U1", call, "query"},
		{"an escape that is none", "?%zz", call, "query"},
		{"another event than in the URL", "?event=PostToolUse", call, "PostToolUse"},
		{"an unknown event in the URL", "?event=BeforeAll", call, "BeforeAll"},
		{"an unknown event", "", with("PreToolUse", "BeforeAll"), "BeforeAll"},
		{"no JSON", "", "rm -rf /", "JSON"},
		{"nothing", "", "", "JSON"},
		{"null", "", "null", "JSON"},
		{"a list", "", "[" + call + "]", "JSON"},
		{"two events", "", call + call, "JSON"},
		{"a byte order mark", "", "\ufeff" + call, "JSON"},
		{"two tools", "", with(`"Bash"`, `"Bash","tool_name":"Read"`), "tool_name"},
		{"two folders, in different case", "", with(`"/w"`, `"/w","Cwd":"/x"`), "Cwd"},
		{"two folders, with a letter that folds", "", with(`"s-1"`, `"s-1","\u017fession_id":"s-2"`), "ession_id"},
		{"two events in one", "", with(`"PreToolUse"`, `"PreToolUse","hook_event_name":"PostToolUse"`), "hook_event_name"},
		{"no session", "", with("s-1", ""), "session"},
		{"no folder", "", with("/w", ""), "folder"},
		{"no tool", "", with("Bash", ""), "tool"},
		{"arguments that are no object", "", with(`{"command":"make deploy"}`, `"make deploy"`), "object"},
		{"an argument twice", "", with(`"command":`, `"command":"ls","command":`), "command"},
		{"an endless event", "", with("make deploy", strings.Repeat("x", longestBody)), "too large"},
	} {
		out := post(t, g, "cs_laptop", attack.query, strings.NewReader(attack.body))
		if strings.Contains(out, "allow") || !strings.Contains(out, `"permissionDecision":"deny"`) || !strings.Contains(out, attack.words) || strings.Contains(out, "internal error") {
			t.Errorf("%s: %.500s", attack.name, out)
		}
	}
	for _, secret := range []string{"?hunter2=1", "?on_behalf_of=hunter2", "?event=hunter2", "?profile=hunter2", "?timeout=hunter2", "?%zz=hunter2"} {
		post(t, g, "cs_laptop", secret, strings.NewReader(call))
	}
	for _, secret := range []string{"hunter2", with("PreToolUse", "hunter2"), with(`"/w"`, `"/w","hunter2":1,"hunter2":2`), with(`"command":`, `"hunter2":"ls","hunter2":`), with("s-1", "hunter2") + "x"} {
		post(t, g, "cs_laptop", "", strings.NewReader(secret))
		post(t, g, "cs_hunter2", "", strings.NewReader(secret))
	}
	for _, token := range []string{"", "cs_wrong", "e30.e30.e30"} {
		for query, body := range map[string]io.Reader{"": strings.NewReader(call), "?event=PreToolUse": unread{t}, "?%zz": strings.NewReader(call)} {
			if out := post(t, g, token, query, body); !strings.Contains(out, `"permissionDecision":"deny"`) || !strings.Contains(out, "token") {
				t.Errorf("the token %q and %q: %s", token, query, out)
			}
		}
	}
	if out := post(t, g, "cs_wrong", "?event=PermissionRequest", unread{t}); !strings.Contains(out, `"behavior":"deny"`) {
		t.Errorf("a wrong token in the profile control: %s", out)
	}
	for _, header := range [][]string{{"Content-Type", "text/plain"}, {"Content-Type", "application/json; charset=utf-16"}, {"Content-Encoding", "gzip"}} {
		if out := post(t, g, "cs_laptop", "", strings.NewReader(call), header...); !strings.Contains(out, `"permissionDecision":"deny"`) {
			t.Errorf("%q: %s", header, out)
		}
	}
	if out := post(t, g, "cs_laptop", "", io.MultiReader(strings.NewReader(call), errorReader{})); !strings.Contains(out, `"permissionDecision":"deny"`) {
		t.Errorf("a body that breaks off: %s", out)
	}
	if text := log.String(); !strings.Contains(text, "is not known") || strings.Contains(text, "hunter2") || strings.Contains(text, "make deploy") {
		t.Errorf("the log quotes a request, or has no reason: %s", text)
	}
}

// An event that is refused gets the answer for its name, even if the URL does not name the event. If the beginning of
// the body does not have the name, the call may have run already. The answer denies the call in case it has not run,
// but does not say whether it ran.
func TestRefusedEvents(t *testing.T) {
	const ran = `{"session_id":"s-1","hook_event_name":"PostToolUse","tool_name":"Bash","tool_response":"`
	long, fill := strings.Repeat("x", longestBody), strings.Repeat(" ", longestBeginning-len(`{"session_id":""`))
	g, held := newGateway(t), Deny(errors.New("The bot is held."), slog.New(slog.DiscardHandler))
	for _, c := range []struct {
		name, token, body string
		held, deny        bool
	}{
		{"a held bot, after a call", "cs_laptop", ran + `"}`, true, false},
		{"a held bot, before a call", "cs_laptop", call, true, true},
		{"a held bot, at the end of a turn", "cs_laptop", stop, true, false},
		{"a wrong token, after a call", "cs_wrong", ran + `"}`, false, false},
		{"a wrong token, after a call with a long output", "cs_wrong", ran + long, false, false},
		{"a wrong token, at the end of a turn", "cs_wrong", stop, false, false},
		{"a long output", "cs_laptop", ran + long, false, false},
		{"a late name", "cs_wrong", `{"session_id":"` + fill + `","hook_event_name":"PostToolUse"}`, false, true},
		{"a name in the arguments", "cs_wrong", `{"tool_input":{"hook_event_name":"PostToolUse"},"hook_event_name":"PreToolUse"}`, false, true},
		{"a name after the limit of the body", "cs_laptop", `{"session_id":"` + long[:longestBody-len(`{"session_id":"`)+1] + ran + `"}`, false, true},
		{"no name", "cs_wrong", `{}`, false, true},
		{"two names", "cs_wrong", `{"hook_event_name":"Stop","hook_event_name":"BeforeAll"}`, false, true},
		{"two names in different case", "cs_wrong", `{"hook_event_name":"Stop","Hook_Event_Name":"BeforeAll"}`, false, true},
		{"no object", "cs_wrong", `"hook_event_name"`, false, true},
		{"a name that is no text", "cs_wrong", `{"hook_event_name":1}`, false, true},
	} {
		out := ""
		if c.held {
			w := httptest.NewRecorder()
			held.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/hooks/claude-code", strings.NewReader(c.body)))
			out = w.Body.String()
		} else {
			out = post(t, g, c.token, "", strings.NewReader(c.body))
		}
		before := strings.Contains(c.body, `"hook_event_name":"PreToolUse"`)
		if strings.Contains(out, "deny") != c.deny || strings.Contains(out, "block") != (c.deny && !before) ||
			strings.Contains(out, "did not run") != before || !strings.Contains(out, "Countersign can't be asked: ") {
			t.Errorf("%s: %s", c.name, out)
		}
	}
}

// deadlines is a writer of answers that keeps the deadline for reading.
type deadlines struct {
	http.ResponseWriter
	read time.Time
}

func (w *deadlines) SetReadDeadline(at time.Time) error {
	w.read = at
	return nil
}

// counted is the body of a stranger that never ends.
type counted struct {
	*deadlines
	n     int
	limit time.Time // the latest deadline for reading
}

func (b *counted) Read(p []byte) (int, error) {
	b.n += len(p)
	b.limit = b.read
	return copy(p, strings.Repeat(" ", len(p))), nil
}

// The gateway reads only a small part of a stranger's body, and waits for it only a short time.
func TestBodyOfStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &deadlines{ResponseWriter: httptest.NewRecorder()}
		body := &counted{deadlines: w}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/hooks/claude-code", body)
		newGateway(t).ServeHTTP(w, r)
		if body.n > longestBeginning || body.limit != time.Now().Add(nameWithin) || w.read != body.limit {
			t.Errorf("%d bytes were read with the deadline %s, and then %s", body.n, body.limit, w.read)
		}
	})
}

// errorReader is a body that breaks off.
type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, errors.New("the connection broke") }

// The gateway reads only a few long events at the same time. A client that sends slowly delays only its own events. An
// event that has waited too long is refused.
func TestLongBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t)
		begins := func(token string) (answer <-chan string, body *io.PipeWriter) {
			r, w := io.Pipe()
			out := make(chan string, 1)
			go func() { out <- post(t, g, token, "", r) }() // without a length, the body counts as long
			return out, w
		}
		ends := func(w *io.PipeWriter) {
			if _, err := io.WriteString(w, stop); err != nil {
				t.Error(err)
			}
			w.Close()
		}
		began := time.Now()
		first, slow := begins("cs_laptop")
		second, slower := begins("cs_laptop")
		synctest.Wait()
		third := make(chan string, 2)
		for range cap(third) {
			go func() { third <- post(t, g, "cs_laptop", "", io.MultiReader(strings.NewReader(stop))) }()
		}
		synctest.Wait()
		if len(third) != 0 {
			t.Errorf("a third event of the client was read: %s", <-third)
		}
		if out := post(t, g, "cs_phone", "", io.MultiReader(strings.NewReader(stop))); out != "{}\n" {
			t.Errorf("another client: %s", out)
		}
		if out := post(t, g, "cs_laptop", "", strings.NewReader(stop)); out != "{}\n" {
			t.Errorf("a short event: %s", out)
		}
		if time.Since(began) != 0 {
			t.Errorf("a client waited %s for another one", time.Since(began))
		}

		ends(slow)
		if out := <-first + <-third + <-third; out != "{}\n{}\n{}\n" {
			t.Errorf("after the first event: %s", out)
		}
		_, slow = begins("cs_laptop")
		synctest.Wait()
		out := post(t, g, "cs_laptop", "", io.MultiReader(strings.NewReader(call)))
		if !strings.Contains(out, `"permissionDecision":"deny"`) || !strings.Contains(out, "Too many long events") || time.Since(began) != slotWithin {
			t.Errorf("after %s: %s", time.Since(began), out)
		}
		ends(slow)
		ends(slower)
		<-second

		many := slots{of: map[string]int{}, freed: make(chan struct{})}
		for i := range longBodies + 1 {
			if _, ok := many.take(fmt.Sprint(i)); ok != (i < longBodies) {
				t.Errorf("the event of the client %d is read: %t", i, ok)
			}
		}
	})
}
