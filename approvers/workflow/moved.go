package workflow

import (
	"context"
	"errors"
	"sync"
	"time"

	"countersign/store"
)

// placed is a store in a file that can be taken away from under it.
type placed interface {
	// InPlace is store.ErrMoved where the file is not at its path any more, and store.ErrDamaged where another program
	// wrote to it.
	InPlace() error
}

// fileState notes that the store's file is not where it was opened. As long as it is not the scheduler rests, as it
// does while the disk is full.
type fileState struct {
	mu    sync.Mutex
	since time.Time // zero: the file is in its place
}

// lookEvery is how often it is looked whether the store's file is in its place. Each commit looks, too.
const lookEvery = 500 * time.Millisecond

// InPlace says why the store's file is not where it was opened: store.ErrMoved, or store.ErrDamaged where another
// program wrote to it. Nil: it is, or this kind of store has no file.
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

// noteMoved takes in what a look, or a write, said. The log says it once.
func (w *Workflow) noteMoved(err error) {
	f := &w.file
	f.mu.Lock()
	defer f.mu.Unlock()
	switch gone := errors.Is(err, store.ErrMoved); {
	case gone && f.since.IsZero():
		f.since = w.now()
		w.Log.Error("the store's file is not in its place: nothing is acknowledged, decided or run until it is", "error", err)
	case err == nil && !f.since.IsZero():
		w.Log.Info("the store's file is in its place again, and everything goes on", "away since", f.since)
		f.since = time.Time{}
		w.Wake()
	}
}

// WatchPlace looks after the store's file until ctx ends, or at once for a store that has none. Its error says that the
// process must stop.
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
