package hook

import (
	"encoding/json"
	"time"
)

// gemini is the dialect of Gemini CLI. See bundle/docs/hooks/reference.md in @google/gemini-cli. Gemini CLI has no
// event for its permission dialog, so the profile comfort is impossible. The reference says that changed arguments are
// added to the original arguments. Version 0.61 replaces the arguments.
var gemini = dialect{
	Agent: Agent{Name: "gemini", Title: "Gemini CLI", Timeout: 60 * time.Second},
	read: func(_ string, raw []byte) (event, error) {
		return readSnake(raw, map[string]moment{"BeforeTool": before, "AfterTool": after})
	},
	allow: func(_ event, changed json.RawMessage, _ string) []byte {
		out := object{"decision": "allow"}
		if changed != nil {
			out["hookSpecificOutput"] = object{"hookEventName": "BeforeTool", "tool_input": changed}
		}
		return encode(out)
	},
	deny:    func(_ event, reason string) []byte { return encode(object{"decision": "deny", "reason": reason}) },
	leave:   nothing,
	folders: map[string][]string{"run_shell_command": {"dir_path"}},
	shells:  []string{"run_shell_command"},
	merges:  true,
}

// failedResponse reports whether a tool's response has an error, and returns the error.
func failedResponse(response json.RawMessage) (bool, string) {
	var in struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(response, &in) != nil || len(in.Error) == 0 || string(in.Error) == "null" {
		return false, ""
	}
	var detail struct {
		Message string `json:"message"`
	}
	var text string
	if json.Unmarshal(in.Error, &text) == nil {
		return true, text
	}
	if json.Unmarshal(in.Error, &detail) == nil && detail.Message != "" {
		return true, detail.Message
	}
	return true, string(in.Error)
}
