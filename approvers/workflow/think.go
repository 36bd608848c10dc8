package workflow

import (
	"context"
	"errors"
	"log/slog"
	"time"
	"unicode/utf8"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// Brief is the input of one model call.
type Brief struct {
	Turn         approvers.Turn
	Conversation store.Conversation
	Agent        approvers.Agent
	Policy       *approvers.Policy       // the policy when Begin read the input
	Messages     []store.Message         // the history for the prompt: whole turns in order
	Calls        map[string][]store.Call // by turn, in the order of step and index; each call has its result
}

// historyMessages is the maximum number of messages that Begin reads for a model call. Normally, the token budget of a
// prompt is reached before this limit.
const historyMessages = 400

// Begin reads the input of a due model call. If the turn does not need a model call any more, Begin returns ErrNotDue.
// During a pause, Begin returns ErrPaused.
func (w *Turns) Begin(ctx context.Context, turn string) (Brief, error) {
	var b Brief
	due, stopped := true, false
	err := w.update(ctx, "begin", func(t *tx) error {
		b, due, stopped = Brief{Calls: map[string][]store.Call{}}, true, false
		err := ifPaused(t)
		if err != nil {
			return err
		}
		if b.Turn, b.Conversation, due, err = t.turns.thinking(turn); err != nil || !due {
			return err
		}
		deadly, err := t.turns.stopDeadly(b.Turn, b.Conversation)
		if deadly || err != nil {
			due, stopped = false, deadly
			return err
		}
		agent, ok := t.policy.Agent(b.Turn.Agent)
		if !ok {
			due = false
			t.note(slog.LevelError, "the policy has no such agent any more; its turn was stopped", "conversation", b.Conversation.ID, "turn", b.Turn.ID, "agent", b.Turn.Agent)
			return t.turns.stop(b.Turn, b.Conversation, "The agent that was asked here has been removed from the policy. Ask the operator of this bot.", false)
		}
		spent, err := t.proposals.overBudget(b.Turn, agent)
		if err != nil {
			return err
		}
		if spent != "" {
			due = false
			return t.turns.stop(b.Turn, b.Conversation, spent, true)
		}
		b.Agent, b.Policy = agent, t.policy
		if err := t.outbox.changedTurn(turn, store.OutboxStandstill, 0); err != nil { // updates the message about a pause, if there is one
			return err
		}
		return b.read(t)
	})
	if err == nil && stopped { // if a person resumes the turn, its crashes are counted from zero
		w.Crashes.Forget(string(store.TimerThink), turn)
	}
	if err == nil && !due {
		err = ErrNotDue
	}
	return b, err
}

// thinking moves a queued turn to the state thinking. If the turn is in this state already, nothing changes. If the
// turn is in any other state, or is not the conversation's current turn, thinking clears the turn's timer, and the
// third result is false.
func (t turnsTx) thinking(id string) (approvers.Turn, store.Conversation, bool, error) {
	turn, err := t.Turn(id)
	if err != nil {
		return turn, store.Conversation{}, false, err
	}
	conv, err := t.Conversation(turn.Conversation)
	if err != nil {
		return turn, conv, false, err
	}
	if turn.State == approvers.TurnQueued && conv.Turn == id {
		if turn, err = turn.Think(); err != nil {
			return turn, conv, false, err
		}
		if err := t.PutTurn(turn); err != nil {
			return turn, conv, false, err
		}
		turn.Version++
	}
	if turn.State != approvers.TurnThinking || conv.Turn != id {
		return turn, conv, false, t.ClearTimer(store.TimerThink, id)
	}
	return turn, conv, true, nil
}

// read fills in the earlier messages and calls of the conversation.
func (b *Brief) read(t *tx) error {
	after := b.Conversation.Messages - min(b.Conversation.Messages, historyMessages)
	all, err := t.Messages(b.Conversation.ID, after)
	if err != nil {
		return err
	}
	cut := after > 0 && len(all) > 0 && all[0].Seq == after+1 // otherwise, retention has erased the message before
	for _, m := range inTurns(all) {
		if m.State != store.MessageTaken || (cut && m.Turn == all[0].Turn && m.Turn != b.Turn.ID) {
			continue // the message waits, or it belongs to a turn whose first messages were not read
		}
		b.Messages = append(b.Messages, m)
		if _, read := b.Calls[m.Turn]; read || m.Calls == 0 {
			continue
		}
		if b.Calls[m.Turn], err = t.Calls(m.Turn); err != nil {
			return err
		}
	}
	return nil
}

// inTurns orders messages by turn. A message that waited for the end of a turn comes after the answer of this turn.
func inTurns(messages []store.Message) []store.Message {
	var order []string
	byTurn := map[string][]store.Message{}
	for _, m := range messages {
		if _, seen := byTurn[m.Turn]; !seen {
			order = append(order, m.Turn)
		}
		byTurn[m.Turn] = append(byTurn[m.Turn], m)
	}
	out := make([]store.Message, 0, len(messages))
	for _, turn := range order {
		if turn != "" {
			out = append(out, byTurn[turn]...)
		}
	}
	return append(out, byTurn[""]...) // messages that still wait
}

// onStep runs fn if the turn is in the state thinking and at the given step. Otherwise onStep returns ErrNotDue. During
// a pause, onStep returns ErrPaused, and the model's output is lost.
func (w *Turns) onStep(ctx context.Context, what, turn string, step int, fn func(*tx, approvers.Turn, store.Conversation) error) error {
	due := true
	err := w.update(ctx, what, func(t *tx) error {
		if err := ifPaused(t); err != nil {
			return err
		}
		tn, conv, ok, err := t.turns.thinking(turn)
		due = ok && tn.Step == step
		if err != nil || !due {
			return err
		}
		return fn(t, tn, conv)
	})
	if err == nil && !due {
		err = ErrNotDue
	}
	return err
}

// Answer ends a turn with the agent's answer. reasoning is stored with the answer, and may be nil. tokens is the cost of
// the model call. Messages that wait for the end of the turn start the next turn.
func (w *Turns) Answer(ctx context.Context, turn string, step int, text string, reasoning *store.Reasoning, tokens int) error {
	return w.onStep(ctx, "answer", turn, step, func(t *tx, tn approvers.Turn, conv store.Conversation) error {
		if err := t.proposals.spend(tn, tokens); err != nil {
			return err
		}
		tn, err := tn.Answer(t.now)
		if err != nil {
			return err
		}
		conv.Messages++
		m := store.Message{
			Conversation: conv.ID, Seq: conv.Messages, Turn: tn.ID, Step: tn.Step, Role: store.RoleAssistant,
			State: store.MessageTaken, Text: text, At: t.now, Reasoning: reasoning,
		}
		if err := t.PutMessage(m); err != nil {
			return err
		}
		if err := t.outbox.wantDrafted(store.OutboxMessage{Kind: store.OutboxAnswer, Ref: tn.ID, Step: tn.Step, To: store.ToConversation + conv.ID}); err != nil {
			return err
		}
		if IsLong(text) {
			if err := t.outbox.add(store.OutboxMessage{Kind: store.OutboxFile, Ref: tn.ID, Step: tn.Step, To: store.ToConversation + conv.ID}); err != nil {
				return err
			}
		}
		return t.turns.end(tn, conv)
	})
}

// longAnswer is the maximum length, in characters, of an answer that is posted completely in messages. An answer of
// this length takes three messages.
const longAnswer = 24_000

// IsLong reports whether an answer is longer than longAnswer. A message shows only the beginning of a long answer, and
// a file has the whole answer.
func IsLong(answer string) bool { return utf8.RuneCountInString(answer) > longAnswer }

// Stop ends a turn that can't continue. problem is a sentence for people.
func (w *Turns) Stop(ctx context.Context, turn string, step int, problem string, canRetry bool) error {
	return w.onStep(ctx, "stop", turn, step, func(t *tx, tn approvers.Turn, conv store.Conversation) error {
		return t.turns.stop(tn, conv, problem, canRetry)
	})
}

func (t turnsTx) stop(turn approvers.Turn, conv store.Conversation, problem string, canRetry bool) error {
	turn, err := turn.Stop(problem, canRetry, t.now)
	if err != nil {
		return err
	}
	if err := t.outbox.wantDrafted(store.OutboxMessage{Kind: store.OutboxProblem, Ref: turn.ID, To: store.ToConversation + conv.ID}); err != nil {
		return err
	}
	return t.end(turn, conv)
}

// stopStored is like stop, but reads the turn's conversation. A damaged conversation may be lost. Then the turn ends
// without a message, and nobody can retry it.
func (t turnsTx) stopStored(turn approvers.Turn, problem string, canRetry bool) error {
	conv, err := t.Conversation(turn.Conversation)
	if err == nil {
		return t.stop(turn, conv, problem, canRetry)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if turn, err = turn.Stop(problem, false, t.now); err != nil {
		return err
	}
	t.happened(Event{Turn: turn.ID, Over: &turn})
	return errors.Join(t.PutTurn(turn), t.ClearTimer(store.TimerThink, turn.ID))
}

// t.end stores a turn that ended. If messages wait, t.end starts the next turn.
func (t turnsTx) end(turn approvers.Turn, conv store.Conversation) error {
	if err := t.PutTurn(turn); err != nil {
		return err
	}
	t.happened(Event{Turn: turn.ID, Over: &turn})
	if err := t.ClearTimer(store.TimerThink, turn.ID); err != nil {
		return err
	}
	if err := t.outbox.changedTurn(turn.ID, store.OutboxQueued, 0); err != nil {
		return err
	}
	if _, err := t.begin(&conv); err != nil {
		return err
	}
	return t.PutConversation(conv)
}

// Postpone schedules another model call after a temporary failure.
func (w *Turns) Postpone(ctx context.Context, turn string, step int, until time.Time) error {
	return w.onStep(ctx, "postpone", turn, step, func(t *tx, tn approvers.Turn, _ store.Conversation) error {
		tn.Failures++
		if err := t.PutTurn(tn); err != nil {
			return err
		}
		return t.SetTimer(store.Timer{Kind: store.TimerThink, Ref: tn.ID, Due: until.UTC().Truncate(time.Microsecond), PutOff: t.now, Affinity: store.ToConversation + tn.Conversation})
	})
}

// TryAgain resumes a stopped turn at its last step. If a newer turn has taken messages, only the newer turn can be
// resumed.
func (w *Turns) TryAgain(ctx context.Context, c Click) error {
	return w.click(ctx, "try again", c, func(t *tx) (*approvers.Denied, error) {
		turn, denied, err := t.turns.askersTurn(c)
		if denied != nil || err != nil {
			return denied, err
		}
		conv, err := t.Conversation(turn.Conversation)
		if err != nil {
			return nil, err
		}
		messages, err := t.Messages(conv.ID, 0)
		if err != nil {
			return nil, err
		}
		again, err := turn.Again()
		if err != nil || conv.Turn != "" || view.NewestTurn(messages) != turn.ID {
			return &approvers.Denied{Code: approvers.DeniedNothing}, nil
		}
		conv.Turn = turn.ID
		if err := t.PutTurn(again.Speak(c.Who.ID)); err != nil {
			return nil, err
		}
		if err := t.PutConversation(conv); err != nil {
			return nil, err
		}
		if err := t.outbox.changedTurn(turn.ID, store.OutboxProblem, 0); err != nil {
			return nil, err
		}
		return nil, t.turns.think(again)
	})
}

// Draft returns the turn's draft, or creates it. who is the turn's last requester. A draft is an outbox message that
// shows the model's text while the model writes it. A draft has no timer, and no work waits for it. The bot stores the
// draft before it posts the draft in Slack, so it can find the Slack message after a crash. Later, the outcome of the
// step replaces the draft in the same Slack message. The outcome is the answer, the calls, or the sentence of a stopped
// turn. If the turn is not at this step, Draft returns ErrNotDue.
func (w *Turns) Draft(ctx context.Context, turn string, step int) (s store.OutboxMessage, conv store.Conversation, who approvers.PersonID, err error) {
	err = w.onStep(ctx, "draft", turn, step, func(t *tx, tn approvers.Turn, c store.Conversation) error {
		conv = c
		if n := len(tn.Requesters); n > 0 {
			who = tn.Requesters[n-1]
		}
		var there bool
		var err error
		if s, there, err = t.outbox.draftOf(turn); there || err != nil {
			return err
		}
		s = store.OutboxMessage{Kind: store.OutboxDraft, Ref: turn, Step: step + 1, To: store.ToConversation + c.ID}
		if s.Rank, err = t.outbox.rank(s); err != nil {
			return err
		}
		s.ID, s.State, s.Revision, s.ShownRevision, s.CreatedAt = t.newID("s"), store.OutboxShown, 1, 1, t.now
		s.Process, s.After, s.Drafted = t.w.owner, t.w.slack.time(), true
		if err := t.PutOutboxMessage(s); err != nil {
			return err
		}
		s.Version++
		return nil
	})
	return s, conv, who, err
}

// Drafted records where Slack shows a draft, and which text Slack shows. s is the outbox message that Draft returned,
// with Channel and TS set.
func (w *Turns) Drafted(ctx context.Context, s store.OutboxMessage, said string) error {
	w.slack.saw(s.TS)
	return w.update(ctx, "drafted", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil || cur.Round != s.Round || !cur.Drafted || cur.TS != "" && cur.TS != s.TS {
			return err
		}
		posted := cur.TS == ""
		cur.Channel, cur.TS = s.Channel, s.TS
		if cur.DraftText = said; cur.Kind == store.OutboxAnswer || cur.Kind == store.OutboxStep {
			cur.DraftText = "" // the text is now stored only in Slack's message
		}
		if err := t.PutOutboxMessage(cur); err != nil || !posted {
			return err
		}
		return errors.Join(t.channels.postedIn(cur, time.Time{}), t.outbox.goneBefore(s.Channel, s.TS))
	})
}

// draftOf finds the draft of a turn. If the turn has no draft, the second result is false.
func (t outboxTx) draftOf(turn string) (store.OutboxMessage, bool, error) {
	messages, err := t.OutboxMessagesOf(turn)
	for _, s := range messages {
		if s.Kind == store.OutboxDraft && s.State == store.OutboxShown {
			return s, true, err
		}
	}
	return store.OutboxMessage{}, false, err
}

// wantDrafted shows the outcome of a step. If the step has a draft, the outcome replaces the draft.
func (t outboxTx) wantDrafted(s store.OutboxMessage) error {
	draft, there, err := t.draftOf(s.Ref)
	if err != nil {
		return err
	}
	if !there {
		return t.add(s)
	}
	draft.Kind, draft.Step, draft.State = s.Kind, s.Step, store.OutboxWanted
	draft.Revision++
	if draft.Rank, err = t.rank(draft); err != nil {
		return err
	}
	if s.Kind != store.OutboxProblem {
		draft.DraftText = ""
	}
	if err := t.PutOutboxMessage(draft); err != nil {
		return err
	}
	t.refreshed[refresh{ref: draft.ID}] = true
	return t.showNow(draft)
}
