package bot

// Slack's limits that decide how things are drawn, in characters (SLACK.md).
const (
	maxHeader      = 150
	maxButtonText  = 75
	maxConfirm     = 300
	maxModalTitle  = 24
	maxInput       = 3000 // initial value and content of a text input
	maxLabel       = 2000
	maxPlaceholder = 150
	maxOptions     = 100
	maxOptionText  = 75
	maxUpdateText  = 4000 // chat.update fails over it, so no message's text is longer
	maxErrorText   = 300  // of one field of a form; ours, so that it stays readable beside the field
)

// What a card can show whole, and the parts of long texts. Ours, chosen well inside Slack's limits on all text of a
// message (12,000) so that everything else on the card fits as well.
const (
	maxCardArgs   = 3000 // more is opened in a modal, which is where it can be approved then
	maxCardLines  = 60
	maxDiff       = 2000
	maxQuote      = 600
	maxWhy        = 1200
	maxResult     = 600
	maxBlockText  = 3000  // text in one block of an answer
	maxPartText   = 9000  // text in one message of an answer; a longer answer is several messages
	maxPageText   = 9000  // arguments on one page of the modal
	maxStepCalls  = 15    // calls that a step draws one by one; the rest is counted
	maxFormFields = 40    // more arguments than this are edited as JSON
	maxNameShown  = 80    // of a person, a tool or a role
	maxSentence   = 2500  // a preview, a problem, a note
	maxStepText   = 2500  // what the model says beside its calls
	maxEphemeral  = 2500  // of what one person is told
	maxWhole      = 11000 // all text of one message
)
