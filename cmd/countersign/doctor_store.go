package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"countersign/config"
	"countersign/internal/control"
	"countersign/store"
)

// How much room the store's disk has to have.
const (
	littleRoom = 1 << 30
	noRoom     = 100 << 20
)

// doctorTask says that the bot that runs reads its store.
var doctorTask = task[none]{"doctor", false, func(ctx context.Context, w workplace, _ none) error {
	if err := w.store.View(ctx, func(store.Reader) error { return nil }); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w.out, "reads")
	return err
}}

// store looks at the store: whether it can be used, and whether there is room. One that a running bot holds is not checked in full: writers would
// have to wait for it.
func (d *doctor) store(ctx context.Context, env config.Env) {
	d.begin("Store")
	path := env.Store.Path
	d.room(filepath.Dir(path))
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := writable(filepath.Dir(path)); err != nil {
			d.fail(exitUsage, fmt.Sprintf("%s is not there and can't be made: %s", path, err), "make the directory, or name another file with COUNTERSIGN_STORE")
			return
		}
		d.ok("%s is not there yet: serve makes it", path)
		return
	}
	db, err := openStore(path)
	switch {
	case errors.Is(err, store.ErrLocked):
		d.held(ctx, env)
	case err != nil:
		d.fail(exitCode(err), err.Error(), "")
	default:
		err := db.Check(ctx)
		if err := errors.Join(err, db.Close()); err != nil {
			d.fail(exitNo, path+": "+err.Error(), "put a backup in its place: countersign restore")
			return
		}
		d.ok("%s is whole, and nobody holds it", path)
	}
}

// held asks the bot that holds the store.
func (d *doctor) held(ctx context.Context, env config.Env) {
	err := doctorTask.ask(ctx, env, none{}, nil, io.Discard)
	switch {
	case err == nil:
		d.ok("a bot is running: it holds %s, and answers", env.Store.Path)
	case errors.Is(err, control.ErrNobody):
		d.fail(exitFailed, env.Store.Path+" is held by a program that does not answer at "+env.Control, "set COUNTERSIGN_CONTROL as serve has it, or see which program it is")
	default:
		d.fail(exitCode(err), err.Error(), "")
	}
}

// room looks how much space is left for the store.
func (d *doctor) room(dir string) {
	free, ok := freeSpace(dir)
	switch {
	case !ok:
	case free < noRoom:
		d.fail(exitFailed, fmt.Sprintf("the disk below %s has %d MB left", dir, free>>20), "free some space: where nothing can be written nothing is decided, and nothing runs")
	case free < littleRoom:
		d.warn(fmt.Sprintf("the disk below %s has %d MB left", dir, free>>20), "free some space soon")
	default:
		d.ok("the disk has %d GB left", free>>30)
	}
}

// writable tries whether a file can be made in a directory.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".countersign-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
