package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow"
)

// Limits of the texts in a request, in characters.
const (
	maxTool    = 200
	maxKey     = 255
	maxText    = 3000  // limit for a summary, a reason or an answer
	maxState   = 4096  // limit for the client's state, which the gateway returns unchanged
	maxOutcome = 65536 // limit for the text of an outcome
	maxRun     = 100   // limit for the id of a run
	maxWait    = 55    // seconds
)

// slackUser matches the id of a Slack user.
var slackUser = regexp.MustCompile(`^[UW][A-Z0-9]{1,30}$`)

// create stores a new request. If the client requests a wait, create waits until the request is settled or the time is
// over.
func (g *Gateway) create(w http.ResponseWriter, r *http.Request, client *approvers.Client) error {
	key, err := keyOf(r)
	if err != nil {
		return err
	}
	end, err := g.flight.begin(r.Context(), client.Name+"\x00"+client.ActsFor+"\x00"+key)
	if err != nil {
		return err
	}
	id, again, wait, err := g.store(w, r, *client, key)
	end()
	if err != nil {
		return err
	}
	state, err := g.settled(r.Context(), *client, id, wait)
	if err != nil {
		return err
	}
	if again {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	if state.Status == string(approvers.Refused) {
		return problem{
			name: "refused", status: http.StatusForbidden, title: "Nobody could approve this call.", detail: state.Reason, id: id, state: state.Status,
		}
	}
	status := http.StatusOK
	if !state.settled() {
		status = http.StatusAccepted
	}
	return state.write(w, status)
}

// keyOf returns the idempotency key of a request.
func keyOf(r *http.Request) (string, error) {
	given := r.Header.Values("Idempotency-Key")
	switch {
	case len(given) == 0 || given[0] == "":
		return "", problem{name: "no_key", status: http.StatusBadRequest, title: "The header Idempotency-Key is missing.", detail: "send the id of the tool call"}
	case len(given) > 1:
		return "", malformed("there are several headers Idempotency-Key")
	}
	key := given[0]
	if len(key) > maxKey || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) {
		return "", malformed("the Idempotency-Key must have 1 to %d printable ASCII characters", maxKey)
	}
	return key, nil
}

// store parses the body of a new request and stores the request.
func (g *Gateway) store(w http.ResponseWriter, r *http.Request, client approvers.Client, key string) (id string, again bool, wait int, err error) {
	body, err := readBody(w, r, false, maxBody)
	if err != nil {
		return "", false, 0, err
	}
	of, err := members(body, "mode", "tool", "args", "accepts", "on_behalf_of", "summary", "state", "wait", "callback")
	if err != nil {
		return "", false, 0, err
	}
	if _, given := of["callback"]; given {
		return "", false, 0, malformed("a request can't say where to send anything: the webhook of a client is in the policy")
	}
	f := fields{of: of}
	sum := sha256.Sum256(body)
	call := workflow.CallerCall{
		Client: client, Key: key, Body: hex.EncodeToString(sum[:]), Mode: approvers.CallerMode(f.choice("mode", string(approvers.DecideMode), string(approvers.ExecuteMode))),
		Tool: f.text("tool", 1, maxTool), Args: json.RawMessage(of["args"]), For: f.text("on_behalf_of", 0, 31), Summary: f.text("summary", 0, maxText),
		ClientState: f.text("state", 0, maxState),
	}
	call.Edits = f.accepts(call.Mode)
	wait = f.whole("wait", 0, maxWait)
	if _, given := of["on_behalf_of"]; given {
		if err := CheckOnBehalfOf(client, call.For); err != nil {
			f.wrong("on_behalf_of %s", err)
		}
	}
	if args, ok := of["args"]; !ok || args.Kind() != '{' {
		f.wrong("args must be an object")
	}
	if f.err != nil {
		return "", false, 0, f.err
	}
	id, again, err = g.Callers.Propose(r.Context(), call)
	return id, again, wait, err
}

// CheckOnBehalfOf checks the person for whom a client says that it acts.
func CheckOnBehalfOf(client approvers.Client, user string) error {
	switch {
	case !slackUser.MatchString(user):
		return errors.New("must be the id of a Slack user, such as U0123ABCD")
	case client.ActsFor != "" && user != client.ActsFor:
		return errors.New("is not the person whom the access token names")
	}
	return nil
}

// accepts reports whether the client can use arguments that approvers have changed.
func (f *fields) accepts(mode approvers.CallerMode) bool {
	raw, ok := f.of["accepts"]
	if !ok {
		return mode == approvers.ExecuteMode
	}
	var words []string
	if raw.Kind() != '[' || json.Unmarshal(raw, &words) != nil || len(words) == 0 {
		f.wrong("accepts must be a list of approve, edit and reject")
		return false
	}
	for i, word := range words {
		if !slices.Contains([]string{"approve", "edit", "reject"}, word) || slices.Contains(words[:i], word) {
			f.wrong("accepts must be a list of approve, edit and reject, each at most once")
		}
	}
	return slices.Contains(words, "edit")
}

func (g *Gateway) state(ctx context.Context, client approvers.Client, id string) (state, error) {
	s, _, err := g.Request(ctx, client, id)
	return s, err
}

// claim claims an approval, so that the caller may run its tool once.
func (g *Gateway) claim(w http.ResponseWriter, r *http.Request, client *approvers.Client) error {
	return g.act(w, r, *client, false, []string{"args_sha256"}, func(f *fields, id string) error {
		hash := f.text("args_sha256", 64, 64)
		if f.err != nil {
			return f.err
		}
		return g.Callers.Claim(r.Context(), *client, id, strings.ToLower(hash))
	})
}

// outcome records the outcome of a run by the caller.
func (g *Gateway) outcome(w http.ResponseWriter, r *http.Request, client *approvers.Client) error {
	return g.act(w, r, *client, false, []string{"status", "text", "run"}, func(f *fields, id string) error {
		if _, ok := f.of["status"]; !ok {
			f.wrong("status is missing")
		}
		ended := f.choice("status", string(approvers.ExecutionSucceeded), string(approvers.ExecutionFailed), string(approvers.ExecutionUnknown))
		text, run := f.text("text", 0, maxOutcome), f.text("run", 0, maxRun)
		if f.err != nil {
			return f.err
		}
		return g.Callers.Report(r.Context(), *client, id, run, approvers.ExecutionState(ended), text)
	})
}

// withdraw withdraws a request for its caller.
func (g *Gateway) withdraw(w http.ResponseWriter, r *http.Request, client *approvers.Client) error {
	return g.act(w, r, *client, true, []string{"reason"}, func(f *fields, id string) error {
		reason := f.text("reason", 0, maxText)
		if f.err != nil {
			return f.err
		}
		return g.Callers.Withdraw(r.Context(), *client, id, reason)
	})
}

// answer records the caller's answer to an approver's question.
func (g *Gateway) answer(w http.ResponseWriter, r *http.Request, client *approvers.Client) error {
	return g.act(w, r, *client, false, []string{"question", "text"}, func(f *fields, id string) error {
		if _, ok := f.of["question"]; !ok {
			f.wrong("question is missing")
		}
		question, text := f.whole("question", 0, math.MaxInt32), f.text("text", 1, maxText)
		if f.err != nil {
			return f.err
		}
		return g.Callers.Answer(r.Context(), *client, id, question, text)
	})
}

// act reads a body, changes a request, and answers with the new state of the request.
func (g *Gateway) act(w http.ResponseWriter, r *http.Request, client approvers.Client, optional bool, known []string, do func(*fields, string) error) error {
	body, err := readBody(w, r, optional, maxBody)
	if err != nil {
		return err
	}
	of, err := members(body, known...)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	if err := do(&fields{of: of}, id); err != nil {
		return g.about(r.Context(), client, err)
	}
	state, err := g.state(r.Context(), client, id)
	if err != nil {
		if r.Context().Err() == nil {
			g.Log.Error("a request was changed, but could not be read for the response", "client", client.Name, "request", id, "error", err)
		}
		p := problemOf(err)
		p.detail = "the request was changed, but its new state can't be read"
		return p
	}
	return state.write(w, http.StatusOK)
}

// about adds the request's status to a problem about a request.
func (g *Gateway) about(ctx context.Context, client approvers.Client, err error) error {
	var known *workflow.CallerProblem
	if !errors.As(err, &known) || known.Request == "" {
		return err
	}
	p := problemOf(err)
	if now, err := g.state(ctx, client, known.Request); err == nil {
		p.state = now.Status
	}
	return p
}
