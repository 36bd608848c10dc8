package desk

// What is counted over time, by key. See store.Tally.

// tallyAuto counts a tool's automatic runs in a conversation.
func tallyAuto(tool, conversation string) string { return "auto/" + tool + "/" + conversation }
