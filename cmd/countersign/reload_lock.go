package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"countersign/agent/pins"
	"countersign/config"
)

// lockFile is the state of the lock file beside the policy.
type lockFile struct {
	active  string // the content in force
	seen    string // the last content read
	refused string // the last rejected content, so that it is logged once
	failure atomic.Pointer[refusal]
}

// taken records that the content is in force.
func (l *lockFile) taken(found string) {
	l.active, l.seen, l.refused = found, found, ""
	l.failure.Store(nil)
}

// findLock returns the content of a policy's lock file.
func findLock(policy string) string {
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

// lookAtLock reads the lock file and applies a changed one. An invalid one is refused, and the previous pins stay.
func (ps *policies) lookAtLock(whole bool) (changed bool) {
	l := &ps.lock
	found := findLock(ps.path)
	switch {
	case found == l.active:
		l.taken(found)
		return false
	case !whole && (found != l.seen || found == l.refused):
		l.seen = found
		return false
	}
	l.seen = found
	if err := ps.tools.want(ps.file, ps.path); err != nil {
		l.refused = found
		l.failure.Store(&refusal{at: time.Now(), why: err})
		ps.log.Error("the lock file changed and was refused; what was pinned before holds", "file", pins.Beside(ps.path), "error", err)
		return false
	}
	l.taken(found)
	ps.log.Info("the lock file changed, and what is pinned in it holds", "file", pins.Beside(ps.path))
	return true
}

// pinState reports on /readyz which tools differ from their pins, and a refused lock file.
func (ps *policies) pinState(ctx context.Context) error {
	if failure := ps.lock.failure.Load(); failure != nil {
		return fmt.Errorf("the lock file was refused at %s, and what was pinned before holds: %w", failure.at.UTC().Format(time.RFC3339), failure.why)
	}
	return ps.driftReporter.state(ctx)
}
