package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// create makes a new store under a temporary name, and then gives the file the name path. If another process has
// created a file with this name in the meantime, create keeps that file.
func create(path string, opts Options) error {
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	temp.Close()
	defer os.Remove(temp.Name())
	if err := fill(temp.Name(), opts); err != nil {
		return err
	}
	if err := publish(temp.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// fill writes an empty store.
func fill(path string, opts Options) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Nanosecond, OpenFile: opts.OpenFile})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		root, err := tx.CreateBucket(rootBucket)
		if err != nil {
			return err
		}
		for b := range allBuckets {
			if _, err := tx.CreateBucket([]byte(bucketNames[b])); err != nil {
				return err
			}
		}
		return putSchema(root)
	})
	return errors.Join(err, db.Close())
}

// publish makes path a hard link to the file temp. publish never replaces another file that has the name path. If the
// file system has no hard links, publish renames the file.
func publish(temp, path string) error {
	err := os.Link(temp, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil // another process has created the file first; the caller opens that file
	}
	if _, statErr := os.Lstat(path); !errors.Is(statErr, fs.ErrNotExist) {
		return err
	}
	return os.Rename(temp, path) // the file system has no hard links
}

// syncDir makes the new name of a file in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync the directory %s: %w", dir, err)
	}
	return nil
}
