package desk

import (
	"time"

	"countersign/approvers"
)

// What is counted over time, by key. See store.Tally.

// tallyAuto counts a tool's automatic runs in a conversation.
func tallyAuto(tool, conversation string) string { return "auto/" + tool + "/" + conversation }

// tallyAsked counts the requests that a person caused.
func tallyAsked(who approvers.PersonID) string { return "asked/" + string(who) }

// tallyTokens counts the model's tokens that a person caused.
func tallyTokens(who approvers.PersonID) string { return "tokens/" + string(who) }

// tallyCalls counts the tool calls that a person caused.
func tallyCalls(who approvers.PersonID) string { return "calls/" + string(who) }

// tallied is how long tallies are kept: longer than the longest window that is counted.
const tallied = 48 * time.Hour
