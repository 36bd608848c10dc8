package approvers_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"countersign/approvers"
)

func execution(state approvers.ExecutionState, effect approvers.Effect) approvers.Execution {
	e := approvers.Execution{ID: "exec_1", State: state, Tool: "t", ToolHash: "h", Effect: effect, Args: json.RawMessage(`{"a": 1}`), Tries: 1}
	e.Digest = approvers.Digest(e.ID, e.Tool, e.ToolHash, e.Args)
	return e
}

// TestExecutionTransitions tries every transition in every state. If the table does not allow a transition, it is
// refused and changes nothing.
func TestExecutionTransitions(t *testing.T) {
	states := []approvers.ExecutionState{
		approvers.ExecutionNone, approvers.ExecutionExecuting, approvers.ExecutionSucceeded, approvers.ExecutionFailed, approvers.ExecutionUnknown,
	}
	tests := []struct {
		name       string
		from       approvers.ExecutionState
		to         approvers.ExecutionState
		err        error
		transition func(approvers.Execution) (approvers.Execution, error)
	}{
		{"start", approvers.ExecutionNone, approvers.ExecutionExecuting, approvers.ErrNotStartable,
			func(e approvers.Execution) (approvers.Execution, error) { return e.Start("p", start) }},
		{"succeed", approvers.ExecutionExecuting, approvers.ExecutionSucceeded, approvers.ErrNotRunning,
			func(e approvers.Execution) (approvers.Execution, error) { return e.Finish(true, "done", start) }},
		{"fail", approvers.ExecutionExecuting, approvers.ExecutionFailed, approvers.ErrNotRunning,
			func(e approvers.Execution) (approvers.Execution, error) { return e.Finish(false, "no", start) }},
		{"lose", approvers.ExecutionExecuting, approvers.ExecutionUnknown, approvers.ErrNotRunning,
			func(e approvers.Execution) (approvers.Execution, error) { return e.Lose(approvers.LossStopped, start) }},
		{"retry", approvers.ExecutionExecuting, approvers.ExecutionExecuting, approvers.ErrNotStartable,
			func(e approvers.Execution) (approvers.Execution, error) { return e.Retry("p2", start) }},
		{"it happened", approvers.ExecutionUnknown, approvers.ExecutionSucceeded, approvers.ErrNotUnknown,
			func(e approvers.Execution) (approvers.Execution, error) {
				return e.Report(true, "seen", onLead.ID, start)
			}},
		{"it did not", approvers.ExecutionUnknown, approvers.ExecutionFailed, approvers.ErrNotUnknown,
			func(e approvers.Execution) (approvers.Execution, error) {
				return e.Report(false, "not seen", onLead.ID, start)
			}},
	}
	for _, tt := range tests {
		for _, state := range states {
			after, err := tt.transition(execution(state, approvers.Idempotent))
			if state == tt.from {
				if err != nil || after.State != tt.to {
					t.Errorf("%s from %s: %s, %v", tt.name, state, after.State, err)
				}
				continue
			}
			if !errors.Is(err, tt.err) || after.State != state {
				t.Errorf("%s from %s: %s, %v; want it refused", tt.name, state, after.State, err)
			}
		}
	}
}

func TestRetryOnlyWhereHarmless(t *testing.T) {
	for effect, ok := range map[approvers.Effect]bool{approvers.ReadOnly: true, approvers.Idempotent: true, approvers.Unprotected: false} {
		e, err := execution(approvers.ExecutionExecuting, effect).Retry("p2", start.Add(time.Minute))
		if ok != (err == nil) {
			t.Errorf("%s: %v", effect, err)
		}
		if ok && (e.Tries != 2 || e.Owner != "p2" || e.ID != "exec_1") {
			t.Errorf("%s: try %d by %s of %s; want the second, by the new process, under the same id", effect, e.Tries, e.Owner, e.ID)
		}
	}
}

func TestChangedBytesNeverStart(t *testing.T) {
	for name, change := range map[string]func(*approvers.Execution){
		"one byte":   func(e *approvers.Execution) { e.Args = json.RawMessage(`{"a": 2}`) },
		"a space":    func(e *approvers.Execution) { e.Args = json.RawMessage(`{"a":1}`) },
		"the tool":   func(e *approvers.Execution) { e.Tool = "u" },
		"its hash":   func(e *approvers.Execution) { e.ToolHash = "i" },
		"another id": func(e *approvers.Execution) { e.ID = "exec_2" },
		"no digest":  func(e *approvers.Execution) { e.Digest = "" },
	} {
		e := execution(approvers.ExecutionNone, approvers.Idempotent)
		change(&e)
		if after, err := e.Start("p", start); !errors.Is(err, approvers.ErrDigest) || after.State != approvers.ExecutionNone {
			t.Errorf("%s: start gives %s, %v", name, after.State, err)
		}
		e.State = approvers.ExecutionExecuting
		if _, err := e.Retry("p", start); !errors.Is(err, approvers.ErrDigest) {
			t.Errorf("%s: retry gives %v", name, err)
		}
	}
}

func TestTurnTransitions(t *testing.T) {
	transitions := map[string]struct {
		from       map[approvers.TurnState]approvers.TurnState
		transition func(approvers.Turn) (approvers.Turn, error)
	}{
		"think": {map[approvers.TurnState]approvers.TurnState{approvers.TurnQueued: approvers.TurnThinking, approvers.TurnWaiting: approvers.TurnThinking}, approvers.Turn.Think},
		"wait":  {map[approvers.TurnState]approvers.TurnState{approvers.TurnThinking: approvers.TurnWaiting}, approvers.Turn.Wait},
		"answer": {map[approvers.TurnState]approvers.TurnState{approvers.TurnThinking: approvers.TurnAnswered},
			func(t approvers.Turn) (approvers.Turn, error) { return t.Answer(start) }},
		"stop": {map[approvers.TurnState]approvers.TurnState{approvers.TurnQueued: approvers.TurnStopped, approvers.TurnThinking: approvers.TurnStopped, approvers.TurnWaiting: approvers.TurnStopped},
			func(t approvers.Turn) (approvers.Turn, error) {
				return t.Stop("the model can't be reached", true, start)
			}},
		"again": {map[approvers.TurnState]approvers.TurnState{approvers.TurnStopped: approvers.TurnThinking}, approvers.Turn.Again},
	}
	for name, m := range transitions {
		for _, state := range []approvers.TurnState{
			approvers.TurnQueued, approvers.TurnThinking, approvers.TurnWaiting, approvers.TurnAnswered, approvers.TurnStopped,
		} {
			after, err := m.transition(approvers.Turn{State: state, CanRetry: true, Failures: 2})
			want, ok := m.from[state]
			switch {
			case ok && (err != nil || after.State != want):
				t.Errorf("%s from %s: %s, %v; want %s", name, state, after.State, err, want)
			case !ok && (!errors.Is(err, approvers.ErrTurnState) || after.State != state):
				t.Errorf("%s from %s: %s, %v; want it refused", name, state, after.State, err)
			}
		}
	}
	if _, err := (approvers.Turn{State: approvers.TurnStopped}).Again(); !errors.Is(err, approvers.ErrTurnState) {
		t.Errorf("a turn that can't be retried was: %v", err)
	}
}

func TestSpeakAddsEachPersonOnce(t *testing.T) {
	turn := approvers.Turn{Requesters: make([]approvers.PersonID, 0, 4)}
	a := turn.Speak(asker.ID).Speak(asker.ID)
	b := turn.Speak(onLead.ID)
	if len(a.Requesters) != 1 || a.Requesters[0] != asker.ID || b.Requesters[0] != onLead.ID {
		t.Errorf("%v, %v", a.Requesters, b.Requesters)
	}
}
