package desk

import (
	"context"
	"errors"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// silence is how long a direct message's top level may be quiet before the next message begins a new conversation.
const silence = 8 * time.Hour

// Utterance is what a person said to the bot.
type Utterance struct {
	Inbox  string    // the delivery that it came in; closed in the same transaction
	At     time.Time // when it was received
	Place  approvers.Place
	Team   string
	Thread string // ts of the thread's root; empty at the top level of a direct message
	TS     string // the message's own ts
	Who    approvers.Identity
	Text   string // as the model should read it
	Start  bool   // it may begin a conversation: a mention, or a direct message
	Anew   bool   // it begins a new conversation at the top level of a direct message
}

// Heard says what became of an utterance.
type Heard struct {
	Conversation string
	Turn         string
	Queued       bool // it waits until the turn under way ends
	Ignored      bool // it was not for the bot
	Duplicate    bool // it was heard before
	Denied       *approvers.Denied
}

// deny notes that the speaker may not ask, if that is so. Only somebody who spoke to the bot is told.
func (h *Heard) deny(denied *approvers.Denied, start bool) bool {
	if denied == nil {
		return false
	}
	h.Denied, h.Ignored = denied, !start
	return true
}

// Hear takes in what a person said: it begins a turn, or waits for the one under way.
func (d *Desk) Hear(ctx context.Context, u Utterance) (Heard, error) {
	var heard Heard
	err := d.update(ctx, "hear", func(t *tx) error {
		heard = Heard{}
		if err := t.settle(u.Inbox, ""); err != nil {
			return err
		}
		conv, err := t.conversationFor(u, &heard)
		if err != nil || heard.Denied != nil || heard.Ignored {
			return err
		}
		recent, err := t.Messages(conv.ID, conv.Messages-min(conv.Messages, 200))
		if err != nil {
			return err
		}
		heard.Conversation = conv.ID
		if slices.ContainsFunc(recent, func(m store.Message) bool { return m.TS == u.TS && m.Author == u.Who.ID }) {
			heard.Duplicate = true
			return nil
		}
		return t.take(conv, u, &heard)
	})
	if errors.Is(err, ErrHandled) {
		return Heard{Duplicate: true}, nil
	}
	return heard, err
}

// conversationFor finds or begins the conversation that an utterance belongs to, if its speaker may ask there.
func (t *tx) conversationFor(u Utterance, heard *Heard) (store.Conversation, error) {
	place := u.Team + "/" + u.Place.Channel + "/" + u.Thread
	conv, err := t.ConversationAt(place)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return conv, err
	}
	known := err == nil
	if known && u.Thread == "" && (u.Anew || t.now.Sub(conv.LastAt) > silence) && conv.Turn == "" {
		known = false
	}
	if !known && !u.Start {
		heard.Ignored = true
		return conv, nil
	}
	agent, ok := t.policy.Agent(conv.Agent)
	if !known || !ok {
		agent, ok = t.policy.AgentFor(u.Place)
	}
	denied := &approvers.Denied{Code: approvers.DeniedChannel}
	if ok {
		denied = agent.MayAsk(u.Who)
	}
	if heard.deny(denied, u.Start) {
		return conv, nil
	}
	if known {
		conv.Agent = agent.Name
		return conv, nil
	}
	return store.Conversation{
		ID: newID("conv"), Place: place, Team: u.Team, Channel: u.Place.Channel, Name: u.Place.Name,
		Thread: u.Thread, DM: u.Place.DM, Agent: agent.Name, CreatedAt: t.now,
	}, nil
}

// take writes the message down, and has the agent think about it unless it must wait its turn.
func (t *tx) take(conv store.Conversation, u Utterance, heard *Heard) error {
	conv.Messages++
	conv.LastAt = t.now
	m := store.Message{
		Conversation: conv.ID, Seq: conv.Messages, Role: store.RoleUser, State: store.MessageQueued,
		Author: u.Who.ID, AuthorName: u.Who.Name, Text: u.Text, TS: u.TS, At: t.now,
	}
	if conv.Turn == "" {
		if err := t.PutMessage(m); err != nil {
			return err
		}
		turn, err := t.begin(&conv)
		heard.Turn = turn
		if err != nil {
			return err
		}
		return t.PutConversation(conv)
	}
	turn, err := t.Turn(conv.Turn)
	if err != nil {
		return err
	}
	heard.Turn = turn.ID
	if answered, err := t.answerByWriting(turn, m, u); answered || err != nil {
		return errors.Join(err, t.PutConversation(conv))
	}
	if turn.State == approvers.TurnQueued { // the model was not asked yet: it is part of the question
		m.State, m.Turn = store.MessageTaken, turn.ID
		if err := t.PutTurn(turn.Speak(u.Who.ID)); err != nil {
			return err
		}
	} else {
		heard.Queued = true
	}
	if err := t.PutMessage(m); err != nil {
		return err
	}
	if err := t.PutConversation(conv); err != nil {
		return err
	}
	if turn.State == approvers.TurnWaiting {
		return t.tellQueued(turn)
	}
	return nil
}

// begin starts a turn on every message that waits. The caller puts the conversation.
func (t *tx) begin(conv *store.Conversation) (string, error) {
	messages, err := t.Messages(conv.ID, 0)
	if err != nil {
		return "", err
	}
	messages = inTurns(messages)
	turn := approvers.Turn{
		ID: newID("turn"), Conversation: conv.ID, Agent: conv.Agent, State: approvers.TurnQueued, CreatedAt: t.now,
	}
	for _, m := range messages {
		switch {
		case m.Role == store.RoleAssistant && m.Calls == 0:
			turn.Requesters = nil // an answer: what was said before it is settled
		case m.Role == store.RoleUser && m.State == store.MessageTaken:
			turn = turn.Speak(m.Author)
		}
	}
	found := false
	for _, m := range messages {
		if m.State != store.MessageQueued {
			continue
		}
		found = true
		turn = turn.Speak(m.Author)
		m.State, m.Turn = store.MessageTaken, turn.ID
		if err := t.PutMessage(m); err != nil {
			return "", err
		}
	}
	if !found {
		conv.Turn = ""
		return "", nil
	}
	conv.Turn = turn.ID
	if err := t.PutTurn(turn); err != nil {
		return "", err
	}
	return turn.ID, t.think(turn)
}

// think has the model called for a turn, now.
func (t *tx) think(turn approvers.Turn) error {
	return t.SetTimer(store.Timer{Kind: store.TimerThink, Ref: turn.ID, Due: t.now})
}

// tellIfQueued tells those whose messages wait for the turn, if there are any.
func (t *tx) tellIfQueued(turn approvers.Turn) error {
	queued, err := t.queued(turn.Conversation)
	if err != nil || len(queued) == 0 {
		return err
	}
	return t.tellQueued(turn)
}

// tellQueued tells those whose messages wait that they do, once a turn, if something waits for a decision.
func (t *tx) tellQueued(turn approvers.Turn) error {
	surfaces, err := t.SurfacesOf(turn.ID)
	if err != nil {
		return err
	}
	for _, s := range surfaces {
		if s.Kind == store.SurfaceQueued {
			return t.changed(s)
		}
	}
	return t.want(store.Surface{Kind: store.SurfaceQueued, Ref: turn.ID, To: toConversation + turn.Conversation})
}
