package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
	"countersign/store/postgres"
)

// closesWithin is the time limit for Close if the database does not answer. Close takes about 8 seconds, and a busy
// machine may need longer.
const closesWithin = 15 * time.Second

// While transactions run, the machine of the database stops answering. Close does not wait until these transactions
// time out. The outcome of the transaction that had sent its COMMIT is unknown.
func TestCloseWithoutAnswer(t *testing.T) {
	t.Parallel()
	p, url := through(t, empty(t))
	stopping := make(chan struct{})
	s, _ := join(t, url, postgres.ReplicaOptions{Beat: time.Second, Stopping: stopping})
	if err := s.Hold(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	close(stopping)
	if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.PutTurn(approvers.Turn{ID: "before"}) }); err != nil {
		t.Fatalf("the process is stopping, and the database answers: %v", err)
	}
	read := func(r store.Reader, id string) error { _, err := r.Turn(id); return store.IgnoreNotFound(err) }
	silent, began := make(chan struct{}), make(chan struct{})
	view, update, commit := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	// reads returns a closure that reads before and after the database stops answering.
	reads := func(r store.Reader) error {
		if err := read(r, "one"); err != nil {
			return err
		}
		began <- struct{}{}
		<-silent
		return read(r, "other")
	}
	go func() { view <- s.View(t.Context(), reads) }()
	go func() { update <- s.Update(t.Context(), func(tx store.Tx) error { return reads(tx) }) }()
	<-began
	<-began
	sent := make(chan struct{})
	p.When(func(statement string) pgserver.Cutting {
		if statement != "commit" {
			return pgserver.Pass
		}
		close(sent)
		return pgserver.Hang
	})
	go func() {
		commit <- s.Update(t.Context(), func(tx store.Tx) error { return tx.PutTurn(approvers.Turn{ID: "sent"}) })
	}()
	<-sent
	p.Set(pgserver.Network{FromClient: true, FromServer: true})
	close(silent)
	start := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > closesWithin {
		t.Errorf("Close took %s", took)
	}
	if err := <-view; !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the view ended with %v", err)
	}
	if err := <-update; !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the update ended with %v", err)
	}
	if err := <-commit; !errors.Is(err, store.ErrCommitUnknown) {
		t.Errorf("the update that had sent its COMMIT ended with %v", err)
	}
}

// A read was cancelled, and the server does not answer the cancellation. Close does not wait for the answer.
func TestCloseAfterCancellation(t *testing.T) {
	t.Parallel()
	p, url := through(t, empty(t))
	s := open(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := s.View(ctx, func(r store.Reader) error {
		if _, err := r.Turn("one"); store.IgnoreNotFound(err) != nil {
			return err
		}
		p.Set(pgserver.Network{FromClient: true, FromServer: true})
		_, err := r.Turn("other")
		return err
	})
	if !store.Refused(err) && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the read ended with %v", err)
	}
	start := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > closesWithin/2 {
		t.Errorf("Close took %s", took)
	}
}
