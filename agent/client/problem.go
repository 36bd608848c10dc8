package client

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Problem is the error that the gateway returns for an HTTP request (RFC 9457).
type Problem struct {
	Type          string        `json:"type"`
	Title         string        `json:"title"`
	Status        int           `json:"status"`
	Detail        string        `json:"detail"`
	ID            string        `json:"id"`             // id of the approval request that the problem is about
	RequestStatus Status        `json:"request_status"` // status of this approval request
	RetryAfter    time.Duration `json:"-"`
}

// Names of problems.
const (
	InvalidRequest   = "invalid_request"
	NoKey            = "no_key"
	Unauthorized     = "unauthorized"
	ToolNotAllowed   = "tool_not_allowed"
	ToolBlocked      = "tool_blocked"
	Refused          = "refused"
	NotFound         = "not_found"
	KeyInFlight      = "key_in_flight"
	KeyReused        = "key_reused"
	InvalidArguments = "invalid_arguments"
	TooLarge         = "too_large"
	NotJSON          = "not_json"
	TooManyPending   = "too_many_pending"
	TooManyRequests  = "too_many_requests"
	TooManyWaiting   = "too_many_waiting"
	BudgetUsedUp     = "budget_used_up"
	AlreadyClaimed   = "already_claimed"
	NotApproved      = "not_approved"
	OtherArguments   = "other_arguments"
	WrongMode        = "wrong_mode"
	NotClaimed       = "not_claimed"
	OutcomeKnown     = "outcome_known"
	AlreadyOver      = "already_over"
	NoQuestion       = "no_question"
	Paused           = "paused"
	Held             = "held"
	Unavailable      = "unavailable"
)

const problemPrefix = "urn:countersign:problem:"

// Name returns the problem's name, such as [KeyReused]. If the problem does not come from the gateway, Name returns "".
func (p *Problem) Name() string {
	name, ok := strings.CutPrefix(p.Type, problemPrefix)
	if !ok {
		return ""
	}
	return name
}

func (p *Problem) Error() string {
	text := p.Title
	if p.Detail != "" {
		text = p.Detail
	}
	if p.Name() == "" {
		return fmt.Sprintf("the gateway, or something before it, answered %d %s", p.Status, text)
	}
	return fmt.Sprintf("the gateway refused (%s): %s", p.Name(), text)
}

// Is reports whether an error is a problem with this name.
func Is(err error, name string) bool {
	var p *Problem
	return errors.As(err, &p) && p.Name() == name
}

// AnswerError is the error for an answer that can't come from a gateway.
type AnswerError struct{ text string }

func (e *AnswerError) Error() string { return e.text }

// Refusal is the error for a call that must not be run, because the status of its request is not [Approved].
type Refusal struct{ Request *Request }

func (r *Refusal) Error() string {
	text := "the call was not approved: " + string(r.Request.Status)
	if r.Request.Decision != nil && r.Request.Decision.Reason != "" {
		return text + ": " + r.Request.Decision.Reason
	}
	if r.Request.Reason != "" {
		return text + ": " + r.Request.Reason
	}
	return text
}

// PendingError is the error for a request that was not settled when the context ended; see [Client.Wait]. A new
// request with the same key continues the wait.
type PendingError struct {
	Request *Request
	Err     error // why the wait ended
}

func (e *PendingError) Error() string {
	return "nobody has decided the request " + e.Request.ID + " yet"
}

func (e *PendingError) Unwrap() error { return e.Err }

// Errors of claims.
var (
	ErrClaimLost      = errors.New("the response to the claim was lost, so the tool must not be run")
	ErrOtherArguments = errors.New("the arguments do not match the hash that the gateway approved")
)
