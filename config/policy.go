package config

import (
	"slices"
	"time"

	"countersign/approvers"
)

// What applies where the policy says nothing.
const (
	expiresAfter  = 30 * time.Minute
	escalateAfter = 10 * time.Minute
	runWithin     = 15 * time.Minute
	maxSteps      = 10
	reminders     = 3 // where something says after which time people are reminded
)

// policy reads the whole file.
func (r *reader) policy(root value) *approvers.Policy {
	f := root.fields("version", "mode", "defaults", "tools", "never_loosen", "approvers", "agents", "email_domains", "shared_channels", "caps", "budgets", "paused_by", "retention", "audit", "servers", "http", "openapi")
	r.version(root, f)
	p := &approvers.Policy{Defaults: r.defaults(f["defaults"])}
	f.mode(&p.Mode)
	if v, ok := f["never_loosen"]; ok {
		p.NeverLoosen = v.texts(`[issue_refund], or ["*"] for every tool`, `a tool's name, or "*"`)
	}
	if v, ok := f["email_domains"]; ok {
		p.EmailDomains = v.domains()
	}
	if v, ok := f["shared_channels"]; ok {
		p.SharedChannels = v.sharedChannels()
	}
	if v, ok := f["caps"]; ok {
		p.Caps = v.caps()
	}
	if v, ok := f["budgets"]; ok {
		p.Budgets = v.budgets(approvers.Budgets{})
	}
	if v, ok := f["paused_by"]; ok {
		p.PausedBy = v.texts("[team-lead]", "an approver's name")
	}
	if v, ok := f["retention"]; ok {
		p.Retention = v.retention()
	}
	if v, ok := f["audit"]; ok {
		p.Audit = v.auditPost()
	}
	r.file.Servers = r.servers(f["servers"])
	r.file.HTTP = r.endpoints(f["http"])
	r.file.OpenAPI = r.openAPIs(f["openapi"])
	for _, e := range section(f["tools"], "the tools: name: {risk: low}") {
		p.Tools = append(p.Tools, r.tool(e))
	}
	for _, e := range section(f["approvers"], "the approvers: name: {members: [U0001], max_risk: high, can_approve: [tool]}") {
		p.Approvers = append(p.Approvers, r.role(e))
	}
	for _, e := range section(f["agents"], `the agents: name: {channels: ["#support"], tools: ["*"]}`) {
		p.Agents = append(p.Agents, r.agent(e, p.Budgets))
	}
	return p
}

// section reads a top-level mapping. One with nothing in it, or all of it commented out, has no entries.
func section(v value, what string) []entry {
	if v.node == nil || v.empty() {
		return nil
	}
	return v.entries(what)
}

// version makes sure that a file for a later version is not read as if it were for this one.
func (r *reader) version(root value, f fieldset) {
	v, ok := f["version"]
	if !ok {
		if root.isMapping() {
			r.wrongAt(mark{1, 1}, "version: is missing", "begin the file with version: 1")
		}
		return
	}
	if v.node != nil && v.shown() != "1" {
		v.wrongf("write version: 1; a file of a later version needs a later Countersign", "%s is no version that is known here", v.shown())
	}
}

func (r *reader) defaults(v value) approvers.Defaults {
	d := approvers.Defaults{ExpiresAfter: expiresAfter, EscalateAfter: escalateAfter, RunWithin: runWithin, Reminders: reminders, OnExpiry: approvers.ExpiryRejects}
	d.UnknownTool = approvers.ToolPolicy{Risk: approvers.Critical, Confirm: true, WithPreview: true}
	if v.node == nil || v.empty() {
		return d
	}
	f := v.fields(append(slices.Clone(clockKeys), "unknown_tool", "unpinned_tools")...)
	f.clocks(defaultClocks(&d))
	if u, ok := f["unknown_tool"]; ok {
		d.UnknownTool = r.unknownTool(u, d.UnknownTool)
	}
	if word, ok := f.choice("unpinned_tools", []string{unpinnedBlock, string(approvers.UnpinnedUnknown)}); ok && word != unpinnedBlock {
		d.UnpinnedTools = approvers.UnpinnedUnknown
	}
	return d
}

// unpinnedBlock is the word for what holds where nothing is said.
const unpinnedBlock = "block"

// unknownTool reads what governs tools that the policy does not name. Such a tool has no arguments that
// could be known here, so there are no rules and no template.
func (r *reader) unknownTool(v value, t approvers.ToolPolicy) approvers.ToolPolicy {
	f := v.fields("risk", "confirm", "preview", "stages")
	f.risk("risk", &t.Risk)
	f.flag("confirm", &t.Confirm)
	f.flag("preview", &t.WithPreview)
	f.stages("stages", &t.Stages)
	return t
}
