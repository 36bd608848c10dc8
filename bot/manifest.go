package bot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/transport"
)

// MaxAppName is the maximum length of an app's name in characters (manifest schema: display_information.name).
const MaxAppName = 35

// ManifestOptions are the settings that differ between apps.
type ManifestOptions struct {
	Name string // name of the app
	URL  string // the bot's public address, for requests over HTTP; empty: Socket Mode
	// TokenRotation switches token rotation on. In Slack, nobody can switch token rotation off again.
	TokenRotation bool
	// Prompts are suggestions for people who open the app, at most approvers.MaxPrompts.
	Prompts []approvers.Prompt
}

// Manifest returns the app's manifest as JSON, in version 2 of Slack's manifest schema. The manifest declares exactly
// the scopes and events that this version of the bot needs.
func Manifest(o ManifestOptions) ([]byte, error) {
	if n := block.Width(o.Name); n == 0 || n > MaxAppName {
		return nil, fmt.Errorf("the app's name has %d characters: Slack takes 1 to %d", n, MaxAppName)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(newManifest(o)); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

type manifest struct {
	Metadata struct {
		Major int `json:"major_version"`
	} `json:"_metadata"`
	Display  manifestDisplay  `json:"display_information"`
	Features manifestFeatures `json:"features"`
	OAuth    struct {
		Scopes struct {
			Bot []string `json:"bot"`
		} `json:"scopes"`
	} `json:"oauth_config"`
	Settings manifestSettings `json:"settings"`
}

type manifestDisplay struct {
	Name  string `json:"name"`
	Short string `json:"description"`
	Long  string `json:"long_description"`
	Color string `json:"background_color"`
}

type manifestFeatures struct {
	Home      manifestHome       `json:"app_home"`
	Agent     manifestAgent      `json:"agent_view"`
	User      manifestUser       `json:"bot_user"`
	Shortcuts []manifestShortcut `json:"shortcuts"`
	Commands  []manifestCommand  `json:"slash_commands"`
}

type manifestHome struct {
	Home     bool `json:"home_tab_enabled"`
	Messages bool `json:"messages_tab_enabled"`
	ReadOnly bool `json:"messages_tab_read_only_enabled"`
}

type manifestAgent struct {
	Description string           `json:"agent_description"`
	Prompts     []manifestPrompt `json:"suggested_prompts,omitempty"`
}

type manifestPrompt struct {
	Title   string `json:"title"`
	Message string `json:"message"`
}

type manifestUser struct {
	Name   string `json:"display_name"`
	Online bool   `json:"always_online"`
}

type manifestShortcut struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	CallbackID  string `json:"callback_id"`
	Description string `json:"description"`
}

type manifestCommand struct {
	Command     string `json:"command"`
	URL         string `json:"url,omitempty"`
	Description string `json:"description"`
	Hint        string `json:"usage_hint"`
	Escape      bool   `json:"should_escape"` // Slack adds the ids to mentions of people and channels
}

type manifestSettings struct {
	Events struct {
		URL    string   `json:"request_url,omitempty"`
		Events []string `json:"bot_events"`
	} `json:"event_subscriptions"`
	Interactivity struct {
		Enabled bool   `json:"is_enabled"`
		URL     string `json:"request_url,omitempty"`
		Options string `json:"message_menu_options_url,omitempty"`
	} `json:"interactivity"`
	OrgDeploy     bool `json:"org_deploy_enabled"`
	Socket        bool `json:"socket_mode_enabled"`
	TokenRotation bool `json:"token_rotation_enabled"`
}

// These texts describe the app in Slack.
const (
	appShort = "Does what you ask for. Risky actions wait until the right people have countersigned them."
	appLong  = "Write to the app in a channel, in a thread or in a direct message, and say what you need in your own words. It works with your company's tools. " +
		"Harmless actions, and actions that only read, happen at once. A risky action becomes a card for the people who may decide it: they approve it, reject it with a reason that you are " +
		"told, or change it. If nobody answers, nothing risky happens. A history that nobody can rewrite unnoticed says who allowed each action, and when."
	commandShort = "What waits for you, what you asked for, and what you can do about it"
	appAgent     = "Ask for what you need in your own words. Harmless actions happen at once. Risky actions wait until the right people have countersigned them, and you are told the outcome."
)

func newManifest(o ManifestOptions) manifest {
	var m manifest
	m.Metadata.Major = 2
	m.Display = manifestDisplay{Name: o.Name, Short: appShort, Long: appLong, Color: "#1d3557"}
	m.Features = manifestFeatures{
		Home: manifestHome{Home: HomeTab, Messages: true}, Agent: manifestAgent{Description: appAgent}, User: manifestUser{Name: o.Name, Online: true},
		Commands: []manifestCommand{{Command: SlashCommand, Description: commandShort, Hint: commandHint(), Escape: true}},
	}
	for _, p := range o.Prompts[:min(len(o.Prompts), approvers.MaxPrompts)] {
		m.Features.Agent.Prompts = append(m.Features.Agent.Prompts, manifestPrompt(p))
	}
	for _, s := range Shortcuts() {
		m.Features.Shortcuts = append(m.Features.Shortcuts, manifestShortcut(s))
	}
	for _, s := range Scopes() {
		m.OAuth.Scopes.Bot = append(m.OAuth.Scopes.Bot, s.Name)
	}
	m.Settings.Events.Events = events()
	m.Settings.Interactivity.Enabled = true
	m.Settings.TokenRotation = o.TokenRotation
	if o.URL == "" {
		m.Settings.Socket = true
		return m
	}
	base := strings.TrimSuffix(o.URL, "/")
	m.Settings.Events.URL, m.Settings.Interactivity.URL, m.Settings.Interactivity.Options = base+transport.EventsPath, base+transport.InteractionsPath, base+transport.OptionsPath
	m.Features.Commands[0].URL = base + transport.CommandsPath
	return m
}

// commandHint is the hint that Slack shows for the slash command.
func commandHint() string {
	var names []string
	for _, s := range subcommands() {
		names = append(names, s.name)
	}
	return strings.Join(append(names, "help"), " · ")
}

// The declarations below are the entry points of the app in Slack. The manifest declares the entry points in addition
// to events and scopes.

// SlashCommand is the only slash command. The manifest asks Slack to escape channels, users and links in the command's
// text, so that mentions contain ids.
const SlashCommand = "/countersign"

// Shortcut is an entry of a message's menu in Slack.
type Shortcut struct {
	Name        string // displayed name; at most 24 characters
	Type        string // "message" or "global"
	CallbackID  string
	Description string // at most 150 characters
}

// Shortcuts returns the shortcuts that the bot answers.
func Shortcuts() []Shortcut {
	return []Shortcut{{
		Name: "Explain this approval", Type: "message", CallbackID: control.ExplainShortcut,
		Description: "Who may decide what this card asks for, by which rule, and what has happened so far",
	}}
}

// HomeTab says that the bot draws the app's Home tab. The manifest therefore enables the tab and the event
// app_home_opened.
const HomeTab = true

// Scope is a permission that the app requests from a workspace.
type Scope struct {
	Name   string
	For    string   // the feature that needs the scope
	Events []string // events that Slack sends only with this scope
}

// Scopes returns exactly the scopes that the bot's token needs. manifest_test.go checks the scopes against the methods
// that the code calls.
func Scopes() []Scope {
	return []Scope{
		{"app_mentions:read", "receive messages that mention it", []string{"app_mention"}},
		{"assistant:write", "be opened as an agent, beside what people look at", []string{
			"app_context_changed", "assistant_thread_context_changed", "assistant_thread_started",
		}},
		{"channels:history", "receive what people write in threads of public channels, or read what it missed", []string{"message.channels"}},
		{"channels:read", "find the policy's public channels, or see that it was removed from one", []string{
			"channel_archive", "channel_created", "channel_deleted", "channel_left", "channel_rename", "channel_shared", "channel_unarchive", "channel_unshared", "member_joined_channel",
		}},
		{"chat:write", "write messages", nil},
		{"commands", "receive the command /countersign", nil},
		{"dnd:read", "leave people alone while they do not want to be disturbed", []string{"dnd_updated_user"}},
		{"files:read", "read the text files that people attach", nil},
		{"files:write", "post an answer that is too long for messages as a file", nil},
		{"groups:history", "receive what people write in threads of private channels, or read what it missed", []string{"message.groups"}},
		{"groups:read", "find the policy's private channels, or see that it was removed from one", []string{
			"group_archive", "group_deleted", "group_left", "group_rename", "group_unarchive",
		}},
		{"im:history", "receive what people write to it in direct messages, or read what it missed", []string{"message.im"}},
		{"im:read", "find the direct messages that it was sent while it was offline", nil},
		{"im:write", "write to approvers in direct messages", nil},
		{"mpim:history", "receive what people write in group messages, or read what it missed", []string{"message.mpim"}},
		{"mpim:read", "tell a group message from a channel", nil},
		{"usergroups:read", "find the user groups of the policy, or see who left one", []string{"subteam_created", "subteam_members_changed", "subteam_updated"}},
		{"users:read", "tell who clicked, and whether they are a guest, deactivated or of another organisation", []string{"team_join", "user_change"}},
		{"users:read.email", "find the people whom the policy names by e-mail address", nil},
	}
}

// free lists the events that need no scope. For example, Slack sends agent_session_stopped to every app that is
// configured as an agent.
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
