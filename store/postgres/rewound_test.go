package postgres_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/postgres"
)

// The database loses its newest signed heads, as after a failover to a standby that lacked them. The replica that
// signed the heads, and a replica that has only seen them, stop: on a new connection, before the next head, and at the
// next heartbeat.
func TestRewound(t *testing.T) {
	t.Parallel()
	sign := func(s *postgres.Store, n int) error {
		return s.Update(t.Context(), func(tx store.Tx) error {
			chain := fmt.Sprint("chain-", n, time.Now().UnixNano())
			if err := tx.AppendAudit(approvers.AuditRecord{Chain: chain, Kind: approvers.AuditStarted, At: time.Now()}.Link(approvers.AuditRecord{}), nil); err != nil {
				return err
			}
			return tx.PutHead(store.Head{Number: uint64(n), Size: uint64(n), Note: "head " + chain})
		})
	}
	rewind := "DELETE FROM audit_heads WHERE number > 1; DELETE FROM audit_records WHERE chain LIKE 'chain-2%'"
	stops := func(t *testing.T, s *postgres.Store) {
		t.Helper()
		select {
		case <-s.Broken():
		case <-time.After(testkit.Patience):
			t.Fatal("the store does not stop")
		}
		if h, ok := s.Newest(); !errors.Is(s.Failure(), store.ErrRewound) || !ok || h.Number != 2 {
			t.Errorf("the store stopped with %v, and its newest head is %d", s.Failure(), h.Number)
		}
		if err := sign(s, 2); !errors.Is(err, store.ErrRewound) {
			t.Errorf("the next head: %v", err)
		}
	}
	for name, lose := range map[string]func(t *testing.T, url string, s *postgres.Store){
		"before the next head": func(t *testing.T, _ string, s *postgres.Store) {
			if err := s.Exec(t.Context(), rewind); err != nil {
				t.Fatal(err)
			}
			if err := sign(s, 2); !errors.Is(err, store.ErrRewound) {
				t.Errorf("the head is signed again: %v", err)
			}
		},
		"on a new connection": func(t *testing.T, url string, s *postgres.Store) {
			other := open(t, url)
			if err := other.Exec(t.Context(), rewind); err != nil {
				t.Fatal(err)
			}
			s.Renew()
			ran := false
			err := s.Update(t.Context(), func(store.Tx) error { ran = true; return nil })
			if ran || !errors.Is(err, store.ErrRewound) {
				t.Errorf("a transaction ran: %t, %v", ran, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := at(empty(t))
			s := open(t, url)
			if err := errors.Join(sign(s, 1), sign(s, 2)); err != nil {
				t.Fatal(err)
			}
			lose(t, url, s)
			stops(t, s)
		})
	}
	t.Run("at the next heartbeat of a replica that has seen the head", func(t *testing.T) {
		t.Parallel()
		url := at(empty(t))
		signer := open(t, url)
		if err := errors.Join(sign(signer, 1), sign(signer, 2)); err != nil {
			t.Fatal(err)
		}
		s, _ := join(t, url, postgres.ReplicaOptions{Beat: 10 * time.Millisecond})
		if err := s.Exec(t.Context(), rewind); err != nil {
			t.Fatal(err)
		}
		stops(t, s)
	})
}

// Working lists the live replicas of other processes.
func TestWorking(t *testing.T) {
	t.Parallel()
	url := at(empty(t))
	visitor := open(t, url)
	a, _ := join(t, url, postgres.ReplicaOptions{Name: "a"})
	_, b := join(t, url, postgres.ReplicaOptions{Name: "b"})
	for s, want := range map[*postgres.Store]string{visitor: "[a b]", a: "[b]"} {
		if got, err := s.Working(t.Context()); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%v work (%v), want %s", got, err, want)
		}
	}
	b.Leave()
	if got, err := visitor.Working(t.Context()); err != nil || fmt.Sprint(got) != "[a]" {
		t.Errorf("%v work (%v)", got, err)
	}
}
