package workflow

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// silence is used at the top level of a direct message. If a message comes more than this time after the last message,
// and no turn is going on, the message begins a new conversation.
const silence = 8 * time.Hour

// IncomingMessage is a message from a person to the bot.
type IncomingMessage struct {
	Inbox           string    // id of the delivery, which is closed in the same transaction
	At              time.Time // when the bot received the message
	Channel         approvers.ChannelRef
	Team            string
	Thread          string // ts of the thread's root; empty at the top level of a direct message
	TS              string // the message's own ts
	Who             approvers.Identity
	Text            string         // the text for the model
	Attached        string         // for the model only: the attached files, and where the message was written
	Start           bool           // the message may begin a conversation, because it is a mention or a direct message
	NewConversation bool           // at the top level of a direct message: the message begins a new conversation if no turn is going on
	Stop            bool           // the author asks to stop the current turn, if there is one
	Edited          string         // Slack's ts of the last edit; empty: nobody edited the message
	Gap             *approvers.Gap // the gap in which the message was written, if the bot read the message after the gap; nil: there was no gap
}

// MessageResult describes how a message was handled.
type MessageResult struct {
	Conversation string
	Turn         string
	Queued       bool // the message waits for the current turn to end
	Paused       bool // everything is paused: the bot keeps the message, and tells its author
	Ignored      bool // the message was not for the bot
	Duplicate    bool // the message was received before
	Stopped      bool // the message stopped the turn
	// Passed is the approver whose question the message answers. Passed is empty if the message is not an answer to an
	// approver.
	Passed approvers.PersonID
	Denied *approvers.Denied
}

// deny records a denial in the result. If denied is nil, deny does nothing and returns false. If the message was
// addressed to the bot, the parameter start is true. Only then is the author told of the denial.
func (h *MessageResult) deny(denied *approvers.Denied, start bool) bool {
	if denied == nil {
		return false
	}
	h.Denied, h.Ignored = denied, !start
	return true
}

// ReceiveMessage stores a person's message. The message starts a turn, or waits for the current turn to end.
func (w *Intake) ReceiveMessage(ctx context.Context, u IncomingMessage) (MessageResult, error) {
	var result MessageResult
	w.slack.saw(u.TS)
	err := w.update(ctx, "receive message", func(t *tx) error {
		result = MessageResult{}
		if err := t.settle(u.Inbox, ""); err != nil {
			return err
		}
		if err := t.turns.alreadyTold(u, &result); err != nil || result.Ignored || result.Duplicate {
			return err
		}
		conv, err := t.turns.conversationFor(u, &result)
		if err == nil && result.Ignored {
			err = t.reposts.spokenUnder(u.Channel.Channel, u.Thread)
		}
		if err != nil || result.Denied != nil || result.Ignored {
			return err
		}
		recent, err := t.Messages(conv.ID, conv.Messages-min(conv.Messages, 200))
		if err != nil {
			return err
		}
		if !u.Start && writtenBefore(recent, u.TS) {
			result.Ignored = true
			return t.reposts.spokenUnder(u.Channel.Channel, u.Thread)
		}
		result.Conversation = conv.ID
		p, _, err := settings.ReadPause(t)
		if err != nil {
			return err
		}
		result.Paused = p.On
		if slices.ContainsFunc(recent, func(m store.Message) bool { return m.TS == u.TS && m.Author == u.Who.ID }) || beforeRecent(recent, u.TS) {
			result.Duplicate = true
			return nil
		}
		if err := t.turns.acceptMessage(conv, u, &result); err != nil || result.Turn == "" {
			return err
		}
		return t.turns.tellGap(result, u, recent)
	})
	if errors.Is(err, ErrHandled) {
		return MessageResult{Duplicate: true}, nil
	}
	return result, err
}

// writtenBefore reports whether a message in a thread is older than every message that people wrote to the bot in this
// thread. An older message was written to other people, so the bot ignores it. An older message can arrive after the
// mention that began the conversation, because Slack may send the two messages over different connections.
func writtenBefore(conversation []store.Message, ts string) bool {
	for _, m := range conversation {
		if m.Role == store.RoleUser && (m.TS == "" || !sentBefore(ts, m.TS)) {
			return false
		}
	}
	return len(conversation) > 0
}

// beforeRecent reports whether a message is older than the recent messages of a long conversation. The bot receives
// such a message only when it reads the channel's history, so the message counts as a duplicate.
func beforeRecent(recent []store.Message, ts string) bool {
	i := slices.IndexFunc(recent, func(m store.Message) bool { return m.Role == store.RoleUser && m.TS != "" })
	return i >= 0 && recent[0].Seq > 1 && sentBefore(ts, recent[i].TS)
}

// alreadyTold checks whether the store has a message's deletion, or the message itself. Deliveries can arrive out of
// order: the edit of a recent message may arrive before the message's own event. The bot then stores the message with
// the edited text, and the message's own event changes nothing.
func (t turnsTx) alreadyTold(u IncomingMessage, result *MessageResult) (err error) {
	if result.Ignored, err = t.deleted(u.Channel.Channel, u.TS); err != nil || result.Ignored || u.Edited == "" {
		return err
	}
	if result.Duplicate, err = t.editMessage(u, approvers.MessageEdit{At: u.At, Edit: u.Edited, Text: u.Text}); err != nil || result.Duplicate {
		return err
	}
	result.Ignored = u.Text == "" || u.At.Sub(sentAt(u.TS)) > lateEdit
	return nil
}

// conversationFor finds or creates the conversation of a message. If the author may not ask in this channel,
// conversationFor sets result.Denied or result.Ignored.
func (t turnsTx) conversationFor(u IncomingMessage, result *MessageResult) (store.Conversation, error) {
	place := store.Place(u.Team, u.Channel.Channel, u.Thread)
	conv, err := t.ConversationAt(place)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return conv, err
	}
	known := err == nil
	if known && u.Thread == "" && (u.NewConversation || t.now.Sub(conv.LastAt) > silence) && conv.Turn == "" {
		known = false
	}
	if !known && !u.Start {
		result.Ignored = true
		return conv, nil
	}
	agent, ok := t.policy.Agent(conv.Agent)
	if !known || !ok {
		agent, ok = t.policy.AgentFor(u.Channel)
	}
	denied := &approvers.Denied{Code: approvers.DeniedChannel}
	if ok {
		denied = agent.MayAsk(u.Who)
	}
	if result.deny(denied, u.Start) {
		return conv, nil
	}
	if known {
		conv.Agent = agent.Name
		return conv, nil
	}
	return store.Conversation{
		ID: t.newID("conv"), Place: place, Team: u.Team, Channel: u.Channel.Channel, Name: u.Channel.Name,
		Thread: u.Thread, DM: u.Channel.DM, Agent: agent.Name, CreatedAt: t.now,
	}, nil
}

// acceptMessage stores the message. The message then starts a turn, joins a turn that has not started, stops the
// current turn, or waits. A message can also be the answer to a question of the model or of an approver.
func (t turnsTx) acceptMessage(conv store.Conversation, u IncomingMessage, result *MessageResult) error {
	conv.Messages++
	conv.LastAt, conv.Gone = t.now, false
	m := store.Message{
		Conversation: conv.ID, Seq: conv.Messages, Role: store.RoleUser, State: store.MessageQueued,
		Author: u.Who.ID, AuthorName: u.Who.Name, Text: u.Text, Attached: u.Attached, TS: u.TS, Edited: u.Edited, At: t.now, Gap: u.Gap,
	}
	if conv.Turn == "" {
		if err := t.PutMessage(m); err != nil {
			return err
		}
		turn, err := t.begin(&conv)
		result.Turn = turn
		if err != nil {
			return err
		}
		return t.PutConversation(conv)
	}
	turn, err := t.Turn(conv.Turn)
	if err != nil {
		return err
	}
	result.Turn = turn.ID
	// The message about a pause shows how many messages wait.
	if err := t.outbox.changedTurn(turn.ID, store.OutboxStandstill, 0); err != nil {
		return err
	}
	if u.Stop && turn.Stopping == "" {
		result.Stopped = true
		m.State, m.Turn = store.MessageStop, turn.ID
		if err := t.PutMessage(m); err != nil {
			return err
		}
		if err := t.PutConversation(conv); err != nil {
			return err
		}
		conv.Version++
		denied, err := t.stopBy(turn, conv, Click{Who: u.Who, Inbox: u.Inbox, At: u.At})
		result.deny(denied, u.Start)
		return err
	}
	if answered, err := t.questions.answerByWriting(turn, m, u); answered || err != nil {
		return errors.Join(err, t.PutConversation(conv))
	}
	if result.Passed, err = t.requests.answerByWriting(turn, m, u); result.Passed != "" || err != nil {
		return errors.Join(err, t.PutConversation(conv))
	}
	if turn.State == approvers.TurnQueued { // the model has not been called yet, so the message joins the turn
		m.State, m.Turn = store.MessageTaken, turn.ID
		if err := t.PutTurn(turn.Speak(u.Who.ID)); err != nil {
			return err
		}
	} else {
		result.Queued = true
	}
	if err := t.PutMessage(m); err != nil {
		return err
	}
	if err := t.PutConversation(conv); err != nil {
		return err
	}
	if turn.State != approvers.TurnWaiting {
		return nil
	}
	if err := t.reposts.turnAgain(turn); err != nil {
		return err
	}
	return t.tellQueued(turn)
}

// tellGap posts a notice in a conversation. The notice says that the bot was away when a message was written. A
// conversation gets one notice for each gap. The parameter recent has the conversation's earlier messages.
func (t turnsTx) tellGap(result MessageResult, u IncomingMessage, recent []store.Message) error {
	if u.Gap == nil || slices.ContainsFunc(recent, func(m store.Message) bool { return m.Gap != nil && m.Gap.From.Equal(u.Gap.From) }) {
		return nil
	}
	return t.outbox.wantOnce(store.OutboxMessage{Kind: store.OutboxGap, Ref: result.Turn, To: store.ToConversation + result.Conversation})
}

// begin starts a turn with all waiting messages, and returns the turn's id. If no message waits, begin returns "". The
// function that calls begin must store conv.
func (t turnsTx) begin(conv *store.Conversation) (string, error) {
	messages, err := t.Messages(conv.ID, 0)
	if err != nil {
		return "", err
	}
	messages = inTurns(messages)
	turn := approvers.Turn{
		ID: t.newID("turn"), Conversation: conv.ID, Agent: conv.Agent, State: approvers.TurnQueued, CreatedAt: t.now,
	}
	unanswered := "" // the newest turn, if it ended without an answer
	for _, m := range messages {
		switch {
		case m.Role == store.RoleAssistant && m.Calls == 0:
			turn.Requesters, unanswered = nil, "" // the authors of messages that were answered are not requesters of the new turn
		case m.Role == store.RoleUser && m.State == store.MessageTaken:
			turn, unanswered = turn.Speak(m.Author), m.Turn
		}
	}
	if unanswered != "" { // nobody can resume this turn after a newer turn has begun
		if err := t.outbox.changedTurn(unanswered, store.OutboxProblem, 0); err != nil {
			return "", err
		}
	}
	found, since := false, t.now
	for _, m := range messages {
		if m.State != store.MessageQueued {
			continue
		}
		if found = true; m.At.Before(since) {
			since = m.At
		}
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
	t.happened(Event{Turn: turn.ID, Began: &TurnBegan{Since: since}})
	return turn.ID, t.think(turn)
}

// think schedules the next model call of a turn. If a pause delays the call, a message in the conversation explains the
// delay.
func (t turnsTx) think(turn approvers.Turn) error {
	if err := t.SetTimer(store.Timer{Kind: store.TimerThink, Ref: turn.ID, Due: t.now, Affinity: store.ToConversation + turn.Conversation}); err != nil {
		return err
	}
	p, _, err := settings.ReadPause(t)
	if err != nil || !p.On {
		return err
	}
	return t.pauses.standStill(turn)
}

// tellIfQueued calls tellQueued if messages wait for the turn to end.
func (t turnsTx) tellIfQueued(turn approvers.Turn) error {
	queued, err := t.queued(turn.Conversation)
	if err != nil || len(queued) == 0 {
		return err
	}
	return t.tellQueued(turn)
}

// tellQueued posts a notice in the conversation. The notice says that messages wait for the turn to end. Each turn gets
// only one of these notices.
func (t turnsTx) tellQueued(turn approvers.Turn) error {
	return t.outbox.wantCurrent(store.OutboxMessage{Kind: store.OutboxQueued, Ref: turn.ID, To: store.ToConversation + turn.Conversation})
}

// slackClock is the latest known time of Slack's clock: the timestamp of the newest message that the workflow has seen.
// Message timestamps are compared with slackClock, because the local clock may be wrong.
type slackClock struct{ seconds atomic.Int64 }

// saw records the ts of a message that exists in Slack.
func (c *slackClock) saw(ts string) {
	at := sentAt(ts).Unix()
	for seen := c.seconds.Load(); at > seen && !c.seconds.CompareAndSwap(seen, at); seen = c.seconds.Load() {
	}
}

// time returns the latest known time. If no time is known yet, time returns zero.
func (c *slackClock) time() time.Time {
	seen := c.seconds.Load()
	if seen == 0 {
		return time.Time{}
	}
	return time.Unix(seen, 0).UTC()
}

// sentAt returns the time in a message's ts.
func sentAt(ts string) time.Time {
	seconds, _, _ := strings.Cut(ts, ".")
	n, _ := strconv.ParseInt(seconds, 10, 64) // an invalid ts counts as long ago
	return time.Unix(n, 0)
}

// sentBefore reports whether the message with the timestamp ts was sent before the message with the timestamp other.
func sentBefore(ts, other string) bool {
	if a, b := sentAt(ts), sentAt(other); !a.Equal(b) {
		return a.Before(b)
	}
	return ts < other
}
