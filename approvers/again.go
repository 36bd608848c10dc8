package approvers

import "time"

// Again says that a request asks for a call once more, because nobody knows how an earlier run of it ended. It has all its stages, whatever the
// earlier one had.
type Again struct {
	Execution string         `json:"execution"` // the earlier run
	LostAt    time.Time      `json:"lost_at"`   // when it was found that nobody knows how it ended
	By        PersonID       `json:"by"`        // who asked once more
	Name      string         `json:"name"`
	At        time.Time      `json:"at"`
	Found     ExecutionState `json:"found,omitempty"` // what a person reported of the earlier run since: ExecutionFailed if it did not happen
	FoundBy   PersonID       `json:"found_by,omitempty"`
}

// doubt is what the model is told of an earlier run beside the result: it may have happened, whatever became of this one. Empty where there was
// none, or where it is known that it did not happen.
func (a *Again) doubt() string {
	if a == nil || a.Found == ExecutionFailed {
		return ""
	}
	return " An earlier run of this call ended without anybody knowing how: it may have happened besides. Tell the person so."
}

// doubt is what the model is told of a request's earlier run.
func (r *Request) doubt() string {
	if r == nil {
		return ""
	}
	return r.Again.doubt()
}
