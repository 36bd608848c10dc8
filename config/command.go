package config

// Command says for which command the environment is read: what it reads must be right, what it needs must be there.
type Command int

// The kinds of command.
const (
	Serve   Command = iota // the bot: needs Slack and a model
	Demo                   // everything on this machine: Slack's variables don't concern it; a model is used if one is set
	Check                  // looks at everything that is set and needs nothing
	Offline                // works on the store and the policy alone
)

func (c Command) readsSlack() bool { return c == Serve || c == Check }
func (c Command) needsSlack() bool { return c == Serve }
func (c Command) readsModel() bool { return c != Offline }
func (c Command) needsModel() bool { return c == Serve }
func (c Command) readsStore() bool { return c != Demo }
