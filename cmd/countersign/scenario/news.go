package scenario

import (
	"context"
	"errors"
	"maps"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// known holds the content that is already in the transcript.
type known struct {
	calls    map[string]string // last reported state of each call
	remarks  map[string]int    // number of reported remarks on each request
	outbox   map[string]bool   // reported outbox messages of the agent
	messages map[string]bool   // reported messages, by channel and ts
}

func newKnown() known {
	return known{calls: map[string]string{}, remarks: map[string]int{}, outbox: map[string]bool{}, messages: map[string]bool{}}
}

// The method "news" returns all new content that people can see: states of calls, messages of the agent, and notices.
func (p *player) news(ctx context.Context) (lines []string, err error) {
	if p.known.calls == nil {
		p.known = newKnown()
	}
	seen := newKnown()
	err = p.demo.Store().View(ctx, func(r store.Reader) error {
		lines, seen = nil, newKnown()
		for _, t := range p.talks {
			said, err := p.newsIn(r, t, seen)
			if err != nil {
				return err
			}
			lines = append(lines, said...)
		}
		for _, a := range p.asked {
			call, err := r.Call(a.request.ID)
			if err != nil {
				return err
			}
			said, err := p.newsOf(r, call.Turn, nil, seen)
			if err != nil {
				return err
			}
			lines = append(lines, said...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	maps.Copy(p.known.calls, seen.calls)
	maps.Copy(p.known.remarks, seen.remarks)
	maps.Copy(p.known.outbox, seen.outbox)
	for _, t := range p.talks {
		said, err := p.saidIn(ctx, t)
		if err != nil {
			return nil, err
		}
		lines = append(lines, said...)
	}
	told, err := p.newMessages(ctx)
	return append(lines, told...), err
}

// newsIn returns the news of a conversation.
func (p *player) newsIn(r store.Reader, t talk, seen known) (lines []string, err error) {
	conv, err := r.ConversationAt(t.place)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	messages, err := r.Messages(conv.ID, 0)
	if err != nil {
		return nil, err
	}
	turns := map[string]bool{}
	for _, m := range messages {
		if m.Turn == "" || turns[m.Turn] {
			continue
		}
		turns[m.Turn] = true
		said, err := p.newsOf(r, m.Turn, messages, seen)
		if err != nil {
			return nil, err
		}
		lines = append(lines, said...)
	}
	return lines, nil
}

// newsOf returns the news of a turn: first its calls, then the answer.
func (p *player) newsOf(r store.Reader, id string, messages []store.Message, seen known) (lines []string, err error) {
	turn, err := r.Turn(id)
	if err != nil {
		return nil, err
	}
	calls, err := r.Calls(id)
	if err != nil {
		return nil, err
	}
	for _, c := range calls {
		line, err := describe(r, c)
		if err != nil {
			return nil, err
		}
		if line != "" && line != p.known.calls[c.ID] {
			lines = append(lines, line)
			seen.calls[c.ID] = line
		}
		said, err := p.newRemarks(r, c, seen)
		if err != nil {
			return nil, err
		}
		lines = append(lines, said...)
	}
	outbox, err := r.OutboxMessagesOf(id)
	if err != nil {
		return nil, err
	}
	for _, s := range outbox {
		if p.known.outbox[s.ID] || s.Kind == store.OutboxDraft {
			continue
		}
		seen.outbox[s.ID] = true
		switch s.Kind {
		case store.OutboxAnswer:
			lines = append(lines, "Countersign: "+oneLine(answerIn(messages, turn, s)))
		case store.OutboxProblem:
			lines = append(lines, "Countersign: "+oneLine(turn.Problem))
		case store.OutboxQueued:
			lines = append(lines, "Countersign says that the message waits")
		}
	}
	return lines, nil
}

// newRemarks returns the new remarks on the card of a call.
func (p *player) newRemarks(r store.Reader, c store.Call, seen known) (lines []string, err error) {
	if c.Request == "" {
		return nil, nil
	}
	req, err := r.Request(c.Request)
	if err != nil {
		return nil, err
	}
	for _, m := range req.Remarks[p.known.remarks[req.ID]:] {
		lines = append(lines, remarked(c.Tool, m))
	}
	seen.remarks[req.ID] = len(req.Remarks)
	return lines, nil
}

// answerIn returns the agent's text of a step.
func answerIn(messages []store.Message, turn approvers.Turn, s store.OutboxMessage) string {
	for _, m := range messages {
		if m.Turn == turn.ID && m.Role == store.RoleAssistant && m.Step == s.Step {
			return m.Text
		}
	}
	return ""
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
