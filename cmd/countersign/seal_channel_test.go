package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/demo/workspaceclient"
	"countersign/store"
)

// The bot posts signed heads to a channel while people work. What an auditor copies out of it fits the store, and shows
// that another was put in its place: an older one, or one that was made anew with the key itself.
func TestHeadsInAChannel(t *testing.T) {
	dir := t.TempDir()
	h := openHouse(t, dir, func(s *setup) {
		policies, err := newPolicies("demo.yaml", append(bytes.Clone(demoPolicy), "\naudit: {channel: \"#general\", every: 10m}\n"...), s.tools, s.log)
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
	wants := func(n int) { // and that it is recorded: the time until the next runs from there
		t.Helper()
		teo.wait("a head in the channel", func(ctx context.Context) (recorded bool, err error) {
			err = h.store.View(ctx, func(r store.Reader) error {
				all, err := r.OutboxMessagesOf("heads")
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
		t.Errorf("what is made anew with the key looks right without the channel, or this test shows little:\n%s", said)
	}
	if found, said := audit.verifyAt(early, copied); !found || !strings.Contains(said, "has another one") {
		t.Errorf("the history was made anew:\n%s", said)
	}
}

// copyStore copies the store while the bot works on it.
func (h *demoHarness) copyStore(path string) {
	h.Helper()
	var b bytes.Buffer
	_, err := h.store.Copy(h.Context(), &b)
	if err == nil {
		err = os.WriteFile(path, b.Bytes(), 0o600)
	}
	if err != nil {
		h.Fatal(err)
	}
}

// remake goes on with a store in another way than it did, as somebody does who has the key.
func remake(t *testing.T, path string, keys []approvers.SealKey) {
	t.Helper()
	db, err := openStore(path)
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
