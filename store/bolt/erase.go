package bolt

import (
	"errors"

	"countersign/store"
)

// EraseConversation removes the conversation's own row last, so an interrupted erasure can be repeated.
func (t *tx) EraseConversation(id string, limit int) (done bool, err error) {
	if err := store.ErasableConversation(t, id); err != nil {
		return errors.Is(err, store.ErrNotFound), store.IgnoreNotFound(err)
	}
	e := &eraser{rows: t.rows, kinds: t.timerKinds(), left: limit}
	of := text(nil, id)
	for _, part := range []func() error{
		func() error { return e.executions(e.some(executionConversation, of)) },
		func() error { return eraseIndexed(e, requestTable, requestConversation, of) },
		func() error { return e.turns(of) },
		func() error { return e.scanned(messages, of) },
		func() error { return e.outboxMessages(id) },
		func() error { return e.timers(id) },
	} {
		if err := part(); err != nil || e.left <= 0 {
			return false, err
		}
	}
	return true, conversationTable.erase(t.rows, id)
}

// EraseTurn removes the first message and the turn's own row last, so an interrupted erasure can be repeated.
func (t *tx) EraseTurn(turn store.TurnRecords, limit int) (done bool, err error) {
	stored, err := store.ErasableTurn(t, turn.ID)
	if err != nil {
		return errors.Is(err, store.ErrNotFound), store.IgnoreNotFound(err)
	}
	e := &eraser{rows: t.rows, kinds: t.timerKinds(), left: limit}
	first, others := turn.FirstMessage()
	for _, part := range []func() error{
		func() error { return e.executions(turn.Executions) },
		func() error { return eraseListed(e, requestTable, turn.Requests) },
		func() error { return eraseIndexed(e, callTable, callTurn, text(nil, turn.ID)) },
		func() error { return e.outboxMessages(turn.ID) },
		func() error { return e.messages(stored.Conversation, others) },
	} {
		if err := part(); err != nil || e.left <= 0 {
			return false, err
		}
	}
	return true, errors.Join(e.messages(stored.Conversation, first), e.timers(turn.ID), turnTable.erase(t.rows, turn.ID))
}

// eraser deletes at most a given number of records.
type eraser struct {
	rows  *rows
	kinds []store.TimerKind
	left  int
}

// timerKinds returns the kinds of all stored timers.
func (t reader) timerKinds() (kinds []store.TimerKind) {
	var from []byte
	for {
		var key []byte
		for key = range t.rows.scan(timerRef, nil, from) {
			break
		}
		kind, _, ok := cutText(key)
		if !ok {
			return kinds
		}
		kinds = append(kinds, store.TimerKind(kind))
		from = beyond(text(nil, kind))
	}
}

// some returns the ids that an index lists under a prefix. The result has at most e.left ids.
func (e *eraser) some(index bucket, prefix []byte) (ids []string) {
	for _, id := range e.rows.scan(index, prefix, nil) {
		if len(ids) >= e.left {
			break
		}
		ids = append(ids, string(id))
	}
	return ids
}

// messages deletes messages of a conversation, also damaged ones.
func (e *eraser) messages(conversation string, seqs []uint64) error {
	var keys [][]byte
	for _, seq := range seqs {
		key := number(text(nil, conversation), seq)
		if _, there := e.rows.lookUp(messages, key); there && len(keys) < e.left {
			keys = append(keys, key)
		}
	}
	e.left -= len(keys)
	return e.rows.discardAll(messages, keys)
}

// scanned deletes the rows whose keys start with a prefix, also damaged rows.
func (e *eraser) scanned(in bucket, prefix []byte) error {
	keys := e.rows.keys(in, prefix, e.left)
	e.left -= len(keys)
	return e.rows.discardAll(in, keys)
}

// eraseIndexed deletes the records that an index lists under a prefix. Before a record, eraseIndexed deletes the outbox
// messages and the timers that refer to the record.
func eraseIndexed[T any](e *eraser, table *table[T], index bucket, prefix []byte) error {
	return eraseListed(e, table, e.some(index, prefix))
}

// eraseListed is like eraseIndexed, for the records with the given ids. A record may be missing.
func eraseListed[T any](e *eraser, table *table[T], ids []string) error {
	for _, id := range ids {
		if err := e.outboxMessages(id); err != nil || e.left <= 0 {
			return err
		}
		if err := e.timers(id); err != nil {
			return err
		}
		if found, err := table.find(e.rows, id); err == nil && found.row == nil {
			continue
		}
		if err := table.erase(e.rows, id); err != nil {
			return err
		}
		e.left--
	}
	return nil
}

// executions deletes executions, each after its elicitations and files.
func (e *eraser) executions(ids []string) error {
	for _, id := range ids {
		of := text(nil, id)
		if err := eraseIndexed(e, elicitationTable, elicitationExecution, of); err != nil || e.left <= 0 {
			return err
		}
		if err := e.files(of); err != nil || e.left <= 0 {
			return err
		}
	}
	return eraseListed(e, executionTable, ids)
}

// files deletes files, each with its bytes.
func (e *eraser) files(execution []byte) error {
	keys := e.rows.keys(files, execution, e.left)
	e.left -= len(keys)
	return errors.Join(e.rows.discardAll(fileData, keys), e.rows.discardAll(files, keys))
}

// turns deletes turns, each after its calls.
func (e *eraser) turns(conversation []byte) error {
	ids := e.some(turnConversation, conversation)
	for _, id := range ids {
		if err := eraseIndexed(e, callTable, callTurn, text(nil, id)); err != nil || e.left <= 0 {
			return err
		}
	}
	return eraseIndexed(e, turnTable, turnConversation, conversation)
}

// outboxMessages deletes the outbox messages with a ref, each after its renderings.
func (e *eraser) outboxMessages(ref string) error {
	ids := e.some(outboxRef, text(nil, ref))
	for _, id := range ids {
		if err := e.outboxMessage(id); err != nil || e.left <= 0 {
			return err
		}
	}
	return nil
}

// outboxMessage deletes an outbox message after its renderings and timers.
func (e *eraser) outboxMessage(id string) error {
	if err := e.scanned(renderings, text(nil, id)); err != nil || e.left <= 0 {
		return err
	}
	if err := e.timers(id); err != nil {
		return err
	}
	if err := outboxTable.erase(e.rows, id); err != nil {
		return err
	}
	e.left--
	return nil
}

// timers clears the timers of all kinds that have the given Ref.
func (e *eraser) timers(ref string) error {
	for _, kind := range e.kinds {
		if err := (&tx{reader{e.rows}}).ClearTimer(kind, ref); err != nil {
			return err
		}
	}
	return nil
}
