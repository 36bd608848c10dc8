package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"

	berrors "go.etcd.io/bbolt/errors"

	"countersign/store"
)

// Copy writes the store as it is at one moment: a file that Open opens. Views and transactions go on meanwhile, but the space that they free is not used
// again until it is done, and the file can't be mapped anew: whoever takes the bytes must not stop.
func (s *Store) Copy(ctx context.Context, w io.Writer) (size int64, err error) {
	if err := s.writer.broken(); err != nil {
		return 0, err
	}
	btx, err := s.db.Begin(false)
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return 0, store.ErrClosed
	}
	if err != nil {
		return 0, fmt.Errorf("store: begin a copy: %w", err)
	}
	defer func() { _ = btx.Rollback() }() // it has nothing that can fail
	out := &until{ctx: ctx, w: w}
	size, err = btx.WriteTo(out)
	if out.err != nil {
		return size, out.err
	}
	if err != nil {
		return size, fmt.Errorf("store: copy: %w", err)
	}
	return size, nil
}

// until writes until its context ends, and remembers why it could not: bbolt only keeps the words.
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
