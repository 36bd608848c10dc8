package hook

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// claudeCode is the dialect of Claude Code. The types in @anthropic-ai/claude-agent-sdk describe the hooks of Claude
// Code.
var claudeCode = dialect{
	Agent: Agent{Name: "claude-code", Title: "Claude Code", Timeout: 600 * time.Second, Comfort: true, HTTP: true},
	read:  func(_ string, raw []byte) (event, error) { return readSnake(raw, claudeEvents) },
	allow: func(e event, changed json.RawMessage, reason string) []byte {
		if e.moment == permission {
			return permissionAnswer("allow", changed, "")
		}
		out := object{"hookEventName": e.name, "permissionDecision": "allow", "permissionDecisionReason": reason}
		if changed != nil {
			out["updatedInput"] = changed
		}
		return encode(object{"hookSpecificOutput": out})
	},
	deny: func(e event, reason string) []byte {
		if e.moment == permission {
			return permissionAnswer("deny", nil, reason)
		}
		return encode(object{"hookSpecificOutput": object{"hookEventName": e.name, "permissionDecision": "deny", "permissionDecisionReason": reason}})
	},
	leave:  leaveWithMessage,
	shells: []string{"Bash", "PowerShell"},
	events: claudeEvents,
	// This answer always names the event PreToolUse. If the unread event was PreToolUse, both members of the answer deny
	// the call: "decision" is the older form. If it was another event, the names differ, and Claude Code reports an error.
	unread: func(reason string) []byte {
		return encode(object{"decision": "block", "reason": reason, "hookSpecificOutput": object{
			"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
		}})
	},
}

var claudeEvents = map[string]moment{
	"PreToolUse": before, "PreSkillShellCommand": before, "PermissionRequest": permission,
	"PostToolUse": after, "PostToolUseFailure": after, "PermissionDenied": after, "Stop": ended, "SessionEnd": ended,
}

// codex is the dialect of Codex. The hooks of Codex have the form of Claude Code's hooks, with two differences. The
// answer "allow" is valid only with changed arguments. The answer to a permission request can't change arguments. See
// codex-rs/hooks/src/engine/output_parser.rs in openai/codex.
var codex = dialect{
	Agent: Agent{Name: "codex", Title: "Codex", Timeout: 600 * time.Second, Comfort: true},
	read: func(_ string, raw []byte) (event, error) {
		e, err := readSnake(raw, map[string]moment{"PreToolUse": before, "PermissionRequest": permission, "PostToolUse": after, "Stop": ended})
		e.noEdit = e.moment == permission
		return e, err
	},
	allow: func(e event, changed json.RawMessage, _ string) []byte {
		switch {
		case e.moment == permission:
			return permissionAnswer("allow", nil, "")
		case changed == nil:
			return nil // lets the call run; without changed arguments, Codex would report "allow" as an error
		}
		return encode(object{"hookSpecificOutput": object{"hookEventName": e.name, "permissionDecision": "allow", "updatedInput": changed}})
	},
	deny:   claudeCode.deny,
	shells: []string{"Bash"},
	leave: func(e event, notice string) []byte {
		if notice == "" {
			return nil
		}
		return leaveWithMessage(e, notice)
	},
}

// permissionAnswer returns the answer to the event PermissionRequest.
func permissionAnswer(behavior string, changed json.RawMessage, message string) []byte {
	decision := object{"behavior": behavior}
	if changed != nil {
		decision["updatedInput"] = changed
	}
	if message != "" {
		decision["message"] = message
	}
	return encode(object{"hookSpecificOutput": object{"hookEventName": "PermissionRequest", "decision": decision}})
}

func leaveWithMessage(_ event, notice string) []byte {
	if notice == "" {
		return []byte("{}\n")
	}
	return encode(object{"systemMessage": notice})
}

// readSnake reads the input of Claude Code, Codex and Gemini CLI.
func readSnake(raw []byte, moments map[string]moment) (event, error) {
	var in struct {
		Event    string          `json:"hook_event_name"`
		Session  string          `json:"session_id"`
		Agent    string          `json:"agent_id"` // a subagent
		Folder   string          `json:"cwd"`
		ID       string          `json:"tool_use_id"`
		Tool     string          `json:"tool_name"`
		Input    json.RawMessage `json:"tool_input"`
		Error    string          `json:"error"`
		Response json.RawMessage `json:"tool_response"`
		Reason   json.RawMessage `json:"reason"`
	}
	if err := decode(raw, &in); err != nil {
		return event{}, err
	}
	e := event{name: in.Event, session: in.Session, id: in.ID, tool: in.Tool, input: in.Input, folder: in.Folder, text: in.Error}
	if in.Session != "" && in.Agent != "" {
		e.session += "/" + in.Agent
	}
	var ok bool
	if e.moment, ok = moments[in.Event]; !ok {
		return e, fmt.Errorf("the event %q is not known", in.Event)
	}
	e.noEdit = in.Event == "PreSkillShellCommand"
	switch in.Event {
	case "PostToolUseFailure":
		e.failed = true
	case "PermissionDenied": // Claude Code's auto mode has denied the call after the hook allowed it
		var reason string
		_ = json.Unmarshal(in.Reason, &reason) // without a reason, the text is complete, too
		e.failed, e.text = true, strings.TrimSpace("The call did not run: Claude Code denied it. "+reason)
	case "AfterTool":
		e.failed, e.text = failedResponse(in.Response)
	}
	return e, nil
}
