package approvers

// The tools that every agent can be offered beside the operator's. They change nothing outside of the conversation.
const (
	ToolAskPeople     = "ask_people"      // the model asks the person to confirm or to choose
	ToolAboutTheAsker = "about_the_asker" // profile, time zone and locale of whoever asked, from Slack
	ToolReadResult    = "read_result"     // the rest of a result of which the model was given the beginning
)

// BuiltIn is the policy of a built-in tool where the operator's policy does not name it.
func BuiltIn(tool string) (ToolPolicy, bool) {
	if tool != ToolAskPeople && tool != ToolAboutTheAsker && tool != ToolReadResult {
		return ToolPolicy{}, false
	}
	return ToolPolicy{Name: tool, Risk: Low}, true
}
