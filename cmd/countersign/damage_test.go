package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
	"countersign/store"
)

// oneRequest is a store with a waiting request and its history.
func oneRequest(t *testing.T, change func(*approvers.Request)) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store.db")
	db, err := openStore(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r := approvers.Request{
		ID: "req_WAITING", State: approvers.Pending, Tool: "pay", Execution: "exec_1", Args: []byte(`{"amount":1}`), CreatedAt: time.Unix(1, 0).UTC(),
		Plan: approvers.Plan{Stages: []approvers.Stage{{Approver: "lead", Quorum: 1}, {Approver: "director", Quorum: 2}}},
	}
	r.Digest = approvers.Digest(r.Execution, r.Tool, "", r.Args)
	proposed := approvers.AuditRecord{Chain: r.ID, Kind: approvers.AuditProposed, Facts: map[string]string{
		"tool": "pay", "execution": "exec_1", "digest": r.Digest, "stages": r.Plan.StageFacts(), "risk": r.Plan.Risk.String(),
	}}.Link(approvers.AuditRecord{})
	if change != nil {
		change(&r)
	}
	err = db.Update(t.Context(), func(tx store.Tx) error {
		if err := tx.PutRequest(r); err != nil {
			return err
		}
		return tx.AppendAudit(proposed, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// toldOf opens a store and says what /readyz and audit verify say of it.
func toldOf(t *testing.T, path string) (verified int, said string, ready error) {
	t.Helper()
	db, err := openStore(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var out bytes.Buffer
	err = verifyAudit(t.Context(), &out, db, verifyOptions{}, audit.KeptHeads{})
	return cli.Code(err), out.String(), undamaged(db)(t.Context())
}

// One changed bit in the quorum of a waiting request: /readyz and audit verify name the request, and none of them says
// ok.
func TestFlippedQuorum(t *testing.T) {
	path := oneRequest(t, nil)
	if verified, said, ready := toldOf(t, path); ready != nil || verified != cli.ExitDone {
		t.Fatalf("a whole store: %v, %d, %s", ready, verified, said)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.ReplaceAll(file, []byte(`"quorum":2`), []byte(`"quorum":0`))
	if bytes.Equal(file, flipped) {
		t.Fatal("there is no quorum in the file")
	}
	if err := os.WriteFile(path, flipped, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // when it is found, and after the next start
		verified, said, ready := toldOf(t, path)
		if ready == nil || !strings.Contains(ready.Error(), "requests, row req_WAITING") {
			t.Errorf("/readyz: %v", ready)
		}
		if verified != cli.ExitNo || !strings.Contains(said, "req_WAITING") {
			t.Errorf("audit verify: code %d\n%s", verified, said)
		}
	}
}

// The same change with the right checksum is found by the history.
func TestQuorumChangedBehindTheChecksum(t *testing.T) {
	path := oneRequest(t, func(r *approvers.Request) { r.Plan.Stages[1].Quorum = 0 })
	verified, said, _ := toldOf(t, path)
	if verified != cli.ExitNo || !strings.Contains(said, `request req_WAITING: its stages is "lead,director", and was recorded as "lead,2 x director"`) {
		t.Errorf("audit verify: code %d\n%s", verified, said)
	}
}
