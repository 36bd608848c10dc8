package bolt

import (
	"errors"
	"io/fs"
	"syscall"

	"countersign/store"
)

func isFull(err error) bool { return errors.Is(err, store.ErrFull) }

// cleanlyFull reports whether a commit failed only because there is no space: a write was refused, not a sync, and the file
// does not hold the transaction. After a failed sync nobody knows what the disk holds, whatever the error says.
func (w *writer) cleanlyFull(err error, id int) bool {
	var refused *fs.PathError
	if !errors.As(err, &refused) || (!errors.Is(refused.Err, syscall.ENOSPC) && !errors.Is(refused.Err, syscall.EDQUOT)) {
		return false
	}
	btx, err := w.db.Begin(false)
	if err != nil {
		return false
	}
	stands := btx.ID()
	if err := btx.Rollback(); err != nil {
		return false
	}
	return stands < id
}
