package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/internal/demo/scriptedmodel"
)

// agentStep is a tool call of the scripted model of a coding agent.
type agentStep struct {
	call   scriptedmodel.Call
	before func() // called before the model answers with the call; nil: nothing
}

// agentWire is the protocol between a coding agent and its model: the part that the agent needs for tool calls.
type agentWire struct {
	path string // path of the requests with which the agent asks for an answer
	// read returns the names of the offered tools, and the results of all calls so far.
	read  func(body []byte) (tools, results []string, err error)
	write func(reply scriptedmodel.Reply) []any // the events of the answer
}

// agentModel is a scripted model for a coding agent. Each answer is one tool call, and the last answer is a text.
type agentModel struct {
	t       *testing.T
	wire    agentWire
	url     string
	results chan string // the result of each call

	mu    sync.Mutex
	steps []agentStep
	made  int
	tools []string // tools that the agent offers
}

const agentEnds = "All calls are made."

func openAgentModel(t *testing.T, wire agentWire, steps []agentStep) *agentModel {
	m := &agentModel{t: t, wire: wire, steps: steps, results: make(chan string, len(steps))}
	web := httptest.NewServer(m)
	t.Cleanup(web.Close)
	m.url = web.URL
	return m
}

func (m *agentModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || r.URL.Path != m.wire.path {
		m.t.Errorf("the agent asks its model for %s %s: %v", r.Method, r.URL, err)
		http.NotFound(w, r)
		return
	}
	tools, results, err := m.wire.read(body)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && len(tools) == 0 { // for example, the agent asks for the title of the conversation
		m.answer(w, scriptedmodel.Reply{Content: agentEnds})
		return
	}
	if err != nil || len(results) != m.made {
		m.t.Errorf("after %d calls, the agent reports %q: %v", m.made, results, err)
		http.Error(w, "the request is not understood", http.StatusBadRequest)
		return
	}
	m.tools = tools
	if m.made > 0 {
		m.results <- results[m.made-1]
	}
	reply := scriptedmodel.Reply{Content: agentEnds}
	if m.made < len(m.steps) {
		step := m.steps[m.made]
		if step.before != nil {
			step.before()
		}
		step.call.ID = fmt.Sprintf("call_%d", m.made)
		reply = scriptedmodel.Reply{Calls: []scriptedmodel.Call{step.call}}
	}
	m.made++
	m.answer(w, reply)
}

func (m *agentModel) answer(w http.ResponseWriter, reply scriptedmodel.Reply) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range m.wire.write(reply) {
		text, err := json.Marshal(event)
		if err != nil {
			m.t.Error(err)
		}
		if kind, ok := event.(map[string]any)["type"].(string); ok {
			fmt.Fprintf(w, "event: %s\n", kind)
		}
		fmt.Fprintf(w, "data: %s\n\n", text)
	}
}

// The method "reports" waits for the result of the next call. The result must contain the words. The agent's start, and
// the 30 seconds for which a hook tries to reach the gateway, can be part of the wait.
func (m *agentModel) reports(words ...string) {
	m.t.Helper()
	select {
	case got := <-m.results:
		if !hasAll(got, words) {
			m.t.Errorf("the agent tells its model %q, want %q", got, words)
		}
	case <-time.After(3 * patience):
		m.t.Fatalf("no result with %q", words)
	}
}

// The method "offered" returns the tools that the agent offers to its model.
func (m *agentModel) offered() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tools
}

// geminiWire is the method streamGenerateContent of the Gemini API.
var geminiWire = agentWire{
	path: "/v1beta/models/scripted:streamGenerateContent",
	read: func(body []byte) (tools, results []string, err error) {
		var in struct {
			Contents []struct {
				Parts []struct {
					FunctionResponse *struct{ Response json.RawMessage }
				}
			}
			Tools []struct {
				FunctionDeclarations []struct{ Name string }
			}
		}
		err = json.Unmarshal(body, &in)
		for _, content := range in.Contents {
			for _, part := range content.Parts {
				if part.FunctionResponse != nil {
					results = append(results, readable(part.FunctionResponse.Response))
				}
			}
		}
		for _, group := range in.Tools {
			for _, tool := range group.FunctionDeclarations {
				tools = append(tools, tool.Name)
			}
		}
		return tools, results, err
	},
	write: func(reply scriptedmodel.Reply) []any {
		part := map[string]any{"text": reply.Content}
		for _, call := range reply.Calls {
			part = map[string]any{"functionCall": map[string]any{"id": call.ID, "name": call.Name, "args": json.RawMessage(call.Arguments)}}
		}
		return []any{map[string]any{
			"candidates":    []any{map[string]any{"content": map[string]any{"role": "model", "parts": []any{part}}, "finishReason": "STOP", "index": 0}},
			"usageMetadata": map[string]int{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
		}}
	},
}

// codexWire is the streaming Responses API.
var codexWire = agentWire{
	path: "/v1/responses",
	read: func(body []byte) (tools, results []string, err error) {
		type tool struct{ Type, Name string }
		var in struct {
			Input []struct {
				Type   string
				Output json.RawMessage
			}
			Tools []struct {
				tool
				Tools []tool
			}
		}
		err = json.Unmarshal(body, &in)
		for _, item := range in.Input {
			if item.Type == "function_call_output" {
				results = append(results, readable(item.Output))
			}
		}
		for _, one := range in.Tools {
			if one.Type == "function" {
				tools = append(tools, one.Name)
			}
			for _, inner := range one.Tools {
				tools = append(tools, one.Name+"/"+inner.Name)
			}
		}
		return tools, results, err
	},
	write: func(reply scriptedmodel.Reply) []any {
		item := map[string]any{"type": "message", "id": "msg_1", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": reply.Content}}}
		for _, call := range reply.Calls {
			item = map[string]any{"type": "function_call", "id": "fc_" + call.ID, "call_id": call.ID, "name": call.Name, "arguments": call.Arguments}
			if space, name, ok := strings.Cut(call.Name, "/"); ok {
				item["namespace"], item["name"] = space, name
			}
		}
		response := map[string]any{"id": "resp_1", "usage": map[string]any{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}
		return []any{
			map[string]any{"type": "response.created", "response": map[string]any{"id": "resp_1"}},
			map[string]any{"type": "response.output_item.done", "output_index": 0, "item": item},
			map[string]any{"type": "response.completed", "response": response},
		}
	},
}

// claudeWire is the streaming Messages API of Anthropic.
var claudeWire = agentWire{
	path: "/v1/messages",
	read: func(body []byte) (tools, results []string, err error) {
		var in struct {
			Messages []struct{ Content json.RawMessage }
			Tools    []struct{ Name string }
		}
		err = json.Unmarshal(body, &in)
		for _, message := range in.Messages {
			var parts []struct {
				Type    string
				Content json.RawMessage
			}
			_ = json.Unmarshal(message.Content, &parts) // the content may also be a text
			for _, part := range parts {
				if part.Type == "tool_result" {
					results = append(results, readable(part.Content))
				}
			}
		}
		for _, tool := range in.Tools {
			tools = append(tools, tool.Name)
		}
		return tools, results, err
	},
	write: func(reply scriptedmodel.Reply) []any {
		block, delta, why := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": reply.Content}, "end_turn"
		for _, call := range reply.Calls {
			block = map[string]any{"type": "tool_use", "id": "toolu_" + call.ID, "name": call.Name, "input": map[string]any{}}
			delta, why = map[string]any{"type": "input_json_delta", "partial_json": call.Arguments}, "tool_use"
		}
		return []any{
			map[string]any{"type": "message_start", "message": map[string]any{
				"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": []any{}, "usage": map[string]int{"input_tokens": 1, "output_tokens": 1},
			}},
			map[string]any{"type": "content_block_start", "index": 0, "content_block": block},
			map[string]any{"type": "content_block_delta", "index": 0, "delta": delta},
			map[string]any{"type": "content_block_stop", "index": 0},
			map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": why}, "usage": map[string]int{"output_tokens": 1}},
			map[string]any{"type": "message_stop"},
		}
	},
}

// copilotWire is the streaming Chat Completions API of OpenAI.
var copilotWire = agentWire{
	path: "/v1/chat/completions",
	read: func(body []byte) (tools, results []string, err error) {
		var in struct {
			Messages []struct {
				Role    string
				Content json.RawMessage
			}
			Tools []struct{ Function struct{ Name string } }
		}
		err = json.Unmarshal(body, &in)
		for _, message := range in.Messages {
			if message.Role == "tool" {
				results = append(results, readable(message.Content))
			}
		}
		for _, tool := range in.Tools {
			tools = append(tools, tool.Function.Name)
		}
		return tools, results, err
	},
	write: func(reply scriptedmodel.Reply) []any {
		delta, why := map[string]any{"role": "assistant", "content": reply.Content}, "stop"
		for _, call := range reply.Calls {
			function := map[string]any{"name": call.Name, "arguments": call.Arguments}
			delta = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"index": 0, "id": call.ID, "type": "function", "function": function}}}
			why = "tool_calls"
		}
		chunk := func(delta map[string]any, why any) any {
			choice := map[string]any{"index": 0, "delta": delta, "finish_reason": why}
			return map[string]any{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": []any{choice}}
		}
		return []any{chunk(delta, nil), chunk(map[string]any{}, why)}
	},
}

// The function "readable" returns all strings of a JSON value, because agents put the text of a result into different
// objects.
func readable(raw json.RawMessage) string {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return string(raw)
	}
	var texts []string
	var read func(any)
	read = func(v any) {
		switch v := v.(type) {
		case string:
			texts = append(texts, v)
		case []any:
			for _, e := range v {
				read(e)
			}
		case map[string]any:
			for _, e := range v {
				read(e)
			}
		}
	}
	read(value)
	return strings.Join(texts, "\n")
}
