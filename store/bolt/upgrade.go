package bolt

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/store"
	"countersign/store/record"
)

// upgradingKey is the key in the root bucket that holds the old version during an upgrade. runsBucket is a bucket that
// only version 1 has.
var (
	upgradingKey = []byte("upgrading")
	runsBucket   = []byte("runs")
)

// checksumsKey is a key in the root bucket while an upgrade adds checksums. The value of checksumsKey is the position
// of the next row without a checksum: the number of the bucket, and the row's key.
var checksumsKey = []byte("checksums")

// bucketsOf returns the names of the buckets of a version.
func bucketsOf(version int) (names []string) {
	first := bucketEnd // the first bucket that does not exist in the version
	switch version {
	case 1:
		first = counters
		names = append(names, string(runsBucket))
	case 2:
		first = conversationLast
	case 3:
		first = requestPerson
	case 4:
		first = elicitations
	case 5:
		first = setAside
	}
	for b := range allBuckets {
		if b < first {
			names = append(names, bucketNames[b])
		}
	}
	return names
}

// upgradeMargin limits the bytes of rows that one transaction of an upgrade rewrites. Only the last row of a
// transaction may exceed the limit. bbolt keeps the changes of a transaction in memory.
const upgradeMargin = 8 << 20

// upgrade converts an older store to the current layout:
//
//   - From version 1, runs become counters, and each rendering gets the id of the request that it shows.
//   - From versions 1 and 2, records get rows in the new indexes. Audit records and payloads are stored as the bytes
//     that are hashed. The journal gets an entry for each audit record, in the order of the records' keys.
//   - From versions 1 to 3, requests get rows in the index by person.
//   - Version 4 lacks only buckets.
//   - From versions 1 to 5, every row gets its checksum, as the last part.
//   - From versions 6 to 9, the upgrade rewrites no rows.
//
// A small store is upgraded in one transaction. For a larger store, the first transaction raises the version, so no
// older program opens a partly upgraded store. The first transaction also writes upgradingKey, which stays until the
// last transaction. After a crash, the upgrade starts from the beginning. The repeated conversion does not change rows
// that are already converted. Only the addition of checksums continues where it stopped, at the position in
// checksumsKey, because a row must not get two checksums.
type upgrade struct {
	freeBytes int    // how many bytes one transaction may rewrite
	phase     int    // the index of the current phase
	from      []byte // where the next transaction continues in the current phase; nil: at the start
}

// phases are the parts of an upgrade. A phase that is repeated after its completion changes nothing.
var phases = []func(u *upgrade, r *rows, room *int) (done bool, err error){
	(*upgrade).runs,
	(*upgrade).renderings,
	indexed(conversationTable),
	indexed(turnTable),
	indexed(requestTable),
	indexed(executionTable),
	(*upgrade).audit,
	(*upgrade).payloads,
}

// upgraded upgrades a store if necessary.
func upgraded(db *bbolt.DB) error {
	done := false
	err := db.View(func(tx *bbolt.Tx) error {
		root := tx.Bucket(rootBucket)
		done = string(root.Get(schemaKey)) == strconv.Itoa(schema) && root.Get(upgradingKey) == nil
		return nil
	})
	u := upgrade{freeBytes: upgradeMargin}
	for err == nil && !done {
		err = db.Update(func(tx *bbolt.Tx) (err error) {
			done, err = u.step(tx)
			return err
		})
	}
	return err
}

// legible returns an error if a store can't be read without an upgrade.
func legible(db *bbolt.DB) error {
	return db.View(func(tx *bbolt.Tx) error {
		root := tx.Bucket(rootBucket)
		version, err := strconv.Atoi(string(root.Get(schemaKey)))
		if err == nil && (version < checksummed || root.Get(upgradingKey) != nil) {
			return fmt.Errorf("store: %s: %w. Start the bot, which upgrades it", db.Path(), errOlder)
		}
		return err
	})
}

var errOlder = errors.New("an older version of the program wrote the store, and it can't be read before its upgrade")

// step runs one transaction of an upgrade.
func (u *upgrade) step(tx *bbolt.Tx) (done bool, err error) {
	root := tx.Bucket(rootBucket)
	from, err := strconv.Atoi(string(root.Get(schemaKey)))
	switch {
	case err != nil:
		return false, err
	case from >= checksummed && root.Get(upgradingKey) == nil:
		return true, putSchema(root)
	case from != schema:
		if err := begin(tx, root); err != nil {
			return false, err
		}
	}
	r := &rows{tx: tx, plain: true}
	if done, err = u.work(r, root); err != nil {
		return false, err
	}
	return done, r.sweep()
}

// work does as much of the upgrade as fits into one transaction. The result done reports whether the upgrade is
// complete.
func (u *upgrade) work(r *rows, root *bbolt.Bucket) (done bool, err error) {
	room := u.freeBytes
	next := bytes.Clone(root.Get(checksumsKey))
	for ; next == nil && u.phase < len(phases); u.phase++ {
		if done, err := phases[u.phase](u, r, &room); err != nil || !done {
			return false, err
		}
		u.from = nil
	}
	if next == nil {
		next = []byte{1}
	}
	if next, err = checksums(r, next, &room); err != nil {
		return false, err
	}
	if next != nil {
		return false, root.Put(checksumsKey, next)
	}
	return true, errors.Join(root.Delete(checksumsKey), root.Delete(upgradingKey), putSchema(root))
}

// checksums adds checksums to rows. It begins at the position in the parameter next, which has the form of the value of
// checksumsKey. checksums returns the position where the next transaction continues. When every row has a checksum, the
// returned position is nil.
func checksums(r *rows, next []byte, room *int) ([]byte, error) {
	for b := bucket(next[0]); b < bucketEnd; b++ {
		if bucketNames[b] == "" {
			continue
		}
		var from []byte
		if byte(b) == next[0] {
			from = next[1:]
		}
		var keys, values [][]byte
		rest := []byte(nil)
		for k, v := range r.scan(b, nil, from) {
			if *room <= 0 {
				rest = append([]byte{byte(b)}, k...)
				break
			}
			keys, values = append(keys, bytes.Clone(k)), append(values, withChecksum(b, k, v))
			*room -= len(k) + len(v) + checksumSize
		}
		for i, k := range keys {
			if err := r.bucket(b).Put(k, values[i]); err != nil {
				return nil, fmt.Errorf("write to %s: %w", b, err)
			}
		}
		if rest != nil {
			return rest, nil
		}
	}
	return nil, nil
}

// begin raises the version and creates the new buckets.
func begin(tx *bbolt.Tx, root *bbolt.Bucket) error {
	for b := range allBuckets {
		if _, err := tx.CreateBucketIfNotExists([]byte(bucketNames[b])); err != nil {
			return fmt.Errorf("create the bucket %s: %w", b, err)
		}
	}
	if root.Get(upgradingKey) == nil { // if the key exists, an older program has begun the upgrade
		if err := root.Put(upgradingKey, bytes.Clone(root.Get(schemaKey))); err != nil {
			return err
		}
	}
	return root.Put(schemaKey, []byte(strconv.Itoa(schema)))
}

// runs converts the rows of the bucket runs to counters. A row of this bucket is one automatic run. The parts of its
// key are the tool, the conversation, the time and the execution.
func (u *upgrade) runs(r *rows, room *int) (done bool, err error) {
	old := r.tx.Bucket(runsBucket)
	if old == nil {
		return true, nil // an earlier transaction has converted all runs
	}
	c := old.Cursor()
	k, _ := c.Seek(u.from)
	for ; k != nil; k, _ = c.Next() {
		if *room <= 0 {
			u.from = bytes.Clone(k)
			return false, nil
		}
		*room -= os.Getpagesize() // each row may change another page of tally_time
		tool, rest, ok := cutText(k)
		conversation, at, execution, ok2 := cutCounter(rest)
		if !ok || !ok2 {
			return false, fmt.Errorf("%w: %s is damaged: its bucket runs has the invalid row %x. Put a backup in its place", store.ErrForeign, r.tx.DB().Path(), k)
		}
		if err := r.addCounter("auto/"+tool+"/"+conversation, at, execution, 1); err != nil {
			return false, err
		}
	}
	return true, r.tx.DeleteBucket(runsBucket)
}

// oldRendering is a rendering of version 1.
type oldRendering struct {
	OutboxMessage string    `json:"surface"`
	Post          uint64    `json:"post"`
	Hash          string    `json:"hash"`
	Digest        string    `json:"digest"` // digest of the one execution that the rendering showed
	Whole         bool      `json:"whole"`
	Body          []byte    `json:"body"`
	At            time.Time `json:"at"`
}

// rewrite calls a function with each row of a bucket, and replaces the row's value with the function's result. If the
// result is nil, rewrite does not change the row.
func (u *upgrade) rewrite(r *rows, room *int, in bucket, now func(k, v []byte) ([]byte, error)) (done bool, err error) {
	type row struct{ key, value []byte }
	var found []row
	done = true
	for k, v := range r.scan(in, nil, u.from) {
		if *room <= 0 {
			u.from, done = bytes.Clone(k), false
			break
		}
		value, err := now(k, v)
		if err != nil {
			return false, fmt.Errorf("%s: row %x: %w", in, k, err)
		}
		if value != nil {
			found = append(found, row{bytes.Clone(k), value})
			*room -= len(k) + len(value)
		}
	}
	for _, x := range found {
		if err := r.bucket(in).Put(x.key, x.value); err != nil {
			return false, fmt.Errorf("write to %s: %w", in, err)
		}
	}
	return done, nil
}

// renderings adds the id of the shown request to each rendering of version 1. So people can decide on cards that were
// posted before the upgrade.
func (u *upgrade) renderings(r *rows, room *int) (done bool, err error) {
	return u.rewrite(r, room, renderings, func(_, v []byte) ([]byte, error) { return shows(r, v) })
}

// shows returns the current form of an old rendering. shows returns nil if the rendering was already converted, or if
// people could not decide a request from it. shows also returns nil if the rendering is unreadable. The check of the
// store reports such a rendering.
func shows(r *rows, v []byte) ([]byte, error) {
	old, request := asOld(r, v)
	if request == "" {
		return nil, nil
	}
	return record.Append(nil, &store.Rendering{
		OutboxMessage: old.OutboxMessage, Post: old.Post, Hash: old.Hash, Body: old.Body, At: old.At,
		Shows: []store.Shown{{Request: request, Digest: old.Digest, Whole: old.Whole}},
	})
}

// asOld reads an old rendering. The result request is the id of the request that people could decide from the
// rendering. The result is empty if there is no such request, or if the rendering can't be read.
func asOld(r *rows, v []byte) (old oldRendering, request string) {
	if err := record.Decode(v, &old); err != nil || old.Digest == "" {
		return old, ""
	}
	s, err := outboxTable.read(r, old.OutboxMessage)
	if err != nil {
		return old, ""
	}
	return old, s.Request
}

// readable decodes JSON, and reports whether the JSON is valid. An upgrade does not change a row with invalid JSON. The
// check reports invalid JSON.
func readable[T any](js []byte, rec *T) bool { return record.Decode(js, rec) == nil }

// guardedRecord reads the value of a guarded record.
func guardedRecord[T any](v []byte) (h header, rec T, js []byte, ok bool) {
	h, js, err := cutHeader(v)
	ok = err == nil && readable(js, &rec)
	return h, rec, js, ok
}

// indexed adds the missing index rows of a table's records.
func indexed[T any](t *table[T]) func(u *upgrade, r *rows, room *int) (done bool, err error) {
	return func(u *upgrade, r *rows, room *int) (done bool, err error) {
		return u.rewrite(r, room, t.in, func(k, v []byte) ([]byte, error) {
			old, rec, js, ok := guardedRecord[T](v)
			if !ok {
				return nil, nil
			}
			now := header{version: old.version, birth: old.birth, index: t.index(&rec, old.birth)}
			if len(now.index) == len(old.index) {
				return nil, nil
			}
			*room -= os.Getpagesize() // each row may change another page of the index
			return append(now.append(nil), js...), reindex(r, bytes.Clone(k), old, now)
		})
	}
}

// isJSON reports whether a value of audit or audit_payloads is in the form of version 2. Values in the current form
// start with an eight-byte number. This number is so small that its first byte can't be a brace.
func isJSON(v []byte) bool { return len(v) > 0 && v[0] == '{' }

// audit replaces the JSON of old audit records with the bytes that are hashed, and adds a journal entry for each
// record. Each record keeps its stored hash, so a tampered record is also invalid after the conversion.
func (u *upgrade) audit(r *rows, room *int) (done bool, err error) {
	return u.rewrite(r, room, audit, func(k, v []byte) ([]byte, error) {
		if !isJSON(v) {
			return nil, nil
		}
		var sum approvers.Sum
		var a approvers.AuditRecord
		record := v
		if readable(v, &a) {
			record = a.Bytes()
			_, _ = hex.Decode(sum[:], []byte(a.Hash)[:min(len(a.Hash), 2*len(sum))]) // an invalid hash matches nothing
		}
		chain, seq, _ := auditKey(k)
		leaf, err := r.journal(chain, seq, sum)
		if err != nil {
			return nil, err
		}
		*room -= len(k) + auditHeader
		return append(append(number(nil, leaf), sum[:]...), record...), nil
	})
}

// payloads replaces the JSON of old audit payloads with the bytes that are hashed.
func (u *upgrade) payloads(r *rows, room *int) (done bool, err error) {
	return u.rewrite(r, room, auditPayloads, func(_, v []byte) ([]byte, error) {
		var p approvers.AuditPayload
		if !isJSON(v) || !readable(v, &p) {
			return nil, nil
		}
		return p.Bytes(), nil
	})
}
