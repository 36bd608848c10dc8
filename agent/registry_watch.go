package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"countersign/agent/pins"
	"countersign/approvers"
	"countersign/approvers/desk"
)

// Status is how a tool stands, for the operator and for the policy in force.
type Status struct {
	Tool       desk.Tool
	State      pins.State
	Definition json.RawMessage // as its source offers it, or as it is pinned where the source does not say; nil: it needs no pin
	Pinned     json.RawMessage // where it drifted: the definition that is pinned
	Presumed   approvers.Risk  // what its source lets presume, where the policy does not name it; zero: nothing
	Fault      error           // why what its source offers can't be used
}

// Status lists how every tool stands, by name, and the version of the registry that this is of.
func (r *Registry) Status() (all []Status, version uint64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, t := range r.inOrder() {
		s := Status{Tool: t.pinned, State: t.state, Definition: t.Definition, Pinned: t.before, Presumed: t.Presumed, Fault: t.fault}
		if t.fault != nil {
			s.Definition, s.Pinned = nil, t.Definition
		}
		all = append(all, s)
	}
	return all, r.version
}

// Version counts the changes: what was read of the registry under one version is as it was while the version is the same.
func (r *Registry) Version() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.version
}

// Changed is sent to when something changed. Changes that nobody has taken note of are one.
func (r *Registry) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{}, 1)
	}
	return r.changed
}

// announce notes that something changed.
func (r *Registry) announce() {
	r.version++
	r.print = ""
	if r.moved != nil {
		close(r.moved)
		r.moved = nil
	}
	select {
	case r.changed <- struct{}{}:
	default: // nobody listens, or is told already
	}
}

// Fingerprint names all that decides whether a call may run: which tools there are, their definitions, and which of them are blocked. It is the same after a restart with the same tools.
func (r *Registry) Fingerprint() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.print == "" {
		h := sha256.New()
		for _, t := range r.inOrder() {
			fmt.Fprintf(h, "%q %q %q\n", t.Name, t.pinned.Hash, t.pinned.Blocked)
		}
		r.print = hex.EncodeToString(h.Sum(nil))
	}
	return r.print
}

// patienceForSource is how long a run waits for a source that did not say yet what it offers. It is never more than half of what the run may take.
const patienceForSource = 10 * time.Second

// waits is the Run of a tool whose source did not say yet what it offers: it waits until the source offers the tool with the hash that it had. Where that does not
// come to be, nothing was done.
func (r *Registry) waits(name string, hash *string) func(context.Context, Invocation) (string, error) {
	return func(ctx context.Context, in Invocation) (string, error) {
		var late <-chan time.Time
		for {
			t, ok, moved := r.look(name)
			switch {
			case !ok:
				return "", fmt.Errorf("%w, because its source does not offer it any more", ErrNotRun)
			case t.pinned.Blocked != "":
				return "", fmt.Errorf("%w, because %s", ErrNotRun, t.pinned.Blocked)
			case t.pinned.Hash != *hash:
				return "", fmt.Errorf("%w, because its definition changed", ErrNotRun)
			case t.state != pins.Waiting:
				return t.Run(ctx, in)
			}
			if late == nil {
				timer := time.NewTimer(min(patienceForSource, t.Timeout/2))
				defer timer.Stop()
				late = timer.C
			}
			select {
			case <-moved:
			case <-late:
				return "", fmt.Errorf("%w, because its source %s is not there; it can be tried again later", ErrNotRun, t.source)
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
	}
}

// look finds a tool, and a channel that is closed when anything changes.
func (r *Registry) look(name string) (t registered, ok bool, moved <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.moved == nil {
		r.moved = make(chan struct{})
	}
	t, ok = r.tools[name]
	return t, ok, r.moved
}
