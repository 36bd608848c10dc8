package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"countersign/agent/pins"
	"countersign/config"
)

// lockFile is what is known of the lock file beside the policy.
type lockFile struct {
	inForce string // what was found in it when it was taken
	seen    string // what was found in it last
	refused string // what was refused last, so that it is said once
	failure atomic.Pointer[refusal]
}

// taken notes that what was found is in force.
func (l *lockFile) taken(found string) {
	l.inForce, l.seen, l.refused = found, found, ""
	l.failure.Store(nil)
}

// findLock names what is in the lock file of a policy.
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

// lookAtLock reads the lock file, and takes up what is pinned there if it is another one than before. One that can't be used is refused, and what was pinned before holds.
func (ps *policies) lookAtLock(whole bool) (changed bool) {
	l := &ps.lock
	found := findLock(ps.path)
	switch {
	case found == l.inForce:
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

// pinState says on /readyz what is not as pinned, and whether the lock file was refused.
func (ps *policies) pinState(ctx context.Context) error {
	if failure := ps.lock.failure.Load(); failure != nil {
		return fmt.Errorf("the lock file was refused at %s, and what was pinned before holds: %w", failure.at.UTC().Format(time.RFC3339), failure.why)
	}
	return ps.drifts.state(ctx)
}
