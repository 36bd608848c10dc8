package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"countersign/cmd/countersign/cli"
	"countersign/store"
	"countersign/store/bolt"
)

// compaction has the conditions under which serve compacts the store at the start.
type compaction struct {
	file int64         // minimum size of the file in bytes
	live int64         // maximum number of bytes in use, because copying them delays the start
	long time.Duration // time limit of a compaction
}

// atStart holds the limits that serve uses. A compaction must also free at least as many bytes as it writes. Therefore
// serve does not rewrite a file of constant size at every start. On a disk with 100 MB/s, the largest compaction takes
// about ten seconds.
var atStart = compaction{file: 128 << 20, live: 1 << 30, long: 30 * time.Second}

// errNotWorth means that a compaction would free too little space, or would need too much time or disk space.
var errNotWorth = errors.New("the compaction is not worth its cost")

// compact compacts a store before serve opens it, if the compaction frees enough space. No error prevents the start.
func (c compaction) compact(ctx context.Context, path string, log *slog.Logger) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() < c.file {
		return // opening the store later reports the error
	}
	ctx, cancel := context.WithTimeout(ctx, c.long)
	defer cancel()
	began := time.Now()
	before, after, err := bolt.Compact(ctx, path, func(u bolt.Usage) error {
		used := u.Size - u.Free
		if u.Free < u.Size/2 {
			return errNotWorth
		}
		room, known := cli.FreeSpace(filepath.Dir(path))
		if used > c.live || known && room < uint64(used)+cli.DiskFull {
			log.WarnContext(ctx, "much of the store's file is free, but it is not compacted now, because copying the data would delay the start too long, or the disk has no room for a second file. Compact it with countersign store compact while the bot is stopped",
				"size", cli.Size(u.Size), "free", cli.Size(u.Free))
			return errNotWorth
		}
		log.InfoContext(ctx, "the store is compacted, as at least half of its file is free", "size", cli.Size(u.Size), "free", cli.Size(u.Free))
		return nil
	})
	switch {
	case err == nil:
		log.InfoContext(ctx, "the store is compacted", "before", cli.Size(before), "after", cli.Size(after), "took", time.Since(began).Round(time.Millisecond).String())
	case errors.Is(err, context.DeadlineExceeded):
		log.WarnContext(ctx, "the store is not compacted, as that takes too long for a start. Compact it with countersign store compact while the bot is stopped", "limit", c.long.String())
	case errors.Is(err, errNotWorth), errors.Is(err, context.Canceled), errors.Is(err, store.ErrLocked), errors.Is(err, fs.ErrNotExist):
	default:
		log.WarnContext(ctx, "the store could not be compacted; it is unchanged", "cause", err)
	}
}
