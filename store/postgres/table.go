package postgres

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"countersign/store"
	"countersign/store/record"
)

// table describes how one kind of guarded record is stored. A guarded record is a record with a version: see package
// store. The columns are the id, the version, the record, and columns for lookups, order and due times.
type table[T any] struct {
	in      string
	name    string
	id      func(*T) (id string, version *uint64)
	columns []string
	values  func(*T) []any
	// The function in this field writes rows of other tables that are derived from the record. The parameter old is nil
	// for a new record. If no rows are derived from the record, the field is nil.
	also func(r *run, old, now *T)
	// joined is the name of a table that the queries for lists join. If the queries join no table, joined is empty.
	joined string
	// waits returns the timers that a record must have. If the records need no timers, the field is nil.
	waits func(r *run, rec *T) ([]store.Timer, error)

	selects, inserts, updates string
}

// define completes the description of a table with the table's SQL statements.
func define[T any](t table[T]) *table[T] {
	all := append([]string{"id", "version", "record", "checksum"}, t.columns...)
	params := make([]string, len(all))
	sets := make([]string, 0, len(all))
	for i, c := range all {
		params[i] = fmt.Sprintf("$%d", i+1)
		if i > 0 {
			sets = append(sets, fmt.Sprintf("%q = $%d", c, i+1))
		}
		all[i] = fmt.Sprintf("%q", c)
	}
	t.selects = fmt.Sprintf("SELECT id, checksum, record FROM %s", t.in)
	t.inserts = fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", t.in, strings.Join(all, ", "), strings.Join(params, ", "))
	t.updates = fmt.Sprintf("UPDATE %s SET %s WHERE id = $1", t.in, strings.Join(sets, ", "))
	if t.values == nil {
		t.values = func(*T) []any { return nil }
	}
	return &t
}

func (t *table[T]) key(id string) key { return key{table: t.in, id: id} }

// decode reads a record.
func (t *table[T]) decode(b []byte) (rec T, err error) {
	if err := record.Decode(b, &rec); err != nil {
		return rec, fmt.Errorf("store: a row of %s: %w", t.in, err)
	}
	return rec, nil
}

// learn stores the state of a record in run.known.
func (t *table[T]) learn(r *run, rec *T, js []byte) {
	id, version := t.id(rec)
	r.known[t.key(id)] = known{value: js, version: *version}
}

// scan reads a row. If the row is damaged, the error is a *store.DamagedError with the id from the column.
func (t *table[T]) scan(found pgx.Row) (id string, rec T, js []byte, err error) {
	var sum []byte
	if err := found.Scan(&id, &sum, &js); err != nil {
		return id, rec, js, err
	}
	name := readText(id)
	rec, err = decodeRow[T](store.Damage{Bucket: t.in, Key: name, ID: name}, id, sum, js)
	return id, rec, js, err
}

// see reads a row, and stores the state of its record in run.known. If a write to the row is pending, the result is the
// record of the pending write.
func (t *table[T]) see(r *run, found pgx.Row) (rec T, damaged *store.DamagedError, err error) {
	id, rec, js, err := t.scan(found)
	if k := t.key(readText(id)); r.byKey[k] != nil {
		rec, err = t.decode(r.known[k].value.([]byte))
		return rec, nil, err
	}
	if damaged = r.note(err); damaged != nil {
		r.known[t.key(readText(id))] = known{damaged: damaged}
		return rec, damaged, nil
	}
	if err == nil {
		t.learn(r, &rec, js)
	}
	return rec, nil, err
}

// lookUp returns the query of a record by its id. The query stores the record in run.known.
func (t *table[T]) lookUp(r *run, id string) queryable {
	r.known[t.key(id)] = known{}
	return row(t.selects+" WHERE id = $1", []any{text(id)}, func(found pgx.Row) error {
		_, _, err := t.see(r, found)
		return err
	})
}

// lookUpBy returns a SELECT query. The parameter where is the end of the SELECT. The query stores the records that it
// finds in run.known.
func (t *table[T]) lookUpBy(r *run, where string, args ...any) queryable {
	return rows(t.selects+" "+where, args, func(found pgx.Rows) error {
		_, _, err := t.see(r, found)
		return err
	})
}

// find returns the state of a record from run.known. If the state is not in run.known, the record is read. The result
// is an error if the record is damaged.
func (t *table[T]) find(r *run, id string) (k known, err error) {
	k, ok := r.known[t.key(id)]
	if !ok && r.failure == nil {
		err = r.query(nil, t.lookUp(r, id))
		k = r.known[t.key(id)]
	}
	switch {
	case r.failure != nil:
		return k, r.failure
	case k.damaged != nil:
		return k, k.damaged
	}
	return k, err
}

func (t *table[T]) read(r *run, id string) (rec T, err error) {
	k, err := t.find(r, id)
	if err != nil {
		return rec, err
	}
	if k.value == nil {
		return rec, fmt.Errorf("%s %q: %w", t.name, id, store.ErrNotFound)
	}
	return t.decode(k.value.([]byte))
}

// all reads the records that a SELECT finds. The parameter where is the end of this SELECT. The result is an error if a
// record is damaged.
func (t *table[T]) all(r *run, where string, args ...any) ([]T, error) {
	list, damaged, err := t.list(r, where, args...)
	if err == nil && len(damaged) > 0 {
		err = damaged[0]
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

// readable is like all, but skips damaged records.
func (t *table[T]) readable(r *run, where string, args ...any) ([]T, error) {
	list, _, err := t.list(r, where, args...)
	return list, err
}

// limited adds a LIMIT to a SELECT that reads rows in the order of an index. The limit is part of the statement's text.
// If the limit were a parameter, the server would assume that the statement returns a tenth of all rows. The server
// might then sort all rows. limited rounds large limits up, so that the server prepares only a few different
// statements. Therefore the caller must cut the list to the real limit.
func limited(sql string, limit int) string {
	const step = 1024
	if limit > step {
		limit = (limit + step - 1) / step * step
	}
	return fmt.Sprintf("%s LIMIT %d", sql, limit)
}

// first is like readable, but returns at most limit records. A longer list is read if the list contains damaged
// records.
func (t *table[T]) first(r *run, limit int, where string, args ...any) ([]T, error) {
	for extra := 0; ; {
		list, damaged, err := t.list(r, limited(where, limit+extra), args...)
		switch {
		case err != nil:
			return nil, err
		case len(list) >= limit:
			return list[:limit], nil
		case len(list)+len(damaged) < limit+extra:
			return list, nil
		}
		extra = 2 * len(damaged)
	}
}

// moves reports whether a list of the table's records depends on a pending write. A list depends on a write that
// creates a record, or changes columns by which lists find and order records. A list also depends on each write to
// the joined table. A list does not depend on other writes, because the function see returns the record of a pending
// write.
func (t *table[T]) moves(w *write) bool {
	return w.key.table == t.in && w.moved || w.key.table == t.joined
}

func (t *table[T]) list(r *run, where string, args ...any) (out []T, damaged []error, err error) {
	err = r.query(t.moves, rows(t.selects+" "+where, args, func(found pgx.Rows) error {
		rec, torn, err := t.see(r, found)
		switch {
		case torn != nil:
			damaged = append(damaged, torn)
		case err == nil:
			out = append(out, rec)
		}
		return err
	}))
	if err != nil {
		return nil, nil, err
	}
	return out, damaged, nil
}

// one reads the first record that a SELECT finds. The parameter where is the end of this SELECT.
func (t *table[T]) one(r *run, what, where string, args ...any) (rec T, err error) {
	list, err := t.all(r, where, args...)
	if err != nil {
		return rec, err
	}
	if len(list) == 0 {
		return rec, fmt.Errorf("%s: %w", what, store.ErrNotFound)
	}
	return list[0], nil
}

// write puts a record. The record's version must be the stored version, or zero if no record is stored.
func (t *table[T]) write(r *run, rec T) error {
	id, version := t.id(&rec)
	if err := keyable(t.name+"'s id", id); err != nil {
		return err
	}
	k, there := r.known[t.key(id)]
	switch {
	case there && k.damaged != nil:
		return k.damaged
	case there:
	case *version == 0 && !r.careful: // the id is random, so the record is assumed to be new; if the record exists, the insert fails, and the closure runs again
		r.assumed = true
	default:
		var err error
		if k, err = t.find(r, id); err != nil {
			return err
		}
	}
	if *version != k.version {
		return fmt.Errorf("%s %q: version %d is stored, %d was given: %w", t.name, id, k.version, *version, store.ErrConflict)
	}
	*version++
	js, err := record.Append(nil, &rec)
	if err != nil {
		return fmt.Errorf("%s %q: %w", t.name, id, err)
	}
	var old *T
	if k.value != nil {
		before, err := t.decode(k.value.([]byte))
		if err != nil {
			return err
		}
		old = &before
	}
	if t.also != nil {
		t.also(r, old, &rec)
	}
	values := t.values(&rec)
	moved := old == nil || !slices.Equal(t.values(old), values)
	r.known[t.key(id)] = known{value: js, version: *version}
	args := append([]any{text(id), number(*version), js, rowSum(t.in, text(id), js)}, values...)
	r.put(t.key(id), t.inserts, t.updates, k.value != nil, moved, args...)
	return nil
}
