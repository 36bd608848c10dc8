package main

import (
	"bytes"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
)

// In an early version, retention could overwrite a record of the installation's chain with another record. Verification
// reports such a record, and names the early version as the cause.
func TestVerifyTellsOfOverwrittenRecords(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	l := newAuditFixture(t)
	if _, said := l.verify(l.heads); strings.Contains(said, "early version") {
		t.Errorf("nothing is wrong, and it says:\n%s", said)
	}
	db, err := bbolt.Open(l.path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		chain := []byte(approvers.InstallationChain)
		c := tx.Bucket([]byte("audit")).Cursor()
		var last []byte
		for k, _ := c.Seek(chain); bytes.HasPrefix(k, chain); k, _ = c.Next() {
			last = bytes.Clone(k)
		}
		return tx.Bucket([]byte("audit")).Delete(last)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	l.work(l.path, func(db *bolt.Store, _ *workflow.Workflow) error {
		return db.Update(t.Context(), func(tx store.Tx) error {
			return appendRecord(tx, approvers.InstallationChain, approvers.AuditPruned, approvers.Pruning{Chain: "req_x", Records: 1}.Facts())
		})
	})
	if found, said := l.verify(l.heads); !found || !strings.Contains(said, "early version did that when retention removed records") {
		t.Errorf("it says:\n%s", said)
	}
}
