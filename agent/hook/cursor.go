package hook

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// cursor is the dialect of Cursor. See cursor.com/docs/hooks. The hooks are installed with Cursor's setting
// failClosed. With failClosed, an empty answer also blocks a call. The model reads user_message, and not
// agent_message. Cursor does not document a time limit for hooks.
var cursor = dialect{
	Agent: Agent{Name: "cursor", Title: "Cursor", Timeout: 60 * time.Second},
	read: func(_ string, raw []byte) (event, error) {
		var in struct {
			Event        string          `json:"hook_event_name"`
			Conversation string          `json:"conversation_id"`
			Folder       string          `json:"cwd"`
			Roots        []string        `json:"workspace_roots"`
			ID           string          `json:"tool_use_id"`
			Tool         string          `json:"tool_name"`
			Input        json.RawMessage `json:"tool_input"`
			Error        string          `json:"error_message"`
		}
		if err := decode(raw, &in); err != nil {
			return event{}, err
		}
		e := event{name: in.Event, session: in.Conversation, id: in.ID, input: in.Input, folder: in.Folder, text: in.Error}
		// Cursor's name for a tool of an MCP server is "MCP:name". A tool name in the policy can't contain a colon.
		e.tool = strings.Replace(in.Tool, "MCP:", "MCP.", 1)
		if len(in.Roots) > 0 {
			e.folder = cmp.Or(e.folder, in.Roots[0])
		}
		var ok bool
		e.moment, ok = map[string]moment{"preToolUse": before, "postToolUse": after, "postToolUseFailure": after}[in.Event]
		if !ok {
			return e, fmt.Errorf("the event %q is not known", in.Event)
		}
		e.failed = in.Event == "postToolUseFailure"
		return e, nil
	},
	allow: func(_ event, changed json.RawMessage, _ string) []byte {
		out := object{"permission": "allow"}
		if changed != nil {
			out["updated_input"] = changed
		}
		return encode(out)
	},
	deny:    cursorDeny,
	folders: map[string][]string{"Shell": {"working_directory", "cwd"}}, // cwd: version 3.9.16
	shells:  []string{"Shell"},
	leave: func(e event, _ string) []byte {
		if e.moment != before {
			return []byte("{}\n")
		}
		return encode(object{"permission": "allow"}) // because Cursor blocks the call after an empty answer
	},
	block: cursorDeny(event{}, "Countersign denied this, because it does not know the event."),
}

func cursorDeny(_ event, reason string) []byte {
	return encode(object{"permission": "deny", "user_message": reason})
}
