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

	openai "github.com/sashabaranov/go-openai"

	"countersign/internal/demo/scriptedmodel"
)

// serve starts the service on a real listener and returns a real client.
func serve(t *testing.T, config scriptedmodel.Config) (*scriptedmodel.Server, *openai.Client) {
	t.Helper()
	s := scriptedmodel.New(config)
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	return s, client(web.URL, http.DefaultTransport, config.APIKey)
}

func client(url string, transport http.RoundTripper, key string) *openai.Client {
	c := openai.DefaultConfig(key)
	c.BaseURL = url + "/v1"
	c.HTTPClient = &http.Client{Transport: transport}
	return openai.NewClientWithConfig(c)
}

func user(text string) openai.ChatCompletionMessage {
	return openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: text}
}

func system(text string) openai.ChatCompletionMessage {
	return openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: text}
}

func ask(messages ...openai.ChatCompletionMessage) openai.ChatCompletionRequest {
	return openai.ChatCompletionRequest{Model: scriptedmodel.DefaultModel, Messages: messages}
}

// streamed is a reply assembled from a stream.
type streamed struct {
	content string
	calls   []openai.ToolCall
	finish  openai.FinishReason
	usage   *openai.Usage
	pieces  int
}

// read assembles a streamed reply. As in an agent, the index in each piece of a tool call says which call the piece
// belongs to.
func read(ctx context.Context, c *openai.Client, request openai.ChatCompletionRequest) (streamed, error) {
	var result streamed
	stream, err := c.CreateChatCompletionStream(ctx, request)
	if err != nil {
		return result, err
	}
	defer func() { _ = stream.Close() }()
	for {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return result, nil
		}
		if err != nil {
			return result, err
		}
		result.pieces++
		if event.Usage != nil {
			result.usage = event.Usage
		}
		for _, choice := range event.Choices {
			result.content += choice.Delta.Content
			if choice.FinishReason != "" {
				result.finish = choice.FinishReason
			}
			for _, d := range choice.Delta.ToolCalls {
				for *d.Index >= len(result.calls) {
					result.calls = append(result.calls, openai.ToolCall{})
				}
				call := &result.calls[*d.Index]
				call.ID += d.ID
				call.Type += d.Type
				call.Function.Name += d.Function.Name
				call.Function.Arguments += d.Function.Arguments
			}
		}
	}
}

func TestStreamAndWholeAnswerSayTheSame(t *testing.T) {
	content := "Grüße aus Köln: “done” — 日本語 🙂, and a good deal more text than fits one piece."
	for _, reply := range []scriptedmodel.Reply{
		{Content: content},
		{Content: "x"},
		{Calls: []scriptedmodel.Call{scriptedmodel.NewCall("search_orders", map[string]string{"customer_name": "Amélie 🙂"})}},
		{Content: content, Calls: []scriptedmodel.Call{{Name: "a", Arguments: `{"x": 1}`}, {Name: "b", Arguments: "{}"}, {Name: "c", Arguments: ""}}},
	} {
		_, c := serve(t, scriptedmodel.Config{Responder: scriptedmodel.NewScript(reply, reply)})
		request := ask(system("Be kind."), user("Hello"))
		whole, err := c.CreateChatCompletion(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		request.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
		stream, err := read(t.Context(), c, request)
		if err != nil {
			t.Fatal(err)
		}
		message := whole.Choices[0].Message
		if message.Content != reply.Content || stream.content != reply.Content || stream.finish != whole.Choices[0].FinishReason {
			t.Errorf("whole %q %s, streamed %q %s; want %q", message.Content, whole.Choices[0].FinishReason, stream.content, stream.finish, reply.Content)
		}
		if len(message.ToolCalls) != len(reply.Calls) || len(stream.calls) != len(reply.Calls) {
			t.Fatalf("whole %v, streamed %v; want %v", message.ToolCalls, stream.calls, reply.Calls)
		}
		for i, want := range reply.Calls {
			for _, got := range []openai.ToolCall{message.ToolCalls[i], stream.calls[i]} {
				if got.Function.Name != want.Name || got.Function.Arguments != want.Arguments || got.Type != openai.ToolTypeFunction || !strings.HasPrefix(got.ID, "call_") {
					t.Errorf("call %d is %+v, want %+v", i, got, want)
				}
			}
		}
		if stream.usage == nil || *stream.usage != whole.Usage || whole.Usage.PromptTokens == 0 || whole.Usage.TotalTokens != whole.Usage.PromptTokens+whole.Usage.CompletionTokens {
			t.Errorf("usage: streamed %+v, whole %+v", stream.usage, whole.Usage)
		}
	}
}

func TestStreamsComeInSmallPieces(t *testing.T) {
	call := scriptedmodel.NewCall("issue_refund", map[string]any{"order_id": "ORD-123", "amount": 49.99})
	_, c := serve(t, scriptedmodel.Config{Responder: scriptedmodel.NewScript(scriptedmodel.Reply{Calls: []scriptedmodel.Call{call}})})
	got, err := read(t.Context(), c, ask(user("refund")))
	if err != nil {
		t.Fatal(err)
	}
	if got.pieces < 6 || got.finish != openai.FinishReasonToolCalls || got.usage != nil {
		t.Errorf("%d pieces, finish %s, usage %v; want many, tool_calls and none", got.pieces, got.finish, got.usage)
	}
}

// TestTheWireFormat checks the parts of the format that go-openai does not check.
func TestTheWireFormat(t *testing.T) {
	s := scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.NewScript(
		scriptedmodel.Reply{Calls: []scriptedmodel.Call{{ID: "call_1", Name: "a", Arguments: "{}"}}},
	)})
	w := post(t, s, `{"model":"countersign-scripted","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`)
	if kind := w.Header().Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		t.Errorf("content type %s", kind)
	}
	events := strings.Split(strings.TrimSpace(w.Body.String()), "\n\n")
	wants := []string{`"delta":{"role":"assistant"}`, `"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"a","arguments":""}}]`,
		`"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`, `"delta":{},"logprobs":null,"finish_reason":"tool_calls"`, `"choices":[],"usage":{`, `[DONE]`}
	if len(events) != len(wants) {
		t.Fatalf("%d events, want %d:\n%s", len(events), len(wants), w.Body)
	}
	for i, want := range wants {
		if !strings.HasPrefix(events[i], "data: ") || !strings.Contains(events[i], want) {
			t.Errorf("event %d is %s\nwant it to contain %s", i, events[i], want)
		}
	}
}

func TestModels(t *testing.T) {
	_, c := serve(t, scriptedmodel.Config{Models: []string{"one", "two"}})
	list, err := c.ListModels(t.Context())
	if err != nil || len(list.Models) != 2 || list.Models[1].ID != "two" {
		t.Errorf("models %+v, %v", list, err)
	}
	if model, err := c.GetModel(t.Context(), "one"); err != nil || model.ID != "one" {
		t.Errorf("model %+v, %v", model, err)
	}
	_, err = c.GetModel(t.Context(), "three")
	wantAPIError(t, err, http.StatusNotFound, "model_not_found")
}

func TestKeys(t *testing.T) {
	s := scriptedmodel.New(scriptedmodel.Config{APIKey: "sk-right", Responder: scriptedmodel.NewScript(scriptedmodel.Reply{Content: "hi"})})
	web := httptest.NewServer(s)
	defer web.Close()
	for _, row := range []struct {
		key    string
		status int
		code   any
	}{{"", http.StatusUnauthorized, 0 /* null, as go-openai reads it */}, {"sk-wrong", http.StatusUnauthorized, "invalid_api_key"}} {
		_, err := client(web.URL, http.DefaultTransport, row.key).CreateChatCompletion(t.Context(), ask(user("hi")))
		wantAPIError(t, err, row.status, row.code)
		if err != nil && strings.Contains(err.Error(), "sk-") {
			t.Errorf("the error repeats the key: %v", err)
		}
	}
	if _, err := client(web.URL, http.DefaultTransport, "sk-right").CreateChatCompletion(t.Context(), ask(user("hi"))); err != nil {
		t.Error(err)
	}
}

func wantAPIError(t *testing.T, err error, status int, code any) {
	t.Helper()
	var fault *openai.APIError
	if !errors.As(err, &fault) {
		t.Errorf("err = %v, want an API error with status %d", err, status)
		return
	}
	if fault.HTTPStatusCode != status || fault.Code != code || fault.Message == "" {
		t.Errorf("got %d %v %q, want %d %v", fault.HTTPStatusCode, fault.Code, fault.Message, status, code)
	}
}

func post(t *testing.T, s *scriptedmodel.Server, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(body)))
	return w
}

// errorOf reads the service's error.
func errorOf(t *testing.T, w *httptest.ResponseRecorder) (message, code, param string) {
	t.Helper()
	var body struct {
		Error struct{ Message, Code, Param string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	return body.Error.Message, body.Error.Code, body.Error.Param
}
