package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/auditcmd"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/config"
	"countersign/store"
	"countersign/store/bolt"
)

// auditFixture is a store with a real history, and copies of the heads outside of the store. Tests tamper with the
// store.
type auditFixture struct {
	*testing.T
	path  string // path of the store
	early string // a copy of the store from before the last heads
	heads string // the heads that are kept outside of the store
	keys  []approvers.SealKey
}

// auditBuckets lists the buckets of the audit by their names in the file.
var auditBuckets = []string{"audit", "audit_payloads", "audit_journal", "audit_heads"}

// newAuditFixture plays the built-in scenario twice. Between the two plays, newAuditFixture erases texts and prunes a
// chain.
func newAuditFixture(t *testing.T) *auditFixture {
	t.Helper()
	dir := t.TempDir()
	s := &auditFixture{T: t, path: filepath.Join(dir, "countersign.db"), early: filepath.Join(dir, "early.db"), heads: filepath.Join(dir, "kept")}
	play := func() {
		var out bytes.Buffer
		if err := demo(t.Context(), demoOptions{addr: "127.0.0.1:0", patience: patience, data: dir, play: builtIn, noBrowser: true}, &out); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
	}
	play()
	keys, err := audit.ReadKeyFile(config.AuditBeside(s.path).Key)
	if s.keys = keys.Private; err != nil {
		t.Fatal(err)
	}
	s.work(s.path, func(db *bolt.Store, wf *workflow.Workflow) error {
		return db.Update(t.Context(), func(tx store.Tx) error {
			chains, err := tx.AuditChains("", 100)
			if err != nil {
				return err
			}
			seqs, err := tx.ErasePayloads(chains[0])
			if err != nil {
				return err
			}
			if err := appendRecord(tx, chains[0], approvers.AuditErased, approvers.Erasure{Seqs: seqs}.Facts()); err != nil {
				return err
			}
			head, err := tx.AuditHead(chains[1])
			if err != nil {
				return err
			}
			n, err := tx.PruneChain(chains[1])
			return errors.Join(err, appendRecord(tx, approvers.InstallationChain, approvers.AuditPruned,
				approvers.Pruning{Chain: chains[1], Records: uint64(n), Head: head.Hash}.Facts()))
		})
	})
	if err := os.Remove(filepath.Join(dir, "shop.json")); err != nil { // so that the same scenario can be played again
		t.Fatal(err)
	}
	play()
	s.copy(s.path, s.early)
	for n := range 3 { // a few small heads at the end
		s.work(s.path, func(db *bolt.Store, wf *workflow.Workflow) error {
			return db.Update(t.Context(), func(tx store.Tx) error {
				return appendRecord(tx, "req_last", approvers.AuditProposed, map[string]string{"n": fmt.Sprint(n)})
			})
		})
	}
	s.copy(config.AuditBeside(s.path).Heads, s.heads)
	if found, said := s.verify(s.heads); found {
		t.Fatalf("nobody did anything yet:\n%s", said)
	}
	return s
}

func appendRecord(tx store.Tx, chain string, kind approvers.AuditKind, facts map[string]string) error {
	head, err := tx.AuditHead(chain)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return tx.AppendAudit(approvers.AuditRecord{Chain: chain, At: time.Unix(1, 0), Kind: kind, Facts: facts}.Link(head), nil)
}

// work changes a store in the way in which the program changes it. work also signs heads over the new records, and
// writes the heads to their file.
func (s *auditFixture) work(path string, change func(*bolt.Store, *workflow.Workflow) error) {
	s.Helper()
	db, err := openstore.File(path)
	if err != nil {
		s.Fatal(err)
	}
	wf := workflow.New(workflow.Config{Store: db, Policy: func() *approvers.Policy { return &approvers.Policy{} }})
	err = change(db, wf)
	for n := 1; n > 0 && err == nil; {
		n, err = wf.History.Seal(s.Context(), s.keys...)
	}
	c := audit.NewHeadShipper(audit.HeadFile(config.AuditBeside(s.path).Heads), db, slog.New(slog.DiscardHandler))
	c.Ship(s.Context())
	err = errors.Join(err, c.Err(), db.Close())
	if err != nil {
		s.Fatal(err)
	}
}

func (s *auditFixture) copy(from, to string) {
	s.Helper()
	raw, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, raw, 0o600)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// verify verifies the store with the pinned key and with heads from outside of the store.
func (s *auditFixture) verify(heads ...string) (found bool, said string) {
	s.Helper()
	return s.verifyAt(s.path, heads...)
}

func (s *auditFixture) verifyAt(path string, heads ...string) (found bool, said string) {
	s.Helper()
	var o audit.VerifyOptions
	for _, k := range s.keys {
		o.Keys = append(o.Keys, k.Public)
	}
	for _, path := range heads {
		if err := o.Kept.Add(path, readText(s.T, path)); err != nil {
			s.Fatal(err)
		}
	}
	db, err := openstore.File(path)
	if err != nil {
		s.Fatal(err)
	}
	var out bytes.Buffer
	err = auditcmd.Verify(s.Context(), &out, db, o)
	if err := db.Close(); err != nil {
		s.Fatal(err)
	}
	switch {
	case err == nil:
		return false, out.String()
	case cli.Code(err) != cli.ExitNo:
		s.Fatalf("the verification ended with %v", err)
	}
	return true, out.String()
}

// tampering is one manipulation of the file.
type tampering struct {
	kind string // flip, delete, reorder, truncate or replace
	what string
	do   func(tx *bbolt.Tx) error
	// elsewhere is true if the signatures in the store match the changed content. In this case, only heads from outside
	// of the store reveal the tampering.
	elsewhere bool
}

// tried counts tamperings by kind.
type tried struct{ tried, found, needed map[string]int }

func newTried() *tried {
	return &tried{map[string]int{}, map[string]int{}, map[string]int{}}
}

// try does one tampering, verifies the store, and undoes the tampering.
func (s *auditFixture) try(t tampering, count *tried) {
	s.Helper()
	raw, err := bbolt.Open(s.path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		s.Fatal(err)
	}
	var undo []func(tx *bbolt.Tx) error
	err = raw.Update(func(tx *bbolt.Tx) error {
		before := auditRows(tx)
		if err := t.do(tx); err != nil {
			return err
		}
		undo = putBack(before, auditRows(tx))
		return nil
	})
	if err := errors.Join(err, raw.Close()); err != nil {
		s.Fatalf("%s: %s: %v", t.kind, t.what, err)
	}
	if len(undo) == 0 {
		s.Fatalf("%s: %s changed nothing", t.kind, t.what)
	}
	count.tried[t.kind]++
	found, said := s.verify()
	if t.elsewhere {
		// The rows of requests and executions still have their original state, so they may reveal the tampering.
		if found && !strings.HasPrefix(said, "request ") && !strings.HasPrefix(said, "execution ") {
			s.Errorf("%s: %s: it takes no heads from elsewhere:\n%s", t.kind, t.what, said)
		}
		count.needed[t.kind]++
		found, said = s.verify(s.heads)
	}
	if found {
		count.found[t.kind]++
	} else {
		s.Errorf("%s: %s: not found\n%s", t.kind, t.what, said)
	}
	raw, err = bbolt.Open(s.path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		s.Fatal(err)
	}
	err = raw.Update(func(tx *bbolt.Tx) error {
		for _, f := range undo {
			if err := f(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, raw.Close()); err != nil {
		s.Fatal(err)
	}
}

// auditRows returns all rows of the audit and of the settings, by bucket and key, without their checksums.
func auditRows(tx *bbolt.Tx) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, name := range append(auditBuckets, "settings") {
		out[name] = map[string]string{}
		c := tx.Bucket([]byte(name)).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			out[name][string(k)] = string(unsummed(v))
		}
	}
	return out
}

// putBack returns the edits that restore the original rows.
func putBack(before, after map[string]map[string]string) (undo []func(tx *bbolt.Tx) error) {
	for name := range before {
		for k, v := range before[name] {
			if now, there := after[name][k]; !there || now != v {
				undo = append(undo, func(tx *bbolt.Tx) error { return put(name, k, v)(tx) })
			}
		}
		for k := range after[name] {
			if _, there := before[name][k]; !there {
				undo = append(undo, func(tx *bbolt.Tx) error { return tx.Bucket([]byte(name)).Delete([]byte(k)) })
			}
		}
	}
	return undo
}

// read returns the current rows of the audit.
func (s *auditFixture) read() (rows map[string]map[string]string) {
	s.Helper()
	// Not ReadOnly: bbolt would not unlock the file, and a process that another test starts could then keep the lock.
	raw, err := bbolt.Open(s.path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		s.Fatal(err)
	}
	err = raw.View(func(tx *bbolt.Tx) error { rows = auditRows(tx); return nil })
	if err := errors.Join(err, raw.Close()); err != nil {
		s.Fatal(err)
	}
	return rows
}
