package control

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Listener is an open socket.
type Listener struct {
	*net.UnixListener
	path  string
	file  fs.FileInfo
	close func() error

	mu      sync.Mutex
	waiting list.List // *conn without a request yet, oldest first
}

// Listen opens the socket at a path. Only its owner and root can connect. Closing the listener removes the socket.
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
	// The function in Control sets the mode of the socket before the bind call, and bind creates the file with this
	// mode. Therefore other users can never connect, and the process can keep its umask.
	conf := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		return errors.Join(c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) }), err)
	}}
	l, err := conf.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrPath, path, err)
	}
	ul := l.(*net.UnixListener)
	ul.SetUnlinkOnClose(false) // Close first checks that the socket is ours
	out := &Listener{UnixListener: ul, path: path}
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

// checkPath checks that the path is short enough, and checks the directory. If the directory does not exist but its
// parent does, checkPath makes the directory. In Kubernetes, the group of a pod can write to each of the pod's volumes, so
// the socket needs its own directory inside a volume.
func checkPath(path string) error {
	if len(path) > maxPath {
		return fmt.Errorf("%w: %s is %d bytes long, and a Unix socket's path may have %d; choose a shorter one", ErrPath, path, len(path), maxPath)
	}
	dir := filepath.Dir(path)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrPath, err)
	}
	err := checkDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: the directory %s does not exist; make it first", ErrPath, dir)
	}
	return err
}

// checkDir checks that no other user can replace the socket in the directory. In a directory with the sticky bit, such
// as /tmp, only the owners of the directory and of a file can replace the file. A group may write to the directory if
// the group is that of root, or the primary group of the directory's owner. The second case is common, because on many
// systems each user has a group of their own.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPath, err)
	}
	mode := info.Mode()
	switch {
	case !mode.IsDir():
		return fmt.Errorf("%w: %s is not a directory", ErrPath, dir)
	case mode&fs.ModeSticky != 0:
		return nil
	case mode.Perm()&0o002 != 0:
		return fmt.Errorf("%w: everybody can write to the directory %s and could replace the socket; remove that permission (chmod o-w), or choose another directory", ErrPath, dir)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if mode.Perm()&0o020 == 0 || !ok || stat.Gid == 0 || isOwnGroup(int(stat.Uid), int(stat.Gid)) {
		return nil
	}
	return fmt.Errorf("%w: the members of the group %d can write to the directory %s and could replace the socket; remove that permission (chmod g-w), or choose another directory",
		ErrPath, stat.Gid, dir)
}

// isOwnGroup reports whether a group is the primary group of a user.
func isOwnGroup(uid, gid int) bool {
	if uid == os.Geteuid() && gid == os.Getegid() {
		return true
	}
	u, err := user.LookupId(strconv.Itoa(uid))
	return err == nil && u.Gid == strconv.Itoa(gid)
}

// lockWait is how long to wait while another process opens or closes a socket in the same directory.
const lockWait = 2 * time.Second

// lockDir locks the directory against other processes that open or close a socket in the directory. Without the lock,
// two processes could find the same dead socket. One of them could then remove the new socket of the other process.
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

// removeDead removes a socket on which no process listens.
func removeDead(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPath, err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%w: %s exists and is not a socket; remove it, or choose another path", ErrPath, path)
	}
	conn, err := net.DialTimeout("unix", path, lockWait)
	switch {
	case err == nil:
		conn.Close()
		return fmt.Errorf("%w on %s: stop that process, or choose another path", ErrLive, path)
	case errors.Is(err, unix.ECONNREFUSED):
		return os.Remove(path)
	}
	return fmt.Errorf("%w on %s, or the socket belongs to somebody else (%w); choose another path", ErrLive, path, err)
}

// Accept waits for a connection. If too many connections have sent no request yet, Accept closes the connection that
// has been silent for longest.
func (l *Listener) Accept() (net.Conn, error) {
	u, err := l.AcceptUnix()
	if err != nil {
		return nil, err
	}
	c := &conn{UnixConn: u, l: l}
	l.mu.Lock()
	c.waits = l.waiting.PushBack(c)
	var idle *conn
	if l.waiting.Len() > maxWaiting {
		idle = l.idlest()
	}
	l.mu.Unlock()
	if idle != nil {
		_ = idle.Close() // the reader of this connection gets an error
	}
	return c, nil
}

// idlest returns the oldest connection whose client has sent no data. If all clients have sent data, idlest returns the
// oldest connection.
func (l *Listener) idlest() *conn {
	for e := l.waiting.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*conn); c.silent() {
			return c
		}
	}
	return l.waiting.Front().Value.(*conn)
}

// conn is an accepted connection.
type conn struct {
	*net.UnixConn
	l     *Listener
	waits *list.Element // the connection's element in l.waiting; nil: the connection has a request, or is closed
	spoke atomic.Bool
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.UnixConn.Read(p)
	if n > 0 {
		c.spoke.Store(true)
	}
	return n, err
}

// The method "silent" reports whether the client has sent nothing at all. If data has arrived that nobody has read yet,
// the connection is not silent.
func (c *conn) silent() bool {
	if c.spoke.Load() {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return true // the connection is closed
	}
	unread := 0
	failed := raw.Control(func(fd uintptr) { unread, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return failed != nil || err != nil || unread == 0
}

// The method "asked" records that a request has arrived on the connection, so that Accept does not close the
// connection.
func (c *conn) asked() {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.waits != nil {
		c.l.waiting.Remove(c.waits)
		c.waits = nil
	}
}

func (c *conn) Close() error {
	c.asked()
	return c.UnixConn.Close()
}

// Close stops listening and removes the socket.
func (l *Listener) Close() error { return l.close() }

func (l *Listener) release() error {
	if unlock, err := lockDir(filepath.Dir(l.path)); err == nil {
		defer unlock()
	} // the socket is removed even without the lock, because the removal checks the file
	if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.file) {
		os.Remove(l.path)
	}
	return l.UnixListener.Close()
}

// peer asks the kernel for the user at the other end.
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
