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

// State is the caller's view of a request.
type State = state

// Settled reports whether the caller need not wait any longer: see settled.
func (s state) Settled() bool { return s.settled() }

// Over reports whether the request is in its last state.
func (s state) Over() bool { return s.over() }

// Question is an approver's question to the caller.
type Question = question

// The statuses that package mcpserver uses.
const (
	StatusApproved = string(approvers.Approved)
	StatusRunning  = view.CallerRunning
)

// The dispositions that package mcpserver uses.
const (
	Executed  = executed
	Denied    = denied
	Failed    = failed
	Uncertain = uncertain
)

// Handle adds a handler for a path. The gateway authenticates the client before it calls serve. If serve returns an
// error, the client receives the error as a problem.
func (g *Gateway) Handle(pattern, operation string, serve func(http.ResponseWriter, *http.Request, *approvers.Client) error) {
	g.mux.HandleFunc(pattern, g.client(operation, serve))
}

// HandleAll is like Handle, but calls serve for every request. If the request has no valid token, or the client sends too
// many requests, serve gets the reason in the parameter refused.
func (g *Gateway) HandleAll(pattern, operation string, serve func(w http.ResponseWriter, r *http.Request, client approvers.Client, refused error) error) {
	g.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c, err := g.admit(r)
		g.serve(w, r, c.Name, operation, func(w http.ResponseWriter, r *http.Request) error { return serve(w, r, *c, err) })
	})
}

// Request reads a client's request. Request returns the client's view of the request and the stored records.
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

// Wait adds one to the number of a client's waiting connections, until end is called. Wait returns an error if the
// client has too many waiting connections.
func (g *Gateway) Wait(client string) (end func(), err error) {
	if err := g.wait.begin(client); err != nil {
		return nil, err
	}
	return func() { g.wait.end(client) }, nil
}

// ReadBody reads a request's body, within the gateway's limits. The Content-Type must be JSON.
func ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return readBody(w, r, false, maxBody)
}

// LongBody reports whether a request's body may be longer than the gateway's limit.
func LongBody(r *http.Request) bool { return r.ContentLength < 0 || r.ContentLength > maxBody }

// ReadLongBody is like ReadBody, but with another limit for the size. The caller must limit how many long bodies are
// read at the same time.
func ReadLongBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	return readBody(w, r, false, most)
}

// Pace counts a further request of a client, and waits if the client sends its requests too fast.
func (g *Gateway) Pace(ctx context.Context, client string) error { return g.pace.pass(ctx, client) }

// Malformed returns the error for a request that is not valid.
func Malformed(format string, args ...any) error { return malformed(format, args...) }

// NotFound is the error for a path at which there is nothing.
var NotFound error = notFound

// Extend restarts the write deadline. Sending a part of an answer then has the same time limit as sending a whole
// answer.
func Extend(w http.ResponseWriter) { extend(w) }

// Explain returns a sentence about an error for the caller. The result "again" is the delay before the caller should
// try again, or zero if the delay is unknown. If the error is internal, callers must not read its text, and the result
// "known" is false.
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

// upperFirst changes the first letter of an ASCII sentence to upper case.
func upperFirst(s string) string {
	if s != "" && s[0] >= 'a' && s[0] <= 'z' {
		return string(s[0]-'a'+'A') + s[1:]
	}
	return s
}
