package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/store"
)

// altered is a store in which somebody changed the records or payloads that are read from it.
type altered struct {
	store.Store
	record  func(*approvers.AuditRecord)
	payload func(*approvers.AuditPayload)
}

func (a altered) View(ctx context.Context, fn func(store.Reader) error) error {
	return a.Store.View(ctx, func(r store.Reader) error { return fn(alteredReader{r, a}) })
}

type alteredReader struct {
	store.Reader
	by altered
}

func (r alteredReader) Audit(chain string) ([]approvers.AuditRecord, error) {
	records, err := r.Reader.Audit(chain)
	for i := range records {
		if r.by.record != nil {
			r.by.record(&records[i])
		}
	}
	return records, err
}

func (r alteredReader) AuditPayload(chain string, seq uint64) (approvers.AuditPayload, error) {
	p, err := r.Reader.AuditPayload(chain, seq)
	if err == nil && r.by.payload != nil {
		r.by.payload(&p)
	}
	return p, err
}

// The history of the exercise names who decided what; a changed record and a changed payload are found.
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
	if err := listAudit(t.Context(), &out, db, ""); err != nil {
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
	if err := listAudit(t.Context(), &out, db, "req_none"); exitCode(err) != exitNo {
		t.Errorf("an unknown request: %v", err)
	}

	out.Reset()
	if err := verifyAudit(t.Context(), &out, db); err != nil {
		t.Errorf("an untouched history: %v\n%s", err, out.String())
	}
	for name, a := range map[string]altered{
		"who": {Store: db, record: func(r *approvers.AuditRecord) {
			if r.Actor == "T0001/U0002" {
				r.Actor = "T0001/U0003"
			}
		}},
		"payload": {Store: db, payload: func(p *approvers.AuditPayload) { p.Body = append(p.Body, '!') }},
	} {
		out.Reset()
		if err := verifyAudit(t.Context(), &out, a); exitCode(err) != exitNo {
			t.Errorf("a changed %s was not found: %v\n%s", name, err, out.String())
		}
	}
}
