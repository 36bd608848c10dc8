package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
	"countersign/store/postgres"
)

// While the server refuses writes, the store says why, until the cause is gone.
func TestRefused(t *testing.T) {
	t.Parallel()
	name := empty(t)
	s := open(t, asBot(name))
	write := func() error {
		return s.Update(t.Context(), func(tx store.Tx) error {
			return errors.Join(tx.PutTurn(approvers.Turn{ID: rand.Text(), State: approvers.TurnStopped}), tx.SetTimer(store.Timer{Kind: store.TimerPause, Ref: "a", Due: time.Now()}))
		})
	}
	other := func() error {
		return s.Update(t.Context(), func(tx store.Tx) error {
			return tx.PutTurn(approvers.Turn{ID: rand.Text(), State: approvers.TurnStopped})
		})
	}
	if err := errors.Join(write(), s.Refused(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ cause, undo, want string }{
		{"REVOKE UPDATE ON countersign.timers FROM " + role, "GRANT UPDATE ON countersign.timers TO " + role, "GRANT UPDATE ON countersign.timers TO " + role + ";"},
		{"ALTER TABLE countersign.timers RENAME TO moved", "ALTER TABLE countersign.moved RENAME TO timers", "lacks timers: somebody has renamed or dropped it"},
		{"ALTER TABLE countersign.timers ENABLE ROW LEVEL SECURITY", "ALTER TABLE countersign.timers DISABLE ROW LEVEL SECURITY", "run: ALTER TABLE countersign.timers DISABLE ROW LEVEL SECURITY;"},
		{"ALTER TABLE countersign.timers RENAME COLUMN put_off TO postponed", "ALTER TABLE countersign.timers RENAME COLUMN postponed TO put_off", "somebody has changed the tables in"},
	} {
		if err := execIn(name, c.cause); err != nil {
			t.Fatal(err)
		}
		if err := write(); err == nil {
			t.Errorf("after %s, a write succeeds", c.cause)
		}
		if err := other(); err != nil {
			t.Error(err)
		}
		if err := s.Refused(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("after %s: %v, want %q", c.cause, err, c.want)
		}
		if err := execIn(name, c.undo); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(write(), s.Refused(t.Context())); err != nil {
			t.Errorf("after %s: %v", c.undo, err)
		}
	}
}

// If the database hangs, the store says why: a synchronous standby is missing, the network is silent, or a lock is held.
func TestHanging(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	own := pgserver.New(t, "fsync=off", "wal_level=replica", "max_wal_senders=1")
	proxy := pgserver.NewProxy(t, own)
	address, err := url.Parse(proxy.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	query.Set("connect_timeout", "1")
	address.RawQuery = query.Encode()
	if _, err := postgres.Migrate(t.Context(), address.String(), false); err != nil {
		t.Fatal(err)
	}
	s := open(t, address.String())
	says := func(want string) {
		t.Helper()
		if err := s.Hanging(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the store says %v, want %q", err, want)
		}
	}
	says("answers new connections")
	if err := own.SQL("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'none'"); err != nil {
		t.Fatal(err)
	}
	if err := own.SQL("postgres", "SELECT pg_reload_conf()"); err != nil {
		t.Fatal(err)
	}
	ended, stop := make(chan error, 1), make(chan struct{})
	go func() {
		for { // the server uses the new setting some time after the reload
			err := s.Update(context.WithoutCancel(t.Context()), func(tx store.Tx) error {
				return tx.PutTurn(approvers.Turn{ID: rand.Text(), State: approvers.TurnStopped})
			})
			select {
			case <-stop:
				ended <- err
				return
			default:
			}
		}
	}()
	for end := time.Now().Add(10 * time.Second); !strings.Contains(s.Hanging(t.Context()).Error(), "a synchronous standby") && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	close(stop)
	says("start the standby, or change synchronous_standby_names")
	if err := own.SQL("postgres", "SET synchronous_commit = local; ALTER SYSTEM RESET synchronous_standby_names"); err != nil {
		t.Fatal(err)
	}
	if err := own.SQL("postgres", "SELECT pg_reload_conf()"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	proxy.Set(pgserver.Network{FromServer: true})
	says("does not answer")
	proxy.Set(pgserver.Network{})
}
