// Package workspaceclient acts as a person in the local workspace. A Client reads and writes messages, clicks, and
// fills in forms. A Client uses the same HTTP API as the page in the browser (docs/workspace.md). Scenarios and tests
// use this package. The package does not depend on Countersign.
package workspaceclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client is one person.
type Client struct {
	Base string       // the workspace's URL
	User string       // a user id or name
	HTTP *http.Client // nil: http.DefaultClient
}

// Refusal is an error answer of the workspace, with Slack's error code.
type Refusal struct {
	Code   string
	Errors map[string]string // the errors of a form, by block
}

func (r *Refusal) Error() string {
	if len(r.Errors) > 0 {
		return fmt.Sprintf("the workspace refused: %s %v", r.Code, r.Errors)
	}
	return "the workspace refused: " + r.Code
}

// Code returns the workspace's error code in err, or "".
func Code(err error) string {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	return ""
}

// call sends one request and reads the answer into out.
func (v Client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(v.Base, "/")+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := v.client().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	var status struct {
		OK     bool              `json:"ok"`
		Error  string            `json:"error"`
		Errors map[string]string `json:"errors"`
	}
	if err := json.Unmarshal(raw, &status); err != nil {
		return fmt.Errorf("%s %s: status %d, not JSON: %.200s", method, path, resp.StatusCode, raw)
	}
	if !status.OK {
		return fmt.Errorf("%s %s: %w", method, path, &Refusal{Code: status.Error, Errors: status.Errors})
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(raw, out)
}

func (v Client) client() *http.Client {
	if v.HTTP == nil {
		return http.DefaultClient
	}
	return v.HTTP
}

func (v Client) path(parts ...string) string {
	p := "/people/" + url.PathEscape(v.User)
	for _, s := range parts {
		p += "/" + url.PathEscape(s)
	}
	return p
}

// Message is a message as the person sees it.
type Message struct {
	TS        string          `json:"ts"`
	ThreadTS  string          `json:"thread_ts"`
	User      string          `json:"user"`
	BotID     string          `json:"bot_id"`
	Text      string          `json:"text"`
	Blocks    json.RawMessage `json:"blocks"`
	Ephemeral bool            `json:"is_ephemeral"`
	Files     []struct {
		Name  string `json:"name"`
		Title string `json:"title"`
		URL   string `json:"url_private"`
	} `json:"files"`
	Channel string `json:"-"`
}

// Messages reads a channel's top-level messages, or one thread of the channel.
func (v Client) Messages(ctx context.Context, channel, thread string) ([]Message, error) {
	if thread == "" {
		return v.messages(ctx, channel, "")
	}
	return v.messages(ctx, channel, "thread_ts="+url.QueryEscape(thread))
}

func (v Client) messages(ctx context.Context, channel, query string) ([]Message, error) {
	var out struct {
		Channel  struct{ ID string }
		Messages []Message
	}
	err := v.call(ctx, http.MethodGet, v.path("channels", channel, "messages")+"?"+query, nil, &out)
	for i := range out.Messages {
		out.Messages[i].Channel = out.Channel.ID
	}
	return out.Messages, err
}

// Latest reads the last n top-level messages of a channel.
func (v Client) Latest(ctx context.Context, channel string, n int) ([]Message, error) {
	return v.messages(ctx, channel, "limit="+strconv.Itoa(n))
}

// Say writes a message and returns its ts. For a message at the top level, thread is empty.
func (v Client) Say(ctx context.Context, channel, thread, text string) (string, error) {
	var out struct{ TS string }
	in := map[string]string{"channel": channel, "text": text}
	if thread != "" {
		in["thread_ts"] = thread
	}
	err := v.call(ctx, http.MethodPost, v.path("messages"), in, &out)
	return out.TS, err
}

// Edit changes the text of a message that the person wrote.
func (v Client) Edit(ctx context.Context, channel, ts, text string) error {
	return v.call(ctx, http.MethodPost, v.path("edit"), map[string]string{"channel": channel, "ts": ts, "text": text}, nil)
}

// Delete deletes a message that the person wrote.
func (v Client) Delete(ctx context.Context, channel, ts string) error {
	return v.call(ctx, http.MethodPost, v.path("delete"), map[string]string{"channel": channel, "ts": ts}, nil)
}

// Snooze pauses the person's notifications until a time by the workspace's clock. The zero time ends the pause.
func (v Client) Snooze(ctx context.Context, until time.Time) error {
	var seconds int64
	if !until.IsZero() {
		seconds = until.Unix()
	}
	return v.call(ctx, http.MethodPost, v.path("snooze"), map[string]int64{"until": seconds}, nil)
}

// Press clicks an element of a message, or selects e.Value in the element. Press returns when the app has acknowledged
// the action.
func (v Client) Press(ctx context.Context, m Message, e Element) error {
	return v.call(ctx, http.MethodPost, v.path("actions"),
		map[string]string{"channel": m.Channel, "ts": m.TS, "action_id": e.ActionID, "block_id": e.BlockID, "value": e.Value}, nil)
}

// PressIn is like Press, for an element of an open modal.
func (v Client) PressIn(ctx context.Context, view View, e Element) error {
	return v.call(ctx, http.MethodPost, v.path("actions"),
		map[string]string{"view_id": view.ID, "action_id": e.ActionID, "block_id": e.BlockID, "value": e.Value}, nil)
}
