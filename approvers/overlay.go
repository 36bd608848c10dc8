package approvers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Unpinned says how to treat a tool whose definition differs from its pin.
type Unpinned string

// The treatments of a tool that differs from its pin.
const (
	UnpinnedBlocked Unpinned = ""        // nobody may call the tool
	UnpinnedUnknown Unpinned = "unknown" // calls to the tool count as critical, and the stages of unknown tools also apply
)

// Overlay holds additions to the policy that depend on the tools: annotations from trusted sources, and the tools
// that differ from their pins. When a tool changes, the overlay and the policy in force change, too.
type Overlay struct {
	Presumed   map[string]Presumption // for tools that the policy does not name
	Distrusted map[string]string      // for each distrusted tool: the reason, as a part of a sentence
}

// Presumption is a risk derived from a trusted source's annotations.
type Presumption struct {
	Risk Risk
	Why  string // as a part of a sentence: "its server says that it only reads, and the policy trusts its annotations"
}

// With returns a copy of the policy with the overlay.
func (p *Policy) With(o Overlay) *Policy {
	out := *p
	out.overlay = Overlay{Presumed: maps.Clone(o.Presumed), Distrusted: maps.Clone(o.Distrusted)}
	out.Hash = p.File()
	if added := out.overlay.hash(); added != "" {
		out.Hash += "+" + added
	}
	return &out
}

// File returns the hash of the policy file alone. [Policy.Hash] also covers the overlay.
func (p *Policy) File() string {
	file, _, _ := strings.Cut(p.Hash, "+")
	return file
}

// Distrusts reports whether a tool is treated as an unknown tool, because the tool differs from its pin. Distrusts
// also returns the reason.
func (p *Policy) Distrusts(tool string) (why string, ok bool) {
	why, ok = p.overlay.Distrusted[tool]
	return why, ok
}

// Presumes returns the presumed risk of a tool that the policy does not name.
func (p *Policy) Presumes(tool string) (Presumption, bool) {
	_, named := p.tool(tool)
	_, builtIn := BuiltIn(tool)
	x, ok := p.overlay.Presumed[tool]
	return x, ok && x.Risk != 0 && !named && !builtIn
}

// hash returns a hash of the overlay, or "" if the overlay is empty.
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

// policy returns the policy of a tool that only its source describes. The result is the policy of unknown tools, with
// the presumed risk. If the presumed risk is above low, the tool needs approval.
func (x Presumption) policy(unknown ToolPolicy) ToolPolicy {
	unknown.Risk, unknown.Confirm = x.Risk, x.Risk > Low
	return unknown
}

// distrusted adds the stages of unknown tools to the tool's policy. The risk is set to critical, and all calls need
// approval. Grants, self-approval, blind approvals, break glass and unawaited runs are switched off.
func (t ToolPolicy) distrusted(unknown ToolPolicy) ToolPolicy {
	t.Risk, t.Confirm = Critical, true
	t.Stages = unionStages(t.Stages, unknown.Stages)
	t.WithPreview = t.WithPreview || unknown.WithPreview
	t.SelfApproval, t.Blind, t.BreakGlass, t.RunsUnawaited = false, false, false, false
	t.Grants, t.TrustAfter = GrantTerms{}, 0
	return t
}
