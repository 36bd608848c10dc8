package postgres

import (
	"slices"

	"github.com/jackc/pgx/v5"

	"countersign/approvers"
	"countersign/store"
)

// The transaction of a click reads a request, and the request's audit chain and call. It also reads the outbox messages
// that show the request, with the timers of these messages. When the closure reads the request, the store reads all
// these records in the same round trip. The store keeps the records until the closure reads them.
//
// A View that first reads an outbox message draws the message, or handles a click on it. With the message, the store
// reads the records that the message probably shows.

// lists holds lists of records that the closure has read, or will probably read. The lists include the closure's own
// writes.
type lists struct {
	outbox    map[string][]string                // ids of outbox messages by ref
	timers    map[string]bool                    // the refs for which run.known has all timers
	unwatched bool                               // no person has a Home tab open
	chains    map[string][]approvers.AuditRecord // audit chains, without their damaged records
	torn      map[string][]error                 // by chain: the damaged records of the chains in the field chains
	moved     bool                               // the closure has changed the ref of an outbox message
}

func newLists() lists {
	return lists{outbox: map[string][]string{}, timers: map[string]bool{}, chains: map[string][]approvers.AuditRecord{}, torn: map[string][]error{}}
}

// lookUpOutbox returns the queries of the outbox messages of some refs. The queries also read the timers of these
// messages, and the timers whose Ref is id. The parameter refs is the SQL of an array of refs. This SQL has one
// parameter of its own: id. The queries append the messages to found: see listOutbox.
func (r *run) lookUpOutbox(refs, id string, found *[]store.OutboxMessage) queryable {
	return func(b *pgx.Batch) {
		rows(outboxTable.selects+" WHERE ref = ANY("+refs+") ORDER BY born", []any{text(id)}, func(row pgx.Rows) error {
			s, damaged, err := outboxTable.see(r, row)
			if damaged == nil && err == nil {
				*found = append(*found, s)
			}
			return err
		})(b)
		rows(selectTimers+"WHERE ref = ANY(ARRAY(SELECT id FROM outbox_messages WHERE ref = ANY("+refs+")) || ARRAY[$1])", []any{text(id)}, func(row pgx.Rows) error {
			timer, err := scanTimer(row)
			if k := timerKey(timer.Kind, timer.Ref); r.byKey[k] == nil { // if a write to the timer is pending, the closure has set or cleared the timer
				r.known[k] = known{value: timer}
			}
			return err
		})(b)
	}
}

// lookUpChain returns the query of an audit chain. The query stores the chain in run.lists.
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

// lookUpRequest reads a request with its timers, its audit chain and its call. lookUpRequest also reads the outbox
// messages that show the request or its turn. lookUpRequest also reads whether any person has a Home tab open.
func (r *run) lookUpRequest(id string) error {
	var messages []store.OutboxMessage
	watched := false
	err := r.query(func(w *write) bool { return onRows("audit_records", id)(w) || r.onRefs(w) },
		requestTable.lookUp(r, id),
		r.lookUpChain(id),
		r.lookUpOutbox("ARRAY[$1, (SELECT turn FROM requests WHERE id = $1)]", id, &messages),
		callTable.lookUpBy(r, "WHERE id = (SELECT call FROM requests WHERE id = $1)", text(id)),
		row("SELECT true FROM timers WHERE kind = 'home' LIMIT 1", nil, func(found pgx.Row) error { return found.Scan(&watched) }),
	)
	if err != nil {
		return err
	}
	r.lists.unwatched = !watched
	refs := []string{id}
	if k := r.known[requestTable.key(id)]; k.value != nil { // if the value is nil, the request does not exist or is damaged
		q, err := requestTable.decode(k.value.([]byte))
		if err != nil {
			return err
		}
		if q.Turn != id {
			refs = append(refs, q.Turn)
		}
	}
	return r.listOutbox(messages, id, refs...)
}

// lookUpExecution reads an execution with its messages and timers, and the setting that says whether everything is
// paused. After that, lookUpExecution reads the request of the execution.
func (r *run) lookUpExecution(id string) error {
	var messages []store.OutboxMessage
	reads := []queryable{executionTable.lookUp(r, id), r.lookUpOutbox("ARRAY[$1]", id, &messages)}
	if _, ok := r.known[settingTable.key(store.SettingPause)]; !ok {
		reads = append(reads, settingTable.lookUp(r, store.SettingPause))
	}
	if err := r.query(r.onRefs, reads...); err != nil {
		return err
	}
	if err := r.listOutbox(messages, id, id); err != nil {
		return err
	}
	k := r.known[executionTable.key(id)]
	if k.value == nil { // the execution does not exist or is damaged
		return nil
	}
	e, err := executionTable.decode(k.value.([]byte))
	if _, ok := r.known[requestTable.key(e.Request)]; err != nil || ok || e.Request == "" {
		return err
	}
	return r.lookUpRequest(e.Request)
}

// lookUpMessage reads an outbox message, and the setting that says whether everything is paused. If the message shows a
// request, lookUpMessage also reads the request with its call, turn and conversation.
func (r *run) lookUpMessage(id string) error {
	const ref = "(SELECT ref FROM outbox_messages WHERE id = $1)"
	of := func(column string) string {
		return "WHERE id = (SELECT " + column + " FROM requests WHERE id = " + ref + ")"
	}
	return r.query(nil,
		outboxTable.lookUp(r, id),
		settingTable.lookUp(r, store.SettingPause),
		requestTable.lookUpBy(r, "WHERE id = "+ref, text(id)),
		callTable.lookUpBy(r, of("call"), text(id)),
		turnTable.lookUpBy(r, of("turn"), text(id)),
		conversationTable.lookUpBy(r, of("conversation"), text(id)),
	)
}

// onRefs reports whether lookUpOutbox depends on a pending write. lookUpOutbox depends on all writes to outbox
// messages if the closure has changed the ref of an outbox message. Otherwise, lookUpOutbox does not depend on writes,
// because listOutbox adds the new messages.
func (r *run) onRefs(w *write) bool { return w.key.table == outboxTable.in && r.lists.moved }

// listOutbox stores lists of outbox messages that lookUpOutbox has read. The parameter refs lists the refs of these
// messages. A list consists of the messages that the server found, and the new messages that pending writes create. If
// the pending writes were made before the read (see onRefs), the server has already found the new messages.
func (r *run) listOutbox(found []store.OutboxMessage, id string, refs ...string) error {
	r.lists.timers[id] = true
	for _, w := range r.pending {
		if w.key.table != outboxTable.in || !w.fresh || r.lists.moved {
			continue
		}
		s, err := outboxTable.decode(r.known[w.key].value.([]byte))
		if err != nil {
			return err
		}
		found = append(found, s)
	}
	for _, ref := range refs {
		r.lists.outbox[ref] = []string{}
	}
	for _, s := range found {
		if slices.Contains(refs, s.Ref) {
			r.lists.outbox[s.Ref] = append(r.lists.outbox[s.Ref], s.ID)
			r.lists.timers[s.ID] = true
		}
	}
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
