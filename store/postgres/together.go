package postgres

import (
	"github.com/jackc/pgx/v5"

	"countersign/approvers"
	"countersign/store"
)

// A transaction of a click reads a request, its history, its call, and the messages that show it, each with its timer.
// What is likely to be read next comes in the same round trip and is kept until the closure asks for it.

// lists are lists that the closure has read, or will probably read, as it sees them.
type lists struct {
	outbox map[string][]string                // ids of outbox messages by ref
	timers map[string]bool                    // refs whose timers are all known
	chains map[string][]approvers.AuditRecord // audit chains, without their damaged records
	torn   map[string][]error                 // the damaged records of those chains
	moved  bool                               // an outbox message has got another ref
}

func newLists() lists {
	return lists{outbox: map[string][]string{}, timers: map[string]bool{}, chains: map[string][]approvers.AuditRecord{}, torn: map[string][]error{}}
}

// lookUpOutbox returns reads of the outbox messages with a ref, whose ids are appended to a list, and of the timers of
// each. where is the SQL that finds the ref.
func (r *run) lookUpOutbox(where string, arg any, ids *[]string) queryable {
	return func(b *pgx.Batch) {
		rows(outboxTable.selects+" WHERE ref = "+where+" ORDER BY born", []any{arg}, func(found pgx.Rows) error {
			s, damaged, err := outboxTable.see(r, found)
			if damaged != nil || err != nil {
				return err
			}
			*ids = append(*ids, s.ID)
			return nil
		})(b)
		rows("SELECT "+timerColumns+" FROM outbox_messages o JOIN timers t ON t.ref = o.id WHERE o.ref = "+where, []any{arg}, func(found pgx.Rows) error {
			timer, err := scanTimer(found)
			if k := timerKey(timer.Kind, timer.Ref); r.byKey[k] == nil { // otherwise it was set or cleared
				r.known[k] = known{value: timer}
			}
			return err
		})(b)
	}
}

// lookUpChain returns a read of a chain.
func (r *run) lookUpChain(chain string) queryable {
	r.lists.chains[chain] = []approvers.AuditRecord{}
	r.known[chainKey(chain)] = known{value: approvers.AuditRecord{}}
	delete(r.lists.torn, chain)
	return rows(selectRecords+"ORDER BY seq", []any{text(chain)}, func(found pgx.Rows) error {
		_, _, a, err := scanRecord(found)
		if damaged := r.note(err); damaged != nil {
			r.lists.torn[chain] = append(r.lists.torn[chain], damaged)
			r.known[chainKey(chain)] = known{damaged: damaged}
			return nil
		}
		r.lists.chains[chain] = append(r.lists.chains[chain], a)
		r.known[chainKey(chain)] = known{value: a}
		return err
	})
}

// lookUpRequest reads a request with its history, its call, and the messages that show it or its turn.
func (r *run) lookUpRequest(id string) error {
	var own, shared []string
	err := r.query(func(w *write) bool { return onRows("audit_records", id)(w) || r.onRefs(w) },
		requestTable.lookUp(r, id),
		r.lookUpChain(id),
		r.lookUpOutbox("$1", text(id), &own),
		r.lookUpOutbox("(SELECT turn FROM requests WHERE id = $1)", text(id), &shared),
		callTable.lookUpBy(r, "WHERE id = (SELECT call FROM requests WHERE id = $1)", text(id)),
	)
	if err != nil {
		return err
	}
	if err := r.listOutbox(id, own); err != nil {
		return err
	}
	k := r.known[requestTable.key(id)]
	if k.value == nil { // it is not there, or damaged
		return nil
	}
	q, err := requestTable.decode(k.value.([]byte))
	if err != nil || q.Turn == id {
		return err
	}
	return r.listOutbox(q.Turn, shared)
}

// onRefs is the dependence of lookUpOutbox: see listOutbox.
func (r *run) onRefs(w *write) bool { return w.key.table == outboxTable.in && r.lists.moved }

// listOutbox sets the list of the outbox messages of a ref to those that the server has found, and those that the
// transaction has made, unless the server has made them for the read.
func (r *run) listOutbox(ref string, ids []string) error {
	for _, w := range r.pending {
		if w.key.table != outboxTable.in || !w.fresh || r.lists.moved {
			continue
		}
		s, err := outboxTable.decode(r.known[w.key].value.([]byte))
		if err != nil {
			return err
		}
		if s.Ref == ref {
			ids = append(ids, s.ID)
		}
	}
	for _, id := range ids {
		r.lists.timers[id] = true
	}
	r.lists.outbox[ref] = ids
	return nil
}

// noteOutbox updates the lists of outbox messages after a write.
func noteOutbox(r *run, old, now *store.OutboxMessage) {
	switch {
	case old == nil:
		if list, ok := r.lists.outbox[now.Ref]; ok {
			r.lists.outbox[now.Ref] = append(list, now.ID)
		}
	case old.Ref != now.Ref:
		delete(r.lists.outbox, old.Ref)
		delete(r.lists.outbox, now.Ref)
		r.lists.moved = true
	}
}
