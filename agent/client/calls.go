package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// NewKey returns an idempotency key for a call that has no id of its own.
func NewKey() string { return rand.Text() }

// Hash returns the SHA-256 of arguments, in the form that the gateway uses.
func Hash(args []byte) string {
	sum := sha256.Sum256(args)
	return hex.EncodeToString(sum[:])
}

// Ask creates a request at the gateway. If a request with the same key and the same call exists, Ask returns that
// request. The parameter mode is "decide" or "execute". Ask does not wait for people.
func (c *Client) Ask(ctx context.Context, key, mode string, call Call) (*Request, error) {
	body, err := call.body(mode)
	if err != nil {
		return nil, err
	}
	var r Request
	err = c.do(ctx, exchange{method: http.MethodPost, path: "/v1/requests", key: key, body: body, repeatable: true}, &r)
	if err != nil {
		return nil, err
	}
	return r.checked()
}

// body writes the body of the request. The arguments are copied into the body byte for byte, because an encoder would
// change the bytes.
func (call Call) body(mode string) ([]byte, error) {
	args := bytes.TrimSpace(call.Args)
	if len(args) == 0 || args[0] != '{' || !json.Valid(args) {
		return nil, errors.New("the arguments are not a JSON object")
	}
	rest, err := json.Marshal(struct {
		Mode       string   `json:"mode"`
		Tool       string   `json:"tool"`
		Accepts    []string `json:"accepts,omitempty"`
		OnBehalfOf string   `json:"on_behalf_of,omitempty"`
		Summary    string   `json:"summary,omitempty"`
		State      string   `json:"state,omitempty"`
	}{mode, call.Tool, call.Accepts, call.OnBehalfOf, call.Summary, call.State})
	if err != nil {
		return nil, err
	}
	return append(append(append(rest[:len(rest)-1:len(rest)-1], `,"args":`...), args...), '}'), nil
}

// checked returns an error if a required field of the gateway's answer is missing.
func (r *Request) checked() (*Request, error) {
	if r.ID == "" || r.Status == "" || r.ArgsSHA256 == "" {
		return nil, &AnswerError{"the gateway's response is not a request; is this the URL of a gateway?"}
	}
	return r, nil
}

// Get reads a request. While the request waits for people, Get waits up to the given time, and at most 55 seconds.
func (c *Client) Get(ctx context.Context, id string, wait time.Duration) (*Request, error) {
	return c.get(ctx, &Request{ID: id}, wait)
}

// get reads a request. If the gateway has sent the request before, get waits up to the given time until the request
// changes, for example because an approver asks a question.
func (c *Client) get(ctx context.Context, known *Request, wait time.Duration) (*Request, error) {
	seconds := int(min(max(wait, 0), longestWait) / time.Second)
	path := "/v1/requests/" + url.PathEscape(known.ID)
	if seconds > 0 {
		path += "?wait=" + strconv.Itoa(seconds)
	}
	var r Request
	err := c.do(ctx, exchange{method: http.MethodGet, path: path, etag: known.etag, within: time.Duration(seconds)*time.Second + graceOfWait, repeatable: true}, &r)
	if err != nil {
		return nil, err
	}
	if known.etag != "" && r.ID == "" { // the request has not changed
		return known, nil
	}
	return r.checked()
}

// Wait waits until a request is settled. A settled request does not wait for people, and its call is not running at the
// gateway. If until is not nil, Wait also returns when until returns true for the request. If ctx ends first, the error
// is a [PendingError].
func (c *Client) Wait(ctx context.Context, r *Request, until func(*Request) bool) (*Request, error) {
	for !r.settled() && (until == nil || !until(r)) {
		wait := longestWait
		if deadline, ok := ctx.Deadline(); ok {
			wait = min(wait, time.Until(deadline)-time.Second) // leave a second for the gateway's answer
		}
		if wait < time.Second {
			return nil, &PendingError{r, context.DeadlineExceeded}
		}
		next, err := c.get(ctx, r, wait)
		if err != nil {
			if ctx.Err() != nil {
				return nil, &PendingError{r, ctx.Err()}
			}
			return nil, err
		}
		r = next
	}
	return r, nil
}

// settled reports whether Wait ends: the request does not wait for people, and its call is not running at the
// gateway.
func (r *Request) settled() bool {
	switch r.Status {
	case Pending:
		return false
	case Approved, Running:
		return r.Mode != "execute"
	}
	return true
}

// Approval is the permission to run a call once, immediately, and with the arguments in Args.
type Approval struct {
	*Request
	Args json.RawMessage
}

// Decide requests the approval of a call that the caller runs itself. Decide waits for the decision and claims the
// approval. A second Decide with the same key continues with the same request. If the error is nil, the caller may
// run the tool with the arguments of the approval. If there is an error, the caller must not run the tool.
func (c *Client) Decide(ctx context.Context, key string, call Call) (*Approval, error) {
	r, err := c.Ask(ctx, key, "decide", call)
	if err != nil {
		return nil, err
	}
	if r, err = c.Wait(ctx, r, nil); err != nil {
		return nil, err
	}
	args, err := r.Approved(call.Args)
	if err != nil {
		return nil, err
	}
	if r, err = c.Claim(ctx, r); err != nil {
		return nil, err
	}
	return &Approval{r, args}, nil
}

// Approved returns the arguments that may run after a claim: the original arguments, or the arguments of an
// approver's edit. If the call was not approved, the error is a [Refusal]. Any other error says why the gateway's
// answer can't be trusted.
func (r *Request) Approved(asked json.RawMessage) (json.RawMessage, error) {
	if r.Status != Approved {
		return nil, &Refusal{r}
	}
	args := json.RawMessage(bytes.TrimSpace(asked))
	if r.Decision != nil && r.Decision.Type == Edit {
		args = r.Decision.Args
	}
	if Hash(args) != r.ArgsSHA256 {
		return nil, ErrOtherArguments
	}
	return args, nil
}

// Execute requests the approval of a call that Countersign runs, and waits for the result. If the call was rejected
// or failed, the error is nil. The status of the returned request has the outcome.
func (c *Client) Execute(ctx context.Context, key string, call Call) (*Request, error) {
	r, err := c.Ask(ctx, key, "execute", call)
	if err != nil {
		return nil, err
	}
	return c.Wait(ctx, r, nil)
}

// Claim claims an approval, so that the caller may run the tool. An approval can be claimed only once.
func (c *Client) Claim(ctx context.Context, r *Request) (*Request, error) {
	var claimed Request
	err := c.do(ctx, exchange{method: http.MethodPost, path: r.path("claim"), body: encode(map[string]string{"args_sha256": r.ArgsSHA256})}, &claimed)
	var p *Problem
	switch {
	case err == nil && claimed.ID == r.ID && claimed.ArgsSHA256 == r.ArgsSHA256:
		return &claimed, nil
	case errors.As(err, &p) && p.Name() != "" && p.Name() != Unavailable: // with Unavailable, the claim may be stored
		return nil, err
	case errors.As(err, new(notSentError)):
		return nil, err
	case err == nil:
		return nil, fmt.Errorf("%w: it is about another request", ErrClaimLost)
	}
	return nil, fmt.Errorf("%w: %w", ErrClaimLost, err)
}

func (r *Request) path(action string) string {
	return "/v1/requests/" + url.PathEscape(r.ID) + "/" + action
}

// These are the maximum lengths of texts, in characters. One is for the text of a report, and one for a reason or an
// answer.
const (
	longestReport = 65536
	longestReason = 3000
)

// Report records the outcome of a run by the caller: [Succeeded], [Failed] or [Unknown]. The parameters id and run are
// the fields ID and Run of the claimed request. Gateways of older versions have no ids of runs, so run is empty. If a
// replica of an older version refuses run, Report repeats the report without it. The parameter text is the result or
// the reason, for people. A text that is too long is shortened.
func (c *Client) Report(ctx context.Context, id, run string, status Status, text string) (*Request, error) {
	body := map[string]string{"status": string(status)}
	if run != "" {
		body["run"] = run
	}
	if text != "" {
		body["text"] = cut(text, longestReport)
	}
	r, err := c.act(ctx, id, "outcome", body, true)
	if run != "" && Is(err, InvalidRequest) {
		delete(body, "run")
		return c.act(ctx, id, "outcome", body, true)
	}
	return r, err
}

// Withdraw withdraws a request. After Withdraw, the caller must not run the tool.
func (c *Client) Withdraw(ctx context.Context, id, reason string) (*Request, error) {
	body := map[string]string{}
	if reason != "" {
		body["reason"] = cut(reason, longestReason)
	}
	return c.act(ctx, id, "withdraw", body, true)
}

// Answer answers an approver's question.
func (c *Client) Answer(ctx context.Context, id string, question int, text string) (*Request, error) {
	return c.act(ctx, id, "answer", map[string]any{"question": question, "text": cut(text, longestReason)}, false)
}

func (c *Client) act(ctx context.Context, id, action string, body any, repeatable bool) (*Request, error) {
	var r Request
	path := (&Request{ID: id}).path(action)
	if err := c.do(ctx, exchange{method: http.MethodPost, path: path, body: encode(body), repeatable: repeatable}, &r); err != nil {
		return nil, err
	}
	return r.checked()
}

// encode encodes a body of strings and numbers. Encoding such a body can't fail.
func encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return body
}

// cut limits a text to a number of characters.
func cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}
