package approvers

import (
	"errors"
	"time"
)

// TurnState is the state of a turn. See docs/states.md.
type TurnState string

// The states of a turn.
const (
	TurnQueued   TurnState = "queued"   // waits for its first model call
	TurnThinking TurnState = "thinking" // a model call is due or running
	TurnWaiting  TurnState = "waiting"  // at least one call of the step has no result yet
	TurnAnswered TurnState = "answered"
	TurnStopped  TurnState = "stopped" // the turn failed, was stopped, or used up its steps
)

// Turn is the processing of a person's message up to the agent's answer.
type Turn struct {
	ID           string     `json:"id"`
	Version      uint64     `json:"version"`
	Conversation string     `json:"conversation"`
	Agent        string     `json:"agent"`
	State        TurnState  `json:"state"`
	Step         int        `json:"step"`       // how many model calls have returned a step or an answer so far
	Failures     int        `json:"failures"`   // how many model calls have failed since the last step
	Requesters   []PersonID `json:"requesters"` // the people who wrote since the agent's last answer
	CreatedAt    time.Time  `json:"created_at"`
	EndedAt      time.Time  `json:"ended_at,omitzero"`
	Problem      string     `json:"problem,omitempty"` // for a stopped turn: the sentence that people see
	CanRetry     bool       `json:"can_retry,omitempty"`
	Feedback     []Feedback `json:"ratings,omitempty"` // the latest feedback of each person
	Stopping     string     `json:"halted,omitempty"`  // the sentence for people, if somebody stopped the turn; the turn then ends when its calls have ended
}

// Feedback is one person's rating of an answer.
type Feedback struct {
	By   PersonID  `json:"by"`
	Good bool      `json:"good"`
	At   time.Time `json:"at"`
}

// maxFeedback limits how many people's feedback a turn keeps.
const maxFeedback = 200

// AddFeedback records a person's rating of the answer. The result named before is the person's earlier rating, or nil.
// If the turn already has the feedback of maxFeedback other people, ok is false.
func (t Turn) AddFeedback(who PersonID, good bool, now time.Time) (after Turn, before *bool, ok bool) {
	t.Feedback = append([]Feedback(nil), t.Feedback...)
	for i, r := range t.Feedback {
		if r.By == who {
			t.Feedback[i] = Feedback{By: who, Good: good, At: now}
			return t, &r.Good, true
		}
	}
	if len(t.Feedback) == maxFeedback {
		return t, nil, false
	}
	t.Feedback = append(t.Feedback, Feedback{By: who, Good: good, At: now})
	return t, nil, true
}

// ErrTurnState means that the turn's state does not allow the transition.
var ErrTurnState = errors.New("the turn is not in a state that allows this")

// Think starts the next model call of a turn that is queued or has all its results.
func (t Turn) Think() (Turn, error) {
	if t.State != TurnQueued && t.State != TurnWaiting {
		return t, ErrTurnState
	}
	t.State = TurnThinking
	return t, nil
}

// Wait moves a thinking turn to the state waiting. In this state, the turn waits for the results of its step's calls.
func (t Turn) Wait() (Turn, error) {
	if t.State != TurnThinking {
		return t, ErrTurnState
	}
	t.State, t.Step, t.Failures = TurnWaiting, t.Step+1, 0
	return t, nil
}

// Answer ends a thinking turn with the agent's answer.
func (t Turn) Answer(now time.Time) (Turn, error) {
	if t.State != TurnThinking {
		return t, ErrTurnState
	}
	t.State, t.Step, t.EndedAt = TurnAnswered, t.Step+1, now
	return t, nil
}

// Stop ends a turn with a problem. If canRetry is true, a person may retry the turn.
func (t Turn) Stop(problem string, canRetry bool, now time.Time) (Turn, error) {
	if t.State == TurnAnswered || t.State == TurnStopped {
		return t, ErrTurnState
	}
	t.State, t.Problem, t.CanRetry, t.EndedAt = TurnStopped, problem, canRetry, now
	return t, nil
}

// BeginStop marks a waiting turn. The turn stops when every call of its step has its result. problem is the sentence
// for people.
func (t Turn) BeginStop(problem string) (Turn, error) {
	if t.State != TurnWaiting {
		return t, ErrTurnState
	}
	t.Stopping = problem
	return t, nil
}

// Again resumes a stopped turn with the model call that comes after its last step.
func (t Turn) Again() (Turn, error) {
	if t.State != TurnStopped || !t.CanRetry {
		return t, ErrTurnState
	}
	t.State, t.Problem, t.CanRetry, t.EndedAt, t.Failures, t.Stopping = TurnThinking, "", false, time.Time{}, 0, ""
	return t, nil
}

// Ended reports whether the turn is over.
func (t Turn) Ended() bool { return t.State == TurnAnswered || t.State == TurnStopped }

// Speak adds a requester to the turn.
func (t Turn) Speak(who PersonID) Turn {
	for _, p := range t.Requesters {
		if p == who {
			return t
		}
	}
	t.Requesters = append(append([]PersonID(nil), t.Requesters...), who)
	return t
}

// ModelQuestion is a question of the model to the requesters: to confirm something, or to choose. A question grants no
// right. An answer does not replace the approval of a risky call.
type ModelQuestion struct {
	Question  string    `json:"question"`
	Options   []string  `json:"options"` // at least two
	ExpiresAt time.Time `json:"expires_at"`
	Answer    string    `json:"answer,omitempty"` // one of the options, or the person's own text
	By        PersonID  `json:"by,omitempty"`
	Name      string    `json:"name,omitempty"`
	At        time.Time `json:"at,omitzero"`
}
