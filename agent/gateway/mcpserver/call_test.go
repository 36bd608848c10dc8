package mcpserver

import (
	"context"
	"testing"

	"countersign/approvers/workflow"
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
