package postgres

import (
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/store"
)

const (
	timerColumns = "t.kind, t.ref, t.due, t.lane, t.affinity, t.tries, t.put_off"
	selectTimers = "SELECT " + timerColumns + " FROM timers t "
)

func timerKey(kind store.TimerKind, ref string) key {
	return key{table: "timers", id: string(kind) + "\x00" + ref}
}

// scanTimer reads a timer from its columns.
func scanTimer(found pgx.Row) (t store.Timer, err error) {
	var kind, ref, lane, affinity string
	var tries int64
	var putOff *time.Time
	if err := found.Scan(&kind, &ref, &t.Due, &lane, &affinity, &tries, &putOff); err != nil {
		return t, err
	}
	t.Kind, t.Ref, t.Lane, t.Tries, t.Due = store.TimerKind(readText(kind)), readText(ref), readText(lane), int(tries), t.Due.UTC()
	t.Affinity = readText(affinity)
	if putOff != nil {
		t.PutOff = putOff.UTC()
	}
	return t, nil
}

func (t reader) Timer(kind store.TimerKind, ref string) (timer store.Timer, err error) {
	k := timerKey(kind, ref)
	found, ok := t.run.known[k]
	if !ok && !t.run.lists.timers[ref] {
		err = t.run.query(nil, row(selectTimers+"WHERE kind = $1 AND ref = $2", []any{text(kind), text(ref)}, func(row pgx.Row) error {
			timer, err := scanTimer(row)
			if err == nil {
				found.value = timer
			}
			return err
		}))
		if err != nil {
			return timer, err
		}
		t.run.known[k] = found
	}
	if found.value == nil {
		return timer, fmt.Errorf("timer %s of %q: %w", kind, ref, store.ErrNotFound)
	}
	return found.value.(store.Timer), nil
}

// timers lists the first timers that a SELECT finds. The parameter where is the end of this SELECT. Lists of timers use
// the index timers_due, except lists of Home tabs, which use timers_home. The index timers_due contains an expression
// on kind, so PostgreSQL does not use it for statements about a single timer. These statements use the primary key.
// With timers_due, such a statement would conflict with every transaction that sets a timer of the same kind.
func (t reader) timers(kind store.TimerKind, limit int, where string, args ...any) (out []store.Timer, err error) {
	err = t.run.query(onPrefix("timers", string(kind)), rows(limited(selectTimers+where+" ORDER BY due, ref", limit), args, func(found pgx.Rows) error {
		timer, err := scanTimer(found)
		out = append(out, timer)
		return err
	}))
	if err != nil {
		return nil, err
	}
	return out[:min(limit, len(out))], nil
}

func (t reader) Timers(kind store.TimerKind, limit int) ([]store.Timer, error) {
	if limit <= 0 {
		return nil, nil
	}
	if kind == store.TimerHome { // every decision reads these timers, so they have a separate index: timers_home
		if own := onPrefix("timers", string(kind)); t.run.lists.unwatched && !slices.ContainsFunc(t.run.pending, own) {
			return nil, t.run.failure
		}
		return t.timers(kind, limit, "WHERE kind = 'home'")
	}
	return t.timers(kind, limit, "WHERE kind || '' = $1", text(kind))
}

func (t reader) TimersIn(shares store.Shares, kind store.TimerKind, until time.Time, limit int) ([]store.Timer, error) {
	if limit <= 0 || shares == 0 { // for an empty set of shares, the query would read all timers of the kind
		return nil, nil
	}
	if until.IsZero() {
		return t.timers(kind, limit, "WHERE kind || '' = $1 AND share = ANY($2)", text(kind), shareNumbers(shares))
	}
	return t.timers(kind, limit, "WHERE kind || '' = $1 AND due <= $2 AND share = ANY($3)", text(kind), moment(until), shareNumbers(shares))
}

func (t reader) DueKinds(shares store.Shares, kinds []store.TimerKind, until time.Time) (due []store.TimerKind, err error) {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = text(kind)
	}
	// Without the LIMIT, the server might read all due timers for a join.
	const each = "SELECT k.kind FROM unnest($1::text[]) k(kind) CROSS JOIN LATERAL" +
		" (SELECT FROM timers t WHERE t.kind || '' = k.kind AND t.due <= $2 AND t.share = ANY($3) LIMIT 1) first"
	err = t.run.query(on("timers"), rows(each, []any{names, moment(until), shareNumbers(shares)}, func(found pgx.Rows) error {
		var kind string
		err := found.Scan(&kind)
		due = append(due, store.TimerKind(readText(kind)))
		return err
	}))
	return due, err
}

// shareNumbers lists the shares of a set.
func shareNumbers(shares store.Shares) []int16 {
	list := []int16{}
	for n := range int16(store.ShareCount) {
		if shares.Has(int(n)) {
			list = append(list, n)
		}
	}
	return list
}

func (t *tx) SetTimer(timer store.Timer) error {
	if err := keyable("timer's kind", string(timer.Kind)); err != nil {
		return err
	}
	if err := keyable("timer's ref", timer.Ref); err != nil {
		return err
	}
	timer.Due, timer.Lane, timer.Affinity = moment(timer.Due), readText(text(timer.Lane)), readText(text(timer.Affinity))
	if !timer.PutOff.IsZero() {
		timer.PutOff = moment(timer.PutOff)
	}
	k := timerKey(timer.Kind, timer.Ref)
	t.run.known[k] = known{value: timer}
	t.run.always(k, "INSERT INTO timers (kind, ref, due, lane, affinity, tries, put_off) VALUES ($1, $2, $3, $4, $5, $6, $7)"+
		" ON CONFLICT (kind, ref) DO UPDATE SET due = excluded.due, lane = excluded.lane, affinity = excluded.affinity, tries = excluded.tries, put_off = excluded.put_off",
		text(timer.Kind), text(timer.Ref), timer.Due, text(timer.Lane), text(timer.Affinity), int64(timer.Tries), orNull(timer.PutOff))
	return nil
}

func (t *tx) ClearTimer(kind store.TimerKind, ref string) error {
	k := timerKey(kind, ref)
	if found, ok := t.run.known[k]; ok && found.value == nil || !ok && t.run.lists.timers[ref] {
		return t.run.failure
	}
	t.run.known[k] = known{}
	t.run.always(k, "DELETE FROM timers WHERE kind = $1 AND ref = $2", text(kind), text(ref))
	return nil
}
