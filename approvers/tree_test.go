package approvers_test

import (
	"fmt"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"countersign/approvers"
)

// leavesOf returns n leaves, and the roots of the trees over the first 0, 1, … n leaves. leavesOf computes the roots
// by the literal definition of RFC 6962.
func leavesOf(t *testing.T, n int) (sums []approvers.Sum, leaves []tlog.Hash, roots []tlog.Hash) {
	t.Helper()
	for i := range n {
		sums = append(sums, approvers.SumOf(fmt.Append(nil, i)))
		leaves = append(leaves, approvers.LeafHash(sums[i]))
	}
	for size := range n + 1 {
		roots = append(roots, merkle(leaves[:size]))
	}
	return sums, leaves, roots
}

// merkle computes the function MTH of RFC 6962, section 2.1.
func merkle(leaves []tlog.Hash) tlog.Hash {
	switch len(leaves) {
	case 0:
		return tlog.Hash(approvers.SumOf(nil))
	case 1:
		return leaves[0]
	}
	k := 1
	for 2*k < len(leaves) {
		k *= 2
	}
	return tlog.NodeHash(merkle(leaves[:k]), merkle(leaves[k:]))
}

func among(leaves []tlog.Hash) approvers.Leaves {
	return func(from, n uint64) ([]tlog.Hash, error) {
		from = min(from, uint64(len(leaves)))
		return leaves[from:min(from+n, uint64(len(leaves)))], nil
	}
}

func TestTreeIsThatOfTheRFC(t *testing.T) {
	_, leaves, roots := leavesOf(t, 130)
	var tree approvers.Tree
	for size := range roots {
		root, err := tree.Root()
		if err != nil || root != roots[size] {
			t.Fatalf("the root over %d leaves is %s (%v), want %s", size, root, err, roots[size])
		}
		if size < len(leaves) {
			tree.Add(leaves[size])
		}
	}
	if leaf := approvers.LeafHash(approvers.Sum{1}); leaf != tlog.Hash(approvers.SumOf(append([]byte{0, 1}, make([]byte, 31)...))) {
		t.Error("a leaf is not the hash of a zero byte and the record's hash")
	}
}

// A proof is valid only for its record and its head.
func TestInclusion(t *testing.T) {
	sums, leaves, roots := leavesOf(t, 40)
	for size := 1; size <= 40; size++ {
		head := approvers.Head{Size: uint64(size), Root: roots[size]}
		var all []uint64
		for leaf := range size {
			all = append(all, uint64(leaf))
		}
		proofs, err := approvers.Prove(uint64(size), among(leaves), all...)
		if err != nil {
			t.Fatal(err)
		}
		for leaf, proof := range proofs {
			if err := proof.Check(head, sums[leaf]); err != nil {
				t.Fatalf("leaf %d of %d: %v", leaf, size, err)
			}
			if proof.Check(head, sums[(leaf+1)%40]) == nil {
				t.Fatalf("leaf %d of %d: the proof holds for another record", leaf, size)
			}
			if proof.Check(approvers.Head{Size: uint64(size), Root: roots[size-1]}, sums[leaf]) == nil {
				t.Fatalf("leaf %d of %d: the proof holds for another head", leaf, size)
			}
		}
		growth, err := tlog.ProveTree(int64(size), int64(1+size/2), among(leaves))
		if err != nil {
			t.Fatal(err)
		}
		if err := tlog.CheckTree(growth, int64(size), roots[size], int64(1+size/2), roots[1+size/2]); err != nil {
			t.Errorf("%d leaves do not begin with %d: %v", size, 1+size/2, err)
		}
	}
	if _, err := approvers.Prove(50, among(leaves), 3); err == nil {
		t.Error("a proof was made from leaves that are not there")
	}
	if _, err := approvers.Prove(5, among(leaves), 5); err == nil {
		t.Error("a proof was made for a leaf that the head does not cover")
	}
}
