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
	"countersign/approvers/workflow"
)

// Status is the state of a tool, for the operator and for policy evaluation.
type Status struct {
	Tool  workflow.Tool
	State pins.State
	// Definition is the definition that the source offers. If the source has not listed its tools yet, or does not
	// offer the tool, Definition is the pinned definition. If the tool is compiled in, or if the offered definition
	// can't be used, Definition is nil.
	Definition json.RawMessage
	Pinned     json.RawMessage // pinned definition, if it differs from the offered one
	Presumed   approvers.Risk  // the source's default risk for tools that the policy does not name; zero: none
	Fault      error           // why the offered definition can't be used
	Notes      []string        // parts of the schema that the bot does not check, or that some models' servers refuse
}

// Status lists the state of every tool by name, with the registry's version.
func (r *Registry) Status() (all []Status, version uint64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, t := range r.inOrder() {
		s := Status{Tool: t.pinned, State: t.state, Definition: t.Definition, Pinned: t.before, Presumed: t.Presumed, Fault: t.fault, Notes: t.notes}
		if t.fault != nil {
			s.Definition, s.Pinned = nil, t.Definition
		}
		all = append(all, s)
	}
	return all, r.version
}

// Version returns the number of changes since the creation of the registry. If the number has not changed, values that
// were read earlier are still valid.
func (r *Registry) Version() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.version
}

// Changed returns a channel that gets a value after each change. If several changes happen before the value is
// received, there is only one value.
func (r *Registry) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{}, 1)
	}
	return r.changed
}

// announce counts a change, and notifies all waiting goroutines.
func (r *Registry) announce() {
	r.version++
	r.print = ""
	if r.nextChange != nil {
		close(r.nextChange)
		r.nextChange = nil
	}
	select {
	case r.changed <- struct{}{}:
	default: // the channel already holds a notice
	}
}

// Fingerprint identifies everything in the registry that decides whether a call may run: the tools, their
// definitions, and which tools are blocked. After a restart with the same tools, the fingerprint is the same.
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

// Drift lists the pinned tools whose source does not offer the pinned definition, or has not listed its tools yet. The
// list is sorted by name. A tool that nobody has pinned is not listed.
func (r *Registry) Drift() (all []workflow.Drift) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, t := range r.inOrder() {
		d := workflow.Drift{Tool: t.Name, Source: t.source}
		switch {
		case t.state == pins.Waiting:
			d.How = workflow.DriftUnknown
		case t.state == pins.Gone:
			d.How = workflow.DriftGone
		case t.state == pins.Drifted && t.fault != nil:
			d.How = workflow.DriftUnusable
		case t.state == pins.Drifted:
			d.How = workflow.DriftChanged
		default:
			continue
		}
		all = append(all, d)
	}
	return all
}

// patienceForSource is how long a run waits for a source that has not listed its tools yet. A run never waits longer
// than half of its timeout.
const patienceForSource = 10 * time.Second

// waits returns the Run of a tool whose source has not listed its tools yet. The Run waits for the source's list. If
// the listed tool has the given hash, the Run then runs this tool. If the hash differs, or if the list does not come in
// time, the Run returns an error that wraps ErrNotRun.
func (r *Registry) waits(name string, hash *string) func(context.Context, Invocation) (string, error) {
	return func(ctx context.Context, in Invocation) (string, error) {
		var late <-chan time.Time
		for {
			t, ok, changed := r.look(name)
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
			case <-changed:
			case <-late:
				return "", fmt.Errorf("%w, because its source %s is not available; it can be tried again later", ErrNotRun, t.source)
			case <-ctx.Done():
				return "", NotSent(ctx, t.Effect, fmt.Errorf("it was ended before its source %s was available", t.source))
			}
		}
	}
}

// look returns a tool, and a channel that is closed on the next change of the registry.
func (r *Registry) look(name string) (t registered, ok bool, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nextChange == nil {
		r.nextChange = make(chan struct{})
	}
	t, ok = r.tools[name]
	return t, ok, r.nextChange
}
