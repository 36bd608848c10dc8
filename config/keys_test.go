package config_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"countersign/approvers"
)

// TestKeysOfThePolicy checks the parsed values of the keys that say who is asked, for how long, and for which amounts.
func TestKeysOfThePolicy(t *testing.T) {
	f := parse(t, `
version: 1
mode: observe
never_loosen: [pay]
email_domains: [Example.com, mail.example.org]
shared_channels: ["#supplier-desk", C0004]
caps: {requester: 20/h, approver: 10}
budgets: {tokens: 200000, calls: 50}
paused_by: [b, a]
retention: {conversations: 1y30d, records: 7y}
audit: {channel: "#audit", every: 10m}
report: {channel: "#approvals", zone: Europe/Berlin}
operators: {channel: "#ops"}
defaults: {remind_after: 5m, reminders: 2, repeat: 1, on_expiry: escalate}
tools:
  pay:
    risk: high
    mode: observe
    break_glass: true
    blind: true
    remind_after: never
    reminders: 0
    repeat: 0
    on_expiry: reject
    grants: {uses: 5, within: 1h, at_most: [amount], same: [currency]}
    trust: {after: 20}
    stages:
      - {approvers: [a, b], quorum: 2, rejects: 2, expires_after: 2h, escalate_after: 30m, group: "@emea-finance"}
      - {group: S0123}
      - {approvers: [b]}
  send: {risk: low, mode: enforce, remind_after: 1m, reminders: 4, repeat: 3}
approvers:
  a: {members: [U0001], max_risk: high, can_approve: [pay], hours: {zone: Europe/Berlin, from: "09:00", to: "17:30"}}
  b:
    members: [U0002]
    max_risk: high
    can_approve: [pay]
    hours: {zone: UTC, days: [fri-sun, Tue], from: "00:00", to: "24:00", holidays: [2026-12-25, "2027-01-01"], outside: escalate}
agents:
  one: {tools: ["*"], budgets: {calls: 9}, overrides: {send: {stages: [a], mode: enforce, break_glass: false}}}
`)
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	yes, no, enforced := true, false, approvers.Enforce
	want := &approvers.Policy{
		Mode: approvers.Observe, NeverLoosen: []string{"pay"}, EmailDomains: []string{"example.com", "mail.example.org"}, SharedChannels: []string{"#supplier-desk", "C0004"},
		Caps:    approvers.Caps{Requester: approvers.Limit{Count: 20, Per: time.Hour}, Approver: 10},
		Budgets: approvers.Budgets{Tokens: 200_000, Calls: 50}, PausedBy: []string{"b", "a"},
		Audit:     approvers.AuditPost{Channel: "#audit", Every: 10 * time.Minute},
		Report:    approvers.ReportPost{Channel: "#approvals", Zone: berlin},
		Operators: approvers.OperatorPost{Channel: "#ops"},
		Retention: approvers.Retention{Conversations: 395 * 24 * time.Hour, Records: 7 * 365 * 24 * time.Hour},
		Defaults: approvers.Defaults{
			ExpiresAfter: 30 * time.Minute, EscalateAfter: 10 * time.Minute, RunWithin: 15 * time.Minute,
			RemindAfter: 5 * time.Minute, Reminders: 2, Repeat: 1, OnExpiry: approvers.ExpiryEscalates,
			UnknownTool: approvers.ToolPolicy{Risk: approvers.Critical, Confirm: true, WithPreview: true},
		},
		Tools: []approvers.ToolPolicy{
			{
				Name: "pay", Risk: approvers.High, Confirm: true, Mode: approvers.Observe, BreakGlass: true, Blind: true,
				RemindAfter: -1, Reminders: -1, Repeat: -1, OnExpiry: approvers.ExpiryRejects, TrustAfter: 20,
				Grants: approvers.GrantTerms{Uses: 5, Within: time.Hour, AtMost: []string{"amount"}, Same: []string{"currency"}},
				Stages: []approvers.Stage{
					{Approver: "a", Or: []string{"b"}, Group: "emea-finance", Quorum: 2, Rejects: 2, ExpiresAfter: 2 * time.Hour, EscalateAfter: 30 * time.Minute},
					{Group: "S0123", Quorum: 1},
					{Approver: "b", Quorum: 1},
				},
			},
			{Name: "send", Risk: approvers.Low, RemindAfter: time.Minute, Reminders: 4, Repeat: 3},
		},
		Approvers: []approvers.Role{
			{
				Name: "a", Title: "A", Members: []approvers.Member{{Kind: approvers.MemberUser, Value: "U0001"}}, MaxRisk: approvers.High,
				CanApprove: []string{"pay"}, Cards: approvers.CardsDM,
				Hours: &approvers.Hours{
					Zone: berlin, Days: [7]bool{false, true, true, true, true, true, false}, From: 9 * time.Hour, To: 17*time.Hour + 30*time.Minute,
					Outside: approvers.OutsideWaits,
				},
			},
			{
				Name: "b", Title: "B", Members: []approvers.Member{{Kind: approvers.MemberUser, Value: "U0002"}}, MaxRisk: approvers.High,
				CanApprove: []string{"pay"}, Cards: approvers.CardsDM,
				Hours: &approvers.Hours{
					Zone: time.UTC, Days: [7]bool{true, false, true, false, false, true, true}, To: 24 * time.Hour,
					Holidays: []string{"2026-12-25", "2027-01-01"}, Outside: approvers.OutsideEscalates,
				},
			},
		},
		Agents: []approvers.Agent{{
			Name: "one", Tools: []string{"*"}, MaxSteps: 10, Budgets: &approvers.Budgets{Tokens: 200_000, Calls: 9},
			Overrides: map[string]approvers.Override{"send": {Confirm: &yes, Stages: []approvers.Stage{{Approver: "a", Quorum: 1}}, Mode: &enforced, Glass: &no}},
		}},
	}
	ignore := []cmp.Option{
		cmpopts.IgnoreFields(approvers.Policy{}, "Hash"), cmpopts.IgnoreUnexported(approvers.Policy{}),
		cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() }),
	}
	if diff := cmp.Diff(want, f.Policy, ignore...); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
