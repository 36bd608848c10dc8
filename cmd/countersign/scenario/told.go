package scenario

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"countersign/internal/demo/workspaceclient"
	"countersign/store"
)

// saidIn returns the bot's new messages in a conversation, except the agent's answers and the states of calls.
func (p *player) saidIn(ctx context.Context, t talk) (lines []string, err error) {
	messages, err := p.as(t.who).Messages(ctx, t.channel, t.root)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		if m.BotID == "" || m.Ephemeral || p.known.messages[m.Channel+" "+m.TS] {
			continue
		}
		s, err := p.outboxMessage(ctx, m)
		if err != nil {
			return nil, err
		}
		if t.root == "" && !strings.HasPrefix(s.To, store.ToConversation) {
			continue // in the same direct messages, but outside the conversation
		}
		p.known.messages[m.Channel+" "+m.TS] = true
		switch s.Kind {
		case "", store.OutboxStep, store.OutboxAnswer, store.OutboxProblem, store.OutboxQueued, store.OutboxModelQuestion: // "": a part of a very long answer
		default:
			lines = append(lines, "Countersign: "+oneLine(workspaceclient.Plain(m.Text, p.called)))
		}
	}
	return lines, nil
}

// outboxMessage returns the outbox message that a Slack message shows. If there is no such outbox message, the result's
// kind is empty.
func (p *player) outboxMessage(ctx context.Context, m workspaceclient.Message) (s store.OutboxMessage, err error) {
	err = p.demo.Store().View(ctx, func(r store.Reader) error {
		if s, err = r.OutboxMessageAt(m.Channel, m.TS); errors.Is(err, store.ErrNotFound) {
			s, err = store.OutboxMessage{}, nil
		}
		return err
	})
	return s, err
}

// newMessages returns the new messages to people outside the conversation, sorted by person.
func (p *player) newMessages(ctx context.Context) (lines []string, err error) {
	people := slices.Clone(p.people)
	slices.SortFunc(people, func(a, b workspaceclient.Person) int { return strings.Compare(a.Called(), b.Called()) })
	for _, who := range people {
		if who.Bot || who.Deleted {
			continue
		}
		found, err := p.fresh(ctx, who)
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			line, err := p.messageLine(ctx, who, m)
			if err != nil {
				return nil, err
			}
			if line != "" {
				lines = append(lines, line)
			}
		}
	}
	return lines, nil
}

// The method "fresh" reads the bot's new messages to a person: direct messages, and ephemeral messages in the
// conversations and in the channels where somebody clicked.
func (p *player) fresh(ctx context.Context, who workspaceclient.Person) (found []workspaceclient.Message, err error) {
	type place struct{ channel, root string }
	places := []place{{channel: "countersign"}}
	for _, channel := range p.clicked {
		places = append(places, place{channel: channel})
	}
	for _, t := range p.talks {
		places = append(places, place{channel: t.channel}, place{t.channel, t.root})
	}
	for i, place := range places {
		if slices.Contains(places[:i], place) {
			continue
		}
		messages, err := p.as(who.Name).Messages(ctx, place.channel, place.root)
		var refused *workspaceclient.Refusal
		if errors.As(err, &refused) {
			continue // the person is not a member
		}
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			key := m.Channel + " " + m.TS
			if m.BotID == "" || p.known.messages[key] || !m.Ephemeral && place.channel != "countersign" {
				continue
			}
			p.known.messages[key] = true
			found = append(found, m)
		}
	}
	return found, nil
}

// messageLine returns the line for a message to a person, or "" if the transcript omits the message. The line for a
// card has two parts: the card's subject, and the reason why the person got the card.
func (p *player) messageLine(ctx context.Context, who workspaceclient.Person, m workspaceclient.Message) (string, error) {
	text := strings.TrimSpace(workspaceclient.Plain(m.Text, p.called))
	if m.Ephemeral {
		return "Countersign to " + who.Called() + ": " + oneLine(text), nil
	}
	line, _, _ := strings.Cut(text, "\n")
	s, err := p.outboxMessage(ctx, m)
	reason := cameFor.FindString(text)
	if err != nil || s.Kind == store.OutboxCard && reason == "" || strings.HasPrefix(s.To, store.ToConversation) {
		return "", err
	}
	if (s.Kind == store.OutboxCard || s.Kind == store.OutboxEscalation) && reason != "" {
		line += " · " + reason
	}
	return who.Called() + " is told: " + line, nil
}

// cameFor matches the line of a card that says why the reader got this card.
var cameFor = regexp.MustCompile(`(?m)^(?:↪️|⏫) .*$`)

func (p *player) called(id string) string {
	for _, who := range p.people {
		if who.ID == id {
			return who.Called()
		}
	}
	return id
}
