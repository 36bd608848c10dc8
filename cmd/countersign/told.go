package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"countersign/internal/visitor"
	"countersign/store"
)

// saidIn is what else the bot newly said in a conversation: questions, and whatever is neither the agent's answer nor where its calls stand.
func (p *player) saidIn(ctx context.Context, t talk) (lines []string, err error) {
	messages, err := p.as(t.who).Messages(ctx, t.channel, t.root)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		if m.BotID == "" || m.Ephemeral || p.known.messages[m.Channel+" "+m.TS] {
			continue
		}
		s, err := p.surface(ctx, m)
		if err != nil {
			return nil, err
		}
		if t.root == "" && !strings.HasPrefix(s.To, "conversation:") {
			continue // in the same direct messages, and no part of the conversation
		}
		p.known.messages[m.Channel+" "+m.TS] = true
		switch s.Kind {
		case "", store.SurfaceStep, store.SurfaceAnswer, store.SurfaceProblem, store.SurfaceQueued, store.SurfaceInquiry: // none: what a very long answer goes on in
		default:
			lines = append(lines, "Countersign: "+oneLine(visitor.Plain(m.Text, p.called)))
		}
	}
	return lines, nil
}

// surface is what a message shows; one without a kind is no surface.
func (p *player) surface(ctx context.Context, m visitor.Message) (s store.Surface, err error) {
	err = p.stage.store.View(ctx, func(r store.Reader) error {
		if s, err = r.SurfaceAt(m.Channel, m.TS); errors.Is(err, store.ErrNotFound) {
			s, err = store.Surface{}, nil
		}
		return err
	})
	return s, err
}

// told is what people are told beside the conversation, by person and in order of time.
func (p *player) told(ctx context.Context) (lines []string, err error) {
	people := slices.Clone(p.people)
	slices.SortFunc(people, func(a, b visitor.Person) int { return strings.Compare(a.Called(), b.Called()) })
	for _, who := range people {
		if who.Bot || who.Deleted {
			continue
		}
		found, err := p.fresh(ctx, who)
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			line, err := p.tells(ctx, who, m)
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

// fresh reads the bot's messages to a person that are new: direct ones, and those that only this person sees where there is talk or
// something was clicked.
func (p *player) fresh(ctx context.Context, who visitor.Person) (found []visitor.Message, err error) {
	places := []talk{{channel: "countersign"}}
	for _, channel := range p.clicked {
		places = append(places, talk{channel: channel})
	}
	for _, t := range p.talks {
		places = append(places, talk{channel: t.channel}, t)
	}
	for _, place := range places {
		messages, err := p.as(who.Name).Messages(ctx, place.channel, place.root)
		var refused *visitor.Refusal
		if errors.As(err, &refused) {
			continue // somebody who is not there
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

// tells is what a message to a person says, or "" for what goes without saying. A card says first what it is about, and then why it comes.
func (p *player) tells(ctx context.Context, who visitor.Person, m visitor.Message) (string, error) {
	text := strings.TrimSpace(visitor.Plain(m.Text, p.called))
	if m.Ephemeral {
		return "Countersign to " + who.Called() + ": " + oneLine(text), nil
	}
	lines := strings.SplitN(text, "\n", 3)
	s, err := p.surface(ctx, m)
	handedOn := len(lines) > 1 && strings.HasPrefix(lines[1], "↪️")
	switch {
	case err != nil, s.Kind == store.SurfaceCard && !handedOn, strings.HasPrefix(s.To, "conversation:"):
		return "", err
	case s.Kind == store.SurfaceEscalation, handedOn:
		lines = []string{strings.Join(lines[:min(len(lines), 2)], " · ")}
	}
	return who.Called() + " is told: " + lines[0], nil
}

// called is the name of the person with an id.
func (p *player) called(id string) string {
	for _, who := range p.people {
		if who.ID == id {
			return who.Called()
		}
	}
	return id
}
