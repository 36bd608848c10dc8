package approvers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"countersign/approvers"
)

func presumed(tool string, r approvers.Risk) approvers.Overlay {
	return approvers.Overlay{Presumed: map[string]approvers.Presumption{tool: {Risk: r, Why: "its server says that it only reads, and the policy trusts its annotations"}}}
}

func distrusted(tool string) approvers.Overlay {
	return approvers.Overlay{Distrusted: map[string]string{tool: "its definition changed since it was pinned"}}
}

var overlaid = &approvers.Policy{
	Hash: "file",
	Defaults: approvers.Defaults{
		ExpiresAfter: time.Hour,
		UnknownTool:  approvers.ToolPolicy{Risk: approvers.Critical, Confirm: true, WithPreview: true},
	},
	Tools: []approvers.ToolPolicy{{Name: "files.write", Risk: approvers.High, Confirm: true, Grants: approvers.GrantTerms{Uses: 3, Within: time.Hour}, TrustAfter: 2, SelfApproval: true, BreakGlass: true}},
	Approvers: []approvers.Role{
		{Name: "lead", Title: "Lead", MaxRisk: approvers.High, CanApprove: []string{"*"}, Members: []approvers.Member{{Kind: approvers.MemberUser, Value: "U1"}}},
		{Name: "boss", Title: "Boss", MaxRisk: approvers.Critical, CanApprove: []string{"*"}, Members: []approvers.Member{{Kind: approvers.MemberUser, Value: "U2"}}},
	},
	Agents: []approvers.Agent{{Name: "support"}},
}

// The presumptions of a trusted source apply only to tools that the policy does not name.
func TestPresumed(t *testing.T) {
	for _, c := range []struct {
		tool    string
		risk    approvers.Risk
		want    approvers.Risk
		confirm bool
	}{
		{"files.read", approvers.Low, approvers.Low, false},
		{"files.read", approvers.Medium, approvers.Medium, true},
		{"files.read", approvers.High, approvers.High, true},
		{"files.read", approvers.Critical, approvers.Critical, true},
		{"files.read", 0, approvers.Critical, true}, // the source claims nothing about this tool
		{"files.write", approvers.Low, approvers.High, true},
		{approvers.ToolAskPeople, approvers.High, approvers.Low, false},
	} {
		p := overlaid.With(presumed(c.tool, c.risk))
		got, _ := p.Tool(c.tool, "support")
		if got.Risk != c.want || got.Confirm != c.confirm || got.ExpiresAfter != time.Hour {
			t.Errorf("%s, presumed %v: %s risk, confirm %v", c.tool, c.risk, got.Risk, got.Confirm)
		}
	}
	p := overlaid.With(presumed("files.read", approvers.Low))
	plan, steps := p.Explain(approvers.Call{Tool: "files.read", Facts: approvers.Facts{Agent: "support"}})
	if plan.Verdict != approvers.Auto || plan.Known || plan.Why[0] != "the policy does not name files.read; its server says that it only reads, and the policy trusts its annotations, so it counts as low risk" {
		t.Errorf("%+v", plan)
	}
	if want := "The policy does not name files.read; its server says that it only reads, and the policy trusts its annotations: low risk, runs without asking."; steps[0] != want {
		t.Errorf("%q", steps[0])
	}
}

// An override takes precedence over a presumption, because the policy's author writes overrides. With never_loosen,
// an override can only make the policy stricter.
func TestPresumedAndOverridden(t *testing.T) {
	off, on := false, true
	for name, c := range map[string]struct {
		never    []string
		override approvers.Override
		presumed approvers.Risk
		want     approvers.Risk
		confirm  bool
		why      string
	}{
		"looser":                 {nil, approvers.Override{Risk: approvers.Low, Confirm: &off}, approvers.High, approvers.Low, false, "the policy does not know files.read, so it counts as low risk"},
		"looser, and protected":  {[]string{"files.read"}, approvers.Override{Risk: approvers.Low, Confirm: &off}, approvers.High, approvers.High, true, "trusts its annotations, so it counts as high risk"},
		"stricter":               {nil, approvers.Override{Risk: approvers.High, Confirm: &on}, approvers.Low, approvers.High, true, "the policy does not know files.read, so it counts as high risk"},
		"stricter and protected": {[]string{"*"}, approvers.Override{Confirm: &on}, approvers.Low, approvers.Low, true, "so it counts as low risk"},
	} {
		p := *overlaid
		p.NeverLoosen = c.never
		p.Agents = []approvers.Agent{{Name: "support", Overrides: map[string]approvers.Override{"files.read": c.override}}}
		q := p.With(presumed("files.read", c.presumed))
		got, _ := q.Tool("files.read", "support")
		plan := q.Plan(approvers.Call{Tool: "files.read", Facts: approvers.Facts{Agent: "support"}})
		if got.Risk != c.want || got.Confirm != c.confirm || !strings.Contains(plan.Why[0], c.why) {
			t.Errorf("%s: %s risk, confirm %v, %q", name, got.Risk, got.Confirm, plan.Why)
		}
	}
}

func TestDistrusted(t *testing.T) {
	off := false
	p := *overlaid
	p.Agents = []approvers.Agent{{Name: "support", Overrides: map[string]approvers.Override{"files.write": {Risk: approvers.Low, Confirm: &off}}}}
	q := p.With(distrusted("files.write"))
	got, _ := q.Tool("files.write", "support")
	if got.Risk != approvers.Critical || !got.Confirm || got.Grants.Allowed() || got.TrustAfter != 0 || got.SelfApproval || got.BreakGlass {
		t.Errorf("%+v", got)
	}
	plan, steps := q.Explain(approvers.Call{Tool: "files.write", Facts: approvers.Facts{Agent: "support"}})
	if len(plan.Stages) != 1 || plan.Stages[0].Approver != "boss" || plan.Why[0] != "the operator did not pin files.write as it is (its definition changed since it was pinned), so it counts as critical risk" {
		t.Errorf("%+v", plan)
	}
	if want := "files.write is not as the operator pinned it: its definition changed since it was pinned. It counts as an unknown tool, even if the policy names it: critical risk, waits for people."; steps[0] != want {
		t.Errorf("%q", steps[0])
	}
	if why, ok := q.Distrusts("files.write"); !ok || why == "" {
		t.Error("it is not distrusted")
	}
	both := overlaid.With(approvers.Overlay{Presumed: presumed("files.read", approvers.Low).Presumed, Distrusted: distrusted("files.read").Distrusted})
	if got, _ := both.Tool("files.read", ""); got.Risk != approvers.Critical || !got.Confirm {
		t.Errorf("the claims of the server count although the definition is not the pinned one: %+v", got)
	}
	staged := overlaid.With(approvers.Overlay{})
	staged.Defaults.UnknownTool.Stages = []approvers.Stage{{Approver: "boss", Quorum: 2}}
	if got, _ := staged.With(distrusted("files.write")).Tool("files.write", ""); len(got.Stages) != 1 || !got.WithPreview {
		t.Errorf("the stages of unknown tools do not apply: %+v", got)
	}
}

// The hash covers the additions that come from the tools. So waiting requests are checked again when the additions
// change. If there are no additions, the hash is the hash of the file.
func TestOverlayIsPartOfTheHash(t *testing.T) {
	a, b := overlaid.With(distrusted("a")), overlaid.With(distrusted("b"))
	low, high := overlaid.With(presumed("a", approvers.Low)), overlaid.With(presumed("a", approvers.High))
	seen := map[string]bool{}
	for _, p := range []*approvers.Policy{overlaid, a, b, low, high} {
		if seen[p.Hash] || p.File() != "file" {
			t.Errorf("%s, of %s", p.Hash, p.File())
		}
		seen[p.Hash] = true
	}
	if again := a.With(distrusted("b")); again.Hash != b.Hash {
		t.Errorf("%s after another overlay, %s without", again.Hash, b.Hash)
	}
	if bare := a.With(approvers.Overlay{}); bare.Hash != "file" {
		t.Error(bare.Hash)
	}
	o := distrusted("a")
	p := overlaid.With(o)
	delete(o.Distrusted, "a")
	if _, ok := p.Distrusts("a"); !ok {
		t.Error("the policy changes with the map that it was made with")
	}
}

// If the policy names a tool, a source's claims about the tool have no effect, even if the source is trusted.
func TestPresumptionsNeverTouchNamedTools(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, args := drawPolicy(t, 0), drawArgs(t)
		call := drawCall(t, args)
		call.Tool = one(t, "named", someTools...)
		q := p.With(approvers.Overlay{Presumed: map[string]approvers.Presumption{call.Tool: {Risk: drawRisk(t, "presumed"), Why: "it says so"}}})
		was, is := p.Plan(call), q.Plan(call)
		was.PolicyHash, is.PolicyHash = "", ""
		if d := cmp.Diff(was, is); d != "" {
			t.Fatal(d)
		}
	})
}

// If a tool is distrusted, no part of its policy becomes looser, for any agent.
func TestDistrustNeverLoosens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t, 0)
		p.Defaults.UnknownTool = drawTool(t)
		tool := one(t, "tool", append([]string{"nobody's"}, someTools...)...)
		if rapid.Bool().Draw(t, "presumed") {
			p = p.With(presumed(tool, drawRisk(t, "presumed risk")))
		}
		q := p.With(distrusted(tool))
		agent := one(t, "agent", "support", "other")
		was, _ := p.Tool(tool, agent)
		is, _ := q.Tool(tool, agent)
		if is.Risk < was.Risk || !is.Confirm || is.SelfApproval || is.BreakGlass || is.Grants.Allowed() || len(is.Stages) < len(was.Stages) || was.Mode != is.Mode {
			t.Fatalf("%+v became %+v", was, is)
		}
		for i, s := range was.Stages {
			if is.Stages[i].Quorum < s.Quorum || is.Stages[i].Approver != s.Approver {
				t.Fatalf("stage %d: %+v became %+v", i, s, is.Stages[i])
			}
		}
	})
}
