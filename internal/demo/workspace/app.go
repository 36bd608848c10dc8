package workspace

import "encoding/json"

// App receives deliveries from the workspace in place of sockets and request URLs. A test can implement it to
// simulate the network between Slack and the app, and decide which deliveries are late, lost or repeated.
type App interface {
	// Event receives an event. The workspace waits for it: it must return at once, and must not call the workspace.
	Event(payload json.RawMessage)
	// Ask receives an interaction or a slash command (kind is "interactive" or "slash_commands"), and returns the
	// content of the acknowledgement; nil: none. After an error the person sees that the app did not respond.
	Ask(kind string, payload json.RawMessage) (json.RawMessage, error)
}
