package storetest

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/store"
)

func (m *memory) Audit(chain string) ([]approvers.AuditRecord, error) { return m.audit[chain], nil }

func (m *memory) AuditHead(chain string) (approvers.AuditRecord, error) {
	list := m.audit[chain]
	if len(list) == 0 {
		return approvers.AuditRecord{}, store.ErrNotFound
	}
	return list[len(list)-1], nil
}

func (m *memory) AuditChains(after string, limit int) ([]string, error) {
	chains := slices.Sorted(maps.Keys(m.audit))
	chains = slices.DeleteFunc(chains, func(c string) bool { return c <= after })
	return chains[:min(len(chains), max(limit, 0))], nil
}

func (m *memory) AuditPayload(chain string, seq uint64) (approvers.AuditPayload, error) {
	return find(m.payloads, payloadKey{chain, seq})
}

func (m *memory) AuditRow(chain string, seq uint64) (approvers.AuditRow, error) {
	if seq == 0 || seq > uint64(len(m.audit[chain])) {
		return approvers.AuditRow{}, store.ErrNotFound
	}
	a := m.audit[chain][seq-1]
	x := approvers.AuditRow{Chain: chain, Seq: seq, Sum: sumOf(a), Record: a.Bytes()}
	for _, e := range slices.Backward(m.journal) {
		if e.Chain == chain && e.Seq == seq {
			x.Leaf = e.Leaf
			break
		}
	}
	return x, nil
}

func sumOf(a approvers.AuditRecord) approvers.Sum {
	b, err := hex.DecodeString(a.Hash)
	if err != nil {
		panic(err)
	}
	return approvers.Sum(b)
}

func (m *memory) EachAuditRow(fn func(approvers.AuditRow) error) error {
	for _, chain := range slices.Sorted(maps.Keys(m.audit)) {
		for i := range m.audit[chain] {
			x, _ := m.AuditRow(chain, uint64(i)+1)
			if p, ok := m.payloads[payloadKey{chain, x.Seq}]; ok {
				x.Payload = p.Bytes()
			}
			if err := fn(x); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *memory) Journal(from uint64, limit int) ([]approvers.JournalEntry, error) {
	list := m.journal[min(from, uint64(len(m.journal))):]
	return list[:min(len(list), max(limit, 0))], nil
}

func (m *memory) LastHead() (store.Head, error) {
	if len(m.heads) == 0 {
		return store.Head{}, store.ErrNotFound
	}
	return m.heads[len(m.heads)-1], nil
}

func (m *memory) Heads(after uint64, limit int) ([]store.Head, error) {
	list := m.heads[min(after, uint64(len(m.heads))):]
	return list[:min(len(list), max(limit, 0))], nil
}

func (m *memory) AppendAudit(a approvers.AuditRecord, p *approvers.AuditPayload) error {
	head, _ := m.AuditHead(a.Chain)
	if a.Seq != head.Seq+1 || a.Prev != head.Hash {
		return store.ErrConflict
	}
	m.audit[a.Chain] = append(m.audit[a.Chain], a)
	m.journal = append(m.journal, approvers.JournalEntry{Leaf: uint64(len(m.journal)), Chain: a.Chain, Seq: a.Seq, Sum: sumOf(a)})
	if p != nil {
		m.payloads[payloadKey{p.Chain, p.Seq}] = *p
	}
	return nil
}

func (m *memory) PutHead(h store.Head) error {
	last, _ := m.LastHead()
	if h.Number != last.Number+1 || h.Size <= last.Size {
		return store.ErrConflict
	}
	if h.Size > uint64(len(m.journal)) {
		return fmt.Errorf("a head over more than there is")
	}
	m.heads = append(m.heads, h)
	return nil
}

func (m *memory) ErasePayloads(chain string, only ...uint64) (seqs []uint64, err error) {
	for k := range m.payloads {
		if k.chain == chain && (len(only) == 0 || slices.Contains(only, k.seq)) {
			seqs = append(seqs, k.seq)
			delete(m.payloads, k)
		}
	}
	slices.Sort(seqs)
	return seqs, nil
}

func (m *memory) PruneChain(chain string) (int, error) {
	_, err := m.ErasePayloads(chain)
	n := len(m.audit[chain])
	delete(m.audit, chain)
	return n, err
}

func (m *memory) ConversationsBefore(lastAt time.Time, limit int) ([]store.Conversation, error) {
	return sorted(m.conversations, func(c store.Conversation) bool { return c.LastAt.Before(lastAt) }, func(a, b store.Conversation) int {
		return cmp.Or(a.LastAt.Compare(b.LastAt), cmp.Compare(a.ID, b.ID))
	}, limit), nil
}

func (m *memory) ConversationsSince(lastAt time.Time, limit int) ([]store.Conversation, error) {
	return sorted(m.conversations, func(c store.Conversation) bool { return !c.LastAt.Before(lastAt) }, func(a, b store.Conversation) int {
		return cmp.Or(a.LastAt.Compare(b.LastAt), cmp.Compare(a.ID, b.ID))
	}, limit), nil
}

// EraseConversation erases everything in one call and ignores the limit. The test erasedInParts checks the limit.
func (m *memory) EraseConversation(id string, _ int) (bool, error) {
	c, ok := m.conversations[id]
	if !ok {
		return true, nil
	}
	if c.Turn != "" {
		return false, store.ErrConflict
	}
	m.eraseOutboxMessages(id)
	for turn, t := range m.turns {
		if t.Conversation != id {
			continue
		}
		for call, c := range m.calls {
			if c.Turn == turn {
				m.eraseOutboxMessages(call)
				delete(m.calls, call)
			}
		}
		m.eraseOutboxMessages(turn)
		delete(m.turns, turn)
	}
	for k, r := range m.requests {
		if r.Conversation == id {
			m.eraseOutboxMessages(k)
			delete(m.requests, k)
		}
	}
	for k, e := range m.executions {
		if e.Conversation == id {
			m.eraseAsked(k)
			_, _ = m.EraseFiles(k)
			m.eraseOutboxMessages(k)
			delete(m.executions, k)
		}
	}
	delete(m.messages, id)
	delete(m.conversations, id)
	m.places = slices.DeleteFunc(m.places, func(c string) bool { return c == id })
	return true, nil
}

// EraseTurn is like EraseConversation: it ignores the limit. The test turnErasedInParts checks the limit.
func (m *memory) EraseTurn(turn store.TurnRecords, _ int) (bool, error) {
	stored, ok := m.turns[turn.ID]
	if !ok {
		return true, nil
	}
	if m.conversations[stored.Conversation].Turn == turn.ID {
		return false, store.ErrConflict
	}
	for id, c := range m.calls {
		if c.Turn == turn.ID {
			m.eraseOutboxMessages(id)
			delete(m.calls, id)
		}
	}
	for _, id := range turn.Requests {
		m.eraseOutboxMessages(id)
		delete(m.requests, id)
	}
	for _, id := range turn.Executions {
		m.eraseAsked(id)
		_, _ = m.EraseFiles(id)
		m.eraseOutboxMessages(id)
		delete(m.executions, id)
	}
	for _, seq := range turn.Messages {
		delete(m.messages[stored.Conversation], seq)
	}
	m.eraseOutboxMessages(turn.ID)
	delete(m.turns, turn.ID)
	return true, nil
}

// eraseOutboxMessages deletes the outbox messages whose Ref is ref, and the timers of these messages.
// eraseOutboxMessages also deletes the timers whose Ref is ref.
func (m *memory) eraseOutboxMessages(ref string) {
	m.unset(ref)
	for id, s := range m.outboxMessages {
		if s.Ref == ref {
			_ = m.EraseOutboxMessage(id) // it never fails
		}
	}
}

// unset deletes the timers whose Ref is ref.
func (m *memory) unset(ref string) {
	maps.DeleteFunc(m.timers, func(k timerKey, _ store.Timer) bool { return k.ref == ref })
}

func (m *memory) EraseOutboxMessage(id string) error {
	m.unset(id)
	delete(m.outboxMessages, id)
	delete(m.renderings, id)
	m.born = slices.DeleteFunc(m.born, func(s string) bool { return s == id })
	return nil
}
