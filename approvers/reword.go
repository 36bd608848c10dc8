package approvers

import "time"

// Reworded is what became of the words that led to a call after the agent had read them: they were edited, or deleted. What the agent was given, and
// what waits because of it, stays as it was; whoever decides is told.
type Reworded struct {
	At      time.Time `json:"at"`
	Edit    string    `json:"edit,omitempty"` // Slack's ts of the edit; a later one counts
	Deleted bool      `json:"deleted,omitempty"`
	Text    string    `json:"text,omitempty"` // as they read now; empty for deleted ones
}

// After reports whether it counts where was did so far; nil: nothing did. Slack may tell of edits out of order, and a deletion is the last word.
func (w Reworded) After(was *Reworded) bool {
	return was == nil || !was.Deleted && (w.Deleted || w.Edit > was.Edit)
}

// Reword notes that the words that led to a request that waits were edited or deleted. It reports whether that is news.
func (r Request) Reword(w Reworded) (Request, bool) {
	if !r.State.Open() || !w.After(r.Facts.Reworded) {
		return r, false
	}
	r.Facts.Reworded = &w
	return r, true
}
