package scriptedmodel

import (
	"context"
	"encoding/json"
	"net/http"
)

// Sizes of the pieces in bytes. The sizes are small, so that clients are tested with every kind of split.
const (
	contentPiece  = 12
	argumentPiece = 9
)

type chunk struct {
	ID                string        `json:"id"`
	Object            string        `json:"object"`
	Created           int64         `json:"created"`
	Model             string        `json:"model"`
	SystemFingerprint string        `json:"system_fingerprint"`
	Choices           []chunkChoice `json:"choices"`
	Usage             *usage        `json:"usage,omitempty"`
}

type chunkChoice struct {
	Index        int       `json:"index"`
	Delta        delta     `json:"delta"`
	Logprobs     *struct{} `json:"logprobs"`
	FinishReason *string   `json:"finish_reason"`
}

type delta struct {
	Role      string      `json:"role,omitempty"`
	Content   *string     `json:"content,omitempty"`
	ToolCalls []callDelta `json:"tool_calls,omitempty"`
}

type callDelta struct {
	Index    int           `json:"index"`
	ID       string        `json:"id,omitempty"`
	Type     string        `json:"type,omitempty"`
	Function functionDelta `json:"function"`
}

type functionDelta struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// stream sends the answer as server-sent events.
func (a answer) stream(ctx context.Context, w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	events := a.events()
	for i, event := range events {
		if a.way.Cut && i >= a.way.CutAfter {
			a.cut(w)
			return
		}
		if !wait(ctx, a.way.Pause) || !send(w, event) {
			return
		}
	}
	if a.way.Cut {
		a.cut(w)
		return
	}
	_, _ = w.Write([]byte("data: [DONE]\n\n")) // an error means that the client went away
}

// cut ends the stream early.
func (a answer) cut(w http.ResponseWriter) {
	switch {
	case a.way.CutQuietly:
		return
	case !a.way.StreamError:
		breakOff(w)
	}
	send(w, map[string]*apiError{"error": Fault{Status: http.StatusInternalServerError, Message: a.way.Message}.statusError()})
}

// send writes one event and flushes it. If the client is gone, send returns false.
func send(w http.ResponseWriter, event any) bool {
	data, err := json.Marshal(event)
	if err != nil {
		panic("scriptedmodel: an event that can't be written: " + err.Error()) // events hold plain values only
	}
	if _, err := w.Write([]byte("data: " + string(data) + "\n\n")); err != nil {
		return false
	}
	return http.NewResponseController(w).Flush() == nil
}

// events returns the chunks of the stream in order.
func (a answer) events() []chunk {
	empty := ""
	first := delta{Role: "assistant", Content: &empty}
	if a.content() == nil {
		first.Content = nil
	}
	events := []chunk{a.chunk(first, nil)}
	for _, piece := range pieces(a.reply.Content, contentPiece) {
		events = append(events, a.chunk(delta{Content: &piece}, nil))
	}
	for _, d := range a.callDeltas() {
		events = append(events, a.chunk(delta{ToolCalls: []callDelta{d}}, nil))
	}
	events = append(events, a.chunk(delta{}, &a.reply.Finish))
	if a.request.IncludeUsage {
		last := a.chunk(delta{}, nil)
		total := a.usage()
		last.Choices, last.Usage = []chunkChoice{}, &total
		events = append(events, last)
	}
	return events
}

// callDeltas returns the name of each call, followed by the pieces of the call's arguments. The calls come one after
// the other, or their pieces are interleaved.
func (a answer) callDeltas() []callDelta {
	perCall := make([][]callDelta, len(a.reply.Calls))
	longest := 0
	for i, call := range a.reply.Calls {
		perCall[i] = []callDelta{{Index: i, ID: call.ID, Type: "function", Function: functionDelta{Name: call.Name}}}
		for _, piece := range pieces(call.Arguments, argumentPiece) {
			perCall[i] = append(perCall[i], callDelta{Index: i, Function: functionDelta{Arguments: piece}})
		}
		longest = max(longest, len(perCall[i]))
	}
	var all []callDelta
	if !a.way.Interleave {
		for _, deltas := range perCall {
			all = append(all, deltas...)
		}
		return all
	}
	for turn := range longest {
		for _, deltas := range perCall {
			if turn < len(deltas) {
				all = append(all, deltas[turn])
			}
		}
	}
	return all
}

func (a answer) chunk(d delta, finish *string) chunk {
	return chunk{ID: a.id, Object: "chat.completion.chunk", Created: a.created, Model: a.request.Model, SystemFingerprint: fingerprint,
		Choices: []chunkChoice{{Delta: d, FinishReason: finish}}}
}
