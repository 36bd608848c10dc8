package approvers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"countersign/approvers"
)

// No decision can pass a stage with a quorum below one. No approval can be used under such a stage.
func TestQuorumBelowOneNeverCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stages := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) approvers.Stage {
			return approvers.Stage{Approver: "directors", Quorum: rapid.IntRange(-3, 3).Draw(t, "quorum")}
		}), 1, 4).Draw(t, "stages")
		r := approvers.Request{State: approvers.Approved, Digest: "d", RunBy: time.Unix(100, 0), Plan: approvers.Plan{Stages: stages}}
		low := false
		n := 0
		for i, s := range stages {
			low = low || s.Quorum < 1
			for range rapid.IntRange(0, 4).Draw(t, "decisions") {
				n++
				r.Decisions = append(r.Decisions, approvers.Decision{Kind: approvers.Approve, By: approvers.PersonID(fmt.Sprint("T/", n)), Digest: "d", Stage: i})
			}
			if got := r.Passed(i); got && s.Quorum < 1 {
				t.Fatalf("a stage of %d is passed", s.Quorum)
			}
		}
		if _, _, denied := r.Consume(approvers.DecisionContext{Policy: &approvers.Policy{}, Now: time.Unix(1, 0)}); denied == nil && low {
			t.Fatalf("it may run: %+v", stages)
		}
	})
}

// chained returns a request and its history. The lead and one of two directors have approved the request.
func chained() (approvers.Request, []approvers.AuditRecord) {
	r := approvers.Request{
		ID: "req", State: approvers.Pending, Conversation: "c", Call: "call", Tool: "pay", ToolHash: "h", Execution: "e", Args: []byte("{}"), Stage: 1,
		Plan: approvers.Plan{Risk: approvers.High, Stages: []approvers.Stage{{Approver: "lead", Quorum: 1}, {Approver: "director", Quorum: 2}}},
	}
	r.Digest = approvers.Digest(r.Execution, r.Tool, r.ToolHash, r.Args)
	r.Decisions = []approvers.Decision{
		{Kind: approvers.Approve, By: "T/1", Role: "lead", Digest: r.Digest}, {Kind: approvers.Approve, By: "T/2", Role: "director", Stage: 1, Digest: r.Digest},
	}
	var chain []approvers.AuditRecord
	add := func(kind approvers.AuditKind, actor approvers.PersonID, facts map[string]string) {
		var before approvers.AuditRecord
		if len(chain) > 0 {
			before = chain[len(chain)-1]
		}
		chain = append(chain, approvers.AuditRecord{Chain: "req", Kind: kind, Actor: actor, Facts: facts}.Link(before))
	}
	add(approvers.AuditProposed, "", map[string]string{
		"tool": "pay", "tool_hash": "h", "call": "call", "conversation": "c", "execution": "e", "digest": r.Digest, "risk": "high", "stages": r.Plan.StageFacts(),
	})
	add(approvers.AuditDecided, "T/1", map[string]string{"kind": "approve", "role": "lead", "digest": r.Digest})
	add(approvers.AuditAdvanced, "", map[string]string{"stage": "2", "risk": "high", "digest": r.Digest})
	add(approvers.AuditDecided, "T/2", map[string]string{"kind": "approve", "role": "director", "digest": r.Digest})
	return r, chain
}

// Unrecorded detects every change to a request's call, plan, state or decisions that is missing in the history.
func TestUnrecorded(t *testing.T) {
	r, chain := chained()
	if why := r.Unrecorded(chain); why != "" {
		t.Fatalf("the request as it is: %s", why)
	}
	for what, change := range map[string]func(r *approvers.Request){
		"the quorum":          func(r *approvers.Request) { r.Plan.Stages[1].Quorum = 0 },
		"a smaller quorum":    func(r *approvers.Request) { r.Plan.Stages[1].Quorum = 1 },
		"a quorum for nobody": func(r *approvers.Request) { r.Plan.Stages[0].Quorum = 0 },
		"the role":            func(r *approvers.Request) { r.Plan.Stages[1].Approver = "lead" },
		"a stage that is out": func(r *approvers.Request) { r.Plan.Stages = r.Plan.Stages[:1] },
		"the risk":            func(r *approvers.Request) { r.Plan.Risk = approvers.Low },
		"the arguments":       func(r *approvers.Request) { r.Args = []byte("{ }") },
		"the digest":          func(r *approvers.Request) { r.Digest = "d" },
		"the tool":            func(r *approvers.Request) { r.Tool = "pax" },
		"the execution":       func(r *approvers.Request) { r.Execution = "f" },
		"the state":           func(r *approvers.Request) { r.State = approvers.Approved },
		"who decided":         func(r *approvers.Request) { r.Decisions[1].By = "T/3" },
		"what they decided":   func(r *approvers.Request) { r.Decisions[0].Kind = approvers.Modify },
		"a decision more": func(r *approvers.Request) {
			r.Decisions = append(r.Decisions, approvers.Decision{Kind: approvers.Approve, By: "T/3", Role: "director", Stage: 1, Digest: r.Digest})
		},
		"broken glass": func(r *approvers.Request) { r.Decisions[0].BreakGlass = true },
	} {
		r, chain := chained()
		change(&r)
		if why := r.Unrecorded(chain); why == "" {
			t.Errorf("%s was changed, and nothing is found", what)
		}
	}
	r, chain = chained()
	chain[1].Actor = "T/3"
	if why := r.Unrecorded(chain); !strings.Contains(why, "record 2 was changed") {
		t.Errorf("the history was changed: %q", why)
	}
	if why := r.Unrecorded(nil); why == "" {
		t.Error("there is no history, and nothing is found")
	}
}

// Unrecorded also compares the arguments of ended requests and of their runs. Other arguments are valid only after an
// erasure, and only if they are those that the erasure stores.
func TestUnrecordedArguments(t *testing.T) {
	args := []byte(`{"amount":5}`)
	digest := approvers.Digest("e", "pay", "h", args)
	r := approvers.Request{ID: "req", State: approvers.Consumed, Tool: "pay", ToolHash: "h", Execution: "e", Args: args, Digest: digest}
	e := approvers.Execution{ID: "e", State: approvers.ExecutionSucceeded, Tool: "pay", ToolHash: "h", Args: args, Digest: digest}
	var chain []approvers.AuditRecord
	add := func(kind approvers.AuditKind, facts map[string]string) {
		var before approvers.AuditRecord
		if len(chain) > 0 {
			before = chain[len(chain)-1]
		}
		chain = append(chain, approvers.AuditRecord{Chain: "req", Kind: kind, Facts: facts}.Link(before))
	}
	add(approvers.AuditProposed, map[string]string{"execution": "e", "digest": digest, "stages": ""})
	add(approvers.AuditExecuting, map[string]string{"execution": "e", "digest": digest})
	add(approvers.AuditExecuted, map[string]string{"execution": "e", "digest": digest, "state": "succeeded"})
	finds := func(what, args string, want bool) {
		t.Helper()
		r, e := r, e
		r.Args, e.Args = []byte(args), []byte(args)
		if why := r.Unrecorded(chain); (why != "") != want {
			t.Errorf("%s: the request differs: %q", what, why)
		}
		if why := e.Unrecorded(chain); (why != "") != want {
			t.Errorf("%s: the run differs: %q", what, why)
		}
	}
	finds("as it was", string(args), false)
	finds("other arguments", `{"amount":99}`, true)
	finds("empty arguments", "{}", true)
	add(approvers.AuditErased, map[string]string{"records": "1"})
	finds("erased", "{}", false)
	finds("other arguments after an erasure", `{"amount":99}`, true)
}
