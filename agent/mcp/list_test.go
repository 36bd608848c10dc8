package mcp

import (
	"slices"
	"strings"
	"testing"

	"countersign/agent"
	"countersign/approvers"
	"countersign/config"
)

// TestBadTools checks that the client or the registry leaves out an invalid tool, and that the other tools are offered.
func TestBadTools(t *testing.T) {
	c, o := running(t, quick(), program(t, "bad", "has bad tools"))
	o.tool(t, "bad.act")
	var r agent.Registry
	errs := r.Replace("bad", o.tools["bad"])
	var names []string
	for _, tool := range r.All() {
		names = append(names, tool.Name)
	}
	want := []string{
		"bad." + strings.Repeat("long", 30)[:51] + "-" + names[1][len(names[1])-8:], "bad.act", "bad.wordless",
		"bad.with_spaces_and_n_code-" + names[len(names)-2][len(names[len(names)-2])-8:],
	}
	slices.Sort(want)
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if len(errs) != 3 {
		t.Errorf("the registry refuses %v", errs)
	}
	if problem := c.Status()[0].Problem; problem == "" {
		t.Error("nothing is said of those that are left out")
	}
	for _, tool := range r.All() {
		if n := len([]rune(tool.Description)); n > maxModelText || n == 0 {
			t.Errorf("%s: a description of %d characters", tool.Name, n)
		}
	}
	long := o.tool(t, want[slices.IndexFunc(want, func(n string) bool { return strings.Contains(n, "long") })])
	if !strings.HasSuffix(long.Description, "(the description is cut here)") || !strings.Contains(string(long.Definition), strings.Repeat("wordy ", 500)) {
		t.Error("the model's copy is not cut, or the definition is")
	}
}

// TestPages checks that all pages of a list are read.
func TestPages(t *testing.T) {
	_, o := running(t, quick(), program(t, "bad", "lists in pages"))
	o.tool(t, "bad.on-page-2")
	if names := o.names(); !slices.Equal(names, []string{"bad.on-page-0", "bad.on-page-1", "bad.on-page-2"}) {
		t.Errorf("%q", names)
	}
}

func TestCanonicalNames(t *testing.T) {
	seen := map[string]string{}
	for _, tt := range []struct {
		server, tool string
		bare         bool
		want         string
	}{
		{"crm", "find", false, "crm.find"},
		{"crm", "find", true, "find"},
		{"crm", "a.b-c_D9", false, "crm.a.b-c_D9"},
		{"crm", strings.Repeat("a", 60), false, "crm." + strings.Repeat("a", 60)},
		{"crm", strings.Repeat("a", 61), false, "crm." + strings.Repeat("a", 51) + "-f9e2ff5a"},
		{"crm", "find it", false, "crm.find_it-7f7e3dd9"},
		{"crm", "find/it", false, "crm.find_it-0a5ec1ef"},
		{"crm", "Ünïcode", false, "crm._n_code-0"},
		{"crm", strings.Repeat("é", 100), true, "_-0"},
	} {
		got := canonical(tt.server, tt.tool, tt.bare)
		if before, taken := seen[got]; taken {
			t.Errorf("%q and %q are both %s", before, tt.tool, got)
		}
		seen[got] = tt.tool
		if !plainName.MatchString(got) || got != canonical(tt.server, tt.tool, tt.bare) {
			t.Errorf("%q", got)
		}
		if cut := strings.TrimRight(tt.want, "0123456789abcdef"); got != tt.want && (!strings.HasSuffix(cut, "-") || !strings.HasPrefix(got, cut)) {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}

// TestClaims checks that a server's claims about its tools are stored as claims. The claims have an effect only if
// the operator trusts them.
func TestClaims(t *testing.T) {
	raw := func(annotations string) []byte {
		return []byte(`{"name":"t","title":"Title","inputSchema":{"type":"object"},"annotations":` + annotations + `}`)
	}
	tests := []struct {
		annotations string
		trust       bool
		said        approvers.Effect // the effect that the operator declared
		risk        approvers.Risk
		effect      approvers.Effect
	}{
		{`{"readOnlyHint":true}`, false, "", 0, approvers.Unprotected},
		{`{"readOnlyHint":true}`, true, "", approvers.Low, approvers.ReadOnly},
		{`{"readOnlyHint":true}`, true, approvers.Unprotected, approvers.Low, approvers.Unprotected},
		{`{"readOnlyHint":false,"idempotentHint":true}`, true, "", 0, approvers.Idempotent},
		{`{"idempotentHint":true}`, false, "", 0, approvers.Unprotected},
		{`{"readOnlyHint":"true"}`, true, "", 0, approvers.Unprotected}, // a string instead of a boolean
		{`{"ReadOnlyHint":true}`, true, "", 0, approvers.Unprotected},   // names are case-sensitive
		{`[]`, true, "", 0, approvers.Unprotected},
		{`{}`, false, approvers.Idempotent, 0, approvers.Idempotent},
	}
	for _, tt := range tests {
		s := config.Server{Name: "s", TrustAnnotations: tt.trust}
		if tt.said != "" {
			s.Effects = map[string]approvers.Effect{"t": tt.said}
		}
		_, tool, err := define(s, raw(tt.annotations))
		if err != nil || tool.Presumed != tt.risk || tool.Effect != tt.effect || tool.Claims.Title != "Title" {
			t.Errorf("%s: %+v %v", tt.annotations, tool, err)
		}
	}
	_, tool, _ := define(config.Server{Name: "s"}, raw(`{"title":"Own","destructiveHint":false,"openWorldHint":true}`))
	if c := tool.Claims; c.Title != "Own" || c.Destructive == nil || *c.Destructive || c.OpenWorld == nil || !*c.OpenWorld || c.ReadOnly != nil {
		t.Errorf("%+v", c)
	}
}

// TestEffectsOfNobody checks an entry of the policy's effects for a tool that the server does not have. The client
// reports this entry.
func TestEffectsOfNobody(t *testing.T) {
	s := program(t, "bad", "plain")
	s.Effects = map[string]approvers.Effect{"acts": approvers.ReadOnly}
	c, o := running(t, quick(), s)
	if tool := o.tool(t, "bad.act"); tool.Effect != approvers.Unprotected {
		t.Errorf("%s", tool.Effect)
	}
	if problem := c.Status()[0].Problem; !strings.Contains(problem, `effects names "acts", which the server does not have`) {
		t.Errorf("%q", problem)
	}
}
