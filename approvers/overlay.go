package approvers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Unpinned says what becomes of a tool whose definition is not the one that the operator has pinned.
type Unpinned string

// What becomes of such a tool.
const (
	UnpinnedBlocked Unpinned = ""        // nobody may call it
	UnpinnedUnknown Unpinned = "unknown" // it may be called, as a tool of which nothing is known
)

// Overlay is what the tools themselves add to the policy: what their sources say of them where the operator trusts that, and which of them are not what the
// operator looked at. It changes with the tools, and the policy in force with it.
type Overlay struct {
	Presumed   map[string]Presumption // tools that the policy does not name
	Distrusted map[string]string      // why, as a part of a sentence
}

// Presumption is what a trusted source lets presume of a tool.
type Presumption struct {
	Risk Risk
	Why  string // as a part of a sentence: "its server says that it only reads, and the policy trusts its annotations"
}

// With is the policy with what the tools add to it. The policy itself stays as it is.
func (p *Policy) With(o Overlay) *Policy {
	out := *p
	out.overlay = Overlay{Presumed: maps.Clone(o.Presumed), Distrusted: maps.Clone(o.Distrusted)}
	out.Hash = p.File()
	if added := out.overlay.hash(); added != "" {
		out.Hash += "+" + added
	}
	return &out
}

// File is the hash of the policy file alone. [Policy.Hash] names what the tools add to it too.
func (p *Policy) File() string {
	file, _, _ := strings.Cut(p.Hash, "+")
	return file
}

// Distrusts reports whether a tool is planned as one of which nothing is known, because it is not what the operator pinned, and why.
func (p *Policy) Distrusts(tool string) (why string, ok bool) {
	why, ok = p.overlay.Distrusted[tool]
	return why, ok
}

// Presumes is what the policy takes from a trusted source for a tool that it does not name.
func (p *Policy) Presumes(tool string) (Presumption, bool) {
	_, named := p.tool(tool)
	_, builtIn := BuiltIn(tool)
	x, ok := p.overlay.Presumed[tool]
	return x, ok && x.Risk != 0 && !named && !builtIn
}

// hash names the overlay; empty for one that adds nothing.
func (o Overlay) hash() string {
	if len(o.Presumed)+len(o.Distrusted) == 0 {
		return ""
	}
	h := sha256.New()
	for _, tool := range slices.Sorted(maps.Keys(o.Presumed)) {
		fmt.Fprintf(h, "presumed %q %d\n", tool, o.Presumed[tool].Risk)
	}
	for _, tool := range slices.Sorted(maps.Keys(o.Distrusted)) {
		fmt.Fprintf(h, "distrusted %q\n", tool)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// policy is that of a tool that only its source speaks of: what holds for unknown tools, at the risk that the source lets presume. Above low risk people are asked.
func (x Presumption) policy(unknown ToolPolicy) ToolPolicy {
	unknown.Risk, unknown.Confirm = x.Risk, x.Risk > Low
	return unknown
}

// distrusted is the stricter of what the policy says of a tool and what it says of unknown ones, at the highest risk. Nobody may allow it ahead, or for themselves.
func (t ToolPolicy) distrusted(unknown ToolPolicy) ToolPolicy {
	t.Risk, t.Confirm = Critical, true
	t.Stages = unionStages(t.Stages, unknown.Stages)
	t.WithPreview = t.WithPreview || unknown.WithPreview
	t.SelfApproval, t.BreakGlass = false, false
	t.Grants, t.TrustAfter = GrantTerms{}, 0
	return t
}
