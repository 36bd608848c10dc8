package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/metrics"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/policyfile"
	"countersign/config"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
)

// When the bot has stopped, signed heads cover all of its records. These heads are in the file next to the store.
func TestBotSeals(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	dir := t.TempDir()
	var out bytes.Buffer
	if err := demo(t.Context(), demoOptions{addr: "127.0.0.1:0", patience: patience, data: dir, play: builtIn, noBrowser: true}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	beside := config.AuditBeside(filepath.Join(dir, "countersign.db"))
	db, err := openstore.File(filepath.Join(dir, "countersign.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(t.Context(), func(r store.Reader) error {
		last, err := r.LastHead()
		if err != nil {
			return err
		}
		left, err := r.Journal(last.Size, 10)
		if last.Size == 0 || len(left) > 0 {
			t.Errorf("head %d covers %d records, and %d are not sealed", last.Number, last.Size, len(left))
		}
		if n := headNumbers(t, readText(t, beside.Heads)); uint64(len(n)) != last.Number {
			t.Errorf("the file has %d heads of %d", len(n), last.Number)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if keys, err := audit.ReadKeyFile(beside.Key); err != nil || len(keys.Public) != 1 || !strings.HasPrefix(keys.Public[0], "countersign-") {
		t.Errorf("%v: %q", err, keys.Public)
	}
}

// headNumbers lists the numbers of the heads in a text.
func headNumbers(t *testing.T, text string) (numbers []uint64) {
	t.Helper()
	heads, faults := approvers.KeptHeads(text)
	if len(faults) > 0 {
		t.Errorf("%v in\n%s", faults, text)
	}
	for _, h := range heads {
		head, err := approvers.ReadHead(h.Note)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, head.Number)
	}
	return numbers
}

func readText(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// unreachableTarget is a destination to which heads can't be delivered.
type unreachableTarget struct{}

func (unreachableTarget) String() string                                    { return "somewhere" }
func (unreachableTarget) Last(context.Context, store.Store) (uint64, error) { return 0, nil }
func (unreachableTarget) Ship(context.Context, []store.Head) error          { return errors.New("unreachable") }

// If the bot can't deliver signed heads to their destination, /readyz and /metrics report the failure. The status of
// /readyz stays 200.
func TestHeadsThatAreNotBroughtAreShown(t *testing.T) {
	db := emptyStore(t)
	wf := workflow.New(workflow.Config{Store: db, Policy: func() *approvers.Policy { return &approvers.Policy{} }})
	sealer := audit.NewSealer([]approvers.SealKey{newKey(t, "countersign-test")}, []audit.HeadTarget{unreachableTarget{}}, wf.History, db, slog.New(slog.DiscardHandler))
	for n := range 3 {
		err := db.Update(t.Context(), func(tx store.Tx) error {
			a := approvers.AuditRecord{Chain: fmt.Sprint("req_", n), At: time.Unix(1, 0), Kind: approvers.AuditProposed}
			return tx.AppendAudit(a.Link(approvers.AuditRecord{}), nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		sealer.Finish(t.Context())
	}
	page := httptest.NewRecorder()
	admin(sealProbes(sealer), metrics.New(db, wf.Policy).Handler()).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if page.Code != 200 || !strings.Contains(page.Body.String(), "heads: somewhere: unreachable") || !strings.Contains(page.Body.String(), "seal: ok") {
		t.Errorf("/readyz says %d\n%s", page.Code, page.Body)
	}
	m := metrics.New(db, wf.Policy)
	m.WatchSeal(db, sealer)
	text := httptest.NewRecorder()
	m.Handler().ServeHTTP(text, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{"countersign_audit_unsealed 0", `countersign_audit_heads_waiting{to="somewhere"} 3`} {
		if !strings.Contains(text.Body.String(), want) {
			t.Errorf("/metrics lacks %s:\n%s", want, text.Body)
		}
	}
}

// The bot posts signed heads to a channel while people work. The heads that an auditor copies from the channel match
// the store. If somebody replaces the store with an older store, or with a new store under the same key, the heads in
// the channel reveal the replacement.
func TestHeadsInAChannel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := openDemoHarness(t, dir, func(s *setup) {
		policies, err := policyfile.New("demo.yaml", append(bytes.Clone(demoPolicy), "\naudit: {channel: \"#general\", every: 10m}\n"...), s.tools, s.log)
		if err != nil {
			t.Fatal(err)
		}
		s.policies = policies
	})
	sam, teo := h.watcher("sam"), h.watcher("teo")
	heads := func() (all []workspaceclient.Message) {
		t.Helper()
		messages, err := teo.Messages(h.Context(), "#general", "")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			if strings.Contains(m.Text, "Audit head") {
				all = append(all, m)
			}
		}
		return all
	}
	wants := func(n int) { // also waits until the head is recorded, because the interval until the next head begins at this time
		t.Helper()
		var all []store.OutboxMessage
		defer func() {
			if t.Failed() {
				t.Logf("%d heads are in the channel, by %s; their message is %+v", len(heads()), h.clock.now(), all)
			}
		}()
		teo.wait("a head in the channel", func(ctx context.Context) (recorded bool, err error) {
			err = h.store.View(ctx, func(r store.Reader) (err error) {
				all, err = r.OutboxMessagesOf("heads")
				recorded = len(all) == 1 && all[0].State == store.OutboxShown && len(heads()) == n
				return err
			})
			return recorded, err
		})
	}
	sam.says("#support", "", "@Countersign refund ORD-123, it arrived broken")
	teo.sees("U0BOT", "", "Refund of $49.99")
	wants(1)
	early := filepath.Join(dir, "early.db")
	h.copyStore(early)
	for n := 2; n <= 3; n++ {
		h.clock.set(h.clock.now().Add(11 * time.Minute))
		sam.says("#support", "", "@Countersign where is ORD-123?")
		wants(n)
	}
	now := filepath.Join(dir, "now.db")
	h.copyStore(now)

	copied := filepath.Join(dir, "copied.txt")
	var text strings.Builder
	for _, m := range heads() {
		text.WriteString("Countersign  APP  12:00\n" + m.Text + "\n\n")
	}
	if err := os.WriteFile(copied, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	audit := &auditFixture{T: t, keys: h.seal.keys}
	if found, said := audit.verifyAt(now, copied); found || !strings.Contains(said, "looked for 3 heads that are kept elsewhere") {
		t.Errorf("nobody did anything:\n%s", said)
	}
	if found, said := audit.verifyAt(early, copied); !found || !strings.Contains(said, "put back to what it was before") {
		t.Errorf("the store was put back:\n%s", said)
	}
	remake(t, early, h.seal.keys)
	if found, said := audit.verifyAt(early); found {
		t.Errorf("a store that is re-created with the key must look right without the channel, or this test shows little:\n%s", said)
	}
	if found, said := audit.verifyAt(early, copied); !found || !strings.Contains(said, "has another head with this number") {
		t.Errorf("the history was re-created:\n%s", said)
	}
}

// copyStore copies the store while the bot works on it.
func (h *demoHarness) copyStore(path string) {
	h.Helper()
	var b bytes.Buffer
	_, err := h.store.(*bolt.Store).Copy(h.Context(), &b)
	if err == nil {
		err = os.WriteFile(path, b.Bytes(), 0o600)
	}
	if err != nil {
		h.Fatal(err)
	}
}

// remake gives a store a different history, as a person with the key could do.
func remake(t *testing.T, path string, keys []approvers.SealKey) {
	t.Helper()
	db, err := openstore.File(path)
	if err != nil {
		t.Fatal(err)
	}
	wf := workflow.New(workflow.Config{Store: db, Policy: func() *approvers.Policy { return &approvers.Policy{} }})
	for range 100 {
		err = errors.Join(err, db.Update(t.Context(), func(tx store.Tx) error {
			return appendRecord(tx, "req_other", approvers.AuditProposed, nil)
		}))
		for n := 1; n > 0 && err == nil; {
			n, err = wf.History.Seal(t.Context(), keys...)
		}
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}
