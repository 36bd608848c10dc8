package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/cmd/countersign/openstore"
	"countersign/store"
)

// The bot can open a store of an earlier version, and continues the work in the store. Each archive holds the files of
// a demo. In this demo, a refund was approved and done, an e-mail was interrupted while it was sent, and another refund
// waits.
func TestStoresOfEarlierPrograms(t *testing.T) {
	archives, err := filepath.Glob("testdata/stores/*.tar.gz") // each archive is named after the commit of the program that wrote it
	if err != nil || len(archives) == 0 {
		t.Fatal("there are none", err)
	}
	for _, archive := range archives {
		t.Run(filepath.Base(archive), func(t *testing.T) {
			dir := t.TempDir()
			unpack(t, archive, dir)
			var out bytes.Buffer
			// The first lines of the transcript depend on the messages that the earlier program had shown before it
			// stopped. The end of the transcript is always the same.
			if err := demo(t.Context(), demoOptions{addr: "127.0.0.1:0", patience: patience, data: dir, play: "testdata/stores/goes-on.txt", noBrowser: true}, &out); err != nil && !strings.Contains(err.Error(), "differ from what was expected") {
				t.Fatalf("%v\n%s", err, out.String())
			}
			path := filepath.Join(dir, "countersign.db")
			t.Setenv("COUNTERSIGN_STORE", "bolt:"+path)
			if said, err := runCommand(t, "audit", "verify"); err != nil || !strings.Contains(said, "the history is whole") {
				t.Errorf("%v\n%s", err, said)
			}
			db, err := openstore.File(path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			postsReport(t, db)
			postsNotice(t, db)
			var ended []string
			err = db.View(t.Context(), func(r store.Reader) error {
				chains, err := r.AuditChains("req_", 100)
				if err != nil {
					return err
				}
				for _, id := range chains {
					if !strings.HasPrefix(id, "req_") {
						continue
					}
					req, err := r.Request(id)
					if err != nil {
						return err
					}
					e, err := r.Execution(req.Execution)
					if err != nil {
						return err
					}
					ended = append(ended, strings.Join([]string{req.Tool, string(req.State), string(e.State)}, " "))
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(ended)
			done := string(approvers.Consumed) + " succeeded"
			if want := []string{"issue_refund " + done, "issue_refund " + done, "send_email " + done}; !slices.Equal(ended, want) {
				t.Errorf("it ended as %q, want %q\n%s", ended, want, out.String())
			}
		})
	}
}

// postsReport posts a weekly report. No earlier program has written such a report's records.
func postsReport(t *testing.T, db store.Store) {
	t.Helper()
	monday := time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)
	policy := (&approvers.Policy{Report: approvers.ReportPost{Channel: "#support"}}).Indexed()
	wf := workflow.New(workflow.Config{Store: db, Policy: func() *approvers.Policy { return policy }, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return monday }})
	week, due, err := wf.History.ReportDue(t.Context())
	if err != nil || !due {
		t.Fatalf("due: %v, %v", due, err)
	}
	if err := wf.History.PostReport(t.Context(), settings.Report{Week: week.Name(), Asked: 7}); err != nil {
		t.Fatal(err)
	}
	var messages []store.OutboxMessage
	err = db.View(t.Context(), func(r store.Reader) (err error) { messages, err = r.OutboxMessagesOf("report"); return err })
	if err != nil || len(messages) != 1 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	if vm, err := wf.Views.Message(t.Context(), messages[0].ID); err != nil || vm.Report.Asked != 7 {
		t.Errorf("the report is %+v, %v", vm.Report, err)
	}
}

// postsNotice posts a notice for the operators. No earlier program has written such a notice's records.
func postsNotice(t *testing.T, db store.Store) {
	t.Helper()
	hook := &approvers.Webhook{URL: "https://ci.example.com/hook"}
	policy := (&approvers.Policy{Operators: approvers.OperatorPost{Channel: "#support"}, Clients: []approvers.Client{{Name: "ci", Webhook: hook}}}).Indexed()
	wf := workflow.New(workflow.Config{Store: db, Policy: func() *approvers.Policy { return policy }, Log: slog.New(slog.DiscardHandler)})
	gone := workflow.WebhookFailure{Why: "the receiver answered 410", Gone: true}
	if err := wf.Callers.NotTold(t.Context(), store.Timer{Kind: store.TimerWebhook, Ref: "call_0", Lane: "ci"}, hook.Target(), gone); err != nil {
		t.Fatal(err)
	}
	var messages []store.OutboxMessage
	err := db.View(t.Context(), func(r store.Reader) (err error) { messages, err = r.OutboxMessagesOf("operators"); return err })
	if err != nil || len(messages) != 1 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	if vm, err := wf.Views.Message(t.Context(), messages[0].ID); err != nil || len(vm.Notice.Problems) != 1 || vm.Notice.Problems[0].Of != "ci" {
		t.Errorf("the notice is %+v, %v", vm.Notice, err)
	}
}

// unpack writes the files of an archive into a directory.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plain, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(plain); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(files)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
