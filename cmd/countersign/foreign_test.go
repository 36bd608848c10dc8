package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// foreignModel is an independent OpenAI-compatible endpoint. foreignModel shares no code with the scripted model.
// foreignModel differs from the scripted model in these points. The lines of its streams end in CRLF. The endpoint
// sends comments, and puts no space after "data:". The endpoint reports no usage. The endpoint sends a call's arguments
// in one piece together with the call's name. The finish reason for tool calls is "stop". The endpoint reuses an id,
// and has no list of models.
type foreignModel struct {
	mu sync.Mutex
	no []string // errors in the requests that it got
}

func (f *foreignModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "GET /complaints":
		f.mu.Lock()
		defer f.mu.Unlock()
		fmt.Fprintln(w, strings.Join(f.no, "\n"))
	case "POST /gateway/openai/chat/completions":
		f.complete(w, r)
	default:
		http.Error(w, `{"detail":"Not Found"}`, http.StatusNotFound)
	}
}

func (f *foreignModel) complain(w http.ResponseWriter, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.no = append(f.no, fmt.Sprintf(format, args...))
	http.Error(w, `{"detail":"Bad Request"}`, http.StatusBadRequest)
}

var dollars = regexp.MustCompile(`(\d+) dollars`)

func (f *foreignModel) complete(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Model    string
		Stream   bool
		Messages []struct {
			Role      string
			Content   string
			ToolCalls []struct{ ID string } `json:"tool_calls"`
			CallID    string                `json:"tool_call_id"`
		}
		Tools []struct{ Function struct{ Name string } }
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || !in.Stream || in.Model != "vendor/strange-7b" || r.Header.Get("Authorization") != "Bearer secret" {
		f.complain(w, "not a streamed request for the model, with its key: %v", err)
		return
	}
	results, open, amount := 0, map[string]bool{}, ""
	for _, m := range in.Messages {
		switch {
		case m.Role == "tool" && !open[m.CallID]:
			f.complain(w, "a result for the call %q, which was not asked for or has one already", m.CallID)
			return
		case m.Role == "tool":
			delete(open, m.CallID)
			results++
		case len(open) > 0:
			f.complain(w, "a %s message although calls have no result", m.Role)
			return
		case m.Role == "user":
			if found := dollars.FindStringSubmatch(m.Content); found != nil {
				amount = found[1]
			}
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if in.Messages[len(in.Messages)-1].Role == "tool" {
		f.send(w, r.Context(), `{"choices":[{"delta":{"role":"assistant","content":"These are strange words"}}]}`,
			fmt.Sprintf(`{"choices":[{"delta":{"role":"assistant","content":" after %d results."}}]}`, results),
			`{"choices":[{"delta":{},"finish_reason":"stop"}]}`)
		return
	}
	args, err := json.Marshal(fmt.Sprintf(`{"order_id":"ORD-123", "amount":%s, "currency":"USD", "reason":"as asked"}`, amount))
	if err != nil {
		f.complain(w, "%v", err)
		return
	}
	f.send(w, r.Context(),
		`{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_0","type":"function","function":{"name":"issue_refund","arguments":`+string(args)+`}}]},"finish_reason":null}]}`,
		`{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}`, `{"choices":[]}`)
}

// send streams events in the format of this endpoint.
func (f *foreignModel) send(w http.ResponseWriter, ctx context.Context, events ...string) {
	flush := http.NewResponseController(w)
	for _, e := range append(events, "[DONE]") {
		if _, err := fmt.Fprintf(w, ": PROCESSING\r\n\r\ndata:%s\r\n\r\n", e); err != nil || ctx.Err() != nil {
			return
		}
		if err := flush.Flush(); err != nil {
			return
		}
	}
}

// connectedTo reports whether a bot is connected to the workspace.
func connectedTo(w watcher) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.Base+"/people", nil)
		if err != nil {
			return false, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		var people struct{ Connected bool }
		err = json.NewDecoder(resp.Body).Decode(&people)
		return people.Connected, err
	}
}
