package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// State is a request as its caller sees it.
type State = state

// Settled reports whether nothing happens any more unless the caller, or people on their own account, do something.
func (s state) Settled() bool { return s.settled() }

// Over reports whether the request is in its last state.
func (s state) Over() bool { return s.over() }

// Question is a question of an approver.
type Question = question

// The statuses of a request that other doors distinguish.
const (
	StatusApproved = string(approvers.Approved)
	StatusRunning  = view.CallerRunning
)

// The dispositions that other doors need.
const (
	Executed  = executed
	Denied    = denied
	Uncertain = uncertain
)

// Handle serves a further address for clients. The error of serve is answered as a problem.
func (g *Gateway) Handle(pattern, operation string, serve func(http.ResponseWriter, *http.Request, approvers.Client) error) {
	g.mux.HandleFunc(pattern, g.client(operation, serve))
}

// Request reads a request of a client: as the client sees it, and the records behind that.
func (g *Gateway) Request(ctx context.Context, client approvers.Client, id string) (State, view.CallerRequest, error) {
	c, err := g.Views.Caller(ctx, client.Name, id)
	if errors.Is(err, store.ErrDamaged) && g.Callers.Mend(ctx, err) {
		c, err = g.Views.Caller(ctx, client.Name, id)
	}
	if errors.Is(err, store.ErrNotFound) || err == nil && !client.Owns(c.Conversation.Caller.Caller) {
		return State{}, c, &workflow.CallerProblem{Code: workflow.CallerNotFound}
	}
	if err != nil {
		return State{}, c, err
	}
	s, err := g.stateOf(c)
	return s, c, err
}

// Wait counts a connection of a client that waits, until end is called. It returns an error if there are too many.
func (g *Gateway) Wait(client string) (end func(), err error) {
	if err := g.wait.begin(client); err != nil {
		return nil, err
	}
	return func() { g.wait.end(client) }, nil
}

// ReadBody reads a request's body as JSON, with the limits that hold for all callers.
func ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) { return readBody(w, r, false) }

// Extend gives the next part of an answer as much time as an answer without a wait.
func Extend(w http.ResponseWriter) { extend(w) }

// Explain returns what a caller may know about an error: a sentence, and when another try is worth it (zero: unknown).
// known is false for an error whose text is not meant for callers.
func Explain(err error) (text string, again time.Duration, known bool) {
	var p problem
	if !errors.As(err, &p) {
		p = problemOf(err)
	}
	text = p.title
	if p.detail != "" {
		text += " " + upperFirst(p.detail) + "."
	}
	return text, p.again, p.name != "unavailable"
}

// upperFirst returns an ASCII sentence with a capital letter at its beginning.
func upperFirst(s string) string {
	if s != "" && s[0] >= 'a' && s[0] <= 'z' {
		return string(s[0]-'a'+'A') + s[1:]
	}
	return s
}
