package agent

import (
	"context"
	"encoding/json"

	"countersign/approvers"
)

// BuiltIns are the tools that come with the agent. They are registered like any other, and change nothing outside of the conversation.
func BuiltIns() []Tool {
	return []Tool{
		{
			Name: approvers.ToolAskPeople,
			Description: "Asks the people of this conversation to confirm something or to choose between options, and waits for their answer. Use it when " +
				"you need a decision of theirs to go on. It approves nothing: what is risky is put before its approvers anyway, so don't ask for permission with it.",
			Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["question"],"properties":{` +
				`"question":{"type":"string","minLength":1,"maxLength":500,"description":"one question, short and complete in itself"},` +
				`"options":{"type":"array","minItems":2,"maxItems":8,"uniqueItems":true,"items":{"type":"string","minLength":1,"maxLength":70},` +
				`"description":"what they can choose from; Yes and No where this is left out"}}}`),
			Effect: approvers.ReadOnly, Asks: true,
		},
		{
			Name:        approvers.ToolAboutTheAsker,
			Description: "Tells who asked, as Slack knows them: name, title, time zone with their local time, and language. It asks nobody.",
			Schema:      json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{}}`),
			Effect:      approvers.ReadOnly,
			Run:         func(ctx context.Context, in Invocation) (string, error) { return in.About(ctx) },
		},
	}
}
