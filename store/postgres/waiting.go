package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"countersign/approvers"
	"countersign/store"
)

// Somebody may delete rows of the table timers, for example with a selective restore. The records of these timers would
// then wait for ever. The functions in this file return the timers that a record must have.

func turnWaits(_ *run, t *approvers.Turn) ([]store.Timer, error) {
	if t.State != approvers.TurnQueued && t.State != approvers.TurnThinking {
		return nil, nil
	}
	return []store.Timer{{Kind: store.TimerThink, Ref: t.ID, Affinity: store.ToConversation + t.Conversation}}, nil
}

func requestWaits(_ *run, q *approvers.Request) (list []store.Timer, err error) {
	if !q.State.Open() {
		return nil, nil
	}
	list = append(list, store.Timer{Kind: store.TimerExpire, Ref: q.ID}) // if it is early, its handler sets all timers of the request
	if q.State == approvers.Approved && !q.Facts.Caller.Begins() {
		list = append(list, store.Timer{Kind: store.TimerRun, Ref: q.Execution, Affinity: store.ToConversation + q.Conversation})
	}
	if q.State == approvers.Pending && !q.EscalateAt.IsZero() {
		list = append(list, store.Timer{Kind: store.TimerEscalate, Ref: q.ID, Due: q.EscalateAt})
	}
	if q.State == approvers.Pending && !q.RemindNext().IsZero() {
		list = append(list, store.Timer{Kind: store.TimerRemind, Ref: q.ID, Due: q.RemindNext()})
	}
	return list, nil
}

func callWaits(r *run, c *store.Call) ([]store.Timer, error) {
	if c.Outcome != "" {
		return nil, nil
	}
	if c.ModelQuestion != nil {
		return []store.Timer{{Kind: store.TimerModelQuestion, Ref: c.ID}}, nil
	}
	e, err := executionTable.read(r, c.Execution)
	var damaged *store.DamagedError
	switch {
	case errors.Is(err, store.ErrNotFound), errors.As(err, &damaged):
		return nil, nil
	case err != nil:
		return nil, err
	case e.State == approvers.ExecutionUnknown, e.State == approvers.ExecutionExecuting, e.State == approvers.ExecutionNone && e.Request == "":
		return []store.Timer{store.LostTimer(e)}, nil
	}
	return nil, nil // the run has ended, or the request waits
}

func grantWaits(_ *run, g *approvers.Grant) ([]store.Timer, error) {
	if !g.State.Open() {
		return nil, nil
	}
	return []store.Timer{{Kind: store.TimerGrant, Ref: g.ID}}, nil
}

func inboxWaits(_ *run, i *store.Inbox) ([]store.Timer, error) {
	if !i.HandledAt.IsZero() {
		return nil, nil
	}
	return []store.Timer{{Kind: store.TimerInbox, Ref: i.ID, Due: i.ReceivedAt}}, nil
}

func outboxWaits(_ *run, m *store.OutboxMessage) ([]store.Timer, error) {
	if m.State != store.OutboxWanted {
		return nil, nil
	}
	return []store.Timer{{Kind: m.Rank.Timer(), Ref: m.ID, Lane: m.To}}, nil
}

// lostTimer is a timer that the record with the id must have, and that is missing.
type lostTimer struct {
	id    string
	timer store.Timer
}

// lacking returns the timers that the given records lack. One query looks for all of them.
func (t *table[T]) lacking(r *run, records []T) (lost []lostTimer, err error) {
	if t.waits == nil {
		return nil, nil
	}
	var wanted []lostTimer
	var kinds, refs []string
	for _, rec := range records {
		timers, err := t.waits(r, &rec)
		if err != nil {
			return nil, err
		}
		id, _ := t.id(&rec)
		for _, timer := range timers {
			wanted = append(wanted, lostTimer{id, timer})
			kinds, refs = append(kinds, text(timer.Kind)), append(refs, text(timer.Ref))
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	const missing = `
SELECT w.n FROM unnest($1::text[], $2::text[]) WITH ORDINALITY w (kind, ref, n)
WHERE NOT EXISTS (SELECT FROM timers t WHERE t.ref = w.ref AND t.kind = w.kind) ORDER BY w.n`
	err = r.query(on("timers"), rows(missing, []any{kinds, refs}, func(found pgx.Rows) error {
		var n int
		err := found.Scan(&n)
		if err == nil {
			lost = append(lost, wanted[n-1])
		}
		return err
	}))
	return lost, err
}

func (t *table[T]) lackingOf(r *run, ids []string) ([]lostTimer, error) {
	records, err := t.readable(r, "WHERE id = ANY($1) ORDER BY id", ids)
	if err != nil {
		return nil, err
	}
	return t.lacking(r, records)
}

// lostTimers handles the missing timers that an inspection has found. If the store belongs to a replica, lostTimers
// sets them again. The timers that have no time in the record are due at once, and their handlers do what is
// necessary. A store without a replica only reports the missing timers.
func (s *Store) lostTimers(ctx context.Context, from source, lost []lostTimer) error {
	damage := func(t store.Timer, why string, mended bool) {
		key := fmt.Sprintf("%s %s", t.Kind, t.Ref)
		s.damage.Over("timers", key)
		s.damage.Found(store.Damage{Bucket: "timers", Key: key, Why: why, Mended: mended})
	}
	replica := s.replica.Load()
	if replica == nil {
		for _, x := range lost {
			damage(x.timer, "it is missing. serve sets it again within minutes of its start", false)
		}
		return nil
	}
	var ids []string
	for _, x := range lost {
		ids = append(ids, text(x.id))
	}
	ids = slices.Compact(ids)
	err := s.Update(ctx, func(x store.Tx) (err error) {
		t := x.(*tx)
		if lost, err = from.lackingOf(t.run, ids); err != nil { // another transaction may have changed the records
			return err
		}
		for _, x := range lost {
			if x.timer.Due.IsZero() {
				x.timer.Due = replica.Now()
			}
			if err := t.SetTimer(x.timer); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, x := range lost {
		damage(x.timer, "it was missing, and was set again", true)
	}
	return nil
}
