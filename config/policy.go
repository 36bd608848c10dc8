package config

import (
	"slices"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

// Defaults of the policy.
const (
	expiresAfter  = 30 * time.Minute
	escalateAfter = 10 * time.Minute
	runWithin     = 15 * time.Minute
	maxSteps      = 10
	reminders     = 3 // default, if a reminder time is set
)

// reader converts the policy file's values to a File.
type reader struct{ file *File }

// policy reads the whole file.
func (r reader) policy(root yamldoc.Value) *approvers.Policy {
	f := root.Fields("version", "mode", "defaults", "tools", "never_loosen", "approvers", "agents", "clients", "email_domains", "shared_channels",
		"caps", "budgets", "paused_by", "retention", "audit", "report", "operators", "servers", "http", "openapi")
	readVersion(root, f)
	p := &approvers.Policy{Defaults: readDefaults(f["defaults"])}
	readMode(f, &p.Mode)
	if v, ok := f["never_loosen"]; ok {
		p.NeverLoosen = v.Texts(`[issue_refund], or ["*"] for every tool`, `a tool's name, or "*"`)
	}
	if v, ok := f["email_domains"]; ok {
		p.EmailDomains = readDomains(v)
	}
	if v, ok := f["shared_channels"]; ok {
		p.SharedChannels = readSharedChannels(v)
	}
	if v, ok := f["caps"]; ok {
		p.Caps = readCaps(v)
	}
	if v, ok := f["budgets"]; ok {
		p.Budgets = readBudgets(v, approvers.Budgets{})
	}
	if v, ok := f["paused_by"]; ok {
		p.PausedBy = v.Texts("[team-lead]", "an approver's name")
	}
	if v, ok := f["retention"]; ok {
		p.Retention = readRetention(v)
	}
	if v, ok := f["audit"]; ok {
		p.Audit = readAuditPost(v)
	}
	if v, ok := f["report"]; ok {
		p.Report = readReportPost(v)
	}
	if v, ok := f["operators"]; ok {
		p.Operators = readOperatorPost(v)
	}
	r.file.Servers = readServers(f["servers"])
	r.file.HTTP = readEndpoints(f["http"])
	r.file.OpenAPI = readOpenAPIs(f["openapi"])
	for _, e := range section(f["tools"], "the tools: name: {risk: low}") {
		p.Tools = append(p.Tools, r.tool(e))
	}
	for _, e := range section(f["approvers"], "the approvers: name: {members: [U0001], max_risk: high, can_approve: [tool]}") {
		p.Approvers = append(p.Approvers, readRole(e))
	}
	for _, e := range section(f["agents"], `the agents: name: {channels: ["#support"], tools: ["*"]}`) {
		p.Agents = append(p.Agents, readAgent(e, p.Budgets))
	}
	tokens := map[string]string{}
	for _, e := range section(f["clients"], "the clients: name: {token: \"sha256:…\", agent: support, owner: U0001, tools: [tool]}") {
		p.Clients = append(p.Clients, readClient(e, tokens))
	}
	return p
}

// section reads a top-level mapping. A mapping that is empty, or fully commented out, has no entries.
func section(v yamldoc.Value, what string) []yamldoc.Entry {
	if !v.Readable() || v.Empty() {
		return nil
	}
	return v.Entries(what)
}

// PolicyVersion is the version of the policy file that this package reads.
const PolicyVersion = 1

// readVersion reports a version that is missing, or that this package does not read.
func readVersion(root yamldoc.Value, f yamldoc.Fields) {
	v, ok := f["version"]
	if !ok {
		if root.IsMapping() {
			root.WrongStart("version: is missing", "begin the file with version: 1")
		}
		return
	}
	if v.Readable() && v.Shown() != strconv.Itoa(PolicyVersion) {
		v.Wrongf("write version: 1; a file of a later version needs a later Countersign", "%s is not a version that is known here", v.Shown())
	}
}

func readDefaults(v yamldoc.Value) approvers.Defaults {
	d := approvers.Defaults{ExpiresAfter: expiresAfter, EscalateAfter: escalateAfter, RunWithin: runWithin, Reminders: reminders, OnExpiry: approvers.ExpiryRejects}
	d.UnknownTool = approvers.ToolPolicy{Risk: approvers.Critical, Confirm: true, WithPreview: true}
	if !v.Readable() || v.Empty() {
		return d
	}
	f := v.Fields(append(slices.Clone(clockKeys), "unknown_tool", "unpinned_tools")...)
	readClocks(f, defaultClocks(&d))
	if u, ok := f["unknown_tool"]; ok {
		d.UnknownTool = readUnknownTool(u, d.UnknownTool)
	}
	if word, ok := f.Choice("unpinned_tools", []string{unpinnedBlock, string(approvers.UnpinnedUnknown)}); ok && word != unpinnedBlock {
		d.UnpinnedTools = approvers.UnpinnedUnknown
	}
	return d
}

// unpinnedBlock is the word in the policy file for approvers.UnpinnedBlocked, which is the default.
const unpinnedBlock = "block"

// readUnknownTool reads the settings for tools that the policy does not name. The arguments of such tools are unknown,
// so there are no rules and no template.
func readUnknownTool(v yamldoc.Value, t approvers.ToolPolicy) approvers.ToolPolicy {
	f := v.Fields("risk", "confirm", "preview", "stages")
	readRiskKey(f, "risk", &t.Risk)
	f.Flag("confirm", &t.Confirm)
	f.Flag("preview", &t.WithPreview)
	readStagesKey(f, "stages", &t.Stages)
	return t
}
