package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"countersign/internal/owner"
	"countersign/store"
)

// Usage is the size of a store's file, and the size of its free part. Only Compact makes the file smaller.
type Usage struct {
	Size, Free int64 // the size of the file, and of the free part of the file, in bytes
}

// compactSuffix is part of the name of a compacted copy, until the copy replaces the store.
const compactSuffix = ".compacted-"

// compactRoom is the maximum number of bytes of rows that one transaction copies. bbolt keeps the changes of a
// transaction in memory.
const compactRoom = 16 << 20

// Compact rewrites a store without the free space of its file, and replaces the file. The store must not be open in any
// process. The new file has the same mode, owner and rows. Compact compares all rows of the two files. The old file
// stays until the new file is complete and durable, even if the process is killed. If the new file would not be
// smaller, nothing changes. If the parameter worth is not nil, Compact first calls this function. If the function
// returns an error, Compact changes nothing. Compact refuses a damaged file: the new file would lack the unreadable
// rows, and would hide that they are missing. In a large damaged file, Compact sets examineKey.
func Compact(ctx context.Context, path string, worth func(Usage) error) (before, after int64, err error) {
	path = target(path)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return 0, 0, sentence(path, err)
	case !info.Mode().IsRegular():
		return 0, 0, fmt.Errorf("%w: %s is not a regular file", store.ErrForeign, path)
	case info.Size() < smallest:
		return 0, 0, fmt.Errorf("%w: %s is another kind of file, or was cut off: it has %d bytes. Name another file, or put a backup in its place", store.ErrForeign, path, info.Size())
	}
	before = info.Size()
	db, file, _, err := open(path, Options{OpenFile: os.OpenFile, statistics: true})
	if err != nil {
		return 0, 0, sentence(path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := removeCompacted(path); err != nil {
		return 0, 0, sentence(path, err)
	}
	if worth != nil {
		if err := worth(Usage{before, int64(db.Stats().FreePageN) * int64(db.Info().PageSize)}); err != nil {
			return 0, 0, err
		}
	}
	if err := Guard(func() error { return whole(ctx, db, file) }); err != nil {
		return 0, 0, compactSentence(path, err)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+compactSuffix+"*") // mode 0600
	if err != nil {
		return 0, 0, sentence(path, err)
	}
	temp.Close()
	defer os.Remove(temp.Name()) // does nothing if the file has replaced the store
	if err := Guard(func() error { return compactInto(ctx, temp.Name(), db) }); err != nil {
		return 0, 0, compactSentence(path, err)
	}
	made, err := os.Stat(temp.Name())
	if err != nil {
		return 0, 0, sentence(path, err)
	}
	if after = made.Size(); after >= before {
		return before, before, nil
	}
	if err := errors.Join(owner.Keep(temp.Name(), info), os.Chmod(temp.Name(), info.Mode().Perm())); err != nil {
		return 0, 0, fmt.Errorf("store: a new file can't be given the owner and the mode of %s: compact the store as the user that runs the bot, or as root (%w)", path, err)
	}
	if err := errors.Join(syncFile(temp.Name()), os.Rename(temp.Name(), path)); err != nil {
		return 0, 0, sentence(path, err)
	}
	return before, after, syncDir(filepath.Dir(path))
}

// compactSentence returns the error of a context unchanged. Any other error gets the name of the file and the remedy.
func compactSentence(path string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return sentence(path, err)
}

// removeCompacted removes copies left by a killed process. No other process is using the copies, because the caller has
// the lock of the store.
func removeCompacted(path string) error {
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), filepath.Base(path)+compactSuffix) {
			continue
		}
		if err := os.Remove(filepath.Join(filepath.Dir(path), f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// compactInto copies a store into an empty file, and verifies the copy.
func compactInto(ctx context.Context, path string, from *bbolt.DB) (err error) {
	to, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Nanosecond, FreelistType: bbolt.FreelistMapType, NoSync: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return from.View(func(old *bbolt.Tx) error {
		if err := copyBuckets(ctx, to, old); err != nil {
			return err
		}
		return to.View(func(now *bbolt.Tx) error {
			if err := walkPages(ctx, file, now); err != nil {
				return err
			}
			for err := range now.Check() {
				return fmt.Errorf("store: the compacted copy has a fault: %w", err)
			}
			return sameBuckets(ctx, old, now)
		})
	})
}

// copyBuckets copies every bucket of a store. Each of its transactions fits in memory.
func copyBuckets(ctx context.Context, to *bbolt.DB, old *bbolt.Tx) error {
	return old.ForEach(func(name []byte, from *bbolt.Bucket) error {
		c := from.Cursor()
		k, v := c.First()
		for first := true; first || k != nil; first = false {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := to.Update(func(tx *bbolt.Tx) error {
				b, err := tx.CreateBucketIfNotExists(name)
				if err != nil {
					return err
				}
				b.FillPercent = filled
				for room := compactRoom; k != nil && room > 0; k, v = c.Next() {
					if v == nil {
						return fmt.Errorf("%w: its bucket %s contains another bucket, %q", store.ErrForeign, name, k)
					}
					if err := b.Put(k, v); err != nil {
						return err
					}
					room -= len(k) + len(v)
				}
				return b.SetSequence(from.Sequence())
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// sameBuckets compares two stores row by row.
func sameBuckets(ctx context.Context, old, now *bbolt.Tx) error {
	buckets := 0
	err := old.ForEach(func(name []byte, from *bbolt.Bucket) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		to := now.Bucket(name)
		if buckets++; to == nil || to.Sequence() != from.Sequence() {
			return fmt.Errorf("store: the compacted copy lacks the bucket %s, or has another sequence number for it", name)
		}
		a, b := from.Cursor(), to.Cursor()
		ak, av := a.First()
		bk, bv := b.First()
		for ; ak != nil || bk != nil; ak, av, bk, bv = next(a, b) {
			if !bytes.Equal(ak, bk) || !bytes.Equal(av, bv) {
				return fmt.Errorf("store: the compacted copy differs in %s at the row %x", name, ak)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return now.ForEach(func(name []byte, _ *bbolt.Bucket) error {
		if buckets--; buckets < 0 {
			return fmt.Errorf("store: the compacted copy has one bucket more, %s", name)
		}
		return nil
	})
}

// next advances two cursors by one row.
func next(a, b *bbolt.Cursor) (ak, av, bk, bv []byte) {
	ak, av = a.Next()
	bk, bv = b.Next()
	return ak, av, bk, bv
}
