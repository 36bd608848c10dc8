package approvers

import (
	"encoding/json"
	"time"
)

// Elicitation is a question from a running tool to the person who asked the agent. The question is a form to fill in,
// or an address to visit. An elicitation grants nothing, and can be answered only once. See docs/states.md.
type Elicitation struct {
	ID           string           `json:"id"` // random
	Version      uint64           `json:"version"`
	State        ElicitationState `json:"state"`
	Conversation string           `json:"conversation"`
	Turn         string           `json:"turn"`
	Call         string           `json:"call"`
	Execution    string           `json:"execution"`
	Try          int              `json:"try"`   // the number of the execution's try that asks
	Owner        string           `json:"owner"` // the process whose run waits for the answer
	Tool         string           `json:"tool"`
	From         string           `json:"from,omitempty"` // the name of the tool's source, in the source's own words
	Text         string           `json:"text"`           // the question, in the source's words
	Schema       json.RawMessage  `json:"schema,omitempty"`
	URL          string           `json:"url,omitempty"` // the address to visit; empty: the question is a form
	Asked        PersonID         `json:"asked"`         // the only person who may answer
	CreatedAt    time.Time        `json:"created_at"`
	ExpiresAt    time.Time        `json:"expires_at"`
	ClosedAt     time.Time        `json:"closed_at,omitzero"`
	Name         string           `json:"name,omitempty"`   // the name of the person who answered
	Values       json.RawMessage  `json:"values,omitempty"` // the answers: an object that the schema permits
	Why          string           `json:"why,omitempty"`    // why the elicitation was cancelled, as a part of a sentence
}

// ElicitationState is the state of an elicitation.
type ElicitationState string

// The states of an elicitation. An elicitation begins in the state open. All other states are final.
const (
	ElicitationOpen      ElicitationState = "open"
	ElicitationAccepted  ElicitationState = "accepted"
	ElicitationDeclined  ElicitationState = "declined"
	ElicitationCancelled ElicitationState = "cancelled" // the run ended, or was interrupted, before anybody answered
	ElicitationExpired   ElicitationState = "expired"
)

// Accept records the answer of the person who was asked. If the person visited an address, values is nil.
func (q Elicitation) Accept(who Identity, values json.RawMessage, received, now time.Time) (Elicitation, *Denied) {
	if d := q.Answerable(who, received); d != nil {
		return q, d
	}
	q.State, q.Name, q.Values, q.ClosedAt = ElicitationAccepted, who.Name, values, now
	return q, nil
}

// Decline records that the person refuses to answer.
func (q Elicitation) Decline(who Identity, received, now time.Time) (Elicitation, *Denied) {
	if d := q.Answerable(who, received); d != nil {
		return q, d
	}
	q.State, q.Name, q.ClosedAt = ElicitationDeclined, who.Name, now
	return q, nil
}

// Cancel ends an open elicitation whose run has ended or was interrupted.
func (q Elicitation) Cancel(why string, now time.Time) Elicitation {
	if q.State == ElicitationOpen {
		q.State, q.Why, q.ClosedAt = ElicitationCancelled, why, now
	}
	return q
}

// Expire ends an elicitation that nobody answered by its deadline. If the elicitation has already ended, or its
// deadline has not passed, Expire returns false.
func (q Elicitation) Expire(now time.Time) (Elicitation, bool) {
	if q.State != ElicitationOpen || now.Before(q.ExpiresAt) {
		return q, false
	}
	q.State, q.ClosedAt = ElicitationExpired, now
	return q, true
}

// Answerable returns why a person can't answer, or nil. Only the person who was asked can answer, and only until the
// deadline. received is the time at which Slack delivered the answer.
func (q Elicitation) Answerable(who Identity, received time.Time) *Denied {
	if code := who.trouble(); code != "" {
		return &Denied{Code: code}
	}
	switch {
	case who.ID != q.Asked:
		return &Denied{Code: DeniedNotAsked}
	case q.State == ElicitationExpired, q.State == ElicitationOpen && received.After(q.ExpiresAt):
		return &Denied{Code: DeniedLateAnswer, At: q.ExpiresAt}
	case q.State != ElicitationOpen:
		return &Denied{Code: DeniedAnswered, At: q.ClosedAt}
	}
	return nil
}
