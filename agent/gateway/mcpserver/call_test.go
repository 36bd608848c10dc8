package mcpserver

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"countersign/agent/gateway"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
)

// endsDuringPropose is a workflow for a repeated call. Between the two proposals, the answer to the earlier,
// identical call is recorded as delivered.
type endsDuringPropose struct {
	Callers
	proposed int
}

func (c *endsDuringPropose) Propose(context.Context, workflow.CallerCall) (string, bool, error) {
	c.proposed++
	if c.proposed == 1 {
		return "req_earlier", true, nil
	}
	return "req_new", false, nil
}

// If a client repeats its call immediately after the answer, the repetition is a new request. The client does not get
// the earlier result.
func TestCallIsRepeatedWhileItsAnswerIsSent(t *testing.T) {
	c := &endsDuringPropose{}
	s := &Server{Config: Config{Callers: c}}
	id, again, err := s.propose(t.Context(), &exchange{}, workflow.CallerCall{})
	if err != nil || id != "req_new" || again || c.proposed != 2 {
		t.Errorf("the call is %s (repeated: %t, proposed %d times), %v; want the new request", id, again, c.proposed, err)
	}
}

// The answer about a call that was open in a restored backup says that the call may have run. The answer must not
// promise that a repeated call is not made again.
func TestLostCall(t *testing.T) {
	s := gateway.State{Status: "voided", Disposition: gateway.Uncertain, Reason: "check first"}
	out, err := json.Marshal(finished(&s, &view.CallerRequest{Request: &approvers.Request{Lost: true}}, false))
	if err != nil || !strings.Contains(string(out), "It is not known whether the call was decided, or ran: check first.") || strings.Contains(string(out), "not made again") {
		t.Errorf("%s, %v", out, err)
	}
}
