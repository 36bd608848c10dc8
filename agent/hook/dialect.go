package hook

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
)

// moment is the time of an event, relative to a call.
type moment int

// The moments.
const (
	before     moment = iota // before a call, whatever the agent's own permissions say (profile control)
	permission               // when the agent would ask its user for permission (profile comfort)
	after                    // after a call
	ended                    // the end of a turn or a session
)

// event has the data that an agent reports.
type event struct {
	name    string
	moment  moment
	session string
	id      string // the agent's id of the call; empty: the agent has no ids
	tool    string
	input   json.RawMessage // the arguments, byte for byte
	folder  string          // the working folder
	failed  bool            // after a call: the tool failed
	text    string          // after a failed call: the tool's error
	noEdit  bool            // for this event, the agent does not accept changed arguments
}

// dialect reads the events of one coding agent, and writes the answers in the agent's form.
type dialect struct {
	Agent
	read func(name string, raw []byte) (event, error)
	// allow returns an answer that lets the call run. If changed is not nil, it has the arguments that replace the
	// call's arguments.
	allow func(e event, changed json.RawMessage, reason string) []byte
	deny  func(e event, reason string) []byte
	// leave returns an answer that lets the agent's own permissions decide. If possible, the agent shows the notice to
	// its user.
	leave func(e event, notice string) []byte
	// block is the answer to an event that could not be read. The function deny needs the event, so it can't make this
	// answer.
	block []byte
	// The fields events and unread are only for agents that can send events over HTTP. The field events lists these
	// events. The function unread returns the answer to an event that could not be read.
	events map[string]moment
	unread func(reason string) []byte
	// Calls to some tools can choose their working folder. For each of these tools, folders names the arguments that can
	// have the folder. A relative folder begins at the event's folder.
	folders map[string][]string
	shells  []string // the tools that run the argument command in a shell
	// merges is set if the agent adds the changed arguments to the call's original arguments. Changed arguments then can't
	// remove an argument.
	merges bool
}

// Agent is a coding agent.
type Agent struct {
	Name    string
	Title   string
	Timeout time.Duration // the agent's default time limit for a hook
	Comfort bool          // the agent has an event for its permission dialog
	HTTP    bool          // the agent can send its events over HTTP, and can block a call if this fails
}

var dialects = []dialect{claudeCode, codex, gemini, copilot, cursor}

// Agents lists the supported agents.
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

// encode returns a value as one line of JSON.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // the values are strings and JSON that was already parsed
	}
	return b.Bytes()
}

// nothing returns the answer without an effect.
func nothing(event, string) []byte { return []byte("{}\n") }
