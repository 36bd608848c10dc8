package main

import (
	"bytes"
	crand "crypto/rand"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/openstore"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
)

// The function "flips" returns at most n flipped bits at different positions. The positions are in keys and values of
// every bucket. A bucket with more rows gets more flips.
func flips(rows map[string]map[string]string, n int, chance *rand.Rand) (out []tampering) {
	type place struct {
		bucket, key string
		at          int // position of the bit: first in the key, then in the value
	}
	var places []place
	for _, bucket := range auditBuckets {
		for _, key := range rowsOf(rows, bucket) {
			for at := range len(key) + len(rows[bucket][key]) {
				places = append(places, place{bucket, key, at})
			}
		}
	}
	chance.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	for _, p := range places[:min(n, len(places))] {
		bit := byte(1) << chance.IntN(8)
		key, value := []byte(p.key), []byte(rows[p.bucket][p.key])
		if p.at < len(key) {
			key[p.at] ^= bit
			if _, taken := rows[p.bucket][string(key)]; taken {
				continue // the result is another valid row; replacements are tried below
			}
		} else {
			before, err := bolt.Unpack(p.bucket, value)
			value = bytes.Clone(value)
			value[p.at-len(key)] ^= bit
			if after, err2 := bolt.Unpack(p.bucket, value); err == nil && err2 == nil && bytes.Equal(before, after) {
				continue // compressed data ends with unused bits
			}
		}
		out = append(out, tampering{kind: "flip", what: fmt.Sprintf("%s %q, byte %d, bit %08b", p.bucket, p.key, p.at, bit),
			do: all(remove(p.bucket, p.key), put(p.bucket, string(key), string(value)))})
	}
	return out
}

// The function "deletions" returns a deletion of each row in every bucket. It also returns, for each chain, a deletion
// of the chain, and a deletion of the chain with its leaves.
func deletions(rows map[string]map[string]string) (out []tampering) {
	for _, bucket := range auditBuckets {
		keys := rowsOf(rows, bucket)
		for i, key := range keys {
			out = append(out, tampering{kind: "delete", what: fmt.Sprintf("%s %q", bucket, key), do: remove(bucket, key),
				elsewhere: bucket == "audit_heads" && i == len(keys)-1})
		}
	}
	chains := chainsOf(rows)
	for _, chain := range slices.Sorted(maps.Keys(chains)) { // in a fixed order, so that the same seed selects the same tamperings
		var steps []func(tx *bbolt.Tx) error
		for _, key := range chains[chain] {
			steps = append(steps, remove("audit", key), remove("audit_payloads", key))
		}
		out = append(out, tampering{kind: "delete", what: "chain " + chain, do: all(steps...)})
		out = append(out, tampering{kind: "delete", what: "chain " + chain + " and its leaves", do: all(append(steps, func(tx *bbolt.Tx) error {
			return dropLeaves(tx, func(of string) bool { return of == chain })
		})...)})
	}
	return out
}

// The function "reorders" returns tamperings that exchange neighbouring rows, or exchange leaves together with their
// records.
func reorders(rows map[string]map[string]string) (out []tampering) {
	for _, bucket := range auditBuckets {
		keys := rowsOf(rows, bucket)
		for i := range len(keys) - 1 {
			a, b := keys[i], keys[i+1]
			out = append(out, tampering{kind: "reorder", what: fmt.Sprintf("%s %q and %q", bucket, a, b),
				do: all(put(bucket, a, rows[bucket][b]), put(bucket, b, rows[bucket][a]))})
		}
	}
	journal := rowsOf(rows, "audit_journal")
	for i := range len(journal) - 1 {
		one, two := rows["audit_journal"][journal[i]], rows["audit_journal"][journal[i+1]]
		first, second := one[:len(one)-32], two[:len(two)-32]
		a, b := rows["audit"][first], rows["audit"][second]
		if a == "" || b == "" {
			continue // pruned
		}
		out = append(out, tampering{kind: "reorder", what: fmt.Sprintf("leaves %d and %d, with their records", i, i+1), do: all(
			put("audit_journal", journal[i], two), put("audit_journal", journal[i+1], one),
			put("audit", first, withLeaf(journal[i+1], a)), put("audit", second, withLeaf(journal[i], b)))})
	}
	return out
}

// The function "truncations" returns tamperings that cut off the end of a chain, the journal or the heads. It also
// returns tamperings that cut off the ends of all three.
func truncations(rows map[string]map[string]string) (out []tampering) {
	chains := chainsOf(rows)
	for _, chain := range slices.Sorted(maps.Keys(chains)) {
		var steps []func(tx *bbolt.Tx) error
		keys := chains[chain]
		for i := range keys {
			key := keys[len(keys)-1-i]
			steps = append(steps, remove("audit", key), remove("audit_payloads", key))
			out = append(out, tampering{kind: "truncate", what: fmt.Sprintf("the last %d records of chain %s", i+1, chain), do: all(slices.Clone(steps)...)})
		}
	}
	journal, heads := rowsOf(rows, "audit_journal"), rowsOf(rows, "audit_heads")
	for n := 1; n <= len(journal); n++ {
		var leaves, everything []func(tx *bbolt.Tx) error
		for _, key := range journal[len(journal)-n:] {
			value := rows["audit_journal"][key]
			leaves = append(leaves, remove("audit_journal", key))
			everything = append(everything, remove("audit_journal", key), remove("audit", value[:len(value)-32]), remove("audit_payloads", value[:len(value)-32]))
		}
		out = append(out,
			tampering{kind: "truncate", what: fmt.Sprintf("the last %d leaves", n), do: all(leaves...)},
			tampering{kind: "truncate", what: fmt.Sprintf("the last %d leaves with their records", n), do: all(everything...)})
	}
	for n := 1; n <= len(heads); n++ {
		var steps []func(tx *bbolt.Tx) error
		size := uint64(0) // size of the journal after the cut
		if n < len(heads) {
			size = binary.BigEndian.Uint64([]byte(rows["audit_heads"][heads[len(heads)-1-n]]))
		}
		for _, key := range heads[len(heads)-n:] {
			steps = append(steps, remove("audit_heads", key))
		}
		out = append(out, tampering{kind: "truncate", what: fmt.Sprintf("the last %d heads", n), do: all(steps...), elsewhere: true})
		for _, key := range journal[size:] {
			value := rows["audit_journal"][key]
			steps = append(steps, remove("audit_journal", key), remove("audit", value[:len(value)-32]), remove("audit_payloads", value[:len(value)-32]))
		}
		// The record of an erasure or a pruning explains a gap in the store. If the cut removed this record, the store
		// itself would reveal the gap.
		if !cutsExcuse(rows, size) {
			out = append(out, tampering{kind: "truncate", what: fmt.Sprintf("everything since the last %d heads", n), do: all(steps...), elsewhere: true})
		}
	}
	return out
}

// cutsExcuse reports whether a cut of the journal to a size keeps a gap in the store, but removes the record that
// explains the gap. Such a record belongs to an erasure or a pruning.
func cutsExcuse(rows map[string]map[string]string, size uint64) bool {
	for _, row := range rows["audit"] {
		a, leaf := recordOf(row)
		if (a.Kind == approvers.AuditErased || a.Kind == approvers.AuditPruned) && binary.BigEndian.Uint64([]byte(leaf)) >= size && size > 0 {
			return true
		}
	}
	return false
}

// The function "replacements" returns tamperings that replace parts of the history, from small parts to the whole
// history.
func replacements(rows map[string]map[string]string, own, thief approvers.SealKey) (out []tampering) {
	under := func(h *approvers.Head) {
		if h.Number == 1 {
			h.Key = thief.Public
		}
	}
	for _, key := range rowsOf(rows, "audit") {
		what := fmt.Sprintf("record %q and those after it in its chain", key)
		forged := relink(rows, key, true)
		out = append(out,
			tampering{kind: "replace", what: what, do: relink(rows, key, false)},
			tampering{kind: "replace", what: what + ", with their leaves", do: forged},
			tampering{kind: "replace", what: what + ", with their leaves, and the heads by another key", do: all(forged, resign(1, under, thief))},
			tampering{kind: "replace", what: what + ", with their leaves, and the heads by the key itself", do: all(forged, resign(1, nil, own)), elsewhere: true})
	}
	for _, key := range rowsOf(rows, "audit_heads") {
		number := binary.BigEndian.Uint64([]byte(key))
		later := func(h *approvers.Head) {
			if h.Number == number {
				h.At = h.At.Add(1e9)
			}
		}
		takeover := func(h *approvers.Head) {
			if h.Number == number && number > 1 {
				h.Key, h.After = thief.Public, own.Public
			}
		}
		out = append(out,
			tampering{kind: "replace", what: fmt.Sprintf("head %d and those after it, with another time, by another key", number), do: resign(number, later, thief)},
			tampering{kind: "replace", what: fmt.Sprintf("head %d and those after it, with another time, by the key itself", number), do: resign(number, later, own), elsewhere: true})
		if number > 1 {
			out = append(out, tampering{kind: "replace", what: fmt.Sprintf("head %d and those after it, by a key that takes over", number), do: resign(number, takeover, thief)})
		}
	}
	for _, bucket := range []string{"audit", "audit_payloads"} {
		keys := rowsOf(rows, bucket)
		for i, key := range keys { // replaces a row by a distant row of the same bucket
			other := keys[(i+len(keys)/2)%len(keys)]
			if rows[bucket][other] != rows[bucket][key] {
				out = append(out, tampering{kind: "replace", what: fmt.Sprintf("%s %q by %q", bucket, key, other), do: put(bucket, key, rows[bucket][other])})
			}
		}
	}
	return out
}

// A person with access to the file tampers with a real history. The test tries tamperings of every known kind.
// Verification with the store and the trusted key must find each tampering. If the store's signatures match the changed
// content, verification with heads from outside of the store must find the tampering.
func TestTampering(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	n := testkit.Size(t, "COUNTERSIGN_TAMPERINGS", 12) // number of tamperings of each kind
	chance := testkit.Chance(testkit.Seed(t), 0)
	s := newAuditFixture(t)
	rows := s.read()
	thief := forgedKey(t, s.keys[0].Origin())
	count := newTried()
	for _, kind := range [][]tampering{
		flips(rows, 20*n, chance), deletions(rows), reorders(rows), truncations(rows), replacements(rows, s.keys[0], thief),
	} {
		chance.Shuffle(len(kind), func(i, j int) { kind[i], kind[j] = kind[j], kind[i] })
		most := n
		if kind[0].kind == "flip" {
			most = 20 * n
		}
		for _, one := range kind[:min(most, len(kind))] {
			s.try(one, count)
		}
	}
	s.whole(count)
	tried, found, needed := 0, 0, 0
	for _, kind := range slices.Sorted(maps.Keys(count.tried)) {
		t.Logf("%-9s tried=%d found=%d, by heads that are kept elsewhere only: %d", kind, count.tried[kind], count.found[kind], count.needed[kind])
		tried, found, needed = tried+count.tried[kind], found+count.found[kind], needed+count.needed[kind]
	}
	t.Logf("tried=%d found=%d elsewhere=%d", tried, found, needed)
}

func forgedKey(t *testing.T, origin string) approvers.SealKey {
	t.Helper()
	text, err := approvers.NewSealKey(crand.Reader, origin)
	if err != nil {
		t.Fatal(err)
	}
	key, err := approvers.ParseSealKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// The method "whole" tries to replace the whole store.
func (s *auditFixture) whole(count *tried) {
	s.Helper()
	kept := s.path + ".kept"
	s.copy(s.path, kept)
	replace := func(what string, path string, elsewhere bool) {
		count.tried["replace"]++
		found, said := s.verifyAt(path)
		if elsewhere {
			count.needed["replace"]++
			if found {
				s.Errorf("%s: it takes no heads from elsewhere:\n%s", what, said)
			}
			found, said = s.verifyAt(path, s.heads)
		}
		if !found {
			s.Errorf("%s: not found\n%s", what, said)
			return
		}
		count.found["replace"]++
	}
	replace("the whole store by an older copy", s.early, true)

	fresh := filepath.Join(s.TempDir(), "fresh.db")
	thief := *s
	thief.keys = []approvers.SealKey{forgedKey(s.T, s.keys[0].Origin())}
	forge := func(path string, keys []approvers.SealKey) {
		db, err := openstore.File(path)
		if err != nil {
			s.Fatal(err)
		}
		defer db.Close()
		wf := workflow.New(workflow.Config{Store: db, Policy: func() *approvers.Policy { return &approvers.Policy{} }})
		err = db.Update(s.Context(), func(tx store.Tx) error { return appendRecord(tx, "req_1", approvers.AuditApproved, nil) })
		if err == nil {
			_, err = wf.History.Seal(s.Context(), keys...)
		}
		if err != nil {
			s.Fatal(err)
		}
	}
	forge(fresh, thief.keys)
	replace("the whole store by a new one, with another key", fresh, false)
	fresh = filepath.Join(s.TempDir(), "fresh2.db")
	forge(fresh, s.keys)
	replace("the whole store by a new one, with the key itself", fresh, true)
	forge(s.early, s.keys)
	replace("the whole store by an older copy that was used again", s.early, true)
	empty := filepath.Join(s.TempDir(), "empty.db")
	db, err := bolt.Open(empty, bolt.Options{})
	if err != nil || db.Close() != nil {
		s.Fatal(err)
	}
	replace("the whole store by an empty one", empty, true)
}
