package demomodel

import (
	"encoding/json"
	"slices"
	"strings"
)

// Message is one message of the history, with one of the service's roles: system, developer, user, assistant or tool.
type Message struct {
	Role    string
	Content string
	Calls   []Call
	CallID  string // only in a tool's result: the id of its call
}

// Call is a tool call that was made or is to be made. Arguments is normally JSON, but a model can write any text.
type Call struct {
	ID        string
	Name      string
	Arguments string
}

// Tool is a tool that the request offers.
type Tool struct {
	Name       string
	Parameters json.RawMessage
}

// Answer is either a text or a list of calls.
type Answer struct {
	Text  string
	Calls []Call
}

// Reply returns the model's answer to a conversation.
func Reply(history []Message, tools []Tool) Answer {
	turns := split(history)
	if len(turns) == 0 {
		return Answer{Text: greeting}
	}
	m := newMemory()
	offered := newToolbox(tools)
	var d *responder
	for i := range turns {
		d = &responder{tools: offered, m: m, t: &turns[i], claimed: make([]bool, len(turns[i].done))}
		d.work()
	}
	if len(d.calls) > 0 {
		return Answer{Calls: d.calls}
	}
	return Answer{Text: d.compose()}
}

// responder works on one turn.
type responder struct {
	tools   toolbox
	m       *memory
	t       *turn
	claimed []bool // by index in t.done: true if the call belongs to a request

	calls     []Call   // calls to make now
	told      []string // sentences about results, in the order of the requests
	notes     []string // sentences about calls that were not made, or can't be made
	questions []string
	offers    []offer
	searching bool // a search of this message has not been answered yet
	open      *request
}

// work interprets the turn's message, prepares calls or an answer, and updates the memory for later turns.
func (d *responder) work() {
	// The results of searches are read first, because the other calls of the same step may have waited for approval.
	// The results of the other calls may therefore be newer.
	for _, searches := range []bool{true, false} {
		for _, c := range d.t.done {
			if (d.tools.kindOf(c.Name) == searchOrders) == searches {
				d.m.learn(c)
			}
		}
	}
	requests, talk := d.understand()
	for i := range requests {
		d.handle(&requests[i])
	}
	for i := range d.t.done {
		if !d.claimed[i] && len(requests) == 0 {
			d.report(nil, i)
		}
	}
	if talk != "" {
		d.told = append(d.told, talk)
	}
	d.m.open, d.m.offers = d.open, d.offers
	if len(d.t.done) > 0 {
		d.m.last = d.t.done
	}
	if acted := slices.DeleteFunc(slices.Clone(d.t.done), func(c done) bool { return d.tools.kindOf(c.Name) == searchOrders }); len(acted) > 0 {
		d.m.acted = acted
	}
}

// compose builds the answer.
func (d *responder) compose() string {
	parts := append(append([]string{}, d.told...), d.notes...)
	if text := offerText(d.offers); text != "" {
		parts = append(parts, text)
	}
	parts = append(parts, d.questions...)
	if len(parts) == 0 {
		return notUnderstood
	}
	return strings.Join(parts, "\n")
}
