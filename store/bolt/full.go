package bolt

import (
	"errors"
	"io/fs"
	"math"
	"syscall"

	"countersign/store"
)

func isFull(err error) bool { return errors.Is(err, store.ErrFull) }

// cleanlyFull reports whether a commit failed only because the disk is full. cleanlyFull is true if three conditions
// hold: a write failed, no sync failed, and the file does not contain the transaction. After a failed sync, the
// contents of the disk are unknown, even if the error mentions only disk space.
func (w *writer) cleanlyFull(err error, id int) bool {
	var refused *fs.PathError
	if !errors.As(err, &refused) || (!errors.Is(refused.Err, syscall.ENOSPC) && !errors.Is(refused.Err, syscall.EDQUOT)) {
		return false
	}
	return w.stands() < id
}

// stands returns the number of the last transaction in the file. If the number is unknown, stands returns math.MaxInt.
func (w *writer) stands() int {
	stands := math.MaxInt
	err := w.guard(func() error {
		btx, err := w.db.Begin(false)
		if err != nil {
			return err
		}
		stands = btx.ID()
		return btx.Rollback()
	})
	if err != nil {
		return math.MaxInt
	}
	return stands
}
