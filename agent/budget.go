package agent

import (
	"fmt"
	"maps"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// question is one model call, ready to be asked.
type question struct {
	messages []openai.ChatCompletionMessage
	authors  []approvers.PersonID
	tokens   int // estimated, the tools included
	dropped  int // turns that were left out
}

// compose puts a question together within a budget of tokens. The newest turns that fit whole are kept, without a gap. The turn
// under way is always kept; if it is too long by itself its tool results are shortened, oldest first, each marked so.
func compose(b desk.Brief, tools []registered, budget int, now time.Time, last bool) question {
	all := parts(b)
	room := budget - toolsTokens(tools)
	kept, dropped := fit(all, room-systemTokens(b, all, now, last))
	names, speakers := labels(kept)
	first := openai.ChatCompletionMessage{
		Role: openai.ChatMessageRoleSystem, Content: system(b, now, speakers, dropped > 0, last),
	}
	said := spoken(kept, names)
	if over := messageTokens(first) + messagesTokens(said) - room; over > 0 {
		shorten(said, over, runsOf(kept))
	}
	q := question{messages: append([]openai.ChatCompletionMessage{first}, said...), authors: authorsOf(kept), dropped: dropped}
	q.tokens = toolsTokens(tools) + messagesTokens(q.messages)
	return q
}

// systemTokens is the most that the system message can take.
func systemTokens(b desk.Brief, all []part, now time.Time, last bool) int {
	_, speakers := labels(all)
	return perMessage + estimate(system(b, now, speakers, true, last))
}

// fit keeps the newest turns that fit, and the newest of all in any case.
func fit(all []part, room int) (kept []part, dropped int) {
	for i := len(all) - 1; i >= 0; i-- {
		room -= all[i].tokens()
		if room < 0 && i < len(all)-1 {
			return all[i+1:], i + 1
		}
	}
	return all, 0
}

// tokens is the most that a turn can take: with its writers' names.
func (p part) tokens() int {
	n := messagesTokens(p.messages)
	for _, a := range p.authors {
		n += estimate(nameOf(a.id, a.name)) + estimate(a.id.User()) + 2
	}
	return n
}

// runsOf are the executions whose results stand in the parts, by the ids of their calls on the wire.
func runsOf(kept []part) map[string]string {
	out := map[string]string{}
	for _, p := range kept {
		maps.Copy(out, p.runs)
	}
	return out
}

// keepOfResult is how much of a result stays when it has to be shortened, in bytes.
const keepOfResult = 400

// shorten cuts tool results, oldest first, until about over tokens are saved, and says how to read on in them. It works on messages that compose has made.
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
