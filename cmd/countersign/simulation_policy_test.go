package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
)

// These are the tools of the simulation.
const (
	toolFind     = "find"     // reads only
	toolNote     = "note"     // idempotent; a few calls run without approval
	toolPing     = "ping"     // unprotected; runs without approval
	toolDiscount = "discount" // idempotent; needs approval; approvers may allow more such calls
	toolRefund   = "refund"   // unprotected; needs approval, in stages for large amounts
	toolClose    = "close"    // unprotected and critical
	toolExport   = "export"   // unprotected; not named in the policy
)

var simulationEffects = map[string]approvers.Effect{
	toolFind: approvers.ReadOnly, toolNote: approvers.Idempotent, toolPing: approvers.Unprotected, toolDiscount: approvers.Idempotent,
	toolRefund: approvers.Unprotected, toolClose: approvers.Unprotected, toolExport: approvers.Unprotected,
}

// simulationPolicy is a policy. The fields of a simulationPolicy repeat the policy's requirements in the simplest form.
type simulationPolicy struct {
	noteAsked     bool
	discountAsked bool
	refundAsked   bool
	above         int // a refund of more than this needs stages
	quorum        int // quorum of the last stage
	leads         []string
	expires       time.Duration
	escalates     string
	silence       string // on_expiry
	cap           int
}

// drawPolicy chooses a policy at random.
func (s *simulation) drawPolicy() simulationPolicy {
	pick := func(n int) int { return s.rnd.IntN(n) }
	return simulationPolicy{
		noteAsked: pick(3) == 0, discountAsked: pick(4) > 0, refundAsked: pick(6) > 0,
		above: []int{100, 500, 10_000}[pick(3)], quorum: 1 + pick(2),
		leads:     [][]string{{"U0002"}, {"U0002", "U0001"}, {"U0002", "U0100"}}[pick(3)],
		expires:   []time.Duration{3 * time.Minute, 5 * time.Minute, 20 * time.Minute}[pick(3)],
		escalates: []string{"45s", "2m", "10m"}[pick(3)], silence: []string{"reject", "escalate"}[pick(2)], cap: 1 + pick(5),
	}
}

func (p simulationPolicy) text() string {
	waits := map[bool]string{true: "true", false: "false"}
	return fmt.Sprintf(`version: 1
defaults:
  expires_after: %s
  escalate_after: %s
  run_within: 2m
  remind_after: 90s
  reminders: 2
  repeat: 1
  on_expiry: %s
  unknown_tool: {risk: critical, confirm: true}
caps: {requester: 30/h, approver: %d}
tools:
  find: {risk: low}
  note: {risk: medium, confirm: %s, max_auto: 3/h}
  ping: {risk: low}
  discount:
    risk: medium
    confirm: %s
    preview: "Discount of {{.amount}} for {{.n}}"
    grants: {uses: 3, within: 1h, at_most: [amount]}
    trust: {after: 3}
  refund:
    risk: high
    confirm: %s
    preview: "Refund of {{.amount}} for {{.n}}"
    rules:
      - when: args.amount > %d
        risk: critical
        confirm: true
        stages: [team-lead, {approver: finance-director, quorum: %d}]
  close: {risk: critical, confirm: true}
approvers:
  support-agent: {title: Support Agent, members: ["@support"], max_risk: medium, can_approve: [note, discount], cards: "#support-approvals", lead: team-lead}
  team-lead: {title: Team Lead, members: [%s], max_risk: high, can_approve: [note, discount, refund], lead: finance-director}
  finance-director: {title: Finance Director, members: [U0003, U0004], max_risk: critical, can_approve: ["*"]}
agents:
  support: {channels: ["#support"], prompt: Do as you are told., tools: ["*"], max_steps: 6}
`, p.expires, p.escalates, p.silence, p.cap, waits[p.noteAsked], waits[p.discountAsked], waits[p.refundAsked], p.above, p.quorum, strings.Join(p.leads, ", "))
}

// need has the requirements of a call: the number of approvals, and the risk that the last approver must be allowed to
// decide. If the field people is 0, the call needs no approval.
type need struct {
	people int
	risk   approvers.Risk
}

func (p simulationPolicy) need(tool string, amount float64) need {
	asked := func(yes bool, risk approvers.Risk) need {
		if yes {
			return need{1, risk}
		}
		return need{0, risk}
	}
	switch tool {
	case toolFind, toolPing:
		return need{0, approvers.Low}
	case toolNote:
		return asked(p.noteAsked, approvers.Medium)
	case toolDiscount:
		return asked(p.discountAsked, approvers.Medium)
	case toolRefund:
		if amount > float64(p.above) {
			return need{1 + p.quorum, approvers.Critical}
		}
		return asked(p.refundAsked, approvers.High)
	}
	return need{1, approvers.Critical}
}

// ceiling returns the highest risk up to which a person may decide calls to a tool. If the person may not decide,
// ceiling returns 0.
func (p simulationPolicy) ceiling(user, tool string) approvers.Risk {
	all := []struct {
		members []string
		tools   []string
		risk    approvers.Risk
	}{
		{[]string{"U0003", "U0004"}, nil, approvers.Critical},
		{p.leads, []string{toolNote, toolDiscount, toolRefund}, approvers.High},
		{[]string{"U0001", "U0101"}, []string{toolNote, toolDiscount}, approvers.Medium},
	}
	for _, role := range all {
		if slices.Contains(role.members, user) && (role.tools == nil || slices.Contains(role.tools, tool)) {
			return role.risk
		}
	}
	return 0
}
