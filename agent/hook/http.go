package hook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"countersign/agent/client"
)

// Delivery is an event that an agent has sent to the gateway over HTTP.
type Delivery struct {
	Agent      string
	Event      string // the event's name in the URL; empty: the body has the name
	Profile    Profile
	OnBehalfOf string        // see Config
	Timeout    time.Duration // the hook's time limit in the agent's settings; zero: the agent's default
	Body       []byte

	Gate     *client.Client // the gateway, with the token of the agent's client
	Client   string         // the client's name, and the person for whom it acts
	Requests Requests
	Held     *Held
}

// Requests finds requests of the client that sent the event.
type Requests interface {
	// Last returns the id of the client's last request for an identical call with the same state, or "".
	Last(ctx context.Context, call client.Call) (id string, err error)
	// Named returns the id of the request with the key, or "", and the run that was given to Name. If a call was proposed
	// with the key, this is the call's first run.
	Named(ctx context.Context, key string) (id, run string, err error)
	// Name adds a key to a request and its run. If another request has this key, Name takes it from that request.
	Name(ctx context.Context, key, id, run string) error
	// Waiting lists the requests that wait for people.
	Waiting(ctx context.Context) (ids []string, err error)
}

// Held has the calls for which agents wait at this moment. The zero value is ready for use.
type Held struct {
	mu sync.Mutex
	by map[string]int
}

// begin adds a call, and reports whether the same call was held already.
func (x *Held) begin(call string) (before bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.by == nil {
		x.by = map[string]int{}
	}
	x.by[call]++
	return x.by[call] > 1
}

func (x *Held) end(call string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.by[call]--; x.by[call] == 0 {
		delete(x.by, call)
	}
}

// Serve handles an event, and returns the body of the answer. The status of the answer is always 200, because no other
// status blocks a call. The caller must cancel ctx when the agent hangs up, or when the process is about to stop.
func Serve(ctx context.Context, d Delivery) []byte { return serve(ctx, d, 0) }

func serve(ctx context.Context, d Delivery, patience time.Duration) []byte {
	o := Options{Agent: d.Agent, Event: d.Event, Timeout: d.Timeout, Input: bytes.NewReader(d.Body), patience: patience}
	d.Body = nil // releases the memory of the body, because the agent may wait for an hour
	m := &remote{Delivery: d}
	defer m.release()
	a := run(ctx, o, func(h *hook) error {
		h.http, h.gate, h.memory = true, d.Gate, m
		h.Config = Config{Profile: d.Profile, OnBehalfOf: d.OnBehalfOf}
		if d.Profile == Comfort && d.OnBehalfOf != "" {
			return errBarred
		}
		return nil
	})
	if a.fault != nil {
		return Refuse(d.Agent, cmp.Or(a.event, d.Event), d.Profile, a.fault)
	}
	return a.body()
}

// EventName returns the name of the event in a body. If the body does not contain the name, or contains two names,
// EventName returns "". The body may be cut off after the name.
func EventName(body io.Reader) string {
	dec := json.NewDecoder(body)
	if begin, err := dec.Token(); err != nil || begin != json.Delim('{') {
		return ""
	}
	name, found := "", false
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return name
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return name
		}
		if member, _ := t.(string); !strings.EqualFold(member, "hook_event_name") {
			continue
		}
		if found {
			return ""
		}
		found = true
		_ = json.Unmarshal(value, &name) // a value that is not a string names no event
	}
	return name
}

// Refuse returns the answer to an event that the gateway does not handle, for example because the token is wrong. If
// Refuse does not know the name of the event, the call may have run already. The answer denies the call in case it has
// not run, but does not say whether it ran.
func Refuse(agent, name string, profile Profile, err error) []byte {
	d, ok := find(agent)
	if !ok || !d.HTTP {
		return nothing(event{}, "")
	}
	h := hook{dialect: d, event: event{name: name}, Config: Config{Profile: profile}}
	if h.moment, ok = d.events[name]; !ok {
		return d.unread(cantAsk(err))
	}
	return h.giveUp(err).body()
}

// body returns the answer over HTTP, which has no standard error.
func (a Answer) body() []byte {
	if a.Err != "" && bytes.Equal(a.Out, nothing(event{}, "")) {
		return leaveWithMessage(event{}, a.Err)
	}
	return a.Out
}

// remote is the memory of hooks over HTTP. It keeps no records, because it can find the request of a call at the
// gateway. So a repeated call continues its request even after a restart of the gateway, and at another replica.
type remote struct {
	Delivery
	holds string // the call's key in Held
}

func (m *remote) release() {
	if m.holds != "" {
		m.Held.end(m.holds)
	}
}

// begin continues the session's last request for an identical call, if that request still waits, or its approval is
// not claimed yet, or the request is lost and the agent has not learned this yet. If an identical call is held at this
// moment, the new call gets a request of its own.
func (m *remote) begin(ctx context.Context, h *hook, fresh func() string) (record, bool, error) {
	held := m.holds != ""
	if !held {
		m.holds = fingerprint(m.Client, h.Name, h.session, h.call)
		held = m.Held.begin(m.holds)
	}
	if held {
		return record{Key: fresh()}, false, nil
	}
	id, err := m.Requests.Last(ctx, h.request())
	if err != nil || id == "" {
		return record{Key: fresh()}, false, err
	}
	r, err := h.gate.Get(ctx, id, 0)
	switch {
	case client.Is(err, client.NotFound):
	case err != nil:
		return record{}, false, err
	case r.Status == client.Pending || r.Status == client.Approved:
		return record{Request: id}, true, nil
	case r.Lost():
		told, _, err := m.Requests.Named(ctx, toldKey(h, id))
		if err != nil || told == "" {
			return record{Request: id}, true, err
		}
	}
	return record{Key: fresh()}, false, nil
}

// told gives the request a key that says that the agent has learned of the loss. After an error, the agent is told
// again.
func (m *remote) told(ctx context.Context, h *hook, r record) {
	_ = m.Requests.Name(ctx, toldKey(h, r.Request), r.Request, "")
}

func toldKey(h *hook, request string) string { return fingerprint("told", h.Name, h.session, request) }

// mark identifies the session and the call. The gateway keeps the mark as the state of the request.
func (m *remote) mark(h *hook) string { return sessionMark(h) + h.ran }

func sessionMark(h *hook) string { return fingerprint(h.Name, h.session) + "." }

func (m *remote) asked(record) error      { return nil }
func (m *remote) leave(record)            {}
func (m *remote) drop(record)             {}
func (m *remote) claimed(record) error    { return nil }
func (m *remote) unreported(record) error { return nil } // without a report, the workflow asks people for the outcome
func (m *remote) earlier() []record       { return nil }

// claiming gives the request a key by which the event after the call finds the request. If the request's own key was
// made from the call's id, claiming adds no key, because the event after the call has the same id.
func (m *remote) claiming(ctx context.Context, h *hook, r *record, changed json.RawMessage) error {
	if h.id != "" && r.Key == h.freshKey() {
		return nil
	}
	ran := h.ran
	if changed != nil {
		ran = ranAs(h.tool, changed)
	}
	return m.Requests.Name(ctx, runKey(h, cmp.Or(h.id, ran)), r.Request, r.Run)
}

func runKey(h *hook, call string) string { return fingerprint("run", h.Name, h.session, call) }

// ran finds the request by the id of the call, or else by the arguments. If people have asked for the call again, the
// event is about the earlier run, and the request has another one.
func (m *remote) ran(ctx context.Context, h *hook) (record, bool, error) {
	keys := []string{runKey(h, h.ran)}
	if h.id != "" {
		keys = []string{runKey(h, h.id), h.freshKey(), keys[0]}
	}
	for _, key := range keys {
		id, run, err := m.Requests.Named(ctx, key)
		if err != nil {
			return record{}, false, err
		}
		if id == "" {
			continue
		}
		r, err := h.gate.Get(ctx, id, 0)
		switch {
		case err != nil && !client.Is(err, client.NotFound):
			return record{}, false, err
		case err == nil && (run != "" && run != r.Run || r.Status == client.Running || r.Status == client.Unknown || r.Lost()):
			return record{Request: id, Run: run}, true, nil
		}
	}
	return record{}, false, nil
}

func (m *remote) waiting(ctx context.Context, h *hook) ([]record, error) {
	ids, err := m.Requests.Waiting(ctx)
	if err != nil {
		return nil, err
	}
	var list []record
	for _, id := range ids {
		r, err := h.gate.Get(ctx, id, 0)
		if client.Is(err, client.NotFound) {
			continue // the request belongs to another person for whom the client acts
		}
		if err != nil {
			return nil, err
		}
		if ran, ok := strings.CutPrefix(r.State, sessionMark(h)); ok {
			list = append(list, record{Request: id, Ran: []string{ran}})
		}
	}
	return list, nil
}

var errBarred = errors.New("the profile comfort lets that person decide, but on_behalf_of bars them from deciding; remove on_behalf_of")
