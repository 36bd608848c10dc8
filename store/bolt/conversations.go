package bolt

import (
	"bytes"
	"fmt"
	"time"

	"countersign/approvers"
	"countersign/store"
)

var conversationTable = &table[store.Conversation]{
	in: conversations, name: "conversation",
	id:      func(c *store.Conversation) (string, *uint64) { return c.ID, &c.Version },
	indexes: []bucket{conversationPlace, conversationLast},
	closed:  func(c *store.Conversation) bool { return c.Turn == "" },
	index: func(c *store.Conversation, birth uint64) []row {
		return []row{{conversationPlace, number(text(nil, c.Place), birth)}, {conversationLast, text(moment(nil, c.LastAt), c.ID)}}
	},
}

var turnTable = &table[approvers.Turn]{
	in: turns, name: "turn",
	id:      func(t *approvers.Turn) (string, *uint64) { return t.ID, &t.Version },
	indexes: []bucket{turnConversation},
	closed: func(t *approvers.Turn) bool {
		return t.State == approvers.TurnAnswered || t.State == approvers.TurnStopped
	},
	index: func(t *approvers.Turn, _ uint64) []row {
		return []row{{turnConversation, text(text(nil, t.Conversation), t.ID)}}
	},
}

var callTable = &table[store.Call]{
	in: calls, name: "call",
	id:      func(c *store.Call) (string, *uint64) { return c.ID, &c.Version },
	indexes: []bucket{callTurn},
	closed:  func(c *store.Call) bool { return c.Outcome != "" },
	index: func(c *store.Call, birth uint64) []row {
		return []row{{callTurn, number(signed(signed(text(nil, c.Turn), int64(c.Step)), int64(c.Index)), birth)}}
	},
}

func (t reader) Conversation(id string) (store.Conversation, error) {
	return conversationTable.read(t.rows, id)
}

func (t reader) ConversationAt(place string) (store.Conversation, error) {
	_, id := t.rows.last(conversationPlace, text(nil, place))
	if id == nil {
		return store.Conversation{}, fmt.Errorf("conversation at %q: %w", place, store.ErrNotFound)
	}
	return conversationTable.read(t.rows, string(id))
}

func (t reader) ConversationsBefore(lastAt time.Time, limit int) ([]store.Conversation, error) {
	bound := moment(nil, lastAt)
	return conversationTable.readable(t.rows, func(yield func(k, v []byte) bool) {
		for k, id := range t.rows.sound(conversationLast, nil, nil) {
			if bytes.Compare(k, bound) >= 0 || !yield(k, id) {
				return
			}
		}
	}, limit)
}

func (t reader) ConversationsSince(lastAt time.Time, limit int) ([]store.Conversation, error) {
	return conversationTable.readable(t.rows, func(yield func(k, v []byte) bool) {
		for k, id := range t.rows.sound(conversationLast, nil, moment(nil, lastAt)) {
			if !yield(k, id) {
				return
			}
		}
	}, limit)
}

func (t *tx) PutConversation(c store.Conversation) error { return conversationTable.write(t.rows, c) }

func (t reader) Messages(conversation string, after uint64) ([]store.Message, error) {
	if after+1 == 0 {
		return nil, nil
	}
	prefix := text(nil, conversation)
	return list[store.Message](t.rows.scan(messages, prefix, number(prefix[:len(prefix):len(prefix)], after+1)))
}

func (t *tx) PutMessage(m store.Message) error {
	if err := keyable("message's conversation", m.Conversation); err != nil {
		return err
	}
	if m.Seq == 0 {
		return fmt.Errorf("store: a message of conversation %q has no seq: a seq is at least 1", m.Conversation)
	}
	return put(t.rows, messages, number(text(nil, m.Conversation), m.Seq), &m)
}

func (t reader) Turn(id string) (approvers.Turn, error) { return turnTable.read(t.rows, id) }

func (t *tx) PutTurn(turn approvers.Turn) error { return turnTable.write(t.rows, turn) }

func (t reader) Call(id string) (store.Call, error) { return callTable.read(t.rows, id) }

func (t reader) Calls(turn string) ([]store.Call, error) {
	return callTable.all(t.rows, t.rows.scan(callTurn, text(nil, turn), nil), noLimit)
}

func (t *tx) PutCall(c store.Call) error { return callTable.write(t.rows, c) }
