package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"countersign/approvers/workflow"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/store"
)

// stallShown and stallEnds limit the time of one transaction. The bot's transactions take milliseconds. A busy disk may
// need seconds.
const (
	readShown  = 2 * time.Second  // time after which /readyz reports that a server does not answer a read
	stallShown = 5 * time.Second  // time after which /readyz reports that writes are blocked
	stallEnds  = 10 * time.Second // time after which a stopping process no longer waits for the transaction
	closeEnds  = 10 * time.Second // time after which a stopping process no longer waits for the store to close
)

// remote is a store on a server.
type remote interface {
	// Refused returns an error while the server refuses statements, for example because a right is missing.
	Refused(context.Context) error
	// Hanging returns an error that says why the server does not answer.
	Hanging(context.Context) error
}

// stall returns an error if writes have been blocked for a while.
func stall(ctx context.Context, s store.Store) error {
	w, ok := s.(openstore.Watchable)
	if !ok {
		return nil
	}
	since := w.Stalled()
	if since < stallShown {
		return nil
	}
	if db, ok := s.(remote); ok {
		return fmt.Errorf("nothing could be written for %s: %w", since.Round(time.Second), db.Hanging(ctx))
	}
	return fmt.Errorf("nothing could be written for %s: one transaction does not end. Check the disk of the store; if it works, restart the bot", since.Round(time.Second))
}

// takesWrites returns an error while the store can't accept writes.
func takesWrites(ctx context.Context, wf *workflow.Workflow) error {
	if since := wf.Full(); !since.IsZero() {
		return fmt.Errorf("the disk has been full since %s: free some space; no restart is needed", since.Format(time.RFC3339))
	}
	if err := stall(ctx, wf.Store); err != nil {
		return err
	}
	if err := wf.InPlace(); err != nil {
		return err
	}
	db, isRemote := wf.Store.(remote)
	limited, cancel := ctx, context.CancelFunc(func() {})
	if isRemote {
		limited, cancel = context.WithTimeout(ctx, readShown)
	}
	defer cancel()
	err := wf.Store.View(limited, func(r store.Reader) error {
		_, err := r.Setting(store.SettingDiskSpace)
		return store.IgnoreNotFound(err)
	})
	switch {
	case isRemote && limited.Err() != nil && ctx.Err() == nil:
		return db.Hanging(ctx)
	case isRemote:
		return cmp.Or(db.Refused(limited), err)
	}
	return err
}

// storeBroken returns a channel that is closed when the store stops. If the store can't report this, storeBroken
// returns nil.
func storeBroken(s store.Store) <-chan struct{} {
	if w, ok := s.(openstore.Watchable); ok {
		return w.Broken()
	}
	return nil
}

// unlessHung calls the function "work", which uses a store, and then closes the store. A stopping process does not wait
// longer than stallEnds for a transaction, or longer than closeEnds for the store to close. Ending without a further
// wait is safe, because acknowledged data is on the disk. If the store has stopped and can't be closed, unlessHung
// returns the error of work.
func unlessHung(ctx context.Context, db interface {
	openstore.Watchable
	Close() error
}, log *slog.Logger, work func() error,
) error {
	worked, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		err := work()
		worked <- err
		closed <- errors.Join(err, db.Close())
	}()
	gaveUp := func(what string, waited time.Duration) error {
		log.ErrorContext(ctx, what+"; the process ends without waiting", "waited", waited.Round(time.Second).String())
		return cli.CouldNot("%s, so the process ended without waiting for it: check the disk of the store, and start the bot again; it continues from the stored state", what)
	}
	tick := time.NewTicker(stallEnds / 50)
	defer tick.Stop()
	var closing <-chan time.Time
	var ended error // the error of the function
	for stopping := ctx.Done(); ; {
		select {
		case err := <-closed:
			return err
		case ended = <-worked:
			closing = time.After(closeEnds)
		case <-closing:
			err := gaveUp("the store can't be closed, as somebody still reads or writes", closeEnds)
			// Reading a damaged file may leave a lock behind, so that Close hangs. The error of work says what to do.
			if db.Failure() != nil && ended != nil {
				return ended
			}
			return err
		case <-stopping:
			stopping = nil
		case <-tick.C:
			if waited := db.Stalled(); stopping == nil && waited >= stallEnds {
				return gaveUp("a transaction of the store does not end", waited)
			}
		}
	}
}

// watchDamage logs damage that the store finds.
func watchDamage(s store.Store, log *slog.Logger) {
	in, ok := s.(store.Inspected)
	if !ok {
		return
	}
	in.OnDamage(func(x store.Damage) {
		if x.Mended {
			log.Warn("the store was damaged, and was repaired", "bucket", x.Bucket, "key", x.Key, "why", x.Why)
			return
		}
		log.Error("the store is damaged: everything that needs this row fails, and everything else continues. docs/operate.md says what to do", "bucket", x.Bucket, "key", x.Key, "why", x.Why)
	})
}

// inspectFirst is the time from the start to the first inspection. inspectAgain is the interval between later
// inspections.
const (
	inspectFirst = time.Minute
	inspectAgain = 6 * time.Hour
)

// inspect searches the whole store for damage. The log, /readyz and the metrics report the damage. inspect counts its
// inspections.
func inspect(ctx context.Context, s store.Store, inspections *atomic.Int64, log *slog.Logger) error {
	in, ok := s.(store.Inspected)
	if !ok {
		return nil
	}
	for next := inspectFirst; ; next = inspectAgain {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		}
		err := in.Inspect(ctx)
		if err == nil {
			inspections.Add(1)
		} else if ctx.Err() == nil {
			log.WarnContext(ctx, "the store could not be inspected", "error", err)
		}
	}
}

// The function "undamaged" returns the check that reports damage in the store on /readyz.
func undamaged(s store.Store) func(context.Context) error {
	return func(context.Context) error {
		damaged, _ := store.DamageOf(s)
		if len(damaged) == 0 {
			return nil
		}
		return fmt.Errorf("%s: %s. docs/operate.md says what to do", cli.Count(len(damaged), "damaged row"), openstore.FirstRows(damaged))
	}
}

// The function "repaired" returns the check that reports on /readyz the damage that was repaired when the store was
// opened. The bot stays ready, because repaired damage has no effect.
func repaired(s store.Store) func(context.Context) error {
	return func(context.Context) error {
		_, mended := store.DamageOf(s)
		if len(mended) == 0 {
			return nil
		}
		return fmt.Errorf("the store was damaged, and was repaired: %s. Find the cause: usually a faulty disk, or somebody who changed rows", openstore.FirstRows(mended))
	}
}
