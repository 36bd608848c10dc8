package agent

import (
	"fmt"
	"slices"

	openai "github.com/sashabaranov/go-openai"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// part is one turn in the form that the model receives. A request contains a part completely or not at all.
type part struct {
	turn     string
	current  bool // the turn is under way
	messages []openai.ChatCompletionMessage
	authors  []author          // the authors of the user messages; the index is the index in messages
	runs     map[string]string // by the call id that the model receives: the executions with results in this part
	thoughts []thought         // not in messages, because they may be left out
}

// thought is the data that the endpoint needs back with a step, and that is neither text nor calls.
type thought struct {
	at    int               // the index of the step's message
	text  string            // the model's reasoning
	added map[string]string // by the call id that the model receives: the JSON that the endpoint had added to the call
}

type author struct {
	at   int
	id   approvers.PersonID
	name string
}

// The history contains placeholders for two reasons. The API accepts no empty messages. Some servers refuse a history
// in which a call has no result, or a user message follows a result directly.
const (
	noText    = "(no text)"
	noAnswer  = "(I stopped here without an answer.)"
	noContent = "(empty result)"
	noResult  = `{"status":"unknown","reason":"no result was recorded"}`
)

// parts converts the turns of a brief, oldest first. A turn consists of the messages of people and the steps of the
// model. The calls of a step are followed by exactly one result for each call. Messages in a state other than
// store.MessageTaken are left out.
func parts(b workflow.Brief) []part {
	var out []part
	ids := wireIDs{}
	for i := 0; i < len(b.Messages); {
		turn := b.Messages[i].Turn
		end := i
		for end < len(b.Messages) && b.Messages[end].Turn == turn {
			end++
		}
		p := part{turn: turn, current: turn == b.Turn.ID}
		for _, m := range b.Messages[i:end] {
			p.add(m, b.Calls[turn], ids)
		}
		p.close()
		if len(p.messages) > 0 {
			out = append(out, p)
		}
		i = end
	}
	return out
}

// add adds one stored message. If the message is a step of the model, add also adds the calls of the step.
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
	var reasoning store.Reasoning
	if m.Reasoning != nil {
		reasoning = *m.Reasoning
	}
	own := thought{at: len(p.messages), text: reasoning.Text}
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
			p.runs = with(p.runs, id, c.Execution)
		}
		if c.Index < len(reasoning.Calls) && reasoning.Calls[c.Index] != "" {
			own.added = with(own.added, id, reasoning.Calls[c.Index])
		}
		results = append(results, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, Content: result, ToolCallID: id})
	}
	if said.Content == "" && len(said.ToolCalls) == 0 {
		return
	}
	p.messages = append(append(p.messages, said), results...)
	if own.text != "" || own.added != nil {
		p.thoughts = append(p.thoughts, own)
	}
}

// with returns m with one more entry. m may be nil.
func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// reasoningOf returns the messages with only the reasoning that came from source, because only this endpoint and model
// understand it.
func reasoningOf(source string, messages []store.Message) []store.Message {
	out := slices.Clone(messages)
	for i := range out {
		if r := out[i].Reasoning; r != nil && r.Source != source {
			out[i].Reasoning = nil
		}
	}
	return out
}

// close ensures that an ended turn ends with a message of the agent.
func (p *part) close() {
	if p.current || len(p.messages) == 0 {
		return
	}
	if last := p.messages[len(p.messages)-1]; last.Role != openai.ChatMessageRoleAssistant {
		p.messages = append(p.messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, Content: noAnswer})
	}
}

// withAttached adds the attachments to a person's text.
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

// authorsOf lists all authors of the parts.
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

// labels gives every author in the parts a distinct name. If two people have the same name, labels appends the
// person's id to each of the two names.
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

// spoken returns the messages of the parts. If the parts have several authors, each message of a person starts with
// the author's name.
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
