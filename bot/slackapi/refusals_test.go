package slackapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slack-go/slack"
)

func refusedWith(code string, said ...string) error {
	return fmt.Errorf("chat.postMessage: %w", slack.SlackErrorResponse{Err: code, ResponseMetadata: slack.ResponseMetadata{Messages: said}})
}

// Four kinds of Slack's errors are distinguished: refused blocks, a missing method, an unusable answer, and any
// permanent refusal.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		err                               error
		blocks, missing, unusable, refuse bool
	}{
		{refusedWith("invalid_blocks"), true, false, false, true},
		{refusedWith("invalid_arguments", "[ERROR] unsupported type: plan [json-pointer:/view/blocks/1/type]"), true, false, false, true},
		{refusedWith("invalid_arguments", "[ERROR] missing required field: user"), false, false, false, true},
		{slack.StatusCodeError{Code: http.StatusBadRequest}, true, false, false, false},
		{slack.StatusCodeError{Code: http.StatusNotFound}, false, true, false, true},
		{refusedWith("unknown_method"), false, true, false, true},
		{slack.StatusCodeError{Code: http.StatusBadGateway}, false, false, true, false},
		{refusedWith("internal_error"), false, false, true, false},
		{unusableError{"it is empty"}, false, false, true, false},
		{refusedWith("ratelimited"), false, false, false, false},
		{refusedWith("cant_update_message"), false, false, false, true},
		{io.ErrUnexpectedEOF, false, false, false, false},
	} {
		if got := [4]bool{IsBlocksRefused(c.err), IsMissing(c.err), IsUnusable(c.err), IsRefused(c.err)}; got != [4]bool{c.blocks, c.missing, c.unusable, c.refuse} {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

func TestBlockFaults(t *testing.T) {
	faults, said := BlockFaults(refusedWith("invalid_blocks", "[ERROR] unsupported type: task_card [json-pointer:/blocks/2/type]", "[ERROR] must be a string [json-pointer:/blocks/0/text/text]"))
	if !said || len(faults) != 2 || faults[0] != (BlockFault{2, true, "task_card"}) || faults[1] != (BlockFault{0, false, ""}) {
		t.Errorf("%v %v", faults, said)
	}
	if _, said := BlockFaults(refusedWith("invalid_blocks")); said {
		t.Error("Slack said nothing")
	}
}

// The kept part of Slack's reasons contains no token, and has a limited length.
func TestExplain(t *testing.T) {
	text := Explain(refusedWith("invalid_blocks", "[ERROR] in xoxb-1234567890-abcdef [json-pointer:/blocks/0]", strings.Repeat("long ", 500)))
	if strings.Contains(text, "xoxb-1234") || len(text) > maxReason+10 || !strings.Contains(text, "/blocks/0") {
		t.Errorf("%q", text)
	}
}

// An empty answer or an HTML page does not have Slack's format. For an interrupted answer, notJSON returns nil.
func TestNotJSON(t *testing.T) {
	for body, fine := range map[string]bool{`{"ok":true}`: true, "\n {\"ok\":false}": true, "": false, "  ": false, "<html>": false, "ok": false, `[1]`: false} {
		resp := response(http.StatusOK, body)
		if err := notJSON(resp); (err == nil) != fine {
			t.Errorf("%q: %v", body, err)
		}
		if left, err := io.ReadAll(resp.Body); err != nil || string(left) != body {
			t.Errorf("%q was left of %q: %v", left, body, err)
		}
	}
	broken := response(http.StatusOK, "")
	broken.Body = io.NopCloser(io.MultiReader(failing{}))
	if err := notJSON(broken); err != nil {
		t.Errorf("a broken connection: %v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// An empty answer of a response URL means that the message was accepted.
func TestReplied(t *testing.T) {
	for body, want := range map[string]string{"": "ok", "ok": "ok", `{"ok":true}`: `{"ok":true}`} {
		resp := response(http.StatusOK, body)
		resp.Header = http.Header{}
		replied(resp)
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v", body, got, err)
		}
	}
}

// The base of the Web API may be the root of a host. Even there, posts to response URLs and uploads of files are not
// calls to the Web API: their answers are not JSON, and the rate limiter and the circuit breaker do not count them.
func TestAPIAtTheRootOfAHost(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/commands/"):
			_, _ = w.Write([]byte("ok"))
		case strings.HasPrefix(r.URL.Path, "/upload/"):
			_, _ = w.Write([]byte("OK - 5"))
		default:
			_, _ = w.Write([]byte(`{"ok":true,"channel":"C1","ts":"1.1"}`))
		}
	}))
	defer srv.Close()
	var counted []string
	api := New(Options{
		BotToken: "xoxb-1", URL: srv.URL, HTTP: srv.Client(), Log: slog.New(slog.DiscardHandler),
		Count: func(_ context.Context, c Call) { counted = append(counted, c.Method) },
	})
	for range 6 {
		if _, _, err := api.PostMessageContext(t.Context(), "C1", slack.MsgOptionText("x", false), slack.MsgOptionResponseURL(srv.URL+"/commands/T1/1/x", slack.ResponseTypeEphemeral)); err != nil {
			t.Fatalf("a response URL: %v", err)
		}
		if err := api.UploadToURL(t.Context(), slack.UploadToURLParameters{UploadURL: srv.URL + "/upload/v1/F1.txt", Filename: "x.txt", Content: "hello"}); err != nil {
			t.Fatalf("an upload: %v", err)
		}
	}
	if _, _, err := api.PostMessageContext(t.Context(), "C1", slack.MsgOptionText("x", false)); err != nil || fmt.Sprint(counted) != "[chat.postMessage]" {
		t.Errorf("a post: %v; counted: %v", err, counted)
	}
}
