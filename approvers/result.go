package approvers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Outcome is the result of one tool call for the model. Every call gets exactly one outcome.
type Outcome string

// The outcomes of a tool call.
const (
	OutcomeExecuted  Outcome = "executed"
	OutcomeError     Outcome = "error" // the arguments were refused, or the tool returned an error
	OutcomeRejected  Outcome = "rejected"
	OutcomeExpired   Outcome = "expired"
	OutcomeWithdrawn Outcome = "withdrawn"
	OutcomeRevoked   Outcome = "revoked"
	OutcomeVoided    Outcome = "voided"
	OutcomeRefused   Outcome = "refused"
	OutcomeUnknown   Outcome = "unknown"
	OutcomeObserved  Outcome = "observed" // not run, because of observe mode
)

// Result is the structured tool result of a call. Every call gets a Result, except a call that succeeded exactly as
// it was proposed. The result tells the model the outcome, the deciding role, and the possible next steps.
type Result struct {
	Status    Outcome         `json:"status"`
	Tool      string          `json:"tool"`
	Reason    string          `json:"reason,omitempty"`
	DecidedBy string          `json:"decided_by,omitempty"` // the role's title, never a person
	Guidance  string          `json:"guidance,omitempty"`
	Modified  *Modified       `json:"modified,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
}

// Modified tells the model that approvers changed the arguments. Modified has the new arguments and the reason.
type Modified struct {
	By   string          `json:"by"` // the roles' titles
	Args json.RawMessage `json:"args"`
	Why  string          `json:"why,omitempty"`
}

// modified describes a request's edits for the model, or returns nil.
func (r *Request) modified(p *Policy) *Modified {
	if r == nil || len(r.Edits) == 0 {
		return nil
	}
	var by, why []string
	for _, e := range r.Edits {
		title := e.Role
		if role, ok := p.Role(e.Role); ok {
			title = role.Title
		}
		if !slices.Contains(by, title) {
			by = append(by, title)
		}
		if e.Reason != "" && !slices.Contains(why, e.Reason) {
			why = append(why, e.Reason)
		}
	}
	return &Modified{By: strings.Join(by, " and "), Args: r.Edits[len(r.Edits)-1].After, Why: strings.Join(why, "; ")}
}

// Text returns the result as the model receives it.
func (r Result) Text() string {
	b, err := json.Marshal(r)
	if err != nil { // only possible if the field Result is not valid JSON
		r.Result, _ = json.Marshal(string(r.Result))
		b, _ = json.Marshal(r)
	}
	return string(b)
}

// guidance is the advice to the model for each outcome.
var guidance = map[Outcome]string{
	OutcomeRejected:  "It was not run. Do not ask for the same call again; take the reason into account and offer the person an alternative.",
	OutcomeExpired:   "It was not run: nobody decided, its card reached nobody, or it could not start in time. Tell the person, and ask whether to request it again later.",
	OutcomeWithdrawn: "It was not run. The person who asked withdrew it; continue with what they want now.",
	OutcomeRevoked:   "It was not run. The approval was taken back; tell the person and offer an alternative.",
	OutcomeVoided:    "It was not run, because the tool or the policy changed while it waited. Tell the person; it may be requested again.",
	OutcomeRefused:   "It was not run and cannot be approved by anybody as it is. Offer the person an alternative within the policy.",
	OutcomeUnknown:   "It may or may not have happened. Do not call it again; tell the person that somebody has to check.",
	OutcomeObserved:  "It was not run: for now the bot only observes. Tell the person what would have been done and who would have been asked. Do not call it again.",
	OutcomeError:     "It did not succeed. Correct the call if the fault is in its arguments; otherwise tell the person.",
}

// NewResult returns a result with the guidance of its outcome.
func NewResult(status Outcome, tool, reason, decidedBy string) Result {
	return Result{Status: status, Tool: tool, Reason: reason, DecidedBy: decidedBy, Guidance: guidance[status]}
}

// ClosedResult returns the result of a request that ended without a run.
func (r Request) ClosedResult(p *Policy) Result {
	title := r.ClosedRole
	if role, ok := p.Role(r.ClosedRole); ok {
		title = role.Title
	} else if r.ClosedBy.Login() != "" {
		title = "the operator"
	}
	out := NewResult(Outcome(r.State), r.Tool, r.Reason, title)
	if r.Lost {
		out.Guidance = lostGuidance
	}
	if out.Modified = r.modified(p); out.Modified != nil {
		out.Guidance += changedBefore
	}
	out.Guidance += r.Retry.earlierRunNote()
	return out
}

// changedBefore is added to the guidance of a call that was edited and then did not run.
const changedBefore = " Its arguments had been changed before that (see modified): this is about the changed call."

// reported returns the result of a run whose outcome a person reported. The result says that the text is from this
// person, and not from the tool.
func reported(e Execution, m *Modified, doubt string) (Outcome, string) {
	res := Result{
		Status: OutcomeExecuted, Tool: e.Tool, Modified: m, Reason: "nobody saw how it ended; a person reported that it happened",
		Guidance: "Tell the person that this is what was reported, not what the tool answered." + doubt,
	}
	if e.State == ExecutionFailed {
		res.Status, res.Reason = OutcomeError, "nobody saw how it ended; a person reported that it did not happen"
	}
	if e.Result != "" {
		res.Result, _ = json.Marshal(e.Result) // a string always marshals
	}
	return res.Status, res.Text()
}

// RunResult returns the result of a finished execution for the model. The result of a successful run is the tool's own
// response. There are three exceptions: somebody edited the call, an earlier run of the call may have taken effect, or
// a person reported the outcome. In these cases, and if the run was not successful, the result is a structured Result.
func RunResult(p *Policy, e Execution, r *Request) (Outcome, string) {
	m, doubt := r.modified(p), r.earlierRunNote()
	switch {
	case e.State == ExecutionUnknown:
		return OutcomeUnknown, unfinished(e, OutcomeUnknown, "it was started, and nobody could tell how it ended", m, doubt)
	case e.ReportedBy != "":
		return reported(e, m, doubt)
	case e.State == ExecutionFailed:
		return OutcomeError, unfinished(e, OutcomeError, e.Result, m, doubt)
	case m == nil && doubt == "":
		return OutcomeExecuted, e.Result
	}
	out := Result{Status: OutcomeExecuted, Tool: e.Tool, Modified: m, Reason: "it ran", Result: json.RawMessage(e.Result)}
	if m != nil {
		out.Reason = fmt.Sprintf("%s changed the arguments before approving", m.By)
		out.Guidance = "It ran with the changed arguments. Tell the person what was changed and by which role."
	}
	out.Guidance = strings.TrimSpace(out.Guidance + doubt)
	if !json.Valid(out.Result) {
		out.Result, _ = json.Marshal(e.Result)
	}
	return OutcomeExecuted, out.Text()
}

// unfinished returns the result of a run that failed or whose outcome is unknown.
func unfinished(e Execution, status Outcome, reason string, m *Modified, doubt string) string {
	out := NewResult(status, e.Tool, reason, "")
	if out.Modified = m; m != nil {
		out.Guidance += " It was started with changed arguments (see modified)."
	}
	out.Guidance += doubt
	return out.Text()
}

// Retry marks a request that repeats a call because an earlier run has an unknown outcome. The request goes through all
// stages of its plan.
type Retry struct {
	Execution string         `json:"execution"` // the earlier run
	LostAt    time.Time      `json:"lost_at"`   // when the outcome was marked as unknown
	By        PersonID       `json:"by"`        // the person who requested the repetition
	Name      string         `json:"name"`
	At        time.Time      `json:"at"`
	Found     ExecutionState `json:"found,omitempty"` // a person's later report about the earlier run; ExecutionFailed: the action did not happen
	FoundBy   PersonID       `json:"found_by,omitempty"`
	Remarks   int            `json:"remarks,omitempty"` // number of remarks of the call's earlier requests
}

// EarlierRemarks returns the number of remarks of the call's earlier requests. Clients know the remarks of all requests
// of a call by their numbers in one series.
func (a *Retry) EarlierRemarks() int {
	if a == nil {
		return 0
	}
	return a.Remarks
}

// If an earlier run of the call may also have taken effect, earlierRunNote returns a note about this for the model.
// Otherwise, earlierRunNote returns "".
func (a *Retry) earlierRunNote() string {
	if a == nil || a.Found == ExecutionFailed {
		return ""
	}
	return " The outcome of an earlier run of this call is unknown: it may have happened besides. Tell the person."
}

// earlierRunNote returns the note about the request's earlier run, or "".
func (r *Request) earlierRunNote() string {
	if r == nil {
		return ""
	}
	return r.Retry.earlierRunNote()
}
