package agent

import (
	"context"

	"countersign/approvers"
)

// askArgs are the arguments of the tool that asks the people of a conversation.
type askArgs struct {
	Question string   `json:"question" min:"1" max:"500" doc:"one question, short and complete in itself"`
	Options  []string `json:"options,omitempty" min:"2" max:"8" unique:"true" each_min:"1" each_max:"70" doc:"what they can choose from; Yes and No where this is left out"`
}

// BuiltIns returns the tools that come with the agent. Built-in tools are registered like all other tools, and change
// nothing outside of the conversation.
func BuiltIns() []Tool {
	return []Tool{
		describe[askArgs](Tool{
			Name: approvers.ToolAskPeople,
			Description: "Asks the people of this conversation to confirm something or to choose between options, and waits for their answer. Use it when " +
				"you need a decision of theirs to continue. It approves nothing: risky calls wait for their approvers anyway, so don't ask for permission with it.",
			Effect: approvers.ReadOnly, Asks: true,
		}),
		Func(approvers.ToolAboutTheAsker,
			"Tells who asked, as Slack knows them: name, title, time zone with their local time, and language. It asks nobody.",
			approvers.ReadOnly,
			func(ctx context.Context, in Invocation, _ struct{}) (string, error) { return in.About(ctx) }),
		readResult(),
	}
}
