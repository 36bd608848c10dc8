package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	openai "github.com/sashabaranov/go-openai"

	"countersign/internal/tracing"
)

// Model configures the model and its endpoint.
type Model struct {
	BaseURL string        // URL of an OpenAI-compatible API, such as https://api.openai.com/v1; empty: OpenAI's API
	Key     string        // API key; empty: no key is sent
	Name    string        // default model, for agents whose policy names no model
	Timeout time.Duration // time limit for one complete answer; default 5 minutes
	Idle    time.Duration // longest time without data after the first data; default 90 seconds
	HTTP    *http.Client  // nil: a new client
}

func (m Model) withDefaults() Model {
	if m.Timeout <= 0 {
		m.Timeout = 5 * time.Minute
	}
	if m.Idle <= 0 {
		m.Idle = 90 * time.Second
	}
	if m.HTTP == nil {
		m.HTTP = &http.Client{}
	}
	return m
}

// client calls the model. client is safe for concurrent use.
type client struct {
	Model
	api *openai.Client
	// noUsage is set when the endpoint has refused to send the number of tokens at the end of a stream, and has answered
	// the same request without this field.
	noUsage atomic.Bool
	// endpoint has the attributes that name the endpoint's address in spans.
	endpoint []tracing.Attr
	key      *atomic.Pointer[string] // the key that replaces Model.Key; nil: Model.Key is used
	now      func() time.Time
	log      *slog.Logger
}

func newClient(m Model, now func() time.Time, log *slog.Logger) *client {
	m = m.withDefaults()
	c := openai.DefaultConfig(m.Key)
	if m.BaseURL != "" {
		c.BaseURL = strings.TrimRight(m.BaseURL, "/")
	}
	key := new(atomic.Pointer[string])
	c.HTTPClient = doer{m.HTTP, key}
	return &client{Model: m, endpoint: endpointOf(c.BaseURL), key: key, api: openai.NewClientWithConfig(c), now: now, log: log}
}

// chunk is one event of the stream, with the fields that the agent reads. Some servers send an error as an event, with
// or without choices.
type chunk struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

// choice is one choice of a chunk.
type choice struct {
	Index int `json:"index"`
	Delta struct {
		Content      content              `json:"content"`
		Refusal      string               `json:"refusal"`
		Reasoning    string               `json:"reasoning_content"`
		ToolCalls    []callPiece          `json:"tool_calls"`
		FunctionCall *openai.FunctionCall `json:"function_call"`
	} `json:"delta"`
	FinishReason openai.FinishReason `json:"finish_reason"`
}

// content is the text of a delta. Some servers send the text in parts, beside parts of other types, such as reasoning.
type content string

func (c *content) UnmarshalJSON(raw []byte) error {
	if !bytes.HasPrefix(raw, []byte("[")) {
		return json.Unmarshal(raw, (*string)(c))
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		if p.Type == "text" {
			*c += content(p.Text)
		}
	}
	return nil
}

// callPiece is one piece of a call.
type callPiece struct {
	openai.ToolCall
	Added json.RawMessage `json:"extra_content,omitempty"` // such as the signatures of Gemini, which must come back with the call
}

// chatRequest is a request to the model. go-openai does not know the fields added and reasons.
type chatRequest struct {
	openai.ChatCompletionRequest
	added   map[string]string // by the id of a call in the history: the JSON that the endpoint had added to the call
	reasons bool              // the model's messages in the history need the field reasoning_content
}

// source identifies the endpoint and one of its models in stored messages.
func (c *client) source(model string) string {
	sum := sha256.Sum256([]byte(strings.TrimRight(c.BaseURL, "/") + "\n" + model))
	return hex.EncodeToString(sum[:8])
}

// ask calls the model once and reads the whole answer. write receives the answer's text as it arrives. If ctx ends,
// ask returns ctx's error. Any other error is a *failure.
func (c *client) ask(ctx context.Context, r chatRequest, named func(string) string, write func(string)) (reply, error) {
	w := newWatch(ctx, c.Timeout, c.Idle)
	defer w.stop()
	n := &notes{alive: w.alive, added: r.added, reasons: r.reasons}
	if !c.noUsage.Load() {
		r.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	a, err := c.read(context.WithValue(w.ctx, notesKey{}, n), w, r.ChatCompletionRequest, write)
	refused := r.StreamOptions != nil && refusesUsage(n.status, a, err)
	if refused {
		r.StreamOptions = nil
		a, err = c.read(context.WithValue(w.ctx, notesKey{}, n), w, r.ChatCompletionRequest, write)
	}
	if ctx.Err() != nil {
		return reply{}, ctx.Err()
	}
	var f *failure
	if err != nil && !errors.As(err, &f) {
		f = classify(w.ctx, err, *n, c.now())
	}
	if f == nil && a.finish == "" && n.contentType != "" && !strings.HasPrefix(n.contentType, "text/event-stream") {
		f = never(causeEndpoint, "the endpoint answered with "+cutText(n.contentType, 80)+" instead of a stream of events")
	}
	if f != nil {
		return reply{}, f
	}
	out, f := a.reply(named)
	if f != nil {
		return reply{}, f
	}
	if refused {
		c.noUsage.Store(true)
	}
	if out.reasoning != nil {
		out.reasoning.Source = c.source(r.Model)
	}
	out.tokens, out.told = a.tokens, a.told
	out.told.finish = string(a.finish)
	return out, nil
}

// read assembles the answer from the stream's pieces, until the stream ends for any reason.
func (c *client) read(ctx context.Context, w *watch, r openai.ChatCompletionRequest, write func(string)) (*assembly, error) {
	a := &assembly{}
	stream, err := c.api.CreateChatCompletionStream(ctx, r)
	if errors.Is(err, openai.ErrReasoningToolsRequireResponses) && r.ReasoningEffort == "" {
		// With the chat-completions API, some models accept tools only if reasoning is switched off.
		r.ReasoningEffort = openai.ReasoningEffortNone
		stream, err = c.api.CreateChatCompletionStream(ctx, r)
	}
	if err != nil {
		return a, err
	}
	defer func() {
		if err := stream.Close(); err != nil {
			c.log.DebugContext(ctx, "the model's stream did not close", "error", err)
		}
	}()
	for {
		raw, err := stream.RecvRaw()
		if errors.Is(err, io.EOF) || (err != nil && a.finish != "") {
			return a, nil // an answer is complete when its finish reason has arrived
		}
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errTooMuch) {
			return a, again(causeCut, err.Error())
		}
		if err != nil {
			return a, err
		}
		before := a.text.Len()
		if err := a.event(raw); err != nil {
			return a, err
		}
		if a.text.Len() > before {
			write(a.text.String())
		}
		if a.finish != "" {
			w.whole()
		}
	}
}

// event adds the data of one event of the stream to the answer.
func (a *assembly) event(raw []byte) error {
	var ch chunk
	if !utf8.Valid(raw) { // checked here because decoding would replace invalid characters, even in arguments
		return again(causeCut, "an event of the stream is not valid UTF-8")
	}
	var mismatch *json.UnmarshalTypeError
	switch err := json.Unmarshal(raw, &ch); {
	case errors.As(err, &mismatch): // the next answer would have the same form
		return never(causeEndpoint, "an event of the stream has another form than OpenAI's: "+err.Error())
	case err != nil:
		return again(causeCut, "an event of the stream is not a chunk: "+err.Error())
	}
	if len(ch.Error) > 0 && !bytes.Equal(ch.Error, []byte("null")) {
		var api openai.APIError
		if json.Unmarshal(ch.Error, &api.Message) == nil || json.Unmarshal(ch.Error, &api) == nil && api.Message != "" {
			return &api
		}
		return again(causeDown, "the server sent an error in the stream: "+cutText(string(ch.Error), 300))
	}
	var usage openai.Usage
	if json.Unmarshal(ch.Usage, &usage) == nil && usage.TotalTokens > 0 { // an unreadable usage does not matter
		a.tokens, a.told.in, a.told.out = usage.TotalTokens, usage.PromptTokens, usage.CompletionTokens
	}
	if ch.ID != "" {
		a.told.id, a.told.model = ch.ID, ch.Model
	}
	for _, choice := range ch.Choices {
		if choice.Index == 0 {
			a.add(choice)
		}
	}
	return nil
}
