package agent

import (
	"fmt"
	"slices"

	openai "github.com/sashabaranov/go-openai"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// part is one whole turn as the model is given it. Nothing smaller is ever left out.
type part struct {
	turn     string
	messages []openai.ChatCompletionMessage
	authors  []author          // of the user messages, by their place in messages
	runs     map[string]string // the executions whose results stand here, by the id of the call on the wire
}

type author struct {
	at   int
	id   approvers.PersonID
	name string
}

// What stands in the history where there is nothing else to stand there: the interface takes no empty messages, some servers no
// person's message right after a tool's result, and none a call without a result.
const (
	noText    = "(no text)"
	noAnswer  = "(I stopped here without an answer.)"
	noContent = "(empty result)"
	noResult  = `{"status":"unknown","reason":"no result was recorded"}`
)

// parts puts the turns of a brief together, oldest first: each person's message, each step with its calls, and exactly one result for each
// call right after them. Messages that still wait for their turn are no part of it.
func parts(b desk.Brief) []part {
	var out []part
	ids := wireIDs{}
	for i := 0; i < len(b.Messages); {
		turn := b.Messages[i].Turn
		end := i
		for end < len(b.Messages) && b.Messages[end].Turn == turn {
			end++
		}
		p := part{turn: turn}
		for _, m := range b.Messages[i:end] {
			p.add(m, b.Calls[turn], ids)
		}
		p.close(b.Turn.ID)
		if len(p.messages) > 0 {
			out = append(out, p)
		}
		i = end
	}
	return out
}

// add takes in one stored message, with its calls if it is a step.
func (p *part) add(m store.Message, calls []store.Call, ids wireIDs) {
	if m.State != store.MessageTaken {
		return
	}
	if m.Role == store.RoleUser {
		p.authors = append(p.authors, author{len(p.messages), m.Author, m.AuthorName})
		p.messages = append(p.messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: withAttached(or(m.Text, noText), m.Attached)})
		return
	}
	said := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, Content: m.Text}
	var results []openai.ChatCompletionMessage
	for _, c := range calls {
		if c.Step != m.Step || m.Calls == 0 {
			continue
		}
		id := ids.of(c)
		said.ToolCalls = append(said.ToolCalls, openai.ToolCall{
			ID: id, Type: openai.ToolTypeFunction, Function: openai.FunctionCall{Name: wireName(c.Tool), Arguments: wireArgs(c.Args)},
		})
		result := noResult
		if c.Outcome != "" {
			result = or(c.Result, noContent)
		}
		if c.Execution != "" {
			if p.runs == nil {
				p.runs = map[string]string{}
			}
			p.runs[id] = c.Execution
		}
		results = append(results, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, Content: result, ToolCallID: id})
	}
	if said.Content == "" && len(said.ToolCalls) == 0 {
		return
	}
	p.messages = append(append(p.messages, said), results...)
}

// close ends a turn that is over with words of the agent.
func (p *part) close(current string) {
	if p.turn == current || len(p.messages) == 0 {
		return
	}
	if last := p.messages[len(p.messages)-1]; last.Role != openai.ChatMessageRoleAssistant {
		p.messages = append(p.messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, Content: noAnswer})
	}
}

// withAttached adds what came along with somebody's words.
func withAttached(text, attached string) string {
	if attached == "" {
		return text
	}
	return text + "\n\n" + attached
}

func or(s, instead string) string {
	if s == "" {
		return instead
	}
	return s
}

// authorsOf lists everybody whose words are in the parts.
func authorsOf(kept []part) []approvers.PersonID {
	var out []approvers.PersonID
	for _, p := range kept {
		for _, a := range p.authors {
			if !slices.Contains(out, a.id) {
				out = append(out, a.id)
			}
		}
	}
	return out
}

// labels gives everybody in the parts a name of their own. Of two people with one name, both get their id with it.
func labels(kept []part) (byID map[approvers.PersonID]string, inOrder []string) {
	byID = map[approvers.PersonID]string{}
	for _, p := range kept {
		for _, a := range p.authors {
			byID[a.id] = nameOf(a.id, a.name)
		}
	}
	bearers := map[string]int{}
	for _, name := range byID {
		bearers[name]++
	}
	for id, name := range byID {
		if bearers[name] > 1 {
			byID[id] = fmt.Sprintf("%s (%s)", name, plainName(id.User()))
		}
	}
	for _, id := range authorsOf(kept) {
		inOrder = append(inOrder, byID[id])
	}
	return byID, inOrder
}

// spoken are the messages of the parts. Where several people talk, each of their messages begins with its writer's name.
func spoken(kept []part, names map[approvers.PersonID]string) []openai.ChatCompletionMessage {
	var out []openai.ChatCompletionMessage
	for _, p := range kept {
		from := len(out)
		out = append(out, p.messages...)
		for _, a := range p.authors {
			if len(names) > 1 {
				out[from+a.at].Content = names[a.id] + ": " + out[from+a.at].Content
			}
		}
	}
	return out
}
