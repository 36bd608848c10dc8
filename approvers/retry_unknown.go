package approvers

import "time"

// Retry marks a request that repeats a call because the outcome of an earlier run is unknown. It goes through all
// stages of its plan again.
type Retry struct {
	Execution string         `json:"execution"` // the earlier run
	LostAt    time.Time      `json:"lost_at"`   // when the outcome was found to be unknown
	By        PersonID       `json:"by"`        // the person who requested the repetition
	Name      string         `json:"name"`
	At        time.Time      `json:"at"`
	Found     ExecutionState `json:"found,omitempty"` // a person's later report about the earlier run: ExecutionFailed if it did not happen
	FoundBy   PersonID       `json:"found_by,omitempty"`
}

// earlierRunNote returns the note for the model that an earlier run may have happened, whatever this one's outcome. It
// returns "" if there was none or it is known not to have happened.
func (a *Retry) earlierRunNote() string {
	if a == nil || a.Found == ExecutionFailed {
		return ""
	}
	return " An earlier run of this call ended without anybody knowing how: it may have happened besides. Tell the person so."
}

// earlierRunNote returns the note about the request's earlier run, or "".
func (r *Request) earlierRunNote() string {
	if r == nil {
		return ""
	}
	return r.Retry.earlierRunNote()
}
