package main

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// A server stops immediately, even if a client holds an unused connection.
func TestUnusedConnectionDoesNotDelayTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newWire()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- serveHTTP(ctx, l, http.NotFoundHandler()) }()
		c, err := l.dial(ctx, "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		synctest.Wait()
		began := time.Now()
		stop()
		if err := <-done; err != nil || time.Since(began) > 500*time.Millisecond {
			t.Errorf("the end took %s: %v", time.Since(began), err)
		}
	})
}
