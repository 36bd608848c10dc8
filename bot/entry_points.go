package bot

import "countersign/bot/render"

// Entry points that the Slack app must declare, in addition to its events and scopes. manifest.go writes them into the
// app's manifest.

// SlashCommand is the only slash command. Slack must escape channels, users and links in it.
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
		Name: "Explain this approval", Type: "message", CallbackID: render.ExplainShortcut,
		Description: "Who may decide what this card asks for, by which rule, and what has happened so far",
	}}
}

// HomeTab says that the bot draws the app's Home tab. The manifest enables it, and the event app_home_opened.
const HomeTab = true
