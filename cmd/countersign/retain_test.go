package main

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/metrics"
	"countersign/store"
)

// The metrics count the conversations and the records that retention erases. The metrics also have the time at which
// retention last finished.
func TestMetricsOfRetention(t *testing.T) {
	db := emptyStore(t)
	err := db.Update(t.Context(), func(tx store.Tx) error {
		for _, chain := range []string{"req_1", "req_1", "req_1", "req_2"} { // their records are from 1970
			if err := appendRecord(tx, chain, approvers.AuditProposed, nil); err != nil {
				return err
			}
		}
		return tx.PutConversation(store.Conversation{ID: "conv_1", Place: "T0001/C0001/1", LastAt: time.Unix(1, 0)})
	})
	if err != nil {
		t.Fatal(err)
	}
	day := 24 * time.Hour
	policy := &approvers.Policy{Retention: approvers.Retention{Conversations: day, Records: 30 * day}}
	wf := workflow.New(workflow.Config{Store: db, Policy: func() *approvers.Policy { return policy }})
	m := metrics.New(db, metricsPolicy)
	log := slog.New(slog.DiscardHandler)
	last := func() string {
		t.Helper()
		for _, line := range scrape(t, m) {
			if at, ok := strings.CutPrefix(line, "countersign_retention_last_run_timestamp_seconds "); ok {
				return at
			}
		}
		t.Fatal("it is not said when the last time was")
		return ""
	}
	if last() != "0" {
		t.Errorf("before the first time, the last one was %s", last())
	}
	for range 2 { // the second round finds nothing left to erase
		if err := retain(t.Context(), wf, m, log); err != nil {
			t.Fatal(err)
		}
		wantLines(t, scrape(t, m), "countersign_retention_conversations_total 1", "countersign_retention_records_total 4")
	}
	through := last()
	if through == "0" {
		t.Error("the last time is not noted")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := retain(t.Context(), wf, m, log); err == nil || last() != through {
		t.Errorf("a time that failed (%v) is taken for one that was over: %s", err, last())
	}
}

// If the disk is full when retention is due, the bot tries again after ten minutes, and not at the next time when
// retention is due.
func TestRetentionAfterAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fullStore{Store: emptyStore(t)}
		db.full.Store(true)
		if err := db.Store.Update(t.Context(), func(tx store.Tx) error {
			return tx.PutConversation(store.Conversation{ID: "conv_1", Place: "T0001/C0001/1", LastAt: time.Unix(1, 0)})
		}); err != nil {
			t.Fatal(err)
		}
		policy := &approvers.Policy{Retention: approvers.Retention{Conversations: 24 * time.Hour}}
		log := slog.New(slog.DiscardHandler)
		wf := workflow.New(workflow.Config{Store: db, Log: log, Policy: func() *approvers.Policy { return policy }})
		m := metrics.New(db, metricsPolicy)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- forget(ctx, wf, m, log) }()
		time.Sleep(11 * time.Minute)
		wantLines(t, scrape(t, m), "countersign_retention_conversations_total 0")
		db.full.Store(false)
		time.Sleep(10 * time.Minute)
		wantLines(t, scrape(t, m), "countersign_retention_conversations_total 1")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// fullStore refuses to write while the disk is full.
type fullStore struct {
	store.Store
	full atomic.Bool
}

func (s *fullStore) Update(ctx context.Context, fn func(store.Tx) error) error {
	if s.full.Load() {
		return store.ErrFull
	}
	return s.Store.Update(ctx, fn)
}

// If a part of the store can't be read, retention still erases everything else.
func TestRetentionBesideDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := forgetful{emptyStore(t)}
		if err := db.Update(t.Context(), func(tx store.Tx) error {
			return tx.PutConversation(store.Conversation{ID: "conv_1", Place: "T0001/C0001/1", LastAt: time.Unix(1, 0)})
		}); err != nil {
			t.Fatal(err)
		}
		policy := &approvers.Policy{Retention: approvers.Retention{Conversations: 24 * time.Hour}}
		log := slog.New(slog.DiscardHandler)
		wf := workflow.New(workflow.Config{Store: db, Log: log, Policy: func() *approvers.Policy { return policy }})
		m := metrics.New(db, metricsPolicy)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- forget(ctx, wf, m, log) }()
		time.Sleep(11 * time.Minute)
		wantLines(t, scrape(t, m), "countersign_retention_conversations_total 1")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// forgetful is a store whose old counters can't be read.
type forgetful struct{ store.Store }

func (s forgetful) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.Store.Update(ctx, func(tx store.Tx) error { return fn(forgetfulTx{tx}) })
}

type forgetfulTx struct{ store.Tx }

func (forgetfulTx) PruneCounters(time.Time, int) (int, error) {
	return 0, &store.DamagedError{Damage: store.Damage{Bucket: "tallies", Key: "key"}}
}
