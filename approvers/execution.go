package approvers

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Effect says what happens if a tool is run a second time, and so what may be done after a crash.
type Effect string

// The protection levels, from the safest.
const (
	ReadOnly    Effect = "read-only"   // changes nothing: may simply be run again
	Idempotent  Effect = "idempotent"  // the same execution id acts once: retried with it as its key
	Unprotected Effect = "unprotected" // a second run acts again: never run again blindly
)

// ExecutionState is where an execution stands. See docs/states.md.
type ExecutionState string

// The states of an execution.
const (
	ExecutionNone      ExecutionState = "none"      // not started, and perhaps never to be
	ExecutionExecuting ExecutionState = "executing" // durable before the tool is called
	ExecutionSucceeded ExecutionState = "succeeded"
	ExecutionFailed    ExecutionState = "failed"  // the tool said no, or a person reported that it did not happen
	ExecutionUnknown   ExecutionState = "unknown" // the process stopped while it ran; a person is asked
)

// Loss says why nobody knows how a run ended.
type Loss string

// The losses.
const (
	LossStopped  Loss = "stopped"  // the process stopped while it ran
	LossUnclear  Loss = "unclear"  // its tool could not tell
	LossPaused   Loss = "paused"   // it was interrupted because everything was paused
	LossHalted   Loss = "halted"   // it was interrupted because somebody stopped the agent
	LossRestored Loss = "restored" // the store was put back from a backup that was taken before it ended
)

// Execution is the one run of a tool call: the exact bytes, and what became of them. Changed
// bytes are a new execution.
type Execution struct {
	ID           string          `json:"id"` // random; the tool's idempotency key
	Version      uint64          `json:"version"`
	State        ExecutionState  `json:"state"`
	Conversation string          `json:"conversation"`
	Turn         string          `json:"turn"`
	Call         string          `json:"call"`
	Request      string          `json:"request,omitempty"`   // empty: run without asking
	Asker        PersonID        `json:"asker,omitempty"`     // who wrote last before it was asked for
	Grant        string          `json:"grant,omitempty"`     // the grant that it may run under, if people would have been asked without it
	GrantUse     int             `json:"grant_use,omitempty"` // which of the grant's uses its run was, from 1
	Tool         string          `json:"tool"`
	ToolHash     string          `json:"tool_hash"` // of the definition that was pinned when the call was proposed
	Effect       Effect          `json:"effect"`
	Args         json.RawMessage `json:"args"` // the exact bytes
	Digest       string          `json:"digest"`
	Owner        string          `json:"owner,omitempty"` // the process that runs it
	Tries        int             `json:"tries,omitempty"` // more than 1 only for read-only and idempotent tools
	CreatedAt    time.Time       `json:"created_at"`
	StartedAt    time.Time       `json:"started_at,omitzero"`
	FinishedAt   time.Time       `json:"finished_at,omitzero"`
	Result       string          `json:"result,omitempty"` // what the tool answered, or the error's sentence
	Unrun        bool            `json:"unrun,omitempty"`  // failed, because the tool was not what people had agreed to: nothing was begun
	ReportedBy   PersonID        `json:"reported_by,omitempty"`
	LeftBy       PersonID        `json:"left_by,omitempty"` // had the model told that nobody knows how it ended
	Loss         Loss            `json:"loss,omitempty"`    // why nobody knew how it ended, if that was so
	After        string          `json:"after,omitempty"`   // the earlier execution of the call of which nobody knows how it ended
}

// Errors of an execution's transitions.
var (
	// ErrNotStartable says that the execution was started before: one permission, one run.
	ErrNotStartable = errors.New("this execution has already been started")
	// ErrNotRunning says that there is no run to finish.
	ErrNotRunning = errors.New("this execution is not running")
	// ErrDigest says that the stored bytes are not the ones that were signed.
	ErrDigest = errors.New("the stored arguments do not match their digest")
	// ErrNotUnknown says that there is nothing to report: the outcome is known.
	ErrNotUnknown = errors.New("the outcome of this execution is already known")
)

// Start moves an execution to executing. It recomputes the digest, so bytes that were changed
// since they were signed never run.
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

// Retry takes over an execution whose process stopped, where a second run is harmless.
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

// Finish records what the tool answered.
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

// Refuse records that the tool was not run after all, and why.
func (e Execution) Refuse(why string, now time.Time) (Execution, error) {
	e, err := e.Finish(false, why, now)
	e.Unrun = err == nil
	return e, err
}

// Lose marks an execution of which nobody knows how it ended.
func (e Execution) Lose(why Loss, now time.Time) (Execution, error) {
	if e.State != ExecutionExecuting {
		return e, ErrNotRunning
	}
	e.State, e.Loss, e.FinishedAt = ExecutionUnknown, why, now
	return e, nil
}

// Report records what a person found out about an unknown outcome.
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

// Leave records who has the model told that nobody knows the outcome. It can still be reported.
func (e Execution) Leave(who PersonID) (Execution, error) {
	if e.State != ExecutionUnknown {
		return e, ErrNotUnknown
	}
	e.LeftBy = who
	return e, nil
}

func (e Execution) String() string { return fmt.Sprintf("execution %s of %s", e.ID, e.Tool) }

// Chain names the audit chain of the execution: its request's, or its own where nobody was asked.
func (e Execution) Chain() string {
	if e.Request != "" {
		return e.Request
	}
	return e.ID
}
