package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"countersign/cmd/countersign/cli"
	"countersign/store"
)

// watchable is a store that reports blocked writes, and that stops when the content of the disk is unknown.
type watchable interface {
	Stalled() time.Duration
	Broken() <-chan struct{}
	Failure() error
}

// Time limits for one transaction. The bot's transactions take milliseconds; a busy disk may need seconds.
const (
	stallShown = 5 * time.Second  // until /readyz reports that writes are blocked
	stallEnds  = 10 * time.Second // until a stopping process no longer waits for it
	closeEnds  = 10 * time.Second // until it no longer waits for the store to close
)

// stall returns an error if writes have been blocked for a while.
func stall(s store.Store) error {
	w, ok := s.(watchable)
	if !ok {
		return nil
	}
	if since := w.Stalled(); since >= stallShown {
		return fmt.Errorf("nothing could be written for %s: one transaction does not end. See whether the disk of the store answers; if it does, restart the bot", since.Round(time.Second))
	}
	return nil
}

// storeBroken returns a channel that is closed when the store stops, or nil if the store does not report that.
func storeBroken(s store.Store) <-chan struct{} {
	if w, ok := s.(watchable); ok {
		return w.Broken()
	}
	return nil
}

// unlessHung runs a function with a store, and then closes the store. A stopping process does not wait for a
// transaction that does not end, for a store that can't be closed, or for anything once the store has stopped:
// acknowledged data is on the disk, and the next process finds everything else.
func unlessHung(ctx context.Context, db interface {
	watchable
	Close() error
}, log *slog.Logger, work func() error,
) error {
	worked, closed := make(chan struct{}), make(chan error, 1)
	go func() {
		err := work()
		close(worked)
		closed <- errors.Join(err, db.Close())
	}()
	gaveUp := func(what string, waited time.Duration) error {
		log.Error(what+"; the process ends without it", "waited", waited.Round(time.Second).String())
		return cli.CouldNot("%s, so the process ended without it: see whether the disk of the store answers, and start again; the bot goes on from what is stored", what)
	}
	tick := time.NewTicker(stallEnds / 50)
	defer tick.Stop()
	var closing <-chan time.Time
	for stopping := ctx.Done(); ; {
		select {
		case err := <-closed:
			return err
		case <-worked:
			worked, closing = nil, time.After(closeEnds)
		case <-closing:
			return gaveUp("the store can't be closed, as somebody still reads or writes", closeEnds)
		case <-stopping:
			stopping = nil
		case <-tick.C:
			if waited := db.Stalled(); stopping == nil && waited >= stallEnds {
				return gaveUp("a transaction of the store does not end", waited)
			}
		}
	}
}

// watchStall adds a metric of the time for which writes have been blocked.
func (m *metrics) watchStall(s store.Store) {
	w, ok := s.(watchable)
	if !ok {
		return
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_store_transaction_seconds", Help: "For how long the transaction under way has been so, while nothing else can be written; 0 while there is none.",
	}, func() float64 { return w.Stalled().Seconds() }))
}
