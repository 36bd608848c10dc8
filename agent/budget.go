package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"countersign/approvers"
	"countersign/approvers/workflow"
)

// modelRequest is the prepared input of one model call.
type modelRequest struct {
	messages []openai.ChatCompletionMessage
	authors  []approvers.PersonID
	added    map[string]string // by call id: the JSON that the endpoint had added to the call
	reasons  bool              // the model has sent reasoning in the turns of the request
	tokens   int               // the estimated size of the input, including the tools
	dropped  int               // how many turns were left out
}

// compose builds a request. budget limits the tokens of its messages. The tools' definitions don't count. The request
// contains the newest consecutive turns that fit completely. The current turn is always kept. If the current turn alone
// is too long, compose shortens the turn's tool results, beginning with the oldest, and marks the shortened results.
// The model's reasoning gets only the room that is left: see remember.
func compose(b workflow.Brief, tools []registered, budget int, now time.Time, last bool) modelRequest {
	all := parts(b)
	kept, room := fit(all, budget-systemTokens(b, all, now, last))
	dropped := len(all) - len(kept)
	added, reasons := remember(kept, room)
	names, speakers := labels(kept)
	first := openai.ChatCompletionMessage{
		Role: openai.ChatMessageRoleSystem, Content: system(b, now, speakers, dropped > 0, last),
	}
	said := spoken(kept, names)
	if over := messageTokens(first) + messagesTokens(said) + addedTokens(added) - budget; over > 0 {
		shorten(said, over, runsOf(kept))
	}
	q := modelRequest{messages: append([]openai.ChatCompletionMessage{first}, said...), authors: authorsOf(kept), added: added, reasons: reasons, dropped: dropped}
	q.tokens = toolsTokens(tools) + messagesTokens(q.messages) + addedTokens(q.added)
	return q
}

// remember adds the model's reasoning to the messages of the parts, beginning with the newest step, until a step does
// not fit in room. The JSON that the endpoint had added to calls belongs to the step's reasoning. The current turn
// keeps all this JSON, because some endpoints refuse the turn without it. remember returns the kept JSON by call id,
// and whether the parts had any reasoning.
func remember(kept []part, room int) (added map[string]string, reasons bool) {
	added = map[string]string{}
	full := false
	for _, p := range slices.Backward(kept) {
		for _, t := range slices.Backward(p.thoughts) {
			size := estimate(t.text)
			if p.current {
				maps.Copy(added, t.added) // fit has counted it
			} else {
				size += addedTokens(t.added)
			}
			reasons = reasons || t.text != ""
			if full = full || size > room; full {
				continue
			}
			room -= size
			p.messages[t.at].ReasoningContent = t.text
			maps.Copy(added, t.added)
		}
	}
	return added, reasons
}

// systemTokens returns the maximum size of the system message, in tokens.
func systemTokens(b workflow.Brief, all []part, now time.Time, last bool) int {
	_, speakers := labels(all)
	return perMessage + estimate(system(b, now, speakers, true, last))
}

// fit returns the newest turns whose total size is at most room tokens, and the room that is left. The newest turn is
// always returned, even if it is larger. Then the room that is left is negative.
func fit(all []part, room int) (kept []part, left int) {
	from := len(all)
	for from > 0 {
		size := all[from-1].tokens()
		if size > room && from < len(all) {
			break
		}
		from, room = from-1, room-size
	}
	return all[from:], room
}

// tokens returns the maximum size of a turn in tokens, including the authors' names. Of the thoughts, it counts only
// the JSON that must stay.
func (p part) tokens() int {
	n := messagesTokens(p.messages)
	for _, t := range p.thoughts {
		if p.current {
			n += addedTokens(t.added)
		}
	}
	for _, a := range p.authors {
		n += estimate(nameOf(a.id, a.name)) + estimate(a.id.User()) + 2
	}
	return n
}

// runsOf returns the executions whose results are in the parts. The keys of the map are the call ids that the model
// sees.
func runsOf(kept []part) map[string]string {
	out := map[string]string{}
	for _, p := range kept {
		maps.Copy(out, p.runs)
	}
	return out
}

// keepOfResult is the number of bytes that a shortened result keeps.
const keepOfResult = 400

// shorten cuts tool results, beginning with the oldest, until it has saved about the number of tokens in the parameter
// over. Each shortened result gets a note that says how to read the rest. messages and runs belong to the same parts:
// see runsOf.
func shorten(messages []openai.ChatCompletionMessage, over int, runs map[string]string) {
	for i := range messages {
		m := &messages[i]
		if over <= 0 {
			return
		}
		if m.Role != openai.ChatMessageRoleTool || len(m.Content) <= 2*keepOfResult {
			continue
		}
		before := messageTokens(*m)
		kept := cutText(m.Content, max(keepOfResult, len(m.Content)-4*over-keepOfResult/2))
		on := "ask again for a part of it if the rest matters"
		if run := runs[m.ToolCallID]; run != "" {
			on = fmt.Sprintf(`if the rest matters, read on with %s: {"run":%q,"offset":%d}`, approvers.ToolReadResult, run, len(strings.TrimSuffix(kept, "…")))
		}
		m.Content = fmt.Sprintf("%s\n[shortened to fit: this is the beginning of %d bytes; %s]", kept, len(m.Content), on)
		over -= before - messageTokens(*m)
	}
}
