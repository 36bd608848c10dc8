package bolt

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"time"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/store"
)

// The key in the root bucket that says from which version an upgrade is under way, and the bucket that only version 1 has.
var (
	upgradingKey = []byte("upgrading")
	runsBucket   = []byte("runs")
)

// bucketsOf names the buckets that a store of a version has.
func bucketsOf(version int) (names []string) {
	first := bucketEnd // that it does not have
	switch version {
	case 1:
		first = tallies
		names = append(names, string(runsBucket))
	case 2:
		first = conversationLast
	case 3:
		first = requestPerson
	case 4:
		first = elicitations
	}
	for b := range allBuckets {
		if b < first {
			names = append(names, bucketNames[b])
		}
	}
	return names
}

// upgradeRoom is how many bytes of rows one transaction of an upgrade rewrites: bbolt keeps in memory what a transaction changes.
const upgradeRoom = 8 << 20

// upgrade brings an older store to this layout. From version 1 on, its runs become tallies, and its renderings name the request that they
// showed; from version 2 on, records get rows in the new indexes, audit records and payloads become the bytes that are hashed, and the journal names
// them in the order in which they lie; from version 3 on, requests get rows in the index by person; version 4 lacks only buckets. A store that is not large is upgraded in one transaction. In a larger one the first transaction raises the version,
// so that no older program opens what is half-way, and until the last one the store says that it is being upgraded: whoever
// opens it after a crash starts over, which changes nothing of what was done.
type upgrade struct {
	room  int    // how much one transaction rewrites
	phase int    // which part is under way
	from  []byte // where the next transaction goes on in it; nil: at the start
}

// phases are the parts of an upgrade. Each changes nothing in a store where it was through already.
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

// upgraded upgrades a store if it needs to be.
func upgraded(db *bbolt.DB) error {
	done := false
	err := db.View(func(tx *bbolt.Tx) error {
		root := tx.Bucket(rootBucket)
		done = string(root.Get(schemaKey)) == strconv.Itoa(schema) && root.Get(upgradingKey) == nil
		return nil
	})
	u := upgrade{room: upgradeRoom}
	for err == nil && !done {
		err = db.Update(func(tx *bbolt.Tx) (err error) {
			done, err = u.step(tx)
			return err
		})
	}
	return err
}

// step is one transaction of an upgrade.
func (u *upgrade) step(tx *bbolt.Tx) (done bool, err error) {
	root := tx.Bucket(rootBucket)
	if from := root.Get(schemaKey); string(from) != strconv.Itoa(schema) {
		if err := begin(tx, root, bytes.Clone(from)); err != nil {
			return false, err
		}
	}
	r, room := &rows{tx: tx}, u.room
	for ; u.phase < len(phases); u.phase++ {
		if done, err := phases[u.phase](u, r, &room); err != nil || !done {
			return false, err
		}
		u.from = nil
	}
	return true, root.Delete(upgradingKey)
}

// begin raises the version and makes the buckets that it has more.
func begin(tx *bbolt.Tx, root *bbolt.Bucket, from []byte) error {
	for b := range allBuckets {
		if _, err := tx.CreateBucketIfNotExists([]byte(bucketNames[b])); err != nil {
			return fmt.Errorf("make the bucket %s: %w", b, err)
		}
	}
	if err := root.Put(upgradingKey, from); err != nil {
		return err
	}
	return root.Put(schemaKey, []byte(strconv.Itoa(schema)))
}

// runs makes tallies of the old rows of automatic runs, whose keys were: tool, conversation, at, execution.
func (u *upgrade) runs(r *rows, room *int) (done bool, err error) {
	old := r.tx.Bucket(runsBucket)
	if old == nil {
		return true, nil // an earlier transaction was through with them
	}
	c := old.Cursor()
	k, _ := c.Seek(u.from)
	for ; k != nil; k, _ = c.Next() {
		if *room <= 0 {
			u.from = bytes.Clone(k)
			return false, nil
		}
		*room -= os.Getpagesize() // it may be the only one that changes a page of tally_time
		tool, rest, ok := cutText(k)
		conversation, at, execution, ok2 := cutTally(rest)
		if !ok || !ok2 {
			return false, fmt.Errorf("%w: %s is damaged: its bucket runs has the row %x. Put a backup in its place", store.ErrForeign, r.tx.DB().Path(), k)
		}
		if err := r.addTally("auto/"+tool+"/"+conversation, at, execution, 1); err != nil {
			return false, err
		}
	}
	return true, r.tx.DeleteBucket(runsBucket)
}

// oldRendering is a rendering of version 1.
type oldRendering struct {
	Surface string    `json:"surface"`
	Post    uint64    `json:"post"`
	Hash    string    `json:"hash"`
	Digest  string    `json:"digest"` // of the one execution that it showed
	Whole   bool      `json:"whole"`
	Body    []byte    `json:"body"`
	At      time.Time `json:"at"`
}

// rewrite goes through a bucket and puts what is made of each row in its place; nil: it stays as it is.
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

// renderings gives the old renderings what they show, so that cards which were posted before the upgrade can still be decided on.
func (u *upgrade) renderings(r *rows, room *int) (done bool, err error) {
	return u.rewrite(r, room, renderings, func(_, v []byte) ([]byte, error) { return shows(r, v) })
}

// shows is an old rendering as it is stored now; nil: it stays as it is, which is so for one that nothing could be decided from,
// one that was written anew before, and one that can't be read, which the check reports.
func shows(r *rows, v []byte) ([]byte, error) {
	old, request := asOld(r, v)
	if request == "" {
		return nil, nil
	}
	return encode(nil, &store.Rendering{
		Surface: old.Surface, Post: old.Post, Hash: old.Hash, Body: old.Body, At: old.At,
		Shows: []store.Shown{{Request: request, Digest: old.Digest, Whole: old.Whole}},
	})
}

// asOld reads an old rendering, with the request that could be decided from it; "" where there is none, or it can't be read.
func asOld(r *rows, v []byte) (old oldRendering, request string) {
	if err := decode(v, &old); err != nil || old.Digest == "" {
		return old, ""
	}
	s, err := surfaceTable.read(r, old.Surface)
	if err != nil {
		return old, ""
	}
	return old, s.Request
}

// readable reads JSON, and reports whether it could. What can't be read stays as it is, and the check reports it.
func readable[T any](js []byte, record *T) bool { return decode(js, record) == nil }

// guardedRecord reads the value of a guarded record.
func guardedRecord[T any](v []byte) (h header, rec T, js []byte, ok bool) {
	h, js, err := cutHeader(v)
	ok = err == nil && readable(js, &rec)
	return h, rec, js, ok
}

// indexed gives a table's records the rows that they have more in index buckets.
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
			*room -= os.Getpagesize() // its row may be the only one that changes a page of the index
			return append(now.append(nil), js...), reindex(r, bytes.Clone(k), old, now)
		})
	}
}

// isJSON reports whether a value of audit or audit_payloads is still as version 2 wrote it. Now they begin with a number that is never so large.
func isJSON(v []byte) bool { return len(v) > 0 && v[0] == '{' }

// audit makes the bytes of old audit records that are hashed, and their entries in the journal. Whatever was wrong with one is as wrong afterwards:
// the hash that was written for it goes with what was written.
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
			_, _ = hex.Decode(sum[:], []byte(a.Hash)[:min(len(a.Hash), 2*len(sum))]) // a hash that is none matches nothing
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

// payloads makes the bytes of old audit payloads that are hashed.
func (u *upgrade) payloads(r *rows, room *int) (done bool, err error) {
	return u.rewrite(r, room, auditPayloads, func(_, v []byte) ([]byte, error) {
		var p approvers.AuditPayload
		if !isJSON(v) || !readable(v, &p) {
			return nil, nil
		}
		return p.Bytes(), nil
	})
}
