// Package hookserver answers the hooks of coding agents that send their events over HTTP, so that the agents' machines
// need no program of Countersign.
//
// The package reads the request, and limits its body. Package hook handles the event in the same way as in the hook's
// command. Package hook sends its requests to the gateway of this process, with the token of the HTTP request.
// Package hookserver keeps no state except the calls for which connections wait.
//
// An agent takes every status except 2xx as a failure of the hook, and most settings let a call run after a failure.
// For this reason, every answer to an event has the status 200, and errors are denials in the agent's format.
package hookserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"countersign/agent/client"
	"countersign/agent/gateway"
	"countersign/agent/hook"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
)

// Callers finds the requests of callers. *workflow.Callers implements this interface.
type Callers interface {
	Last(ctx context.Context, p workflow.CallerCall) (id string, err error)
	Named(ctx context.Context, client approvers.Client, key string) (id, run string, err error)
	Name(ctx context.Context, client approvers.Client, key, request, run string) error
}

// Views lists the requests of a client. *view.Reader implements this interface.
type Views interface {
	CallerPending(ctx context.Context, client string) ([]string, error)
}

var (
	_ Callers = (*workflow.Callers)(nil)
	_ Views   = (*view.Reader)(nil)
)

// Config configures the server. All fields are required.
type Config struct {
	Gateway  *gateway.Gateway
	Callers  Callers
	Views    Views
	Stopping <-chan struct{} // closed when the process is about to end
	Log      *slog.Logger
}

// The events after a call contain the output of the tool. The output may be longer than the gateway's limit for bodies,
// but is not used. To save memory, the server reads only a few long bodies at the same time.
const (
	longestBody = 8 << 20
	longBodies  = 8
	ofOneClient = 2                // how many of the long bodies one client may send at a time; a slow client then can't delay the others
	slotWithin  = 10 * time.Second // how long a long body waits until it is read
)

// The bounds of reading the name of an event that is refused.
const (
	longestBeginning = 64 << 10
	nameWithin       = 5 * time.Second
)

// The bounds of the parameter timeout.
const (
	shortestTimeout = 2 * time.Second
	longestTimeout  = 24 * time.Hour
)

type server struct {
	Config
	held hook.Held
	long slots
}

// Attach adds the server to a gateway, at the path /v1/hooks/AGENT.
func Attach(c Config) {
	s := &server{Config: c, long: slots{of: map[string]int{}, freed: make(chan struct{})}}
	c.Gateway.HandleAll("POST /v1/hooks/{agent}", "hook", s.serve)
}

func (s *server) serve(w http.ResponseWriter, r *http.Request, caller approvers.Client, refused error) error {
	agent, ok := hook.Find(r.PathValue("agent"))
	if !ok || !agent.HTTP {
		return gateway.NotFound
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	body := &beginning{ReadCloser: r.Body}
	r.Body = body
	var out []byte
	switch {
	case refused != nil: // the server reads only the event's name from the body
		err = refused
	case err != nil:
		err = faultError{why: "The query of the hook's URL is not valid."}
	default:
		out, err = s.answer(w, r, agent.Name, query, caller)
	}
	if err != nil {
		why, quoted := explain(err)
		s.Log.Info("a hook event was denied", "client", caller.Name, "agent", agent.Name, "why", why)
		out = hook.Refuse(agent.Name, body.event(w, query), profile(query), errors.New(why+quoted))
	}
	gateway.Extend(w)
	if err := send(w, out); err != nil {
		s.Log.Info("the response to a hook could not be sent", "client", caller.Name, "agent", agent.Name)
	}
	return nil
}

func send(w http.ResponseWriter, answer []byte) error {
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write(answer)
	return err
}

// Deny returns a handler of the path /v1/hooks/AGENT that denies every event and tells the agent why. A bot that does
// not handle events uses this handler instead of [Attach].
func Deny(why error, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/hooks/{agent}", func(w http.ResponseWriter, r *http.Request) {
		agent, ok := hook.Find(r.PathValue("agent"))
		if !ok || !agent.HTTP {
			http.NotFound(w, r)
			return
		}
		log.Info("a hook event was denied", "agent", agent.Name, "why", why)
		body := &beginning{ReadCloser: r.Body}
		query := r.URL.Query()
		_ = send(w, hook.Refuse(agent.Name, body.event(w, query), profile(query), why)) // if sending fails, the agent has disconnected, and needs no answer
	})
	return mux
}

// answer returns the answer to an event of a client. An error means that the event could not be handled.
func (s *server) answer(w http.ResponseWriter, r *http.Request, agent string, query url.Values, caller approvers.Client) ([]byte, error) {
	d, err := parameters(query, caller)
	if err != nil {
		return nil, err
	}
	if d.Body, err = s.body(w, r, caller.Name); err != nil {
		return nil, err
	}
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	d.Agent, d.Client, d.Held = agent, caller.Name+" "+caller.ActsFor, &s.held
	d.Gate = client.Local(s.Gateway, strings.Trim(token, " "))
	d.Requests = requests{s, caller}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		select {
		case <-s.Stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	return hook.Serve(ctx, d), nil
}

// faultError is an error whose text is for the caller. The log has only the first part. A text from the request can
// contain a secret, so it belongs in the second part.
type faultError struct{ why, quoted string }

func (e faultError) Error() string { return e.why + e.quoted }

// explain returns a sentence about an error. The second part of the sentence quotes the request.
func explain(err error) (why, quoted string) {
	var fault faultError
	if errors.As(err, &fault) {
		return fault.why, fault.quoted
	}
	why, _, _ = gateway.Explain(err) // the errors of ReadBody, and of a token, do not quote the request
	return why, ""
}

// parameters reads the query of the URL.
func parameters(query url.Values, caller approvers.Client) (d hook.Delivery, err error) {
	d.Profile = hook.Control
	for name, values := range query {
		value := values[0]
		ok := len(values) == 1
		switch name {
		case "event":
			d.Event = value
		case "profile":
			d.Profile = hook.Profile(value)
			ok = ok && slices.Contains([]hook.Profile{hook.Control, hook.Comfort}, d.Profile)
		case "timeout":
			seconds, err := strconv.Atoi(value)
			ok = ok && err == nil && seconds >= int(shortestTimeout/time.Second) && seconds <= int(longestTimeout/time.Second)
			d.Timeout = time.Duration(seconds) * time.Second
		case "on_behalf_of":
			d.OnBehalfOf = value
			ok = ok && gateway.CheckOnBehalfOf(caller, value) == nil
		default:
			return d, faultError{"The hook's URL has a parameter that is not known", fmt.Sprintf(": %.50q.", name)}
		}
		if !ok {
			return d, faultError{why: "The parameter " + name + " in the hook's URL is not valid."}
		}
	}
	return d, nil
}

// profile returns the profile that the URL of a refused event names. If the parameter is missing or not valid, profile
// returns the default, which denies more.
func profile(query url.Values) hook.Profile {
	if slices.Equal(query["profile"], []string{string(hook.Comfort)}) {
		return hook.Comfort
	}
	return hook.Control
}

// body reads the event.
func (s *server) body(w http.ResponseWriter, r *http.Request, client string) ([]byte, error) {
	if !gateway.LongBody(r) {
		return gateway.ReadBody(w, r)
	}
	wait := time.NewTimer(slotWithin)
	defer wait.Stop()
	for {
		freed, ok := s.long.take(client)
		if ok {
			defer s.long.free(client)
			return gateway.ReadLongBody(w, r, longestBody)
		}
		select {
		case <-freed:
		case <-wait.C:
			return nil, faultError{why: "Too many long events arrive at the same time."}
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

// beginning is a body that keeps its first bytes. If an event is refused, these bytes name the event, so that the
// answer fits the event.
type beginning struct {
	io.ReadCloser
	read []byte // at most longestBeginning
}

func (b *beginning) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read = append(b.read, p[:min(n, longestBeginning-len(b.read))]...)
	return n, err
}

// event returns the name of the event in the URL. If the URL has no name, or has several names, event returns the name
// in the first bytes of the body. If the first bytes do not name the event, or do not arrive in time, event returns "".
// The deadline stays, so that the server does not wait for the rest of the body.
func (b *beginning) event(w http.ResponseWriter, query url.Values) string {
	if names := query["event"]; len(names) == 1 && names[0] != "" {
		return names[0]
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(nameWithin)) // if setting the deadline fails, the read has no deadline
	return hook.EventName(io.LimitReader(io.MultiReader(bytes.NewReader(b.read), b.ReadCloser), longestBeginning))
}

// slots counts the long bodies that are being read.
type slots struct {
	mu    sync.Mutex
	all   int
	of    map[string]int // by client
	freed chan struct{}  // closed when a body has been read, and then replaced
}

// take begins the reading of a client's body. If too many bodies are being read, take returns false, and a channel
// that is closed when the caller can try again.
func (x *slots) take(client string) (freed <-chan struct{}, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.all == longBodies || x.of[client] == ofOneClient {
		return x.freed, false
	}
	x.all++
	x.of[client]++
	return nil, true
}

func (x *slots) free(client string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all--
	if x.of[client]--; x.of[client] == 0 {
		delete(x.of, client)
	}
	close(x.freed)
	x.freed = make(chan struct{})
}

// requests implements hook.Requests for one client.
type requests struct {
	*server
	client approvers.Client
}

func (q requests) Last(ctx context.Context, call client.Call) (string, error) {
	return q.Callers.Last(ctx, workflow.CallerCall{
		Client: q.client, Mode: approvers.DecideMode, Tool: call.Tool, Args: call.Args, For: call.OnBehalfOf, ClientState: call.State,
	})
}

func (q requests) Named(ctx context.Context, key string) (id, run string, err error) {
	return q.Callers.Named(ctx, q.client, key)
}

func (q requests) Name(ctx context.Context, key, id, run string) error {
	return q.Callers.Name(ctx, q.client, key, id, run)
}

func (q requests) Waiting(ctx context.Context) ([]string, error) {
	return q.Views.CallerPending(ctx, q.client.Name)
}
