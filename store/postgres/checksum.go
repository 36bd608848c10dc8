package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/approvers"
	"countersign/store"
	"countersign/store/record"
)

// Each row with a record has a checksum over the name of its table, its key and its record. Audit records have a hash
// instead. If a row does not match its checksum, a read of the row returns a *store.DamagedError that names the row.
// All other rows are readable. The checksum detects mistakes and faults. The checksum does not detect an attack,
// because an attacker can compute a new checksum. To detect an attack, the bot compares the records that permit a run
// with the audit history.

// rowSum returns the checksum of a row.
func rowSum(table, key string, js []byte) []byte {
	h := sha256.New()
	h.Write([]byte(table + " " + strconv.Itoa(len(key)) + " " + key))
	h.Write(js)
	return h.Sum(nil)[:8]
}

// numbered returns the key of a row with a number.
func numbered(id string, n int64) string { return strconv.FormatInt(n, 10) + " " + id }

const whyChecksum = "its checksum does not match its content"

// decodeRow checks a row's checksum, and decodes the row's record. If the checksum is wrong or the record can't be
// decoded, the error is a *store.DamagedError about x.
func decodeRow[T any](x store.Damage, key string, sum, js []byte) (rec T, err error) {
	if !bytes.Equal(sum, rowSum(x.Bucket, key, js)) {
		x.Why = whyChecksum
		return rec, &store.DamagedError{Damage: x}
	}
	if err := record.Decode(js, &rec); err != nil {
		x.Why = "it can't be decoded: " + err.Error()
		return rec, &store.DamagedError{Damage: x}
	}
	return rec, nil
}

// note reports and returns the damage if err is about a damaged row. note does not report an audit record that was
// already lost (store.WhyLost). For any other error, note returns nil.
func (r *run) note(err error) *store.DamagedError {
	var row *store.DamagedError
	if !errors.As(err, &row) {
		return nil
	}
	if row.Why != store.WhyLost {
		r.store.damage.Found(row.Damage)
	}
	return row
}

// unlessDamaged reports the damage and returns nil if err is about a damaged row. unlessDamaged returns any other
// error.
func (r *run) unlessDamaged(err error) error {
	if r.note(err) != nil {
		return nil //nolint:nilerr // note has reported the damage
	}
	return err
}

var (
	_ store.Inspected = (*Store)(nil)
	_ store.SetAside  = (*tx)(nil)
)

// Damage lists the known damage that is not resolved yet.
func (s *Store) Damage() []store.Damage { return s.damage.Damage() }

// OnDamage registers fn. The store calls fn with each known damage, and with each damage that is found later. fn must
// not use the store.
func (s *Store) OnDamage(fn func(store.Damage)) { s.damage.OnDamage(fn) }

// sources maps the name of each table of records with ids to the table's description.
var sources = map[string]source{
	conversationTable.in: conversationTable, turnTable.in: turnTable, callTable.in: callTable, requestTable.in: requestTable, executionTable.in: executionTable,
	elicitationTable.in: elicitationTable, inboxTable.in: inboxTable, outboxTable.in: outboxTable, settingTable.in: settingTable, policyTable.in: policyTable,
	grantTable.in: grantTable, absenceTable.in: absenceTable,
}

// source is a table of records of any type.
type source interface {
	// damaged reports whether the record with an id is damaged.
	damaged(r *run, id string) (bool, error)
	// inspect reads the next page of records, and reports the damage that it finds. The result last is the id of the
	// page's last record, or empty if there are no more records. The result lost lists the missing timers of the page.
	inspect(r *run, after string) (last string, lost []lostTimer, err error)
	// lackingOf returns the missing timers of the records with the given ids.
	lackingOf(r *run, ids []string) ([]lostTimer, error)
}

func (t *table[T]) damaged(r *run, id string) (bool, error) {
	k, _ := t.find(r, id)
	return k.damaged != nil, r.failure
}

func (t *table[T]) inspect(r *run, after string) (last string, lost []lostTimer, err error) {
	var page []T
	err = r.query(nil, rows(limited(t.selects+" WHERE id > $1 ORDER BY id", inspectPage), []any{after}, func(found pgx.Rows) error {
		id, rec, _, err := t.scan(found)
		if last = id; err == nil {
			page = append(page, rec)
		}
		return r.unlessDamaged(err)
	}))
	if err == nil {
		lost, err = t.lacking(r, page)
	}
	return last, lost, err
}

// belongs maps a table to the column with the id of a record's owner. For example, the owner of a turn is its
// conversation.
var belongs = map[string]string{
	"conversations": "place", "turns": "conversation", "calls": "turn", "requests": "conversation", "executions": "conversation", "elicitations": "execution",
	"outbox_messages": "ref",
}

// SetAside moves a damaged row, unchanged, to the table set_aside.
func (t *tx) SetAside(table, id string) (of []string, done bool, err error) {
	from, ok := sources[table]
	if !ok {
		return nil, false, fmt.Errorf("store: %q is not a table of records", table)
	}
	if damaged, err := from.damaged(t.run, id); err != nil || !damaged {
		return nil, false, err
	}
	owner := "''"
	if column, ok := belongs[table]; ok {
		owner = column
	}
	names, err := t.run.returning(fmt.Sprintf(`
WITH gone AS (DELETE FROM %[1]s WHERE id = $1 RETURNING *),
     kept AS (INSERT INTO set_aside ("table", id, at, stored) SELECT '%[1]s', id, now(), to_json(gone) FROM gone
              ON CONFLICT ("table", id) DO UPDATE SET at = excluded.at, stored = excluded.stored)
SELECT %[2]s FROM gone`, table, owner), text(id))
	if err != nil {
		return nil, false, err
	}
	if table == requestTable.in {
		if _, err := t.run.exec("DELETE FROM request_people WHERE request = $1", text(id)); err != nil {
			return nil, false, err
		}
	}
	for _, name := range names {
		if name != "" {
			of = append(of, readText(name))
		}
	}
	t.run.aside = append(t.run.aside, store.Damage{Bucket: table, Key: id})
	return of, true, nil
}

// EraseSetAside ignores the parameter now, because each row has the time at which it was moved, by the database's
// clock.
func (t *tx) EraseSetAside(_, before time.Time, limit int) (erased int, done bool, err error) {
	erased, err = t.run.exec("DELETE FROM set_aside WHERE ctid = ANY(ARRAY(SELECT ctid FROM set_aside WHERE at < $1 LIMIT $2))", moment(before), limit)
	return erased, erased < limit, err
}

// An inspection reads inspectPage rows at a time, and then pauses for inspectPause. During the pause, other
// transactions can use the server.
const (
	inspectPage  = 200
	inspectPause = 20 * time.Millisecond
)

// Inspect reads every record in small transactions, including the audit records. Inspect adds the damage that it finds
// to the list of known damage. Inspect also looks for missing timers: see lostTimers.
func (s *Store) Inspect(ctx context.Context) error {
	page := func(fn func(r *run) error) error {
		err := s.View(ctx, func(r store.Reader) error { return fn(r.(reader).run) })
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(inspectPause):
		}
		return err
	}
	for _, from := range sources {
		for after, more := "", true; more; more = after != "" {
			var lost []lostTimer
			err := page(func(r *run) (err error) { after, lost, err = from.inspect(r, after); return err })
			if err == nil && len(lost) > 0 {
				err = s.lostTimers(ctx, from, lost)
			}
			if err != nil {
				return err
			}
		}
	}
	if err := page(func(r *run) error { return r.unlessDamaged(policyContent(r)) }); err != nil {
		return err
	}
	for _, inspect := range []func(r *run, id string, n int64) (string, int64, error){messageTable.inspect, renderingTable.inspect, inspectFiles, inspectAudit, inspectPayloads} {
		id, n := "", int64(-1)
		for more := true; more; more = id != "" {
			if err := page(func(r *run) (err error) { id, n, err = inspect(r, id, n); return err }); err != nil {
				return err
			}
		}
	}
	return nil
}

// policyContent compares the content of the policy in force with the policy's record. If they differ, the error is a
// *store.DamagedError. A damaged or missing record is not an error.
func policyContent(r *run) error {
	p, err := policyTable.read(r, policyID)
	if err != nil || p.Content == "" {
		return r.unlessDamaged(store.IgnoreNotFound(err))
	}
	content, err := reader{r}.PolicyContent()
	if err == nil && !approvers.SumOf(content).Is(p.Content) {
		err = &store.DamagedError{Damage: store.Damage{Bucket: policyTable.in, Key: policyID, ID: policyID, Why: "its content does not match its record"}}
	}
	return err
}

// inspectAudit reads the next page of audit records, and reports the damage that it finds.
func inspectAudit(r *run, chain string, seq int64) (lastChain string, lastSeq int64, err error) {
	err = r.query(nil, rows(limited("SELECT chain, seq, sum, record FROM audit_records WHERE (chain, seq) > ($1, $2) ORDER BY chain, seq", inspectPage), []any{chain, seq}, func(found pgx.Rows) error {
		var err error
		lastChain, lastSeq, _, err = scanRecord(found)
		return r.unlessDamaged(err)
	}))
	return lastChain, lastSeq, err
}

// inspectPayloads reads the next page of audit payloads, and reports the damage that it finds.
func inspectPayloads(r *run, chain string, seq int64) (lastChain string, lastSeq int64, err error) {
	const page = "SELECT p.chain, p.seq, p.payload, r.record FROM audit_payloads p LEFT JOIN audit_records r USING (chain, seq)" +
		" WHERE (p.chain, p.seq) > ($1, $2) ORDER BY p.chain, p.seq"
	err = r.query(nil, rows(limited(page, inspectPage), []any{chain, seq}, func(found pgx.Rows) error {
		var body, record []byte
		if err := found.Scan(&lastChain, &lastSeq, &body, &record); err != nil {
			return err
		}
		_, err := payloadOf(readText(lastChain), uint64(lastSeq), body, record)
		return r.unlessDamaged(err)
	}))
	return lastChain, lastSeq, err
}

// inspectFiles reads the next file, and reports the file's damage. Files may be large, so inspectFiles reads only one
// file.
func inspectFiles(r *run, execution string, index int64) (lastExecution string, last int64, err error) {
	const next = "SELECT execution, index FROM files WHERE (execution, index) > ($1, $2) ORDER BY execution, index LIMIT 1"
	err = r.query(nil, row(next, []any{execution, index}, func(found pgx.Row) error { return found.Scan(&lastExecution, &last) }))
	if err != nil || lastExecution == "" {
		return "", 0, err
	}
	_, err = reader{r}.FileData(readText(lastExecution), int(last))
	return lastExecution, last, r.unlessDamaged(err)
}
