package agent

import (
	"fmt"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"countersign/approvers/workflow"
	"countersign/store"
)

// reply is one complete answer of the model: tool calls, text for people, or both.
type reply struct {
	text   string
	calls  []workflow.ModelCall
	cut    bool // the text was cut, because it was longer than a limit
	tokens int  // input and output tokens, as reported by the server; zero: not reported
	told   told
	// reasoning must come back to the endpoint with the history. If there is nothing of this kind, reasoning is nil.
	reasoning *store.Reasoning
}

// spent returns the number of tokens that the step used, as the server counted. If the server sent no count, spent
// returns an estimate, which tends to be too high.
func (r reply) spent(q modelRequest) int {
	if r.tokens > 0 {
		return r.tokens
	}
	n := q.tokens + estimate(r.text)
	if r.reasoning != nil {
		n += estimate(r.reasoning.Text)
	}
	for _, c := range r.calls {
		n += estimate(c.Tool) + estimate(c.Args)
	}
	return n
}

// cutFinishes lists the finish reasons of answers that reached a length limit. Some of the finish reasons are not
// standard.
var cutFinishes = map[openai.FinishReason]bool{
	openai.FinishReasonLength: true, "max_tokens": true, "max_length": true, "model_length": true,
}

// failedFinishes lists the finish reasons of servers that failed.
var failedFinishes = map[openai.FinishReason]bool{"error": true, "abort": true, "aborted": true, "cancelled": true, "insufficient_system_resource": true}

// reply evaluates a complete answer. named converts a name that the model wrote to the name of the tool.
//
// An answer without a finish reason broke off. It counts as a failure, and all of it is discarded. An answer with
// calls counts as a request for these calls even if its finish reason is not tool_calls, because finish reasons are
// unreliable in practice. If the answer reached a length limit, or if a content filter stopped it, all its calls are
// invalid.
func (a *assembly) reply(named func(string) string) (reply, *failure) {
	text := a.text.String()
	if strings.TrimSpace(text) == "" {
		text = a.refusal.String()
	}
	cut := a.cutText || cutFinishes[a.finish]
	switch {
	case a.finish == "":
		return reply{}, again(causeCut, "the stream ended without a finish reason")
	case failedFinishes[a.finish]:
		return reply{}, again(causeDown, fmt.Sprintf("the answer ended with finish reason %.40q", a.finish))
	case len(a.calls) > 0:
		calls, added := a.modelCalls(cut, named)
		return reply{text: text, calls: calls, reasoning: a.reasoning(added)}, nil
	case a.finish == openai.FinishReasonContentFilter:
		return reply{}, never(causeFilter, "the answer ended with finish reason content_filter")
	case strings.TrimSpace(text) == "" && cut:
		return reply{}, never(causeRoom, "the answer reached its length limit before it said anything")
	case strings.TrimSpace(text) == "":
		return reply{}, again(causeEmpty, fmt.Sprintf("an empty answer with finish reason %.40q", a.finish))
	}
	return reply{text: text, cut: cut, reasoning: a.reasoning(nil)}, nil
}

// reasoning returns the parts of the answer that are neither text nor calls. added has the JSON that the endpoint added
// to each call.
func (a *assembly) reasoning(added []string) *store.Reasoning {
	if !slices.ContainsFunc(added, func(s string) bool { return s != "" }) {
		added = nil
	}
	if a.thought.Len() == 0 && added == nil {
		return nil
	}
	return &store.Reasoning{Text: a.thought.String(), Calls: added}
}

// Messages with which the model learns why a call is invalid.
const (
	faultCut      = "your answer was cut off at its length limit, so none of its calls was taken: ask for less at once"
	faultFilter   = "your answer was stopped by a content filter, so none of its calls was taken"
	faultNameless = "the call names no tool"
	faultNothing  = "the arguments are missing: write {} where there are none"
	faultLarge    = "the call is larger than the limit: shorten the arguments"
	faultLost     = "the arguments contain the replacement character U+FFFD, so something in them was lost: write them again without it"
	faultMany     = "a step has at most %d tool calls; this one and %d more were not taken: ask for the rest in the next step"
)

// modelCalls converts the calls for the workflow, without a change of the arguments. Some servers send the pieces of a
// call, and then the whole call again, so a call with the id, tool and arguments of an earlier call is left out. added
// has the JSON that the endpoint added to each call.
func (a *assembly) modelCalls(cut bool, named func(string) string) (calls []workflow.ModelCall, added []string) {
	general := ""
	if cut {
		general = faultCut
	}
	if a.finish == openai.FinishReasonContentFilter {
		general = faultFilter
	}
	room := maxThought
	for i, c := range a.calls {
		call := workflow.ModelCall{ID: c.id, Tool: named(c.name), Args: c.args.String(), Fault: general}
		switch {
		case i == maxCalls:
			call.Fault = fmt.Sprintf(faultMany, maxCalls, a.dropped)
		case call.Fault != "":
		case c.name == "":
			call.Fault = faultNameless
		case call.Args == "":
			call.Fault = faultNothing
		case c.over:
			call.Fault = faultLarge
		case strings.ContainsRune(call.Args, '�'):
			call.Fault = faultLost
		}
		if call.ID != "" && slices.Contains(calls, call) {
			continue
		}
		if len(c.added) > room {
			c.added = ""
		}
		room -= len(c.added)
		calls, added = append(calls, call), append(added, c.added)
	}
	return calls, added
}
