package bolt

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"go.etcd.io/bbolt"

	"countersign/store"
)

// The key in the root bucket that says from which version an upgrade is under way, and the bucket that only version 1 has.
var (
	upgradingKey = []byte("upgrading")
	runsBucket   = []byte("runs")
)

// bucketsOf names the buckets that a store of a version has.
func bucketsOf(version int) (names []string) {
	for b := range allBuckets {
		if version > 1 || b < tallies {
			names = append(names, bucketNames[b])
		}
	}
	if version == 1 {
		names = append(names, string(runsBucket))
	}
	return names
}

// upgradeRoom is how many bytes of rows one transaction of an upgrade rewrites: bbolt keeps in memory what a transaction changes.
const upgradeRoom = 8 << 20

// upgrade brings a store of version 1 to this layout: its runs become tallies, and its renderings name the request that they
// showed. A store that is not large is upgraded in one transaction. In a larger one the first transaction raises the version,
// so that no older program opens what is half-way, and until the last one the store says that it is being upgraded: whoever
// opens it after a crash starts over, which changes nothing of what was done.
type upgrade struct {
	room      int    // how much one transaction rewrites
	run       []byte // where the next transaction goes on in the old runs; nil: at the start
	rendering []byte // likewise in the renderings
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
	r, room := &rows{tx: tx, scratch: &scratch{}}, u.room
	if done, err = u.runs(r, &room); err != nil || !done {
		return false, err
	}
	if done, err = u.renderings(r, &room); err != nil || !done {
		return false, err
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
	k, _ := c.Seek(u.run)
	for ; k != nil; k, _ = c.Next() {
		if *room <= 0 {
			u.run = bytes.Clone(k)
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

type rewritten struct{ key, value []byte }

// renderings gives the old renderings what they show, so that cards which were posted before the upgrade can still be decided on.
func (u *upgrade) renderings(r *rows, room *int) (done bool, err error) {
	var found []rewritten
	done = true
	for k, v := range r.scan(renderings, nil, u.rendering) {
		if *room <= 0 {
			u.rendering, done = bytes.Clone(k), false
			break
		}
		value, err := shows(r, v)
		if err != nil {
			return false, fmt.Errorf("rendering %x: %w", k, err)
		}
		if value != nil {
			found = append(found, rewritten{bytes.Clone(k), value})
			*room -= len(k) + len(value)
		}
	}
	for _, x := range found {
		if err := r.bucket(renderings).Put(x.key, x.value); err != nil {
			return false, fmt.Errorf("write to %s: %w", renderings, err)
		}
	}
	return done, nil
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
