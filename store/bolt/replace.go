package bolt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	berrors "go.etcd.io/bbolt/errors"

	"countersign/internal/owner"
	"countersign/store"
)

// Replace replaces the store at a path with a copy of another store. If the path is a symbolic link, the link stays, and
// Replace replaces the file that the link names. The store at the path must not be open in any process. Replace first
// opens the copy as a store, and passes this store to prepare. If prepare fails, Replace does not replace anything.
// Replace keeps the old store in the same directory, and returns its new name. If there was no old store, this name is
// empty. On file systems with hard links, there is a complete store at the path at every moment: the old store or the
// new store.
func Replace(path string, from io.Reader, prepare func(*Store) error) (kept string, err error) {
	path = target(path)
	release, err := hold(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := removeLeft(path); err != nil {
		return "", sentence(path, err)
	}
	dir := filepath.Dir(path)
	temp, err := os.CreateTemp(dir, filepath.Base(path)+copySuffix+"*") // mode 0600
	if err != nil {
		return "", sentence(path, err)
	}
	defer os.Remove(temp.Name())
	_, err = io.Copy(temp, from)
	if err = errors.Join(err, owner.Inherit(temp, path, dir), temp.Close()); err != nil {
		return "", sentence(temp.Name(), err)
	}
	s, err := Open(temp.Name(), Options{})
	if err != nil {
		return "", fmt.Errorf("the backup can't be used: %w", err)
	}
	if err := errors.Join(prepare(s), s.Close()); err != nil {
		return "", err
	}
	if err := syncFile(temp.Name()); err != nil {
		return "", sentence(temp.Name(), err)
	}
	kept, err = exchange(temp.Name(), path, ".replaced-")
	if err != nil {
		return "", fmt.Errorf("store: the backup can't be put at %s: %w", path, err)
	}
	return kept, syncDir(dir)
}

// copySuffix is part of the name of a copy, until the copy replaces the store.
const copySuffix = ".restored-"

// removeLeft removes copies and rebuilt files that a killed process left. removeLeft keeps recent files, because
// another process may be writing them.
func removeLeft(path string) error {
	dir := filepath.Dir(path)
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		info, err := f.Info()
		base := filepath.Base(path)
		if err != nil || !strings.HasPrefix(f.Name(), base+copySuffix) && !strings.HasPrefix(f.Name(), base+mendSuffix) || time.Since(info.ModTime()) < time.Hour {
			continue
		}
		if err := os.Remove(filepath.Join(dir, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// hold prevents other processes from opening the store at a path. hold takes no lock if there is no file at the path,
// or if the file can't be used as a store.
func hold(path string) (release func() error, err error) {
	free := func() error { return nil }
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return free, nil
	}
	if err != nil {
		return nil, sentence(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("store: %s is not a file: name the store's file", path)
	}
	if info.Size() < smallest {
		return free, nil
	}
	db, _, _, err := open(path, Options{OpenFile: os.OpenFile})
	if err == nil {
		return db.Close, nil
	}
	if errors.Is(err, berrors.ErrTimeout) || errors.Is(err, store.ErrLocked) || errors.Is(err, fs.ErrPermission) {
		return nil, sentence(path, err)
	}
	return free, nil
}

// syncFile makes the contents of a file durable.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// exchange gives the file temp the name path, and the mode of the old file at path. The old file is kept under another
// name. This name is path with the suffix and the time, and a number if the name is taken.
func exchange(temp, path, suffix string) (kept string, err error) {
	if info, err := os.Stat(path); err == nil {
		if err := os.Chmod(temp, info.Mode().Perm()); err != nil {
			return "", err
		}
	}
	stamp := path + suffix + time.Now().UTC().Format("20060102T150405Z")
	kept = stamp
	for n := 2; ; n++ {
		err = os.Link(path, kept)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
		kept = fmt.Sprint(stamp, "-", n)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.Link(temp, path); err == nil || errors.Is(err, fs.ErrExist) {
			return "", err
		}
		return "", os.Rename(temp, path)
	case err != nil: // the file system has no hard links: for a moment, there is no store at the path
		if renamed := os.Rename(path, kept); renamed != nil {
			return "", errors.Join(err, renamed)
		}
	}
	if err := os.Rename(temp, path); err != nil {
		return "", fmt.Errorf("%w; the previous file is now %s", err, kept)
	}
	return kept, nil
}
