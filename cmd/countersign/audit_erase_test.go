package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/auditcmd"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/policycmd"
	"countersign/cmd/countersign/task"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
)

// An erasure removes a text from the history. The erasure does not change the conversation, so messages and answers may
// still contain the text. No other row of the file contains the text in plain form or as base64. The history still
// verifies.
func TestAuditErase(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "countersign.db")
	var out bytes.Buffer
	if err := demo(t.Context(), demoOptions{addr: "127.0.0.1:0", patience: patience, data: dir, play: builtIn, noBrowser: true}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	const word = "cancelling can't be undone" // a word in the reason with which somebody rejected a call
	if in := rowsWith(t, path, word); in["audit_payloads"] < 2 || in["requests"] == 0 || in["renderings"] == 0 || in["calls"] == 0 {
		t.Fatalf("the words are in %v: this test looks at the wrong thing", in)
	}
	db, err := openstore.File(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rejected, _, err := audit.Filter{Tool: "cancel_account", Kinds: []string{"decided"}}.Records(t.Context(), db)
	if err != nil || len(rejected) != 1 {
		t.Fatal(rejected, err)
	}
	alone := func() (*workflow.Workflow, error) {
		return workflow.New(workflow.Config{Store: db, Policy: func() *approvers.Policy { return &approvers.Policy{} }}), nil
	}
	w := task.Env{Store: db, Who: approvers.Operator("root"), Out: &out, Workflow: alone, Bare: alone}
	before, err := policycmd.StoredFixtures(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := runTask(t.Context(), "audit erase", w, map[string]string{"chain": rejected[0].Chain, "reason": "she asked us to"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "texts of 1 chain, and") {
		t.Errorf("it says %s", out.String())
	}
	if after, err := policycmd.StoredFixtures(t.Context(), db); err != nil || len(after) != len(before)-1 {
		t.Errorf("%d calls can be replayed, of %d: %v; the erased one can't", len(after), len(before), err)
	}
	out.Reset()
	if err := pendingTask.Run(t.Context(), w, rejected[0].Chain); err != nil {
		t.Fatal(err)
	}
	p, err := parsePending(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	out.Reset()
	p.print(&out, true)
	if text := out.String(); !strings.Contains(text, "\nArguments  erased: \"countersign audit list --long --request "+rejected[0].Chain+"\" says when and by whom\n") || strings.Contains(text, "as they are sent to the tool") || !strings.Contains(text, "\nWords      erased\n") {
		t.Errorf("it is shown as\n%s", text)
	}
	for id, want := range map[string]string{ // retention erases the request, and not its history
		rejected[0].Chain + "x": "there is no request", rejected[0].Chain: "`countersign audit list --request " + rejected[0].Chain + "` shows what happened to it",
	} {
		gone := w
		gone.Workflow = func() (*workflow.Workflow, error) {
			return workflow.New(workflow.Config{Store: withoutRequests{db}, Policy: func() *approvers.Policy { return &approvers.Policy{} }}), nil
		}
		if err := pendingTask.Run(t.Context(), gone, id); cli.Code(err) != cli.ExitNo || !strings.Contains(err.Error(), want) {
			t.Errorf("%s without its request: %v", id, err)
		}
	}
	out.Reset()
	if err := audit.List(t.Context(), &out, db, audit.ListOptions{Filter: audit.Filter{Chain: rejected[0].Chain}, Long: true}); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^\S+ \S+ +erased +operator:root `).MatchString(out.String()) {
		t.Errorf("that says\n%s", out.String())
	}
	out.Reset()
	if err := auditcmd.Verify(t.Context(), &out, db, audit.VerifyOptions{}); err != nil || !strings.Contains(out.String(), "more were erased, as the history records") {
		t.Errorf("the history after it: %v\n%s", err, out.String())
	}
	if err := runTask(t.Context(), "audit erase", w, map[string]string{"chain": "req_none", "reason": "x"}); cli.Code(err) != cli.ExitNo {
		t.Errorf("what is not there: %v", err)
	}
	if err := errors.Join(db.Check(t.Context()), db.Close()); err != nil {
		t.Error(err)
	}
	in := rowsWith(t, path, word)
	delete(in, "messages")
	if in["renderings"] == 1 { // the agent's answer quotes the reason, and belongs to the conversation
		delete(in, "renderings")
	}
	if len(in) > 0 {
		t.Errorf("the words are still in %v", in)
	}
}

// withoutRequests is a store after retention, without requests.
type withoutRequests struct{ store.Store }

type withoutRequestsReader struct{ store.Reader }

func (s withoutRequests) View(ctx context.Context, fn func(store.Reader) error) error {
	return s.Store.View(ctx, func(r store.Reader) error { return fn(withoutRequestsReader{r}) })
}

func (withoutRequestsReader) Request(string) (approvers.Request, error) {
	return approvers.Request{}, store.ErrNotFound
}

// rowsWith counts, for each bucket, the rows that contain a text in plain form or as base64.
func rowsWith(t *testing.T, path, text string) map[string]int {
	t.Helper()
	forms := []string{text, strings.ReplaceAll(text, "'", `\u0027`)}
	for skip := range 3 { // the base64 of a text depends on the text's position
		forms = append(forms, base64.StdEncoding.EncodeToString([]byte(text[skip:skip+15])))
	}
	// Not ReadOnly: bbolt would not unlock the file, and a process that another test starts could then keep the lock.
	raw, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	err = raw.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(_, v []byte) error {
				if string(name) != "countersign" {
					v = unsummed(v)
				}
				v, err := bolt.Unpack(string(name), v)
				if err != nil {
					return err
				}
				for _, form := range forms {
					if bytes.Contains(v, []byte(form)) {
						out[string(name)]++
						break
					}
				}
				return nil
			})
		})
	})
	if err := errors.Join(err, raw.Close()); err != nil {
		t.Fatal(err)
	}
	return out
}

// recordOf parses the record in a row of the bucket audit. recordOf also returns the leaf, which is the record's number
// in the journal.
func recordOf(row string) (a approvers.AuditRecord, leaf string) {
	v, err := bolt.Unpack("audit", []byte(row))
	if err == nil {
		a, err = approvers.ParseAuditRecord(v[40:])
	}
	if err != nil {
		panic(err)
	}
	return a, string(v[:8])
}

// withLeaf returns a row of the bucket audit with another leaf, which is the number in the journal.
func withLeaf(leaf, row string) string {
	v, err := bolt.Unpack("audit", []byte(row))
	if err != nil {
		panic(err)
	}
	return leaf + string(v[8:])
}
