package wording

import (
	"countersign/approvers/workflow/view"
	"countersign/bot/render/block"
)

// View has everything that is needed to draw an outbox message: the state to show, and its context. Each kind of
// message has a type or a function of its own, which gets only the data that it shows (render).
type View struct {
	view.Model
	WorkspaceURL string          // address of the workspace, for links to messages
	Tool         ToolDescription // the tool's own description
	Mentions     []Mention       // people and groups to mention on a card in a channel
	Reader       block.Reader    // the person for whom the message is drawn, if there is only one
	Print        string          // fingerprint of this version; the buttons of the version contain it

	Progress map[string]RunProgress // reported progress of runs, by execution
}

// Version returns the version of the outbox message, for the tokens of its buttons.
func (v View) Version() Version { return Version{Message: v.Message, print: v.Print} }

// Origin returns the conversation in which somebody asked.
func (v View) Origin() Origin {
	return NewOrigin(v.WorkspaceURL, v.Conversation)
}

// DecisionParts returns the parts that people need for a decision.
func (v View) DecisionParts() DecisionParts {
	return DecisionParts{RequestWords: Under(v.Policy), Version: v.Version(), Mentions: v.Mentions}
}

// CallWords returns the words about the state of calls.
func (v View) CallWords() CallWords {
	return CallWords{RequestWords: Under(v.Policy), Pause: v.Pause, progress: v.Progress}
}
