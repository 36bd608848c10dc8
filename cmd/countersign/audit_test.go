package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
	"countersign/store"
)

// altered is a store in which somebody changed what is read from it.
type altered struct {
	store.Store
	payload func(*approvers.AuditPayload)
	chain   func([]approvers.AuditRecord)
	journal func(*approvers.JournalEntry)
	head    func(*store.Head)
}

func (a altered) View(ctx context.Context, fn func(store.Reader) error) error {
	return a.Store.View(ctx, func(r store.Reader) error { return fn(alteredReader{r, a}) })
}

type alteredReader struct {
	store.Reader
	by altered
}

func (r alteredReader) AuditPayload(chain string, seq uint64) (approvers.AuditPayload, error) {
	p, err := r.Reader.AuditPayload(chain, seq)
	if err == nil && r.by.payload != nil {
		r.by.payload(&p)
	}
	return p, err
}

func (r alteredReader) Audit(chain string) ([]approvers.AuditRecord, error) {
	all, err := r.Reader.Audit(chain)
	if err == nil && r.by.chain != nil {
		r.by.chain(all)
	}
	return all, err
}

func (r alteredReader) Journal(from uint64, limit int) ([]approvers.JournalEntry, error) {
	all, err := r.Reader.Journal(from, limit)
	for i := range all {
		if r.by.journal != nil {
			r.by.journal(&all[i])
		}
	}
	return all, err
}

func (r alteredReader) LastHead() (store.Head, error) {
	h, err := r.Reader.LastHead()
	if err == nil && r.by.head != nil {
		r.by.head(&h)
	}
	return h, err
}

func (r alteredReader) Heads(after uint64, limit int) ([]store.Head, error) {
	all, err := r.Reader.Heads(after, limit)
	for i := range all {
		if r.by.head != nil {
			r.by.head(&all[i])
		}
	}
	return all, err
}

// The history of the exercise names who decided what.
func TestAudit(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if err := demo(t.Context(), demoOptions{addr: "127.0.0.1:0", data: dir, play: builtIn, noBrowser: true}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	db, err := openStore(filepath.Join(dir, "countersign.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	out.Reset()
	if err := audit.List(t.Context(), &out, db, audit.Filter{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"decided", "T0001/U0002", "T0001/U0003", `kind="reject"`, `kind="approve"`, `role="team-lead"`, "returned"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the list lacks %s:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "jane@example.com") || strings.Contains(out.String(), "undone") {
		t.Errorf("the list shows what people wrote:\n%s", out.String())
	}
	if err := audit.List(t.Context(), &out, db, audit.Filter{Chain: "req_none"}); cli.Code(historyError(err)) != cli.ExitNo {
		t.Errorf("an unknown request: %v", err)
	}
}
