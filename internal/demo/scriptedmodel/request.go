package scriptedmodel

import (
	"encoding/json"
	"net/http"
)

// Request is a valid chat completion request.
type Request struct {
	Model             string
	Messages          []Message
	Tools             []Tool
	ToolChoice        string // auto, none, required, or the name of one tool
	ParallelToolCalls bool
	Stream            bool
	IncludeUsage      bool
	MaxTokens         int // 0: no limit
	Header            http.Header
	Raw               json.RawMessage // the body as received
}

// Message is one message of the history. Content sent in parts is joined.
type Message struct {
	Role       string
	Name       string
	Content    string
	ToolCalls  []Call
	ToolCallID string
}

// Call is one tool call. Arguments is the model's text, which need not be JSON. If a call in a Reply has no ID, the
// call gets a random ID.
type Call struct {
	ID        string
	Name      string
	Arguments string
}

// NewCall returns a call with args encoded as JSON. NewCall panics if args can't be encoded.
func NewCall(name string, args any) Call {
	data, err := json.Marshal(args)
	if err != nil {
		panic("scriptedmodel: arguments of " + name + ": " + err.Error())
	}
	return Call{Name: name, Arguments: string(data)}
}

// Tool is a function that the request offers.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage
}

// Offers reports whether the request offers a tool with this name.
func (r Request) Offers(name string) bool {
	for _, tool := range r.Tools {
		if tool.Name == name {
			return true
		}
	}
	return false
}

// Last returns the last message.
func (r Request) Last() Message { return r.Messages[len(r.Messages)-1] }
