package scriptedmodel_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"countersign/internal/demo/scriptedmodel"
)

var twoCalls = scriptedmodel.Reply{Calls: []scriptedmodel.Call{
	{Name: "search_orders", Arguments: `{"order_id":"ORD-123"}`}, {Name: "issue_refund", Arguments: `{"order_id":"ORD-123","amount":49.99}`},
}}

// The function "faulty" serves one reply with a fault.
func faulty(t *testing.T, reply scriptedmodel.Reply, fault scriptedmodel.Fault) *openai.Client {
	t.Helper()
	reply.Fault = fault
	_, c := serve(t, scriptedmodel.Config{Responder: scriptedmodel.NewScript(reply)})
	return c
}

func TestStatusFaults(t *testing.T) {
	s := scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.NewScript(scriptedmodel.Reply{Content: "at last"})})
	s.Inject(scriptedmodel.Fault{Status: http.StatusTooManyRequests, RetryAfter: 1500 * time.Millisecond}, scriptedmodel.Fault{Status: http.StatusInternalServerError}, scriptedmodel.Fault{Status: http.StatusServiceUnavailable, Message: "overloaded"})
	body := `{"model":"countersign-scripted","messages":[` + hello + `]}`
	w := post(t, s, body)
	if _, code, _ := errorOf(t, w); w.Code != http.StatusTooManyRequests || code != "rate_limit_exceeded" || w.Header().Get("Retry-After") != "2" {
		t.Errorf("429: %d %v %s", w.Code, w.Header(), w.Body)
	}
	if w := post(t, s, body); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "server_error") {
		t.Errorf("500: %d %s", w.Code, w.Body)
	}
	if w := post(t, s, body); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "overloaded") {
		t.Errorf("503: %d %s", w.Code, w.Body)
	}
	// The faults did not use up the reply.
	if w := post(t, s, body); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "at last") {
		t.Errorf("200: %d %s", w.Code, w.Body)
	}
}

func TestBrokenArguments(t *testing.T) {
	got, err := read(t.Context(), faulty(t, twoCalls, scriptedmodel.Fault{MalformedArguments: true}), ask(user("x")))
	if err != nil || len(got.calls) != 2 || json.Valid([]byte(got.calls[0].Function.Arguments)) || json.Valid([]byte(got.calls[1].Function.Arguments)) {
		t.Errorf("malformed: %+v, %v", got, err)
	}
	got, err = read(t.Context(), faulty(t, twoCalls, scriptedmodel.Fault{TruncatedArguments: true}), ask(user("x")))
	if err != nil || got.finish != openai.FinishReasonToolCalls || got.calls[0].Function.Arguments != twoCalls.Calls[0].Arguments ||
		len(got.calls[1].Function.Arguments) >= len(twoCalls.Calls[1].Arguments) || json.Valid([]byte(got.calls[1].Function.Arguments)) {
		t.Errorf("truncated: %+v, %v", got, err)
	}
}

func TestOddAnswers(t *testing.T) {
	got, err := read(t.Context(), faulty(t, twoCalls, scriptedmodel.Fault{DuplicateIDs: true}), ask(user("x")))
	if err != nil || len(got.calls) != 2 || got.calls[0].ID != got.calls[1].ID {
		t.Errorf("duplicate ids: %+v, %v", got, err)
	}
	got, err = read(t.Context(), faulty(t, twoCalls, scriptedmodel.Fault{Tool: "launch_rocket"}), ask(user("x")))
	if err != nil || got.calls[0].Function.Name != "launch_rocket" {
		t.Errorf("unknown tool: %+v, %v", got, err)
	}
	got, err = read(t.Context(), faulty(t, scriptedmodel.Reply{Content: "half of"}, scriptedmodel.Fault{Finish: scriptedmodel.FinishLength}), ask(user("x")))
	if err != nil || got.finish != openai.FinishReasonLength {
		t.Errorf("length: %+v, %v", got, err)
	}
	got, err = read(t.Context(), faulty(t, twoCalls, scriptedmodel.Fault{Interleave: true}), ask(user("x")))
	if err != nil || got.calls[0].Function.Arguments != twoCalls.Calls[0].Arguments || got.calls[1].Function.Arguments != twoCalls.Calls[1].Arguments {
		t.Errorf("interleaved: %+v, %v", got, err)
	}
}

func TestCutStreams(t *testing.T) {
	long := scriptedmodel.Reply{Content: "A sentence that takes a good number of pieces to send."}
	for _, after := range []int{0, 1, 3, 99} {
		got, err := read(t.Context(), faulty(t, long, scriptedmodel.Fault{Cut: true, CutAfter: after}), ask(user("x")))
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut after %d: %v, want an unexpected end", after, err)
		}
		if after < 99 && got.pieces != after {
			t.Errorf("cut after %d: %d pieces came", after, got.pieces)
		}
	}
	got, err := read(t.Context(), faulty(t, long, scriptedmodel.Fault{Cut: true, CutAfter: 2, StreamError: true, Message: "overloaded"}), ask(user("x")))
	var fault *openai.APIError
	if !errors.As(err, &fault) || fault.Message != "overloaded" || got.pieces != 2 {
		t.Errorf("error within the stream: %d pieces, %v", got.pieces, err)
	}
	got, err = read(t.Context(), faulty(t, long, scriptedmodel.Fault{Cut: true, CutAfter: 2, CutQuietly: true}), ask(user("x")))
	if err != nil || got.pieces != 2 || got.finish != "" {
		t.Errorf("quiet cut: %d pieces, finish %q, %v; go-openai can't tell it from a whole stream", got.pieces, got.finish, err)
	}
	if _, err := faulty(t, long, scriptedmodel.Fault{Cut: true}).CreateChatCompletion(t.Context(), ask(user("x"))); err == nil {
		t.Error("a whole answer that was cut arrived")
	}
}

func TestTokenLimitEndsTheAnswer(t *testing.T) {
	request := ask(user("x"))
	request.MaxCompletionTokens = 3
	got, err := read(t.Context(), faulty(t, scriptedmodel.Reply{Content: "More words than the limit allows."}, scriptedmodel.Fault{}), request)
	if err != nil || got.content != "More words t" || got.finish != openai.FinishReasonLength {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = read(t.Context(), faulty(t, twoCalls, scriptedmodel.Fault{}), request)
	if err != nil || len(got.calls) != 1 || json.Valid([]byte(got.calls[0].Function.Arguments)) || got.finish != openai.FinishReasonLength {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestSlowAnswers runs in faked time, without a network.
func TestSlowAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reply := scriptedmodel.Reply{Content: "slowly"}
		script := scriptedmodel.NewScript(reply, reply)
		s := scriptedmodel.New(scriptedmodel.Config{Responder: script})
		c := client("http://model.invalid", s.Transport(), "")
		began := time.Now()
		s.Inject(scriptedmodel.Fault{Delay: time.Hour, Pause: time.Minute})
		got, err := read(t.Context(), c, ask(user("x")))
		if err != nil || got.content != "slowly" || time.Since(began) != time.Hour+time.Duration(got.pieces)*time.Minute {
			t.Errorf("%+v, %v after %v", got, err, time.Since(began))
		}
		s.Inject(scriptedmodel.Fault{Hang: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := read(ctx, c, ask(user("x"))); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("hanging: %v, want the deadline", err)
		}
		// A client that gives up must leave no goroutine behind. If a goroutine is left, synctest.Test does not end.
		s.Inject(scriptedmodel.Fault{Pause: time.Hour})
		ctx, cancel = context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		if _, err := read(ctx, c, ask(user("x"))); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("given up in the middle: %v, want the deadline", err)
		}
	})
}

func TestTransportCutsAndPanicsAsANetworkDoes(t *testing.T) {
	s := scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.ResponderFunc(func(context.Context, scriptedmodel.Request) (scriptedmodel.Reply, error) {
		panic("responder")
	})})
	c := client("http://model.invalid", s.Transport(), "")
	if _, err := c.CreateChatCompletion(t.Context(), ask(user("x"))); err == nil || !strings.Contains(err.Error(), "panicked") {
		t.Errorf("a panic within: %v", err)
	}
	s = scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.NewScript(scriptedmodel.Reply{Content: "cut here", Fault: scriptedmodel.Fault{Cut: true, CutAfter: 1}})})
	if _, err := read(t.Context(), client("http://model.invalid", s.Transport(), ""), ask(user("x"))); err == nil {
		t.Error("a cut stream ended well")
	}
}

func TestScript(t *testing.T) {
	script := scriptedmodel.NewScript(
		scriptedmodel.Reply{Content: "for Bob", When: func(r scriptedmodel.Request) bool { return strings.Contains(r.Last().Content, "Bob") }},
		scriptedmodel.Reply{Content: "first"},
	)
	script.Add(scriptedmodel.Reply{Content: "second"})
	_, c := serve(t, scriptedmodel.Config{Responder: script})
	for _, row := range []struct{ says, want string }{{"hello", "first"}, {"I am Bob", "for Bob"}, {"again", "second"}} {
		if got, err := read(t.Context(), c, ask(user(row.says))); err != nil || got.content != row.want {
			t.Errorf("%s: %q, %v; want %q", row.says, got.content, err, row.want)
		}
	}
	_, err := c.CreateChatCompletion(t.Context(), ask(user("more")))
	wantAPIError(t, err, http.StatusBadRequest, "no_reply")
	if err == nil || !strings.Contains(err.Error(), "3 given") {
		t.Errorf("err = %v, want it to say that the script is at its end", err)
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	s := scriptedmodel.New(scriptedmodel.Config{})
	for _, row := range []struct {
		method, path string
		status       int
	}{{"GET", "/v1/chat/completions", http.StatusMethodNotAllowed}, {"POST", "/v1/embeddings", http.StatusNotFound}, {"GET", "/", http.StatusNotFound}} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), row.method, row.path, nil))
		if message, _, _ := errorOf(t, w); w.Code != row.status || message == "" {
			t.Errorf("%s %s: %d %q, want %d", row.method, row.path, w.Code, message, row.status)
		}
	}
}
