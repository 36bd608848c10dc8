package approvers

import "time"

// Inquiry is a question of the model's to the people who asked: to confirm something, or to choose. It grants nothing:
// what is risky still goes to its approvers.
type Inquiry struct {
	Question  string    `json:"question"`
	Options   []string  `json:"options"` // at least two
	ExpiresAt time.Time `json:"expires_at"`
	Answer    string    `json:"answer,omitempty"` // one of the options, or what the person wrote
	By        PersonID  `json:"by,omitempty"`
	Name      string    `json:"name,omitempty"`
	At        time.Time `json:"at,omitzero"`
}
