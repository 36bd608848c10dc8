package slackapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/slack-go/slack"
)

// sizeGuard checks the sizes in a call before it reaches the rate limiter. If Slack would refuse a call because of its
// size, the call is not sent. The call fails with the error that Slack would return. Rendering stays within the limits,
// so each such call is a bug in the bot. sizeGuard logs the call and the part that is too large.
type sizeGuard struct {
	next http.RoundTripper
	log  *slog.Logger
}

// errTooLarge says that a call was not sent, because Slack would refuse it. The caller gets an error that wraps both
// errTooLarge and the error that Slack would return.
var errTooLarge = errors.New("this exceeds Slack's limits")

// RoundTrip makes a call if Slack accepts its sizes.
func (f sizeGuard) RoundTrip(req *http.Request) (*http.Response, error) {
	tooLong := CheckSizes(shownBy(req))
	if len(tooLong) == 0 {
		return f.next.RoundTrip(req)
	}
	if req.Body != nil {
		req.Body.Close()
	}
	first := tooLong[0]
	f.log.Error("a message exceeds Slack's limits and was not sent; this is a fault of the bot, please report it",
		"method", MethodOf(req), "at", first.At, "reason", first.Reason)
	return nil, fmt.Errorf("%w: %s %s (%w)", errTooLarge, first.At, first.Reason, slack.SlackErrorResponse{
		Err: first.Code, ResponseMetadata: slack.ResponseMetadata{Messages: []string{first.At + " " + first.Reason}},
	})
}

// MethodOf returns the method in the path of a call, such as chat.update. If there is no method, MethodOf returns
// "response_url".
func MethodOf(req *http.Request) string {
	name := req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:]
	if !strings.Contains(name, ".") {
		return "response_url"
	}
	return name
}

// shownBy returns the arguments of a call that contains text or blocks, with JSON arguments decoded. For any other
// call, shownBy returns nil, because there is nothing to measure.
func shownBy(req *http.Request) map[string]any {
	name := MethodOf(req)
	shows := name == "response_url" || strings.HasPrefix(name, "chat.") || strings.HasPrefix(name, "views.") || strings.HasPrefix(name, "assistant.")
	kind, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if !shows || req.GetBody == nil || kind != "application/json" && kind != "application/x-www-form-urlencoded" {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil
	}
	defer body.Close()
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil
	}
	fields := map[string]any{}
	if kind == "application/json" {
		if json.Unmarshal(raw, &fields) != nil {
			return nil
		}
		return fields
	}
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return nil
	}
	for key := range form {
		fields[key] = form.Get(key)
	}
	for _, key := range []string{"blocks", "metadata", "view", "chunks", "prompts"} {
		var v any
		if s, ok := fields[key].(string); ok && json.Unmarshal([]byte(s), &v) == nil {
			fields[key] = v
		}
	}
	return fields
}

// CheckSizes lists the parts of a call's arguments that Slack would refuse. The arguments are decoded JSON: text,
// blocks, view and so on.
func CheckSizes(fields map[string]any) []SizeError {
	g := &sizeChecker{code: "msg_too_long"}
	if s, ok := fields["text"].(string); ok {
		g.checkText("text", s, MaxMessageText)
	}
	if s, ok := fields["markdown_text"].(string); ok {
		g.checkText("markdown_text", s, maxMarkdown)
	}
	for i, chunk := range listIn(fields, "chunks") {
		g.chunk(fmt.Sprintf("chunks/%d", i), chunk)
	}
	g.code = "invalid_blocks"
	if blocks := listIn(fields, "blocks"); len(blocks) > 0 {
		g.blocks("blocks", blocks)
	}
	if v, ok := fields["view"].(map[string]any); ok {
		g.view(v)
	}
	g.code = "invalid_arguments"
	if prompts, ok := fields["prompts"].([]any); ok {
		g.list("prompts", len(prompts), maxPrompts)
	}
	g.code = "metadata_too_large"
	if m, ok := fields["metadata"]; ok {
		if raw, err := json.Marshal(m); err == nil {
			g.checkText("metadata", string(raw), maxMetadata)
		}
	}
	return g.errors
}

// chunk measures one chunk of a stream.
func (g *sizeChecker) chunk(at string, chunk any) {
	o, _ := chunk.(map[string]any)
	if s, ok := o["text"].(string); ok {
		g.checkText(at+"/text", s, maxMarkdown)
	}
	if blocks := listIn(o, "blocks"); len(blocks) > 0 {
		g.code = "invalid_blocks"
		g.blocks(at+"/blocks", blocks)
		g.code = "msg_too_long"
	}
}

func listIn(o map[string]any, key string) []any {
	list, _ := o[key].([]any)
	return list
}
