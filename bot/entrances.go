package bot

// These are the ways into the bot that the Slack app has to declare, beside its events and scopes: manifest.go writes them into the app's manifest.

// SlashCommand is the one slash command. Slack has to escape channels, users and links in it.
const SlashCommand = "/countersign"

// Shortcut is an entry of the menu that a message has in Slack.
type Shortcut struct {
	Name        string // as people read it; at most 24 characters
	Type        string // "message" or "global"
	CallbackID  string
	Description string // at most 150 characters
}

// Shortcuts are the shortcuts that the bot answers.
func Shortcuts() []Shortcut {
	return []Shortcut{{
		Name: "Explain this approval", Type: "message", CallbackID: explainShortcut,
		Description: "Who may decide what this card asks for, by which rule, and what has happened so far",
	}}
}

const explainShortcut = "explain_approval"

// HomeTab says that the bot draws the app's Home tab: the manifest enables it, and the event app_home_opened.
const HomeTab = true
