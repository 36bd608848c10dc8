package approvers

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Names of facts in audit records. Unrecorded compares these facts with a request. docs/audit.md lists all facts.
const (
	FactStages         = "stages"   // the plan's stages, as Stage.String writes them
	FactValidApprovals = "standing" // the people whose approvals count, in order
)

// FactRestarted is a fact of a record "replanned". It is "true" if the stages started again with the new plan, and
// "false" if they did not. Records of older versions do not have this fact.
const FactRestarted = "restarted"

// FactRules is the fact with the ids of the rules that matched a call, separated by commas. If no rule matched, the
// value of the fact is empty. If the tool has no rules, a record does not have the fact.
const FactRules = "rules"

// NoteRules adds FactRules to the facts of a record about a new plan.
func (plan Plan) NoteRules(facts map[string]string) {
	if plan.Matched != nil {
		facts[FactRules] = strings.Join(plan.Matched, ",")
	}
}

// StageFacts returns the plan's stages in the audit's form.
func (plan Plan) StageFacts() string {
	stages := make([]string, len(plan.Stages))
	for i, s := range plan.Stages {
		stages[i] = s.String()
	}
	return strings.Join(stages, ",")
}

// ValidApprovalFacts returns the people whose approvals count, in the audit's form.
func (r Request) ValidApprovalFacts() string {
	var ids []string
	for _, d := range r.ValidApprovals() {
		ids = append(ids, string(d.By))
	}
	return strings.Join(ids, ",")
}

// Passed reports whether a stage has its quorum. A stage with a quorum below one is never passed.
func (r Request) Passed(stage int) bool {
	return stage < len(r.Plan.Stages) && r.Plan.Stages[stage].Quorum >= 1 && r.At(stage) >= r.Plan.Stages[stage].Quorum
}

// agreed returns the reason why the request's approvals don't suffice, or "". An operator's break glass always
// suffices.
func (r Request) agreed() string {
	if _, broken := r.BrokenBy(); broken {
		return ""
	}
	if len(r.Plan.Stages) == 0 {
		return "it has no stages"
	}
	for i := range r.Plan.Stages {
		if !r.Passed(i) {
			return fmt.Sprintf("stage %d asks for %d, and %d agreed", i+1, r.Plan.Stages[i].Quorum, r.At(i))
		}
	}
	var people []PersonID
	for _, d := range r.ValidApprovals() {
		if slices.Contains(people, d.By) {
			return fmt.Sprintf("%s is counted twice", d.By)
		}
		people = append(people, d.By)
	}
	return ""
}

// Unrecorded returns the difference between a request and its chain, as a part of a sentence. If the request and the
// chain agree, Unrecorded returns "". If the two differ, the request was changed without a recorded transition. Such
// a request must not be decided, and its call must not run. Unrecorded also verifies the chain's links and hashes.
// For an ended request, Unrecorded compares fewer fields, because the request's texts may be erased. If the request was
// rebuilt after damage, Unrecorded compares nothing but the chain.
func (r Request) Unrecorded(chain []AuditRecord) string {
	if err := VerifyChain(chain); err != nil {
		return err.Error()
	}
	if len(chain) == 0 || chain[0].Chain != r.ID || chain[0].Kind != AuditProposed {
		return "its history does not begin with it"
	}
	if r.Damaged {
		return ""
	}
	said := recording{facts: map[string]string{}}
	for _, a := range chain {
		said.take(a)
	}
	for _, x := range []struct{ name, is string }{
		{"tool", r.Tool}, {"tool_hash", r.ToolHash}, {"call", r.Call}, {"conversation", r.Conversation}, {"digest", r.Digest}, {"risk", r.Plan.Risk.String()},
		{FactStages, r.Plan.StageFacts()}, {"execution", r.Execution},
	} {
		if was, there := said.facts[x.name]; there && was != x.is {
			return fmt.Sprintf("its %s is %q, and was recorded as %q", x.name, x.is, was)
		}
	}
	if !r.State.Open() {
		return r.misended(said, chain)
	}
	if Digest(r.Execution, r.Tool, r.ToolHash, r.Args) != r.Digest {
		return otherArgs
	}
	for i, s := range r.Plan.Stages {
		if s.Quorum < 1 {
			return fmt.Sprintf("stage %d asks for nobody", i+1)
		}
	}
	if r.unrecordedReveal(chain) {
		return "its masked values were revealed to somebody without a record"
	}
	return r.undecided(said)
}

// otherArgs says that the arguments of a request or an execution were changed.
const otherArgs = "its arguments don't match its digest"

// argsDiffer reports whether arguments don't match their digest. If a record of the chain says that the texts were
// erased, the arguments may also be those that the erasure stores.
func argsDiffer(execution, tool, toolHash string, args []byte, digest string, chain []AuditRecord) bool {
	if Digest(execution, tool, toolHash, args) == digest {
		return false
	}
	return !bytes.Equal(args, erasedArgs) || !slices.ContainsFunc(chain, func(a AuditRecord) bool { return a.Kind == AuditErased })
}

// misended compares an ended request with its chain: how the request ended, its arguments, and the decisions before the
// end.
func (r Request) misended(said recording, chain []AuditRecord) string {
	if said.state != r.State {
		return fmt.Sprintf("it is %s, and was recorded as %s", r.State, said.state)
	}
	if argsDiffer(r.Execution, r.Tool, r.ToolHash, r.Args, r.Digest, chain) {
		return otherArgs
	}
	if len(said.decided) < len(r.Decisions) { // if an operator overruled the request, the chain has a decision that is not in Decisions
		return fmt.Sprintf("it has %d decisions, and %d were recorded", len(r.Decisions), len(said.decided))
	}
	return r.otherDecision(said)
}

// otherDecision describes the first decision that differs from the record.
func (r Request) otherDecision(said recording) string {
	for i, d := range r.Decisions {
		a := said.decided[i]
		if a.Actor != d.By || a.Facts["kind"] != string(d.Kind) || a.Facts["role"] != d.Role || a.Facts["digest"] != d.Digest || (a.Facts["break_glass"] != "") != d.BreakGlass {
			return fmt.Sprintf("its decision %d is not the one that was recorded", i+1)
		}
	}
	return ""
}

// undecided compares the decisions and the state of an open request with the record.
func (r Request) undecided(said recording) string {
	if len(said.decided) != len(r.Decisions) {
		return fmt.Sprintf("it has %d decisions, and %d were recorded", len(r.Decisions), len(said.decided))
	}
	if why := r.otherDecision(said); why != "" {
		return why
	}
	switch {
	case said.state != r.State:
		return fmt.Sprintf("it is %s, and was recorded as %s", r.State, said.state)
	case r.State != Approved:
		return ""
	}
	if why := r.agreed(); why != "" {
		return why
	}
	if valid, there := said.facts[FactValidApprovals]; there && valid != r.ValidApprovalFacts() {
		return "the approvals that count are not those that were recorded"
	}
	return ""
}

// recording is the state of a request that its audit chain records.
type recording struct {
	facts   map[string]string // the latest value of each fact about the request's current state
	decided []AuditRecord
	state   State
}

func (x *recording) take(a AuditRecord) {
	note := func(names ...string) {
		for _, name := range names {
			if v, there := a.Facts[name]; there {
				x.facts[name] = v
			}
		}
	}
	switch a.Kind {
	case AuditProposed:
		note("tool", "tool_hash", "call", "conversation", "execution", "digest", "risk", FactStages)
		x.state = Pending
	case AuditReplanned:
		note("risk", FactStages)
	case AuditDecided:
		x.decided = append(x.decided, a)
		if a.Facts["kind"] == string(Modify) && a.Facts["digest"] != x.facts["digest"] {
			delete(x.facts, "execution") // the digest covers the execution's id
			delete(x.facts, FactStages)
			delete(x.facts, "risk")
			note("digest")
		}
	case AuditAdvanced:
		note("risk", FactStages)
		delete(x.facts, FactValidApprovals)
		x.state = Pending
	case AuditReopened:
		note("risk", FactStages)
		delete(x.facts, FactValidApprovals)
		x.state = Pending
	case AuditApproved:
		note(FactStages, FactValidApprovals)
		x.state = Approved
	case AuditExecuting:
		x.state = Consumed
	case AuditClosed:
		x.state = State(a.Facts["state"])
	}
}

// Unrecorded compares the state, the digest and the arguments of an execution with its chain. Unrecorded returns the difference, as a
// part of a sentence. If the execution and the chain agree, Unrecorded returns "".
func (e Execution) Unrecorded(chain []AuditRecord) string {
	state, digest := ExecutionNone, ""
	for _, a := range chain {
		if a.Facts["execution"] != e.ID {
			continue
		}
		switch a.Kind {
		case AuditExecuting:
			state = ExecutionExecuting
		case AuditUnknown:
			state = ExecutionUnknown
		case AuditExecuted:
			state = ExecutionState(a.Facts["state"])
		case AuditReported:
			if state == ExecutionUnknown && (e.State == ExecutionSucceeded || e.State == ExecutionFailed) {
				state = e.State // a person reported the outcome
			}
		}
		if d := a.Facts["digest"]; d != "" {
			digest = d
		}
	}
	switch {
	case digest != "" && digest != e.Digest:
		return fmt.Sprintf("its digest is %q, and was recorded as %q", e.Digest, digest)
	case argsDiffer(e.ID, e.Tool, e.ToolHash, e.Args, e.Digest, chain):
		return otherArgs
	case state != e.State && (state != ExecutionNone || !e.Unrun):
		return fmt.Sprintf("it is %s, and was recorded as %s", e.State, state)
	}
	return ""
}
