package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"countersign/store"
)

// identity identifies the file that a store was opened from. identity detects two problems: the file is not at its path
// any more, or another program has written to the file. These checks run before every commit, and take about five
// microseconds.
type identity struct {
	path   string
	opened fs.FileInfo
	file   *os.File                    // a separate handle for reading, which keeps referring to the same file when another file is put at the path
	stat   func() (fs.FileInfo, error) // returns the current information about file
	page   int64                       // size of a page in bytes

	size atomic.Int64 // the file must have at least this size, in bytes

	away     atomic.Bool                  // set when the file is missing at its path, and cleared when letBack allows writes again
	returned atomic.Pointer[func() error] // the function that OnReturn registered

	mu    sync.Mutex // held during a commit
	metas [2]metaPage
}

// metaPage holds the used part of one of bbolt's two meta pages, which are the first two pages of the file. A
// transaction with an even id writes page 0, and a transaction with an odd id writes page 1.
type metaPage [80]byte

// txid returns the number of the transaction that wrote the page.
func (m metaPage) txid() uint64 { return binary.NativeEndian.Uint64(m[64:]) }

// identify records the identity of a database that was just opened.
func identify(db *bbolt.DB, path string) (*identity, error) {
	path, err := filepath.Abs(path) // absolute, because the working directory may also be renamed
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	id := &identity{path: path, file: file, stat: file.Stat, page: int64(db.Info().PageSize)}
	if id.opened, err = file.Stat(); err == nil {
		id.size.Store(id.opened.Size())
		id.metas, err = id.read()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return id, nil
}

func (id *identity) read() (metas [2]metaPage, err error) {
	for i := range metas {
		if _, err := id.file.ReadAt(metas[i][:], int64(i)*id.page); err != nil {
			return metas, err
		}
	}
	return metas, nil
}

// inPlace returns ErrMoved if the file is not at its path. inPlace returns ErrDamaged if another program has written to
// the file. The caller makes sure that no commit runs at the same time.
func (id *identity) inPlace() error {
	if err := id.atPath(); err != nil {
		return err
	}
	return id.untouched()
}

// atPath returns an error if the file is not at its path.
func (id *identity) atPath() error {
	info, err := os.Stat(id.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return id.moved("it was removed or renamed")
	case err != nil:
		return id.moved(fmt.Sprintf("its status can't be read (%v)", err))
	case !os.SameFile(info, id.opened):
		return id.moved("another file was put in its place")
	}
	return id.letBack()
}

// letBack checks whether writes may continue after the file was missing at its path and is back.
func (id *identity) letBack() error {
	if !id.away.Load() {
		return nil
	}
	if asked := id.returned.Load(); asked != nil {
		if err := (*asked)(); err != nil {
			return fmt.Errorf("%w: %s is back at its path, but must not be written to: %w", store.ErrMoved, id.path, err)
		}
	}
	id.away.Store(false)
	return nil
}

// OnReturn registers fn. If the file was moved away and is back at its path, the store calls fn before the next write.
// While the file was away, another process may have used a copy of it. If fn finds that this has happened, it must
// return an error. The store then refuses writes, and calls fn again before the next write. fn may read the store.
func (s *Store) OnReturn(fn func() error) { s.identity.returned.Store(&fn) }

func (id *identity) moved(how string) error {
	id.away.Store(true)
	from := ""
	if runtime.GOOS == "linux" {
		from = fmt.Sprintf(", or, if the bot does not answer, cp /proc/%d/fd/%d FILE", os.Getpid(), id.file.Fd())
	}
	return fmt.Errorf("%w: %s: %s. Nothing is written until the same file is back. If the file can't be brought back, save the data that this process still has: "+
		"countersign backup FILE%s. Then stop this process, move FILE to %s, and start the bot again", store.ErrMoved, id.path, how, from, id.path)
}

// whole returns an error if the file was truncated. Each transaction calls whole first. Reading a missing part of the
// mapped file would cause a fault, after which bbolt never releases locks that every other transaction needs.
func (id *identity) whole() error {
	least := id.size.Load() // read before Stat: a commit may grow the file meanwhile
	info, err := id.stat()
	if err != nil {
		return id.unread(err)
	}
	if info.Size() < least {
		return id.overwritten(fmt.Sprintf("it has %d bytes, and had at least %d", info.Size(), least))
	}
	return nil
}

// untouched returns an error if the file was truncated or can't be read. untouched also returns an error if the first
// two pages of the file have changed since Open or since this process's last commit. In this case, another program has
// written to the file.
func (id *identity) untouched() error {
	if err := id.whole(); err != nil {
		return err
	}
	now, err := id.read()
	if err != nil {
		return id.unread(err)
	}
	for i := range now {
		if !bytes.Equal(now[i][:], id.metas[i][:]) {
			return id.overwritten(fmt.Sprintf("its first pages are of transaction %d, and this process wrote %d last",
				max(now[0].txid(), now[1].txid()), max(id.metas[0].txid(), id.metas[1].txid())))
		}
	}
	return nil
}

// unread returns the error for a failed check of the file.
func (id *identity) unread(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return store.ErrClosed
	}
	return id.overwritten(err.Error())
}

func (id *identity) overwritten(how string) error {
	return fmt.Errorf("%w: %s was overwritten or cut off while it was open: %s. Nothing more is written to it. "+
		"Put a backup in its place", store.ErrDamaged, id.path, how)
}

// committed records the first two pages of the file after a commit. committed returns an error if another program wrote
// to the file during the commit.
func (id *identity) committed(tx int) error {
	now, err := id.read()
	if err != nil {
		return id.unread(err)
	}
	ours := tx % 2
	if now[ours].txid() != uint64(tx) || now[1-ours] != id.metas[1-ours] {
		return id.overwritten(fmt.Sprintf("its first pages are of transactions %d and %d after this process wrote %d", now[0].txid(), now[1].txid(), tx))
	}
	info, err := id.stat()
	if err != nil {
		return id.unread(err)
	}
	id.metas = now
	id.size.Store(max(id.size.Load(), info.Size()))
	return nil
}

func (id *identity) close() error { return id.file.Close() }

// InPlace checks the open file of the store. InPlace returns ErrMoved if the file is not at the store's path. InPlace
// returns ErrDamaged if another program has written to the file. If the store has stopped, InPlace returns the reason.
func (s *Store) InPlace() error {
	if err := s.writer.broken(); err != nil {
		return err
	}
	if !s.identity.mu.TryLock() { // a commit is running, and has already checked the pages
		return s.identity.atPath()
	}
	defer s.identity.mu.Unlock()
	return s.writer.inPlace()
}

// Holds reports whether the file at a path is the file that the store has open. The file may have been moved to this
// path after Open.
func (s *Store) Holds(path string) bool {
	info, err := os.Stat(path)
	return err == nil && os.SameFile(info, s.identity.opened)
}
