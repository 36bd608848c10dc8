package scriptedmodel

import (
	"context"
	"crypto/rand"
)

// The finish reasons of a reply.
const (
	FinishStop      = "stop"
	FinishToolCalls = "tool_calls"
	FinishLength    = "length"
	FinishFilter    = "content_filter"
)

// Reply is one answer of the model.
type Reply struct {
	Content string
	Calls   []Call
	Finish  string // if empty: tool_calls when there are calls, and stop otherwise
	Fault   Fault
	// The reply is used only for requests for which When returns true. If When is nil, the reply fits all requests.
	When func(Request) bool
}

// Responder answers valid requests. An error becomes a response with status 400 and the error's text, so that the
// client does not retry and a test sees the cause.
type Responder interface {
	Respond(ctx context.Context, request Request) (Reply, error)
}

// ResponderFunc is a Responder that is a function.
type ResponderFunc func(ctx context.Context, request Request) (Reply, error)

// Respond calls f.
func (f ResponderFunc) Respond(ctx context.Context, request Request) (Reply, error) {
	return f(ctx, request)
}

// The method "finished" returns the reply with call ids and a finish reason. It copies the calls, so that a script's
// replies don't change.
func (r Reply) finished() Reply {
	calls := make([]Call, len(r.Calls))
	for i, call := range r.Calls {
		if call.ID == "" {
			call.ID = "call_" + rand.Text()[:24]
		}
		calls[i] = call
	}
	r.Calls = calls
	if r.Finish == "" {
		r.Finish = FinishStop
		if len(calls) > 0 {
			r.Finish = FinishToolCalls
		}
	}
	return r
}

// The method "limited" truncates the reply after max tokens. Like a real model, it may cut in the middle of a word or
// an argument.
func (r Reply) limited(max int) Reply {
	if max <= 0 {
		return r
	}
	left := max
	cut := func(text string) string {
		need := tokens(text)
		if need <= left {
			left -= need
			return text
		}
		text = firstBytes(text, left*bytesPerToken)
		left = 0
		r.Finish = FinishLength
		return text
	}
	r.Content = cut(r.Content)
	for i := range r.Calls {
		if left == 0 {
			r.Calls, r.Finish = r.Calls[:i], FinishLength
			break
		}
		r.Calls[i].Arguments = cut(r.Calls[i].Arguments)
	}
	return r
}
