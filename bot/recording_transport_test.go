package bot

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
)

// recordingTransport records the bot's calls to the workspace, and answers in Slack's place if a test sets an answer.
type recordingTransport struct {
	mu      sync.Mutex
	sent    []sent
	answers map[string]func(url.Values) string // by method; if the answer is empty, the workspace answers; noAnswer breaks the connection
}

// sent is one recorded call to the Web API.
type sent struct {
	method string
	form   url.Values
	body   string // the sent body, decoded
}

// noAnswer is an answer that makes Slack unreachable.
const noAnswer = "down"

func (t *recordingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	var raw []byte
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		if raw, err = io.ReadAll(body); err != nil {
			return nil, err
		}
	}
	s := sent{method: path.Base(req.URL.Path), body: string(raw)}
	if !bytes.HasPrefix(raw, []byte("{")) {
		var err error
		if s.form, err = url.ParseQuery(string(raw)); err == nil {
			s.body = strings.Join([]string{s.form.Get("text"), s.form.Get("blocks"), s.form.Get("view")}, "\n")
		}
	}
	t.mu.Lock()
	t.sent = append(t.sent, s)
	answer := t.answers[s.method]
	t.mu.Unlock()
	if answer != nil {
		answered := make(chan string, 1)
		go func() { answered <- answer(s.form) }()
		var text string
		select {
		case text = <-answered:
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
		switch text {
		case "":
		case noAnswer:
			return nil, io.ErrUnexpectedEOF
		default:
			return &http.Response{
				StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: req,
			}, nil
		}
	}
	return http.DefaultTransport.RoundTrip(req)
}

// answering sets the answer to a method. If with is nil, the workspace answers the method.
func (t *recordingTransport) answering(method string, with func(url.Values) string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.answers == nil {
		t.answers = map[string]func(url.Values) string{}
	}
	t.answers[method] = with
}

func (t *recordingTransport) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.sent)
}

// calls counts the calls to a method that a test accepts.
func (t *recordingTransport) calls(method string, is func(url.Values) bool) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.sent {
		if s.method == method && is(s.form) {
			n++
		}
	}
	return n
}

// The method "told" reports whether the bot has told a person the words. The search begins at the call with the
// index since. The function looks for ephemeral messages in a channel, for direct messages, and for forms.
func (t *recordingTransport) told(since int, user, words string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.sent[since:] {
		switch s.method {
		case "chat.postEphemeral":
			if s.form.Get("user") == user && strings.Contains(s.body, words) {
				return true
			}
		case "chat.postMessage":
			if strings.HasPrefix(s.form.Get("channel"), "D") && strings.Contains(s.body, words) {
				return true
			}
		case "views.update":
			if strings.Contains(s.body, words) {
				return true
			}
		}
	}
	return false
}

// person returns an answer to users.info, with changes to the data of a person.
func person(change func(u, profile map[string]any)) func(url.Values) string {
	return func(form url.Values) string {
		profile := map[string]any{"real_name": "Teo Marchetti", "email": "teo@example.com"}
		u := map[string]any{"id": form.Get("user"), "team_id": "T0001", "name": "teo", "is_email_confirmed": true, "profile": profile}
		change(u, profile)
		text, err := json.Marshal(map[string]any{"ok": true, "user": u})
		if err != nil {
			panic(err)
		}
		return string(text)
	}
}

// The method "times" counts how often the bot has told people the words. The count begins at the call with the index
// since.
func (t *recordingTransport) times(since int, words string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.sent[since:] {
		if (s.method == "chat.postEphemeral" || s.method == "chat.postMessage") && strings.Contains(s.body, words) {
			n++
		}
	}
	return n
}
