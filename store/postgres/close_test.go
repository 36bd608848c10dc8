package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"countersign/internal/testkit/pgserver"
	"countersign/store"
	"countersign/store/postgres"
)

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
	if took := time.Since(start); took > 7500*time.Millisecond {
		t.Errorf("Close took %s", took)
	}
}

// If the connection is lost while the store is opened, the error is ErrUnavailable, and the bot may open the store again.
func TestConnectionLostWhileOpening(t *testing.T) {
	t.Parallel()
	p, url := through(t, empty(t))
	p.When(func(statement string) pgserver.Cutting {
		if strings.Contains(statement, "FROM origin") {
			return pgserver.Before
		}
		return pgserver.Pass
	})
	s, err := postgres.Open(t.Context(), url, postgres.Options{})
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got error %v, want ErrUnavailable", err)
	}
}
