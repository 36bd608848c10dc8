package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"countersign/approvers"
)

// The operator sees the exact arguments, even if the model wrote spaces, or characters that Go's JSON encoder would
// escape.
func TestPendingExactArguments(t *testing.T) {
	t.Parallel()
	const args = `{ "note": "<b> & more", "amount": 5.0 }`
	r := approvers.Request{ID: "req_1", State: approvers.Pending, Tool: "pay", Execution: "exec_1", Args: json.RawMessage(args)}
	r.Digest = approvers.Digest(r.Execution, r.Tool, r.ToolHash, r.Args)
	run := unknownRun{Execution: r.Execution, State: approvers.ExecutionNone, Args: args}
	var raw, out bytes.Buffer
	if err := json.NewEncoder(&raw).Encode(pending{Requests: []waitingCall{{ID: r.ID, State: r.State, Digest: r.Digest, Request: &r, Run: &run}}}); err != nil {
		t.Fatal(err)
	}
	p, err := parsePending(raw.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	p.print(&out, true)
	if text := out.String(); !strings.Contains(text, "as they are sent to the tool") || strings.Contains(text, "erased") || string(p.Requests[0].Request.Args) != args {
		t.Errorf("%s is shown as\n%s", p.Requests[0].Request.Args, text)
	}
}

// The operator can't decide a damaged request. The command says so, and says whether the request's run may have begun.
func TestNotDecidedDamaged(t *testing.T) {
	for state, want := range map[approvers.State]string{
		approvers.Consumed: "`countersign pending req_1` shows what is known about its run", approvers.Voided: "it was closed and did not run",
	} {
		err := notDecided(&approvers.Denied{Code: approvers.DeniedDamaged, State: state}, "req_1")
		if err == nil || !strings.Contains(err.Error(), "its record is damaged") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", state, err)
		}
	}
}
