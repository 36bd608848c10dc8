package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"

	berrors "go.etcd.io/bbolt/errors"

	"countersign/store"
)

// Copy writes a snapshot of the store, as a file that Open can open. Views and transactions continue during the copy.
// Until Copy returns, the store does not reuse freed space, and can't enlarge the file's memory mapping. Therefore w
// must not block.
func (s *Store) Copy(ctx context.Context, w io.Writer) (size int64, err error) {
	if err := s.readable(); err != nil {
		return 0, err
	}
	btx, err := s.begin()
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return 0, store.ErrClosed
	}
	if err != nil {
		return 0, fmt.Errorf("store: begin a copy: %w", within{err})
	}
	defer func() { _ = btx.Rollback() }() // rolling back a read transaction can't fail
	out := &until{ctx: ctx, w: w}
	err = Guard(func() (err error) {
		size, err = btx.WriteTo(out)
		return err
	})
	if out.err != nil {
		return size, out.err
	}
	if err != nil {
		return size, fmt.Errorf("store: copy: %w", err)
	}
	return size, nil
}

// until is a writer that fails when its context has ended. until keeps the error of a failed write, because bbolt keeps
// only the error's text.
type until struct {
	ctx context.Context
	w   io.Writer
	err error
}

func (u *until) Write(p []byte) (n int, err error) {
	if u.err = u.ctx.Err(); u.err != nil {
		return 0, u.err
	}
	n, u.err = u.w.Write(p)
	return n, u.err
}
