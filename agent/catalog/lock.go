package catalog

import (
	"context"
	"errors"
	"sync"

	"countersign/agent/pins"
	"countersign/config"
)

// LockError means that the lock file can't be used. The error's text says where the fault is and what to do.
type LockError struct{ err error }

func (e *LockError) Error() string { return e.err.Error() }

func (e *LockError) Unwrap() error { return e.err }

// ErrLockChanged means that a lock file was not written, because the file has changed since it was read.
var ErrLockChanged = errors.New("the lock file changed since it was read")

// ReadLock reads the lock file beside a policy. The path "" means the built-in policy, which has no lock file. An
// error is a [LockError].
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

// adopted has the policy of the last successful Adopt.
type adopted struct {
	mu       sync.Mutex
	file     *config.File // nil: no policy is in force
	declared []declared   // the policy's tools that need no server
}

// Pinned returns an error that names blocked tools, at most ten. A tool is blocked if it has no pin, or differs from
// its pin. The error is for /readyz. The bot works without these tools.
func (c *Catalog) Pinned(context.Context) error { return c.drift.blocked() }
