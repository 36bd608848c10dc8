package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"countersign/agent/pins"
	"countersign/config"
)

// LockError means that the lock file can't be used. Its text says where the fault is and what to do.
type LockError struct{ err error }

func (e *LockError) Error() string { return e.err.Error() }

func (e *LockError) Unwrap() error { return e.err }

// ErrLockChanged means that a lock file was not written, because it has changed since it was read.
var ErrLockChanged = errors.New("the lock file changed since it was read")

// ReadLock reads the lock file beside a policy. A built-in policy has an empty path, and no lock file. The error is
// [LockError].
func ReadLock(policy string) (pins.Lock, error) {
	if policy == "" {
		return pins.Lock{}, nil
	}
	lock, err := pins.Read(pins.Beside(policy))
	if err != nil {
		return lock, &LockError{err}
	}
	return lock, nil
}

// lockFile is the policy in force, with the state of the lock file beside it.
type lockFile struct {
	mu       sync.Mutex
	file     *config.File // nil: no policy is in force
	path     string       // of the policy; empty: it is compiled in
	declared []declared   // its tools that need no server
	active   string       // the lock file's content in force
	seen     string       // the last content read
	refused  string       // the last rejected content, so that it is logged once

	failure atomic.Pointer[lockFailure] // why the file is not in force; nil: it is in force
}

// lockFailure is the reason why a lock file did not come into force.
type lockFailure struct {
	at  time.Time
	why error
}

// taken records that the content is in force.
func (l *lockFile) taken(found string) {
	l.active, l.seen, l.refused = found, found, ""
	l.failure.Store(nil)
}

// lockContent identifies the content of a policy's lock file, or the error of reading it.
func lockContent(policy string) string {
	if policy == "" {
		return ""
	}
	data, err := pins.Bytes(pins.Beside(policy))
	switch {
	case err != nil:
		return err.Error()
	case data == nil:
		return ""
	}
	return config.Hash(data)
}

// ReloadLock reads the lock file of the policy in force and applies a changed one. An invalid one is refused, and the
// previous pins stay. complete means that the file is known to be written to its end. Otherwise its content must be the
// same in two calls.
func (c *Catalog) ReloadLock(complete bool) (changed bool) {
	l := &c.lock
	l.mu.Lock()
	defer l.mu.Unlock()
	found := lockContent(l.path)
	switch {
	case found == l.active:
		l.taken(found)
		return false
	case !complete && (found != l.seen || found == l.refused):
		l.seen = found
		return false
	}
	l.seen = found
	if err := c.want(l.file, l.path); err != nil {
		l.refused = found
		l.failure.Store(&lockFailure{at: time.Now(), why: err})
		c.config.Log.Error("the lock file changed and was refused; the previous pins stay in force", "file", pins.Beside(l.path), "error", err)
		return false
	}
	l.taken(found)
	c.config.Log.Info("the lock file changed, and its pins are in force", "file", pins.Beside(l.path))
	return true
}

// Pinned returns an error that names the tools that differ from their pins, or a refused lock file, for /readyz. The
// bot works without these tools.
func (c *Catalog) Pinned(context.Context) error {
	if failure := c.lock.failure.Load(); failure != nil {
		return fmt.Errorf("the lock file was refused at %s, and the previous pins stay in force: %w", failure.at.UTC().Format(time.RFC3339), failure.why)
	}
	return c.drift.blocked()
}
