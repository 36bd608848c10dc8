package main

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"countersign/approvers"
)

// The function "put" returns an edit that writes a row of the file. The function "remove" returns an edit that deletes
// a row.
func put(bucket, key, value string) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(bucket)).Put([]byte(key), summed(bucket, key, value))
	}
}

// bucketNumbers maps each bucket of the history to its number. The checksum of a row includes the number of the bucket.
var bucketNumbers = map[string]byte{"audit": 20, "audit_payloads": 21, "settings": 22, "audit_journal": 32, "audit_heads": 33}

// The function "summed" appends the checksum that a tamperer would compute. The checksum covers the bucket's number,
// the key's length, the key and the value.
func summed(bucket, key, value string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{bucketNumbers[bucket]}, uint32(len(key)))
	sum := crc32.Checksum(append(append(b, key...), value...), crc32.MakeTable(crc32.Castagnoli))
	return binary.BigEndian.AppendUint32([]byte(value), sum)
}

// The function "unsummed" returns a stored value without its checksum.
func unsummed(v []byte) []byte { return v[: len(v)-4 : len(v)-4] }

func remove(bucket, key string) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucket)).Delete([]byte(key)) }
}

// The function "all" applies the edits one after the other.
func all(steps ...func(tx *bbolt.Tx) error) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		for _, step := range steps {
			if err := step(tx); err != nil {
				return err
			}
		}
		return nil
	}
}

// rowsOf lists a bucket's keys in order.
func rowsOf(rows map[string]map[string]string, bucket string) []string {
	return slices.Sorted(maps.Keys(rows[bucket]))
}

// chainsOf lists the keys of each chain's records.
func chainsOf(rows map[string]map[string]string) map[string][]string {
	out := map[string][]string{}
	for _, key := range rowsOf(rows, "audit") {
		a, _ := recordOf(rows["audit"][key])
		out[a.Chain] = append(out[a.Chain], key)
	}
	return out
}

// dropLeaves removes leaves, which are the entries of the journal, and closes the gaps. dropLeaves also closes the gaps
// in the records that contain leaf numbers.
func dropLeaves(tx *bbolt.Tx, drop func(chain string) bool) error {
	journal, records := tx.Bucket([]byte("audit_journal")), tx.Bucket([]byte("audit"))
	var keys, values [][]byte
	c := journal.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		v = unsummed(v)
		keys = append(keys, bytes.Clone(k))
		if chain, _, _ := bytes.Cut(v, []byte{0, 1}); !drop(string(chain)) {
			values = append(values, bytes.Clone(v))
		}
	}
	for i, key := range keys {
		if i >= len(values) {
			if err := journal.Delete(key); err != nil {
				return err
			}
			continue
		}
		if err := put("audit_journal", string(key), string(values[i]))(tx); err != nil {
			return err
		}
		place := values[i][:len(values[i])-32]
		if row := bytes.Clone(records.Get(place)); row != nil {
			if err := put("audit", string(place), withLeaf(string(key), string(unsummed(row))))(tx); err != nil {
				return err
			}
		}
	}
	return nil
}

// relink replaces a record by a forged record, and links the later records of the chain to the forged record. If leaves
// is true, relink also changes the records' entries in the journal.
func relink(rows map[string]map[string]string, key string, leaves bool) func(tx *bbolt.Tx) error {
	var steps []func(tx *bbolt.Tx) error
	parse := func(key string) approvers.AuditRecord {
		a, _ := recordOf(rows["audit"][key])
		return a
	}
	chain := chainsOf(rows)[parse(key).Chain]
	at := slices.Index(chain, key)
	var before approvers.AuditRecord
	if at > 0 {
		before = parse(chain[at-1])
	}
	for i, k := range chain[at:] {
		a := parse(k)
		if i == 0 {
			a.Actor += "x"
		}
		a = a.Link(before)
		before = a
		b := a.Bytes()
		sum := approvers.SumOf(b)
		_, leaf := recordOf(rows["audit"][k])
		steps = append(steps, put("audit", k, leaf+string(sum[:])+string(b)))
		if leaves {
			steps = append(steps, put("audit_journal", leaf, k+string(sum[:])))
		}
	}
	return all(steps...)
}

// resign replaces the signed heads from a given number to the newest. The new heads match the current journal, except
// for what the parameter change alters.
func resign(from uint64, change func(*approvers.Head), keys ...approvers.SealKey) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		journal, heads := tx.Bucket([]byte("audit_journal")), tx.Bucket([]byte("audit_heads"))
		var tree approvers.Tree
		leaf := journal.Cursor()
		_, entry := leaf.First()
		before := ""
		notes := map[string]string{}
		c := heads.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			v := unsummed(v)
			size := binary.BigEndian.Uint64(v)
			for ; tree.Size < size; _, entry = leaf.Next() {
				tree.Add(approvers.LeafHash(approvers.Sum(unsummed(entry)[len(entry)-36:])))
			}
			h, err := approvers.ReadHead(string(v[8:]))
			if err != nil {
				return err
			}
			if h.Number < from {
				before = string(v[8:])
				continue
			}
			if h.Root, err = tree.Root(); err != nil {
				return err
			}
			if h.Number > 1 {
				h.Before = approvers.SumOf([]byte(before))
			}
			if change != nil {
				change(&h)
			}
			if before, err = h.Sign(keys...); err != nil {
				return err
			}
			notes[string(k)] = string(v[:8]) + before
		}
		for k, v := range notes {
			if err := put("audit_heads", k, v)(tx); err != nil {
				return err
			}
		}
		return nil
	}
}
