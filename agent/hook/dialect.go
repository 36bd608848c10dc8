package hook

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
)

// moment says when an event happens.
type moment int

// The moments.
const (
	before     moment = iota // before a call, whatever the agent's own permissions say: the profile control
	permission               // when the agent's own permission dialog is due: the profile comfort
	after                    // after a call
	ended                    // a turn or a session is over
)

// event has the data that an agent reports.
type event struct {
	name    string
	moment  moment
	session string
	id      string // the agent's id of the call; empty: it has none
	tool    string
	input   json.RawMessage // the arguments, byte for byte
	folder  string          // where the tool works
	failed  bool            // after: the tool failed
	text    string          // after: why
	noEdit  bool            // the agent can't take back changed arguments here
}

// dialect reads the events of one coding agent, and writes the answers in the agent's form.
type dialect struct {
	Agent
	read func(name string, raw []byte) (event, error)
	// allow returns an answer that lets the call run. changed has the arguments that replace the call's own arguments,
	// or is nil.
	allow func(e event, changed json.RawMessage, reason string) []byte
	deny  func(e event, reason string) []byte
	// leave returns an answer that lets the agent's own permissions decide. If possible, the agent shows the notice to
	// its user.
	leave func(e event, notice string) []byte
	// block is printed if the event could not be read, because deny needs the event.
	block []byte
	// merges is set if the agent adds changed arguments to the call's own arguments. Such an agent can't remove an
	// argument.
	merges bool
}

// Agent is a coding agent.
type Agent struct {
	Name    string
	Title   string
	Timeout time.Duration // the agent's own limit of a hook, if its settings name none
	Comfort bool          // it has an event for its permission dialog
}

var dialects = []dialect{claudeCode, codex, gemini, copilot, cursor}

// Agents lists the agents.
func Agents() []Agent {
	var list []Agent
	for _, d := range dialects {
		list = append(list, d.Agent)
	}
	return list
}

// Find finds an agent by its name.
func Find(name string) (Agent, bool) {
	d, ok := find(name)
	return d.Agent, ok
}

func find(name string) (dialect, bool) {
	i := slices.IndexFunc(dialects, func(d dialect) bool { return d.Name == name })
	if i < 0 {
		return dialect{}, false
	}
	return dialects[i], true
}

// object is a JSON object to print.
type object map[string]any

// encode writes one line of JSON.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // the values are strings and JSON that was read before
	}
	return b.Bytes()
}

// nothing is the answer that has no effect.
func nothing(event, string) []byte { return []byte("{}\n") }
