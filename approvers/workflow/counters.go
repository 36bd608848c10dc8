package workflow

import (
	"time"

	"countersign/approvers"
)

// Keys of the counters. See store.Counter.

// counterAuto counts a tool's automatic runs in a conversation.
func counterAuto(tool, conversation string) string { return "auto/" + tool + "/" + conversation }

// counterAsked counts the requests that a person caused.
func counterAsked(who approvers.PersonID) string { return "asked/" + string(who) }

// counterTokens counts the model's tokens that a person caused.
func counterTokens(who approvers.PersonID) string { return "tokens/" + string(who) }

// counterCalls counts the tool calls that a person caused.
func counterCalls(who approvers.PersonID) string { return "calls/" + string(who) }

// counterRetention is how long counters are kept: longer than the longest window that is counted.
const counterRetention = 48 * time.Hour
