package workspace

import "encoding/json"

// App takes what the workspace delivers, in place of sockets and request URLs. A test that is the network between Slack and its app gives one: it decides what comes
// late, twice or never.
type App interface {
	// Event is given an event. The workspace waits for it: it must return at once, and call nothing of the workspace.
	Event(payload json.RawMessage)
	// Ask is given an interaction or a slash command (kind is "interactive" or "slash_commands"), and returns what the app acknowledged it with, nil
	// for nothing more. With an error the person is shown that the app did not respond.
	Ask(kind string, payload json.RawMessage) (json.RawMessage, error)
}
