package agent

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"countersign/approvers"
)

// If a tool returns ErrNotRun, the run is recorded as not run, and not as failed. After an earlier try of a tool with
// effects, the outcome is unknown.
func TestNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		tool  string
		tries int
		want  finished
	}{
		"the first try":                    {"issue_refund", 0, finished{unrun: true, result: "it was not run: its definition is another"}},
		"a later try":                      {"set_price", 1, finished{lost: true}},
		"one that only reads, a later try": {"shop.look_up", 1, finished{unrun: true, result: "it was not run: its definition is another"}},
	} {
		a, d := runner(func(context.Context, Invocation) (string, error) {
			return "", fmt.Errorf("%w: its definition is another", ErrNotRun)
		}, c.tool)
		if c.tries > 0 {
			d.execution.State, d.execution.Tries = approvers.ExecutionExecuting, c.tries
		}
		if err := a.Run(t.Context(), due); err != nil || len(d.results) != 1 || !reflect.DeepEqual(d.results[0], c.want) {
			t.Errorf("%s: %+v, %v", name, d.results, err)
		}
		if d.execution.Unrun != c.want.unrun {
			t.Errorf("%s: %+v", name, d.execution)
		}
	}
}
