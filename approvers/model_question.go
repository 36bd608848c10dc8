package approvers

import "time"

// ModelQuestion is a question from the model to the people who asked: to confirm something, or to choose. It grants
// nothing: risky calls still go to their approvers.
type ModelQuestion struct {
	Question  string    `json:"question"`
	Options   []string  `json:"options"` // at least two
	ExpiresAt time.Time `json:"expires_at"`
	Answer    string    `json:"answer,omitempty"` // one of the options, or the person's own text
	By        PersonID  `json:"by,omitempty"`
	Name      string    `json:"name,omitempty"`
	At        time.Time `json:"at,omitzero"`
}
