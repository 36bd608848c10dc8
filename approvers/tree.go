package approvers

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// TreeHash is a hash of the tree: of a leaf, a subtree, or everything.
type TreeHash = tlog.Hash

// Tree is the tree of RFC 6962 over the journal, as far as the next leaves need it: the roots of the largest whole subtrees, from
// the left. So a leaf costs one hash or two, however many there were before.
type Tree struct {
	Size  uint64      `json:"size"`
	Roots []tlog.Hash `json:"roots"`
}

// LeafHash is the leaf that a record is: a hash over the record's own.
func LeafHash(sum Sum) tlog.Hash { return tlog.RecordHash(sum[:]) }

// Add appends a leaf.
func (t *Tree) Add(leaf tlog.Hash) {
	for n := t.Size; n&1 == 1; n >>= 1 { // each 1 at the end is a subtree that this leaf makes whole with its neighbour
		last := len(t.Roots) - 1
		leaf = tlog.NodeHash(t.Roots[last], leaf)
		t.Roots = t.Roots[:last]
	}
	t.Roots = append(t.Roots, leaf)
	t.Size++
}

// Root is the root over all leaves so far.
func (t *Tree) Root() (tlog.Hash, error) {
	return tlog.TreeHash(int64(t.Size), tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) { return t.Roots, nil }))
}

// Leaves reads n leaves from a number on.
type Leaves func(from, n uint64) ([]tlog.Hash, error)

// ReadHashes computes the roots of whole subtrees, which tlog names by numbers, from their leaves.
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

// leafPage is how many leaves are read at a time.
const leafPage = 4096

// Inclusion is the proof that a head covers a record: RFC 6962 calls it an audit path.
type Inclusion struct {
	Leaf uint64
	Path tlog.RecordProof
}

// Prove makes the proofs that the tree of a size has some leaves, in their order.
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

// remembered reads each hash once: the paths of several leaves have the largest subtrees in common.
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

// Check holds a record's hash against a head.
func (i Inclusion) Check(h Head, sum Sum) error {
	return tlog.CheckRecord(i.Path, int64(h.Size), h.Root, int64(i.Leaf), LeafHash(sum))
}

// ProveGrowth makes the proof that the tree of a size begins with the tree of a smaller size.
func ProveGrowth(from, to uint64, leaves Leaves) (tlog.TreeProof, error) {
	return tlog.ProveTree(int64(to), int64(from), leaves)
}
