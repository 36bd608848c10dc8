package hook

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// copilot is the dialect of GitHub Copilot CLI. See content/copilot/reference/hooks-reference.md in github/docs. The
// agent has two input formats. The format in camelCase does not contain the event's name, so the settings put the
// name into the command. The format in PascalCase contains the event's name, and has other names for the tools.
var copilot = dialect{
	Agent: Agent{Name: "copilot", Title: "GitHub Copilot CLI", Timeout: 30 * time.Second, Comfort: true},
	read: func(name string, raw []byte) (event, error) {
		var in struct {
			Session string          `json:"sessionId"`
			Folder  string          `json:"cwd"`
			Tool    string          `json:"toolName"`
			Args    json.RawMessage `json:"toolArgs"`
			Input   json.RawMessage `json:"toolInput"` // the tool's input, only in a permission request
			Error   json.RawMessage `json:"error"`
		}
		moments := map[string]moment{
			"preToolUse": before, "permissionRequest": permission, "postToolUse": after, "postToolUseFailure": after, "agentStop": ended, "sessionEnd": ended,
		}
		e := event{name: name}
		var ok bool
		if e.moment, ok = moments[name]; !ok {
			return e, fmt.Errorf("the event %q is not known; the command in the settings must end with its name", name)
		}
		if err := decode(raw, &in); err != nil {
			return e, err
		}
		e.session, e.folder, e.tool, e.input = in.Session, in.Folder, in.Tool, in.Args
		if e.input == nil {
			e.input = in.Input
		}
		e.noEdit = e.moment == permission
		var text *string
		if json.Unmarshal(e.input, &text) == nil && text != nil {
			if _, err := split([]byte(*text)); err != nil && e.tool == "apply_patch" { // the tool's only argument is a text
				e.input, e.noEdit = slices.Concat([]byte(`{"text":`), e.input, []byte(`}`)), true
			} else { // some versions write the arguments as a string that contains JSON
				e.input = json.RawMessage(*text)
			}
		}
		if e.failed = name == "postToolUseFailure"; e.failed && json.Unmarshal(in.Error, &e.text) != nil {
			e.text = string(in.Error)
		}
		return e, nil
	},
	allow: func(e event, changed json.RawMessage, reason string) []byte {
		if e.moment == permission {
			return encode(object{"behavior": "allow"})
		}
		out := object{"permissionDecision": "allow", "permissionDecisionReason": reason}
		if changed != nil {
			out["modifiedArgs"] = changed
		}
		return encode(out)
	},
	deny: func(e event, reason string) []byte {
		if e.moment == permission {
			return encode(object{"behavior": "deny", "message": reason})
		}
		return encode(object{"permissionDecision": "deny", "permissionDecisionReason": reason})
	},
	leave:  nothing,
	shells: []string{"bash", "powershell"},
}
