package approvers

// Built-in tools, which every agent can be offered in addition to the operator's. They change nothing outside the
// conversation.
const (
	ToolAskPeople     = "ask_people"      // the model asks the person to confirm or to choose
	ToolAboutTheAsker = "about_the_asker" // profile, time zone and locale of the requester, from Slack
	ToolReadResult    = "read_result"     // the rest of a result whose beginning the model has
)

// BuiltIn returns the default policy of a built-in tool, for when the operator's policy does not name it.
func BuiltIn(tool string) (ToolPolicy, bool) {
	if tool != ToolAskPeople && tool != ToolAboutTheAsker && tool != ToolReadResult {
		return ToolPolicy{}, false
	}
	return ToolPolicy{Name: tool, Risk: Low}, true
}
