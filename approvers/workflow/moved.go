package workflow

import (
	"context"
	"errors"
	"sync"
	"time"

	"countersign/store"
)

// placed is a store that is kept in a file. Other programs can move or replace the file.
type placed interface {
	// InPlace returns store.ErrMoved if the file is not at its path. InPlace returns store.ErrDamaged if another
	// program wrote to the file.
	InPlace() error
}

// fileState records whether the store's file is at its path. While the file is not at its path, the bot handles no
// timers.
type fileState struct {
	mu    sync.Mutex
	since time.Time // zero: the file is at its path
}

// lookEvery is the interval between checks of the store's file. Each commit also checks the file.
const lookEvery = 500 * time.Millisecond

// InPlace returns store.ErrMoved if the store's file is not at its path. InPlace returns store.ErrDamaged if another
// program wrote to the file. If the file is unchanged, or the store has no file, InPlace returns nil.
func (w *Workflow) InPlace() error {
	p, ok := w.Store.(placed)
	if !ok {
		return nil
	}
	err := p.InPlace()
	w.noteMoved(err)
	return err
}

func (f *fileState) away() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.since.IsZero()
}

// noteMoved records whether a check or a write found the store's file at its path. noteMoved logs each change once.
func (w *core) noteMoved(err error) {
	f := &w.file
	f.mu.Lock()
	defer f.mu.Unlock()
	switch gone := errors.Is(err, store.ErrMoved); {
	case gone && f.since.IsZero():
		f.since = w.Now()
		w.Log.Error("the store's file is not at its path: nothing is acknowledged, decided or run until it is back", "error", err)
	case err == nil && !f.since.IsZero():
		w.Log.Info("the store's file is at its path again, and the bot continues", "since", f.since)
		f.since = time.Time{}
		w.jobs.Wake()
	}
}

// WatchPlace checks the store's file until ctx ends. WatchPlace returns immediately for a store without a file. After
// an error the process must stop.
func (w *Workflow) WatchPlace(ctx context.Context) error {
	if _, ok := w.Store.(placed); !ok {
		return nil
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := w.InPlace(); err != nil && !errors.Is(err, store.ErrMoved) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
