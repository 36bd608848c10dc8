package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers"
	"countersign/store"
)

var due = store.Timer{Kind: store.TimerRun, Ref: "exec_1"}

// allowed returns an execution that may run.
func allowed(r *Registry, tool, args string) approvers.Execution {
	pinned, _ := r.Tool(tool)
	e := approvers.Execution{
		ID: "exec_1", State: approvers.ExecutionNone, Tool: tool, ToolHash: pinned.Hash, Effect: pinned.Effect, Args: json.RawMessage(args),
		Conversation: "conv_1", Turn: "turn_1", Request: "req_1",
	}
	e.Digest = approvers.Digest(e.ID, e.Tool, e.ToolHash, e.Args)
	return e
}

// runner returns an agent whose tools all have the same function.
func runner(run func(context.Context, Invocation) (string, error), tool string) (*Agent, *fakeWorkflow) {
	r := testTools(run)
	d := &fakeWorkflow{execution: allowed(r, tool, `{ "order_id":"A", "amount": 5.00 }`)}
	return newAgent(d, nil, func(c *Config) { c.Tools = r }), d
}

func TestRunGivesTheStoredBytes(t *testing.T) {
	var got Invocation
	a, d := runner(func(_ context.Context, in Invocation) (string, error) {
		got = in
		return `{"refunded":5}`, nil
	}, "issue_refund")
	if err := a.Run(t.Context(), due); err != nil {
		t.Fatal(err)
	}
	if got.Key != "exec_1" || string(got.Args) != `{ "order_id":"A", "amount": 5.00 }` || got.Request != "req_1" || got.Turn != "turn_1" || got.Conversation != "conv_1" {
		t.Errorf("%+v", got)
	}
	if len(d.results) != 1 || !reflect.DeepEqual(d.results[0], finished{ok: true, result: `{"refunded":5}`}) {
		t.Errorf("%+v", d.results)
	}
	if err := a.Run(t.Context(), due); err != nil || len(d.results) != 1 {
		t.Errorf("the second time: %v, %+v", err, d.results)
	}
}

// The outcome of every run is recorded according to the tool's effect. A run is recorded as a failure only if the
// tool certainly changed nothing.
func TestEndings(t *testing.T) {
	own := func(ctx context.Context, in Invocation) (string, error) { return "", errors.New("there is no order A") }
	unsure := func(ctx context.Context, in Invocation) (string, error) {
		return "", fmt.Errorf("the bank hung up: %w", ErrOutcomeUnknown)
	}
	panics := func(context.Context, Invocation) (string, error) { panic("oops") }
	hangs := func(ctx context.Context, in Invocation) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	deaf := func(ctx context.Context, in Invocation) (string, error) {
		<-time.After(time.Hour)
		return "too late", nil
	}
	lateButSure := func(ctx context.Context, in Invocation) (string, error) {
		<-ctx.Done()
		return "done", nil
	}
	lost, refused := finished{lost: true}, finished{result: "there is no order A"}
	for _, c := range []struct {
		name string
		tool string
		run  func(context.Context, Invocation) (string, error)
		runs int32
		want finished
	}{
		{"an error of its own", "issue_refund", own, 1, refused},
		{"an error of its own", "set_price", own, 1, refused},
		{"an error of its own", "shop.look_up", own, 1, refused},
		{"it can't tell", "issue_refund", unsure, 1, lost},
		{"it can't tell", "set_price", unsure, 5, finished{}}, // the tool is tried five times with the same key, and the sixth claim is refused
		{"it can't tell", "shop.look_up", unsure, 1, finished{result: "the bank hung up: it is unknown whether this happened"}},
		{"a panic", "issue_refund", panics, 1, lost},
		{"a panic", "set_price", panics, 5, finished{}},
		{"a panic", "shop.look_up", panics, 1, finished{result: "the tool failed in the middle of its work"}},
		{"no answer in time", "issue_refund", hangs, 1, lost},
		{"no answer in time", "set_price", hangs, 5, finished{}},
		{"no answer in time", "shop.look_up", hangs, 1, finished{result: "it did not answer within 30s"}},
		{"deaf", "issue_refund", deaf, 1, lost},
		{"deaf", "shop.look_up", deaf, 1, finished{result: "it did not answer within 30s"}},
		{"late, but sure", "issue_refund", lateButSure, 1, finished{ok: true, result: "done"}},
		{"invalid UTF-8", "shop.look_up", func(context.Context, Invocation) (string, error) { return "a\xffb", nil }, 1, finished{ok: true, result: "a�b"}},
		{"an error without words", "shop.look_up", func(context.Context, Invocation) (string, error) { return "", errors.New("") }, 1, finished{result: "it failed without saying why"}},
	} {
		t.Run(c.name+" "+c.tool, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var runs atomic.Int32
				a, d := runner(func(ctx context.Context, in Invocation) (string, error) {
					runs.Add(1)
					return c.run(ctx, in)
				}, c.tool)
				if err := a.Run(t.Context(), due); err != nil {
					t.Fatal(err)
				}
				if runs.Load() != c.runs {
					t.Errorf("ran %d times, want %d", runs.Load(), c.runs)
				}
				if reflect.DeepEqual(c.want, finished{}) {
					if len(d.results) > 0 {
						t.Errorf("recorded %+v", d.results)
					}
				} else if len(d.results) != 1 || !reflect.DeepEqual(d.results[0], c.want) {
					t.Errorf("recorded %+v, want %+v", d.results, c.want)
				}
				if err := a.Wait(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// If the outcome of an earlier try is unknown, a later refusal does not mean that nothing was done: the earlier try may
// have acted, or may still act. So the tool is tried again, and at last people are asked.
func TestRefusalAfterAnUnclearTry(t *testing.T) {
	unsure := fmt.Errorf("the request was sent, and then there was no response in time: %w", ErrOutcomeUnknown)
	refused := Refused("nothing was done: the server answered 409 Conflict: a request with this key is in progress")
	for _, c := range []struct {
		name string
		errs []error // the errors of the first tries; every later try succeeds
		runs int
		want []finished
	}{
		{"a refusal, and then an answer", []error{unsure, refused}, 3, []finished{{ok: true, result: "done"}}},
		{"an error of its own, and then an answer", []error{unsure, errors.New("there is no order A")}, 3, []finished{{ok: true, result: "done"}}},
		{"only refusals", []error{unsure, refused, refused, refused, refused}, 5, nil}, // the sixth claim is refused
		{"it can't be tried again", []error{unsure, fmt.Errorf("%w: the server is away", ErrNotRun)}, 2, []finished{{lost: true}}},
		{"a refusal of the first try", []error{refused}, 1, []finished{{result: refused.Error()}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				a, d := runner(func(context.Context, Invocation) (string, error) {
					if runs++; runs <= len(c.errs) {
						return "", c.errs[runs-1]
					}
					return "done", nil
				}, "set_price")
				if err := a.Run(t.Context(), due); err != nil || runs != c.runs || !reflect.DeepEqual(d.results, c.want) {
					t.Errorf("%v; ran %d times, want %d; recorded %+v, want %+v", err, runs, c.runs, d.results, c.want)
				}
			})
		})
	}
}

func TestLongResultsAreCutAndSaySo(t *testing.T) {
	a, d := runner(func(context.Context, Invocation) (string, error) { return strings.Repeat("é", 1000), nil }, "shop.look_up")
	a.MaxResult = 101
	if err := a.Run(t.Context(), due); err != nil {
		t.Fatal(err)
	}
	if got, want := d.results[0].result, strings.Repeat("é", 50)+"\n[cut: these are the first 100 of 2000 bytes, and the rest was not kept, because a result may have 101; ask for less at once]"; got != want {
		t.Errorf("%q", got)
	}
}

func TestChangedDefinitionDoesNotRun(t *testing.T) {
	ran := false
	a, d := runner(func(context.Context, Invocation) (string, error) { ran = true; return "", nil }, "issue_refund")
	d.execution.ToolHash = "another"
	d.execution.Digest = approvers.Digest(d.execution.ID, d.execution.Tool, "another", d.execution.Args)
	if err := a.Run(t.Context(), due); err != nil || ran || len(d.results) != 1 || d.results[0].ok || d.results[0].lost {
		t.Errorf("%v, ran %t, %+v", err, ran, d.results)
	}
}

// When the process stops, a running tool has the grace period. An answer within the grace period is recorded. Without
// an answer, the execution stays in the state executing, and the next process recovers it.
func TestStopping(t *testing.T) {
	for _, c := range []struct {
		name        string
		grace, work time.Duration
		want        approvers.ExecutionState
		took        time.Duration
	}{
		{"within the grace period", 0, 10 * time.Second, approvers.ExecutionSucceeded, 10 * time.Second},
		{"beyond it", 0, 25 * time.Second, approvers.ExecutionExecuting, 20 * time.Second},
		{"within a longer one", 24 * time.Second, 28 * time.Second, approvers.ExecutionSucceeded, 28 * time.Second},
		{"beyond a short one", 2 * time.Second, 25 * time.Second, approvers.ExecutionExecuting, 7 * time.Second},
		{"none at all", -1, 10 * time.Second, approvers.ExecutionExecuting, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, d := runner(func(ctx context.Context, in Invocation) (string, error) {
					if !sleep(ctx, c.work) {
						return "", ctx.Err()
					}
					return "done", nil
				}, "issue_refund")
				if c.grace != 0 {
					a.Grace = c.grace
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				began := time.Now()
				err := a.Run(ctx, due)
				if d.execution.State != c.want || time.Since(began) != c.took {
					t.Errorf("%s after %v, want %s after %v", d.execution.State, time.Since(began), c.want, c.took)
				}
				if left := c.want == approvers.ExecutionExecuting; left != errors.Is(err, context.DeadlineExceeded) || left != (len(d.results) == 0) {
					t.Errorf("%v %+v", err, d.results)
				}
			})
		})
	}
}

// If the process stops or loses its share of the work while it claims a run, it does not call the tool: another replica
// may already ask people about the outcome.
func TestLateClaim(t *testing.T) {
	for _, cause := range []error{store.ErrFenced, nil} { // nil: a shutdown
		for _, tool := range []string{"issue_refund", "set_price", "shop.look_up"} {
			a, d := runner(func(context.Context, Invocation) (string, error) {
				t.Errorf("%v: %s was called", cause, tool)
				return "", nil
			}, tool)
			ctx, end := context.WithCancelCause(t.Context())
			d.claimed = func() { end(cause) }
			if err := a.Run(ctx, due); !errors.Is(err, context.Canceled) || d.execution.State != approvers.ExecutionExecuting || len(d.results) != 0 {
				t.Errorf("%v: %s: %v, %s, %+v", cause, tool, err, d.execution.State, d.results)
			}
		}
	}
}

// If storing a result fails, the result is kept. The agent makes a few attempts to store the result, and tries again
// when the timer fires again. The tool does not run again.
func TestRecording(t *testing.T) {
	fails := errors.New("the store says no")
	for _, c := range []struct {
		name   string
		errs   []error
		first  bool // recorded by the first call of Run
		second bool // recorded by the second call, when the timer fires again
	}{
		{"a few failures", []error{fails, fails, fails}, true, true},
		{"many failures", []error{fails, fails, fails, fails, fails}, false, true},
		{"failures that continue", []error{fails, fails, fails, fails, fails, fails, fails, fails, fails, fails}, false, false},
		{"a disk that is full for long", slices.Repeat([]error{store.ErrFull}, 1000), true, true},
		{"an unknown commit stops at once", []error{store.ErrCommitUnknown}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				a, d := runner(func(context.Context, Invocation) (string, error) { runs++; return "done", nil }, "issue_refund")
				d.finishErr = c.errs
				err := a.Run(t.Context(), due)
				if (err == nil) != c.first {
					t.Errorf("the first time: %v", err)
				}
				err = a.Run(t.Context(), due)
				if (err == nil) != c.second || (len(d.results) == 1) != c.second || runs != 1 {
					t.Errorf("the second time: %v, %+v; ran %d times", err, d.results, runs)
				}
				if err = a.Run(t.Context(), due); err != nil || len(d.results) != 1 || runs != 1 {
					t.Errorf("the third time: %v, %+v; ran %d times", err, d.results, runs)
				}
			})
		})
	}
}
