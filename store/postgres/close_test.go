package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"countersign/internal/testkit/pgserver"
	"countersign/store"
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
