package approvers

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// TreeHash is a hash in the tree: of a leaf, a subtree, or the root.
type TreeHash = tlog.Hash

// Tree is the hash tree of RFC 6962 over the journal. Tree has only the data that is needed to append leaves: the roots
// of the largest complete subtrees, from left to right. On average, Add computes the hash of less than one subtree for
// each leaf.
type Tree struct {
	Size  uint64      `json:"size"`
	Roots []tlog.Hash `json:"roots"`
}

// LeafHash returns the leaf hash of a record, computed from the record's hash.
func LeafHash(sum Sum) tlog.Hash { return tlog.RecordHash(sum[:]) }

// Add appends a leaf.
func (t *Tree) Add(leaf tlog.Hash) {
	for n := t.Size; n&1 == 1; n >>= 1 { // each trailing 1 bit of the size means that there is a complete subtree to merge with the new one of the same size
		last := len(t.Roots) - 1
		leaf = tlog.NodeHash(t.Roots[last], leaf)
		t.Roots = t.Roots[:last]
	}
	t.Roots = append(t.Roots, leaf)
	t.Size++
}

// Root returns the root hash of all leaves so far.
func (t *Tree) Root() (tlog.Hash, error) {
	return tlog.TreeHash(int64(t.Size), tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) { return t.Roots, nil }))
}

// Leaves reads up to n leaves, starting with leaf number from.
type Leaves func(from, n uint64) ([]tlog.Hash, error)

// ReadHashes computes the roots of complete subtrees from their leaves. indexes are tlog's numbers of these subtrees.
func (l Leaves) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		level, n := tlog.SplitStoredHashIndex(index)
		var t Tree
		for end := uint64(n+1) << level; t.Size < 1<<level; {
			from := uint64(n)<<level + t.Size
			leaves, err := l(from, min(end-from, leafPage))
			if err != nil {
				return nil, err
			}
			if len(leaves) == 0 {
				return nil, fmt.Errorf("leaf %d is not there", from)
			}
			for _, leaf := range leaves {
				t.Add(leaf)
			}
		}
		out[i] = t.Roots[0]
	}
	return out, nil
}

// leafPage is the number of leaves in one read.
const leafPage = 4096

// Inclusion proves that a head covers a record. RFC 6962 calls such a proof an audit path.
type Inclusion struct {
	Leaf uint64
	Path tlog.RecordProof
}

// Prove returns one proof for each leaf, in the same order. A proof shows that the tree of the given size contains
// the leaf.
func Prove(size uint64, leaves Leaves, of ...uint64) ([]Inclusion, error) {
	r := remembered{leaves, map[int64]tlog.Hash{}}
	out := make([]Inclusion, len(of))
	for i, leaf := range of {
		path, err := tlog.ProveRecord(int64(size), int64(leaf), r)
		if err != nil {
			return nil, err
		}
		out[i] = Inclusion{Leaf: leaf, Path: path}
	}
	return out, nil
}

// remembered caches hashes, because the proofs of several leaves share the largest subtrees.
type remembered struct {
	leaves Leaves
	known  map[int64]tlog.Hash
}

func (r remembered) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	var missing []int64
	for _, index := range indexes {
		if _, ok := r.known[index]; !ok {
			missing = append(missing, index)
		}
	}
	read, err := r.leaves.ReadHashes(missing)
	if err != nil {
		return nil, err
	}
	for i, index := range missing {
		r.known[index] = read[i]
	}
	out := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		out[i] = r.known[index]
	}
	return out, nil
}

// Check verifies that the head covers a record with this hash.
func (i Inclusion) Check(h Head, sum Sum) error {
	return tlog.CheckRecord(i.Path, int64(h.Size), h.Root, int64(i.Leaf), LeafHash(sum))
}
