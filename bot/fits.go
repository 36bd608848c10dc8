package bot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/slack-go/slack"
)

// fitter stands before the governor: whatever is to be shown in Slack passes it. What Slack would refuse because of its size is not sent; whoever
// wanted it gets the refusal that Slack would give. What is drawn keeps the limits by itself (limits.go): something that is stopped here is a fault of
// the bot, and the log says where.
type fitter struct {
	next http.RoundTripper
	log  *slog.Logger
}

// errTooLarge says that something was not sent to Slack because Slack would refuse it. The error is also Slack's own refusal.
var errTooLarge = errors.New("this is more than Slack takes")

// RoundTrip makes a call that Slack won't refuse because of a size.
func (f fitter) RoundTrip(req *http.Request) (*http.Response, error) {
	misfits := measure(shownBy(req))
	if len(misfits) == 0 {
		return f.next.RoundTrip(req)
	}
	if req.Body != nil {
		req.Body.Close()
	}
	first := misfits[0]
	f.log.Error("something that is to be shown is more than Slack takes, so it was not sent; this is a fault of the bot, please report it",
		"method", method(req), "at", first.at, "reason", first.reason)
	return nil, fmt.Errorf("%w: %s %s (%w)", errTooLarge, first.at, first.reason, slack.SlackErrorResponse{Err: first.code})
}

// method is the last part of a call's path: chat.update, say. Addresses of answers to clicks have none.
func method(req *http.Request) string {
	name := req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:]
	if !strings.Contains(name, ".") {
		return "response_url"
	}
	return name
}

// shownBy reads what a call says, if it shows something: the arguments, with those in JSON decoded. Other calls have nothing to measure.
func shownBy(req *http.Request) map[string]any {
	name := method(req)
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

// measure finds what Slack would refuse in the fields of a call.
func measure(fields map[string]any) []misfit {
	g := &gauge{code: "msg_too_long"}
	if s, ok := fields["text"].(string); ok {
		g.text("text", s, maxUpdateText)
	}
	if s, ok := fields["markdown_text"].(string); ok {
		g.text("markdown_text", s, maxMarkdown)
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
			g.text("metadata", string(raw), maxMetadata)
		}
	}
	return g.misfits
}

// chunk measures one piece of a stream.
func (g *gauge) chunk(at string, chunk any) {
	o, _ := chunk.(map[string]any)
	if s, ok := o["text"].(string); ok {
		g.text(at+"/text", s, maxMarkdown)
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

// maxFaults is how many bytes of what is wrong with a form go into an acknowledgement. Over a socket Slack drops one of 20 KB or more without a word.
const maxFaults = 16 << 10

// faultsThatFit are what is wrong with a form, as much of it as one acknowledgement takes. The last one says how many more there are: they are told when the
// form is submitted again.
func faultsThatFit(faults map[string]string) map[string]string {
	out := map[string]string{}
	size := 0
	for i, block := range slices.Sorted(maps.Keys(faults)) {
		text := clip(faults[block], maxErrorText)
		left := len(faults) - i - 1
		size += bytesOf(block) + bytesOf(text) + 2
		if last := size+maxErrorText*4 > maxFaults; last && left > 0 {
			text = clip(text, maxErrorText/2) + fmt.Sprintf(" (More is to be mended: %s.)", plural(left, "further field"))
			out[block] = text
			return out
		}
		out[block] = text
	}
	return out
}

// bytesOf is how long a string is as JSON.
func bytesOf(s string) int {
	raw, err := json.Marshal(s)
	if err != nil {
		return maxFaults
	}
	return len(raw)
}
