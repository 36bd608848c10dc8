package approvers

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Effect says whether a second run of a tool would repeat the tool's effect. Effect determines how an interrupted run
// is handled.
type Effect string

// The effects, from the safest. The comment of each effect says how an interrupted run is handled.
const (
	ReadOnly    Effect = "read-only"   // the tool changes nothing: run again after an interruption
	Idempotent  Effect = "idempotent"  // the tool acts once per execution id: run again with the same id as key
	Unprotected Effect = "unprotected" // a second run repeats the effect: never run again automatically
)

// ExecutionState is the state of an execution. See docs/states.md.
type ExecutionState string

// The states of an execution.
const (
	ExecutionNone      ExecutionState = "none"      // not started
	ExecutionExecuting ExecutionState = "executing" // the run has begun; this state is stored before the tool is called
	ExecutionSucceeded ExecutionState = "succeeded"
	ExecutionFailed    ExecutionState = "failed"  // the tool returned an error, the tool was not run, or a person reported that the action did not happen
	ExecutionUnknown   ExecutionState = "unknown" // nobody knows whether the run took effect, for example because the process stopped; people are asked
)

// Loss is the reason why a run's outcome is unknown.
type Loss string

// The reasons for an unknown outcome.
const (
	LossStopped     Loss = "stopped"    // the process stopped during the run
	LossUnclear     Loss = "unclear"    // the tool's response does not tell whether the run took effect
	LossPaused      Loss = "paused"     // somebody paused everything, which interrupted the run
	LossTurnStopped Loss = "halted"     // somebody stopped the agent, which interrupted the run
	LossUnreported  Loss = "unreported" // the caller that ran the tool did not report the outcome in time
	LossRestored    Loss = "restored"   // the store was restored from a backup that was taken before the run ended
	LossDamaged     Loss = "damaged"    // the record of the run was damaged; the run has begun, or may have begun
)

// Execution is one run of a tool call, with its exact bytes and its outcome. Edited arguments make a new execution.
type Execution struct {
	ID           string          `json:"id"` // random; the tool's idempotency key
	Version      uint64          `json:"version"`
	State        ExecutionState  `json:"state"`
	Conversation string          `json:"conversation"`
	Turn         string          `json:"turn"`
	Call         string          `json:"call"`
	Request      string          `json:"request,omitempty"`   // the request that allowed the run; empty: the call needed no approval
	Asker        PersonID        `json:"asker,omitempty"`     // the last person who wrote before the call was proposed
	Grant        string          `json:"grant,omitempty"`     // the grant under which the execution may run without an approval
	GrantUse     int             `json:"grant_use,omitempty"` // the number of this run among the runs under the grant, from 1
	Tool         string          `json:"tool"`
	ToolHash     string          `json:"tool_hash"` // hash of the tool's definition that was pinned when the call was proposed
	Effect       Effect          `json:"effect"`
	Args         json.RawMessage `json:"args"` // the exact bytes
	Digest       string          `json:"digest"`
	Caller       string          `json:"caller,omitempty"` // the caller, if it runs the tool itself; empty: a process of Countersign runs the tool
	Owner        string          `json:"owner,omitempty"`  // the process that runs the tool; empty if a caller runs it
	Tries        int             `json:"tries,omitempty"`  // how often the run was started; more than 1 only for read-only and idempotent tools
	CreatedAt    time.Time       `json:"created_at"`
	StartedAt    time.Time       `json:"started_at,omitzero"`
	FinishedAt   time.Time       `json:"finished_at,omitzero"`
	Result       string          `json:"result,omitempty"` // the tool's response, or the error's sentence
	Unrun        bool            `json:"unrun,omitempty"`  // the execution failed, and the tool was not called, for example because its definition had changed
	ReportedBy   PersonID        `json:"reported_by,omitempty"`
	LeftBy       PersonID        `json:"left_by,omitempty"` // the person who told the model that the outcome is unknown
	Loss         Loss            `json:"loss,omitempty"`    // why the outcome is or was unknown; LossRestored is also set if the run had not begun in the backup
	After        string          `json:"after,omitempty"`   // the call's earlier execution with an unknown outcome
}

// Errors of an execution's transitions.
var (
	// ErrNotStartable means that the execution's state does not allow a run, or that a second run is not safe.
	ErrNotStartable = errors.New("this execution has already been started")
	// ErrNotRunning means that the execution is not running.
	ErrNotRunning = errors.New("this execution is not running")
	// ErrDigest means that the stored bytes don't match the digest.
	ErrDigest = errors.New("the stored arguments do not match their digest")
	// ErrNotUnknown means that the outcome is known, so nobody can report the outcome.
	ErrNotUnknown = errors.New("the outcome of this execution is already known")
)

// Start moves an execution to executing. Start recomputes the digest and rejects changed bytes.
func (e Execution) Start(owner string, now time.Time) (Execution, error) {
	if e.State != ExecutionNone {
		return e, ErrNotStartable
	}
	if Digest(e.ID, e.Tool, e.ToolHash, e.Args) != e.Digest {
		return e, ErrDigest
	}
	e.State, e.Owner, e.StartedAt, e.Tries = ExecutionExecuting, owner, now, 1
	return e, nil
}

// Retry takes over an interrupted execution that is safe to run again.
func (e Execution) Retry(owner string, now time.Time) (Execution, error) {
	if e.State != ExecutionExecuting || e.Effect == Unprotected {
		return e, ErrNotStartable
	}
	if Digest(e.ID, e.Tool, e.ToolHash, e.Args) != e.Digest {
		return e, ErrDigest
	}
	e.Owner, e.StartedAt, e.Tries = owner, now, e.Tries+1
	return e, nil
}

// Finish records the tool's response.
func (e Execution) Finish(ok bool, result string, now time.Time) (Execution, error) {
	if e.State != ExecutionExecuting {
		return e, ErrNotRunning
	}
	e.State = ExecutionFailed
	if ok {
		e.State = ExecutionSucceeded
	}
	e.Result, e.FinishedAt = result, now
	return e, nil
}

// Refuse records that the tool was not run, and the reason.
func (e Execution) Refuse(why string, now time.Time) (Execution, error) {
	e, err := e.Finish(false, why, now)
	e.Unrun = err == nil
	return e, err
}

// Lose marks a run's outcome as unknown.
func (e Execution) Lose(why Loss, now time.Time) (Execution, error) {
	if e.State != ExecutionExecuting {
		return e, ErrNotRunning
	}
	e.State, e.Loss, e.FinishedAt = ExecutionUnknown, why, now
	return e, nil
}

// Report records a person's report about an unknown outcome.
func (e Execution) Report(happened bool, result string, who PersonID, now time.Time) (Execution, error) {
	if e.State != ExecutionUnknown {
		return e, ErrNotUnknown
	}
	e.State = ExecutionFailed
	if happened {
		e.State = ExecutionSucceeded
	}
	e.Result, e.ReportedBy, e.FinishedAt = result, who, now
	return e, nil
}

// Leave records the person who told the model that the outcome is unknown. People can report the outcome later.
func (e Execution) Leave(who PersonID) (Execution, error) {
	if e.State != ExecutionUnknown {
		return e, ErrNotUnknown
	}
	e.LeftBy = who
	return e, nil
}

func (e Execution) String() string { return fmt.Sprintf("execution %s of %s", e.ID, e.Tool) }

// Chain returns the execution's audit chain. For an execution with a request, this is the request's chain. An
// execution without a request has its own chain.
func (e Execution) Chain() string {
	if e.Request != "" {
		return e.Request
	}
	return e.ID
}
