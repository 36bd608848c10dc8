package main

import (
	"strings"
	"sync/atomic"

	"countersign/agent"
	"countersign/approvers"
)

// inForce is the policy in force: what the file says, with what the tools add to it as they are now.
type inForce struct {
	tools *agent.Registry
	at    atomic.Pointer[laid]
}

// laid is a policy with what the tools added to it at one version of the registry.
type laid struct {
	policy *approvers.Policy
	tools  uint64
}

// Store puts a policy into force.
func (f *inForce) Store(p *approvers.Policy) {
	f.at.Store(f.lay(p))
}

// Load is the policy in force. Whoever reads a tool first and then this finds it laid over that tool, or over a later one.
func (f *inForce) Load() *approvers.Policy {
	for {
		now := f.at.Load()
		if now.tools == f.tools.Version() {
			return now.policy
		}
		if next := f.lay(now.policy); f.at.CompareAndSwap(now, next) {
			return next.policy
		}
	}
}

func (f *inForce) lay(p *approvers.Policy) *laid {
	tools, version := f.tools.Status()
	return &laid{p.With(overlay(p, tools)), version}
}

// overlay is what the tools add to a policy: what trusted sources let presume of those that the policy does not name, and which of them count as unknown
// because they are not what the operator pinned.
func overlay(p *approvers.Policy, tools []agent.Status) approvers.Overlay {
	o := approvers.Overlay{Presumed: map[string]approvers.Presumption{}, Distrusted: map[string]string{}}
	for _, t := range tools {
		switch {
		case t.Tool.Blocked == "" && t.Presumed != 0:
			o.Presumed[t.Tool.Name] = approvers.Presumption{Risk: t.Presumed, Why: whyPresumed(t)}
		case t.State.Open() && t.Fault == nil && p.Defaults.UnpinnedTools == approvers.UnpinnedUnknown:
			o.Distrusted[t.Tool.Name] = t.Tool.Blocked
		}
	}
	return o
}

// whyPresumed says by whose word a risk is presumed.
func whyPresumed(t agent.Status) string {
	if strings.HasPrefix(t.Tool.Source, apiSource("")) {
		if t.Presumed == approvers.Low {
			return "its OpenAPI file describes it as a request that only reads"
		}
		return "its OpenAPI file describes it as a request that changes something"
	}
	return "its server says that it only reads, and the policy trusts its annotations"
}
