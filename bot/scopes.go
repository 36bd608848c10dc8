package bot

import "slices"

// Scope is a permission that the app requests from a workspace.
type Scope struct {
	Name   string
	For    string   // the feature that needs it
	Events []string // events that Slack sends only with this scope
}

// Scopes returns all scopes that the bot's token needs, and no others. manifest_test.go checks them against the methods
// that the code calls.
func Scopes() []Scope {
	return []Scope{
		{"app_mentions:read", "hear when somebody mentions it", []string{"app_mention"}},
		{"assistant:write", "be opened as an agent, beside what people look at", []string{
			"app_context_changed", "assistant_thread_context_changed", "assistant_thread_started",
		}},
		{"channels:history", "hear what people write in threads of public channels", []string{"message.channels"}},
		{"channels:read", "find the policy's public channels, or see that it was removed from one", []string{
			"channel_archive", "channel_created", "channel_deleted", "channel_left", "channel_rename", "channel_shared", "channel_unarchive", "channel_unshared", "member_joined_channel",
		}},
		{"chat:write", "write anything at all", nil},
		{"commands", "be asked with /countersign", nil},
		{"dnd:read", "leave people alone while they do not want to be disturbed", []string{"dnd_updated_user"}},
		{"files:read", "read the text files that people attach", nil},
		{"files:write", "hand an answer over as a file that is too long for messages", nil},
		{"groups:history", "hear what people write in threads of private channels", []string{"message.groups"}},
		{"groups:read", "find the policy's private channels, or see that it was removed from one", []string{
			"group_archive", "group_deleted", "group_left", "group_rename", "group_unarchive",
		}},
		{"im:history", "hear what people write to it in direct messages", []string{"message.im"}},
		{"im:write", "write to approvers in direct messages", nil},
		{"mpim:history", "hear what people write in group messages", []string{"message.mpim"}},
		{"mpim:read", "tell a group message from a channel", nil},
		{"usergroups:read", "find the user groups of the policy, or see who left one", []string{"subteam_created", "subteam_members_changed", "subteam_updated"}},
		{"users:read", "tell who clicked, and whether they are a guest, deactivated or of another organisation", []string{"team_join", "user_change"}},
		{"users:read.email", "find the people whom the policy names by e-mail address", nil},
	}
}

// free are the events that need no scope. Slack sends agent_session_stopped to every app that is an agent.
var free = []string{"agent_session_stopped", "app_home_opened"}

// events returns all events that the app subscribes to, in order.
func events() []string {
	out := slices.Clone(free)
	for _, s := range Scopes() {
		out = append(out, s.Events...)
	}
	slices.Sort(out)
	return out
}
