package catalog

import (
	"strings"
	"sync/atomic"

	"countersign/agent"
	"countersign/approvers"
)

// activePolicy is the policy in force: the file's policy, combined with the current state of the tools.
type activePolicy struct {
	tools *agent.Registry
	at    atomic.Pointer[overlaidPolicy]
}

// overlaidPolicy is a policy combined with the tools of the registry at one version.
type overlaidPolicy struct {
	policy *approvers.Policy
	tools  uint64
}

// changing is the value of the field Load of the policy in force while Adopt replaces a stored policy. No stored
// change has this id, so the workflow commits nothing in this time.
const changing = "changing"

// store puts a policy into force.
func (a *activePolicy) store(p *approvers.Policy) { a.at.Store(a.overlay(p)) }

// loaded returns the field Load of the policy in force. If the policy is not stored, or there is no policy, loaded
// returns "".
func (a *activePolicy) loaded() string {
	if now := a.at.Load(); now != nil {
		return now.policy.Load
	}
	return ""
}

// load sets the field Load of the policy in force.
func (a *activePolicy) load(load string) {
	for now := a.at.Load(); now != nil && now.policy.Load != load; now = a.at.Load() {
		p := *now.policy
		p.Load = load
		if a.at.CompareAndSwap(now, &overlaidPolicy{&p, now.tools}) {
			return
		}
	}
}

// Policy returns the policy in force, or nil before the first call of [Catalog.Adopt]. If a caller read a tool from the
// registry before, the policy is based on the same version of the registry, or a later one.
func (c *Catalog) Policy() *approvers.Policy {
	a := &c.active
	for {
		now := a.at.Load()
		switch {
		case now == nil:
			return nil
		case now.tools == a.tools.Version():
			return now.policy
		}
		if next := a.overlay(now.policy); a.at.CompareAndSwap(now, next) {
			return next.policy
		}
	}
}

func (a *activePolicy) overlay(p *approvers.Policy) *overlaidPolicy {
	tools, version := a.tools.Status()
	return &overlaidPolicy{p.With(overlay(p, tools)), version}
}

// WithTools returns a policy combined with the state of tools.
func WithTools(p *approvers.Policy, tools *agent.Registry) *approvers.Policy {
	all, _ := tools.Status()
	return p.With(overlay(p, all))
}

// overlay returns the state of the tools, as an addition to a policy. The addition has the risks that sources declare,
// for tools that the policy does not name. It also has the tools that count as unknown because they have no pin, or
// differ from their pin.
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

// whyPresumed says why a tool that the policy does not name has its presumed risk.
func whyPresumed(t agent.Status) string {
	if strings.HasPrefix(t.Tool.Source, apiPrefix) {
		if t.Presumed == approvers.Low {
			return "its OpenAPI file describes it as a request that only reads"
		}
		return "its OpenAPI file describes it as a request that changes something"
	}
	return "its server says that it only reads, and the policy trusts its annotations"
}
