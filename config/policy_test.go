package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"countersign/approvers"
	"countersign/config"
	"countersign/config/yamldoc"
)

func parse(t testing.TB, text string) *config.File {
	t.Helper()
	f, err := config.ParsePolicy("countersign.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestParsePolicy checks that the keys of a policy with many settings are read correctly.
func TestParsePolicy(t *testing.T) {
	f := parse(t, `
version: 1
defaults: {expires_after: 1h, escalate_after: 90s, run_within: 1d12h, unknown_tool: {risk: high, confirm: true, preview: false, stages: [lead]}}
tools:
  look: {risk: low}
  write:
    risk: medium
    confirm: false
    preview: "Write {{.x}}"
    max_auto: 10/min
    expires_after: 2d
    escalate_after: 5m
    run_within: 30s
    self_approval: true
    stages: [agent, {approver: lead, quorum: 2}]
    rules:
      - {when: args.x > 1, risk: high}
      - {when: args.x > 2, confirm: true, stages: [lead]}
approvers:
  agent: {title: The Agents, members: [U0001, W0002, S0003, "@support-eu", Jo@Example.com], max_risk: medium, can_approve: [write], cards: C0123, lead: lead}
  lead: {members: [U0004], max_risk: critical, can_approve: ["*"]}
agents:
  one: {channels: ["#support", C0001, "*"], prompt: Be brief., model: gpt-5, tools: [look, write], guests: true, direct_messages: false, max_steps: 3,
        overrides: {write: {risk: high, max_auto: 3/d}, look: {confirm: true}}}
  two: {tools: ["*"]}
`[1:])
	yes := true
	want := &approvers.Policy{
		Defaults: approvers.Defaults{
			ExpiresAfter: time.Hour, EscalateAfter: 90 * time.Second, RunWithin: 36 * time.Hour, Reminders: 3, OnExpiry: approvers.ExpiryRejects,
			UnknownTool: approvers.ToolPolicy{Risk: approvers.High, Confirm: true, Stages: []approvers.Stage{{Approver: "lead", Quorum: 1}}},
		},
		Tools: []approvers.ToolPolicy{
			{Name: "look", Risk: approvers.Low},
			{
				Name: "write", Risk: approvers.Medium, WithPreview: true, Preview: approvers.Preview{Text: "Write {{.x}}"},
				MaxAuto: approvers.Limit{Count: 10, Per: time.Minute}, ExpiresAfter: 48 * time.Hour, EscalateAfter: 5 * time.Minute, RunWithin: 30 * time.Second,
				SelfApproval: true, Stages: []approvers.Stage{{Approver: "agent", Quorum: 1}, {Approver: "lead", Quorum: 2}},
				Rules: []approvers.Rule{
					{When: approvers.Condition{Text: "args.x > 1"}, Risk: approvers.High, Confirm: true},
					{When: approvers.Condition{Text: "args.x > 2"}, Confirm: true, Stages: []approvers.Stage{{Approver: "lead", Quorum: 1}}},
				},
			},
		},
		Approvers: []approvers.Role{
			{
				Name: "agent", Title: "The Agents", MaxRisk: approvers.Medium, CanApprove: []string{"write"}, Cards: "C0123", Lead: "lead",
				Members: []approvers.Member{
					{Kind: approvers.MemberUser, Value: "U0001"}, {Kind: approvers.MemberUser, Value: "W0002"}, {Kind: approvers.MemberGroup, Value: "S0003"},
					{Kind: approvers.MemberGroup, Value: "support-eu"}, {Kind: approvers.MemberEmail, Value: "jo@example.com"},
				},
			},
			{
				Name: "lead", Title: "Lead", MaxRisk: approvers.Critical, CanApprove: []string{"*"}, Cards: approvers.CardsDM,
				Members: []approvers.Member{{Kind: approvers.MemberUser, Value: "U0004"}},
			},
		},
		Agents: []approvers.Agent{
			{
				Name: "one", Prompt: "Be brief.", Model: "gpt-5", Channels: []string{"#support", "C0001", "*"}, NoDM: true, AllowGuests: true,
				Tools: []string{"look", "write"}, MaxSteps: 3,
				Overrides: map[string]approvers.Override{
					"write": {Risk: approvers.High, Confirm: &yes, MaxAuto: &approvers.Limit{Count: 3, Per: 24 * time.Hour}}, "look": {Confirm: &yes},
				},
			},
			{Name: "two", Tools: []string{"*"}, MaxSteps: 10},
		},
	}
	ignore := []cmp.Option{
		cmpopts.IgnoreFields(approvers.Policy{}, "Hash"), cmpopts.IgnoreFields(approvers.Preview{}, "Render"), cmpopts.IgnoreFields(approvers.Condition{}, "Eval"),
		cmpopts.IgnoreUnexported(approvers.Policy{}), cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() }),
	}
	if diff := cmp.Diff(want, f.Policy, ignore...); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestCarefulDefaults checks that settings have safe defaults if the policy leaves them out.
func TestCarefulDefaults(t *testing.T) {
	f := parse(t, `
version: 1
tools:
  low: {risk: low}
  medium: {risk: medium}
  high: {risk: high}
  critical: {risk: critical}
  named: {risk: high, confirm: false}
  staged: {risk: low, stages: [lead]}
  ruled: {risk: low, rules: [{when: "true", risk: high}]}
approvers: {lead: {members: [U0001], max_risk: critical, can_approve: ["*"]}}
agents: {a: {tools: ["*"], overrides: {low: {risk: critical}, high: {risk: low}}}}
`)
	d := f.Policy.Defaults
	if u := d.UnknownTool; u.Risk != approvers.Critical || !u.Confirm || !u.WithPreview {
		t.Errorf("unknown tools: %+v", u)
	}
	if d.ExpiresAfter != 30*time.Minute || d.EscalateAfter != 10*time.Minute || d.RunWithin != 15*time.Minute {
		t.Errorf("times: %+v", d)
	}
	for _, c := range []struct {
		tool, agent string
		want        approvers.Verdict
	}{
		{"low", "", approvers.Auto},
		{"medium", "", approvers.Auto},
		{"high", "", approvers.Ask},
		{"critical", "", approvers.Ask},
		{"named", "", approvers.Auto}, // the operator set confirm: false explicitly
		{"staged", "", approvers.Ask}, // stages imply that the tool's calls wait
		{"ruled", "", approvers.Ask},  // a rule that raises the risk to high makes the call wait
		{"low", "a", approvers.Ask},   // an override that raises the risk to high also makes the call wait
		{"high", "a", approvers.Ask},  // a lower risk alone does not remove the need for approval
		{"nowhere", "", approvers.Ask},
	} {
		plan := f.Policy.Plan(approvers.Call{Tool: c.tool, Facts: approvers.Facts{Agent: c.agent}})
		if plan.Verdict != c.want {
			t.Errorf("%s asked by %q: %s, want %s (%v)", c.tool, c.agent, plan.Verdict, c.want, plan.Why)
		}
	}
}

// TestHash checks that the hash covers all bytes, comments included.
func TestHash(t *testing.T) {
	const text = "version: 1\ntools: {a: {risk: low}}\n"
	a, b, c := parse(t, text), parse(t, text), parse(t, text+"# changed\n")
	if len(a.Policy.Hash) != 64 || a.Policy.Hash != b.Policy.Hash || a.Policy.Hash == c.Policy.Hash {
		t.Errorf("%s, %s, %s", a.Policy.Hash, b.Policy.Hash, c.Policy.Hash)
	}
}

// TestReadPolicy checks that the error about an unreadable file says what is wrong.
func TestReadPolicy(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, []byte("version: 1\n"+strings.Repeat("# more of it\n", yamldoc.MaxFile/13+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(dir, "good.yaml")
	if err := os.WriteFile(good, []byte("version: 1\n"+strings.Repeat("# more of it\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, want string }{
		{filepath.Join(dir, "none.yaml"), "none.yaml: there is no such file; write one (docs/policy.md has an example), or set COUNTERSIGN_POLICY to where it is"},
		{dir, ": can't be read: is a directory"},
		{large, "large.yaml: is larger than 1024 KiB; is this the right file?"},
	} {
		_, err := config.ReadPolicy(c.path)
		var problems yamldoc.Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.path, err, c.want)
		}
	}
	if _, err := config.ReadPolicy(good); err != nil {
		t.Error(err)
	}
}

func BenchmarkParsePolicy(b *testing.B) {
	data, err := os.ReadFile("../cmd/countersign/demo.yaml")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := config.ParsePolicy("demo.yaml", data); err != nil {
			b.Fatal(err)
		}
	}
}
