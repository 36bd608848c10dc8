package approvers

import (
	"errors"
	"time"
)

// TurnState is where a turn stands. See docs/states.md.
type TurnState string

// The states of a turn.
const (
	TurnQueued   TurnState = "queued"   // waits for its first model call
	TurnThinking TurnState = "thinking" // a model call is due or under way
	TurnWaiting  TurnState = "waiting"  // at least one call of the step has no result yet
	TurnAnswered TurnState = "answered"
	TurnStopped  TurnState = "stopped" // it failed, was stopped, or ran out of steps
)

// Turn is the way from a person's message to the agent's answer.
type Turn struct {
	ID           string     `json:"id"`
	Version      uint64     `json:"version"`
	Conversation string     `json:"conversation"`
	Agent        string     `json:"agent"`
	State        TurnState  `json:"state"`
	Step         int        `json:"step"`       // model calls that gave a step or an answer so far
	Failures     int        `json:"failures"`   // model calls that failed since the last step
	Requesters   []PersonID `json:"requesters"` // all who spoke since the last answer
	CreatedAt    time.Time  `json:"created_at"`
	EndedAt      time.Time  `json:"ended_at,omitzero"`
	Problem      string     `json:"problem,omitempty"` // the sentence shown to people when it stopped
	CanRetry     bool       `json:"can_retry,omitempty"`
	Ratings      []Rating   `json:"ratings,omitempty"` // what people thought of its answer, each person's last opinion
	Halted       string     `json:"halted,omitempty"`  // the sentence with which it stops once its calls have ended, because somebody stopped it
}

// Rating is what one person thought of an answer.
type Rating struct {
	By   PersonID  `json:"by"`
	Good bool      `json:"good"`
	At   time.Time `json:"at"`
}

// maxRatings is of how many people a turn keeps what they thought.
const maxRatings = 200

// Rate notes what a person thought of the turn's answer, and returns what they thought before; nil: nothing. ok is false where no more fit.
func (t Turn) Rate(who PersonID, good bool, now time.Time) (after Turn, before *bool, ok bool) {
	t.Ratings = append([]Rating(nil), t.Ratings...)
	for i, r := range t.Ratings {
		if r.By == who {
			t.Ratings[i] = Rating{By: who, Good: good, At: now}
			return t, &r.Good, true
		}
	}
	if len(t.Ratings) == maxRatings {
		return t, nil, false
	}
	t.Ratings = append(t.Ratings, Rating{By: who, Good: good, At: now})
	return t, nil, true
}

// ErrTurnState says that the turn is not in a state that allows the move.
var ErrTurnState = errors.New("the turn is not in a state that allows this")

// Think moves a turn that is queued or has all its results to its next model call.
func (t Turn) Think() (Turn, error) {
	if t.State != TurnQueued && t.State != TurnWaiting {
		return t, ErrTurnState
	}
	t.State = TurnThinking
	return t, nil
}

// Wait moves a thinking turn to waiting for the results of its step's calls.
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

// Stop ends a turn that can't go on. A thinking turn may be retried by a person where canRetry says so.
func (t Turn) Stop(problem string, canRetry bool, now time.Time) (Turn, error) {
	if t.State == TurnAnswered || t.State == TurnStopped {
		return t, ErrTurnState
	}
	t.State, t.Problem, t.CanRetry, t.EndedAt = TurnStopped, problem, canRetry, now
	return t, nil
}

// Halt has a waiting turn stop, with a sentence for people, once every call of its step has its result.
func (t Turn) Halt(problem string) (Turn, error) {
	if t.State != TurnWaiting {
		return t, ErrTurnState
	}
	t.Halted = problem
	return t, nil
}

// Again takes up a stopped turn where it stood.
func (t Turn) Again() (Turn, error) {
	if t.State != TurnStopped || !t.CanRetry {
		return t, ErrTurnState
	}
	t.State, t.Problem, t.CanRetry, t.EndedAt, t.Failures, t.Halted = TurnThinking, "", false, time.Time{}, 0, ""
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
