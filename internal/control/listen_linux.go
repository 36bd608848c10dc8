package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Listener is an open socket.
type Listener struct {
	*net.UnixListener
	path  string
	file  fs.FileInfo
	slots chan struct{}
	close func() error
}

// Listen opens the socket at a path. It is there for its owner only, and removed when the listener is closed.
func Listen(path string) (*Listener, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	unlock, err := lockDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeDead(path); err != nil {
		return nil, err
	}
	// The file that bind makes takes the socket's own mode, so there is no moment at which others could connect, and no need to change
	// the mask of the whole process.
	conf := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		return errors.Join(c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) }), err)
	}}
	l, err := conf.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrPath, path, err)
	}
	ul := l.(*net.UnixListener)
	ul.SetUnlinkOnClose(false) // Close makes sure that it is ours
	out := &Listener{UnixListener: ul, path: path, slots: make(chan struct{}, maxConnections)}
	out.close = sync.OnceValue(out.release)
	out.file, err = os.Lstat(path)
	if err == nil && out.file.Mode() != fs.ModeSocket|0o600 {
		err = fmt.Errorf("%w: %s has mode %s although it was made for its owner only; choose a directory on another file system", ErrPath, path, out.file.Mode())
	}
	if err != nil {
		return nil, errors.Join(err, ul.Close())
	}
	return out, nil
}

// checkPath looks at the length of the path, and at the directory: where others could replace the socket they could listen in its place.
func checkPath(path string) error {
	if len(path) > maxPath {
		return fmt.Errorf("%w: %s is %d bytes long, and a Unix socket's path may have %d; choose a shorter one", ErrPath, path, len(path), maxPath)
	}
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: the directory %s does not exist; make it first", ErrPath, dir)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrPath, err)
	case !info.IsDir():
		return fmt.Errorf("%w: %s is not a directory", ErrPath, dir)
	case info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0:
		return fmt.Errorf("%w: everybody can write to the directory %s, and so put another socket in its place; take that from others (chmod o-w), or choose another directory", ErrPath, dir)
	}
	return nil
}

// lockWait is how long another process may take to open or close a socket in the same directory.
const lockWait = 2 * time.Second

// lockDir keeps others from opening or closing a socket in the directory meanwhile: of two processes that find a dead socket one would
// otherwise remove the other's.
func lockDir(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPath, err)
	}
	for end := time.Now().Add(lockWait); ; time.Sleep(10 * time.Millisecond) {
		err = unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { d.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end) {
			d.Close()
			return nil, fmt.Errorf("%w: the directory %s can't be locked (%w); choose another one", ErrPath, dir, err)
		}
	}
}

// removeDead removes a socket that nobody listens on.
func removeDead(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPath, err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%w: %s is there and is no socket; remove it, or choose another path", ErrPath, path)
	}
	conn, err := net.DialTimeout("unix", path, lockWait)
	switch {
	case err == nil:
		conn.Close()
		return fmt.Errorf("%w on %s: stop that process, or choose another path", ErrLive, path)
	case errors.Is(err, unix.ECONNREFUSED):
		return os.Remove(path)
	}
	return fmt.Errorf("%w on %s, or it belongs to somebody else (%w); choose another path", ErrLive, path, err)
}

// Accept waits for a connection, and while there are very many for the end of one.
func (l *Listener) Accept() (net.Conn, error) {
	l.slots <- struct{}{}
	c, err := l.AcceptUnix()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &conn{UnixConn: c, done: sync.OnceFunc(func() { <-l.slots })}, nil
}

// conn is an accepted connection. It gives its place back when it ends.
type conn struct {
	*net.UnixConn
	done func()
}

func (c *conn) Close() error {
	defer c.done()
	return c.UnixConn.Close()
}

// Close stops listening and removes the socket.
func (l *Listener) Close() error { return l.close() }

func (l *Listener) release() error {
	if unlock, err := lockDir(filepath.Dir(l.path)); err == nil {
		defer unlock()
	} // otherwise somebody holds the directory: what is removed is looked at all the same
	if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.file) {
		os.Remove(l.path)
	}
	return l.UnixListener.Close()
}

// peer asks the kernel who is at the other end.
func peer(c net.Conn) (uid int, err error) {
	var unixConn *net.UnixConn
	switch c := c.(type) {
	case *conn:
		unixConn = c.UnixConn
	case *net.UnixConn:
		unixConn = c
	default:
		return 0, ErrUnsupported
	}
	raw, err := unixConn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	failed := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(failed, err); err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
