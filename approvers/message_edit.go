package approvers

import "time"

// MessageEdit records that the message that led to a call was edited or deleted after the agent had read it. The
// model's input and waiting requests stay unchanged; the people who decide are notified.
type MessageEdit struct {
	At      time.Time `json:"at"`
	Edit    string    `json:"edit,omitempty"` // Slack's ts of the edit; a later one counts
	Deleted bool      `json:"deleted,omitempty"`
	Text    string    `json:"text,omitempty"` // the current text; empty for a deleted message
}

// After reports whether the edit supersedes was, which may be nil. Slack may report edits out of order, and a deletion
// is final.
func (w MessageEdit) After(was *MessageEdit) bool {
	return was == nil || !was.Deleted && (w.Deleted || w.Edit > was.Edit)
}

// RecordMessageEdit records that the message that led to an open request was edited or deleted. It returns false if
// this is already known.
func (r Request) RecordMessageEdit(w MessageEdit) (Request, []Event, bool) {
	if !r.State.Open() || !w.After(r.Facts.MessageEdit) {
		return r, nil, false
	}
	r.Facts.MessageEdit = &w
	return r, []Event{SourceEdited{}}, true
}
