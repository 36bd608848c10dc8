package render

import "countersign/approvers/workflow/view"

// View has everything that is needed to draw an outbox message: the state to show, and its context. Each kind of
// message has a type or a function of its own, which gets only the data that it shows (render).
type View struct {
	view.Model
	WorkspaceURL string          // of the workspace, for links to messages
	Tool         ToolDescription // the tool's own description
	Mentions     []Mention       // people and groups to mention on a card in a channel
	Reader       Reader          // the person for whom the message is drawn, if there is only one
	print        string          // fingerprint of this version; the buttons of the version contain it

	Progress map[string]RunProgress // reported progress of runs, by execution
}

// version returns the version of the outbox message, for the tokens of its buttons.
func (v View) version() version { return version{message: v.Message, print: v.print} }

// origin returns the conversation in which somebody asked.
func (v View) origin() origin {
	return newOrigin(v.WorkspaceURL, v.Conversation)
}

// decisionParts returns the parts that people need for a decision.
func (v View) decisionParts() decisionParts {
	return decisionParts{requestWords: wordsUnder(v.Policy), version: v.version(), mentions: v.Mentions}
}

// callWords returns the words about the state of calls.
func (v View) callWords() callWords {
	return callWords{requestWords: wordsUnder(v.Policy), pause: v.Pause, progress: v.Progress}
}
