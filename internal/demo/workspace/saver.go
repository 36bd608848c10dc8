package workspace

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// saver writes the data file shortly after a change, and at the end.
type saver struct {
	path  string
	log   *slog.Logger
	take  func() ([]byte, error)
	dirty chan struct{}
	stop  chan struct{}
	once  sync.Once
	done  chan struct{}
	last  error
}

// saveDelay is how long changes are collected before a write.
const saveDelay = 200 * time.Millisecond

func newSaver(cfg Config, take func() ([]byte, error)) *saver {
	v := &saver{path: cfg.DataFile, log: cfg.Log, take: take, dirty: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	if v.path == "" {
		close(v.done)
		return v
	}
	go v.run()
	return v
}

// touch reports a change. It never blocks.
func (v *saver) touch() {
	select {
	case v.dirty <- struct{}{}:
	default:
	}
}

func (v *saver) run() {
	defer close(v.done)
	var pause time.Duration
	for {
		select {
		case <-v.stop:
			v.last = v.save()
			return
		case <-v.dirty:
		}
		timer := time.NewTimer(max(saveDelay, pause))
		select {
		case <-v.stop:
			timer.Stop()
			v.last = v.save()
			return
		case <-timer.C:
		}
		began := time.Now()
		if err := v.save(); err != nil {
			v.log.Error("workspace data not saved", "error", err)
		}
		pause = 10 * time.Since(began) // limits the time spent on writing a large workspace
	}
}

// save writes a new file beside the old one and replaces it.
func (v *saver) save() error {
	raw, err := v.take()
	if err != nil {
		return fmt.Errorf("encode workspace data: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(v.path), 0o700); err != nil {
		return fmt.Errorf("save workspace data: %w", err)
	}
	next := v.path + ".new"
	if err := writeSynced(next, raw); err != nil {
		return fmt.Errorf("save workspace data: %w", err)
	}
	if err := os.Rename(next, v.path); err != nil {
		return fmt.Errorf("save workspace data: %w", err)
	}
	return nil
}

func writeSynced(path string, raw []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	return errors.Join(err, f.Sync(), f.Close())
}

func (v *saver) close() error {
	v.once.Do(func() { close(v.stop) })
	<-v.done
	return v.last
}
