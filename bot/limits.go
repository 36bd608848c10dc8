package bot

import "countersign/approvers/desk"

// Slack's limits that decide how things are drawn, in characters (SLACK.md).
const (
	maxHeader     = 150
	maxButtonText = 75
	maxConfirm    = 300
	maxModalTitle = 24
	maxInput      = 3000 // initial value and content of a text input
	maxOptions    = 100
	maxOptionText = 75
	maxUpdateText = 4000 // chat.update fails over it, so no message's text is longer
	maxErrorText  = 300  // of one field of a form; ours, so that it stays readable beside the field
)

// What a card can show whole, and the parts of long texts. Ours, chosen so that all of a message at its largest stays
// inside the 12,000 characters that Slack takes; limits_test.go holds them to it.
const (
	maxCardArgs      = 3000 // more is opened in a modal, which is where it can be approved then
	maxCardLines     = 60
	maxBundleLines   = 20
	maxHeadline      = 600  // what will happen, in the preview's words
	maxDiff          = 1500 // an edit, side by side
	maxForecastShown = 900  // what a tool says of a call; all of it is beside the arguments in the modal
	maxForecastLines = 14
	maxQuote         = 500 // the words that were asked in
	maxNote          = 300 // a reason, a fault, a sentence about one of many
	maxWhy           = 700
	maxReason        = 600 // why a request ended
	maxResult        = desk.CardResult
	maxRemark        = 500  // a question, an answer or a comment, as it is written
	maxRemarks       = 1000 // of all of them together, as the card shows them
	maxAgainst       = 150  // why somebody is against, while it goes on
	maxStageName     = 120  // the roles that a stage is for
	maxStagesTold    = 5
	maxPeopleTold    = 6
	maxBundleText    = 200  // what one call of a bundle would do
	maxBundleCall    = 800  // arguments of one call of a bundle; more is opened in a modal
	maxBundleArgs    = 2800 // of all of them
	maxBundleNote    = 250  // what could mislead
	maxBundleWhy     = 400
	maxStepUp        = 150     // why a value has to be typed
	maxStepText      = 1500    // what the model says beside its calls
	maxStepCalls     = 12      // calls of a step that say all there is to say; of more each is shorter
	maxStepParts     = 20      // blocks of what the model says beside its calls
	maxPlanTasks     = 50      // Slack's, of one plan
	maxTasksTold     = 6       // of many calls, those that say all there is to say
	maxTaskTitle     = 80      // of one of many calls
	maxPlanText      = 8000    // of all of them; the rest is counted
	maxElicited      = 1200    // what a tool asks somebody in the middle of its run
	maxCallText      = 200     // what one of them would do, or why it did not work
	maxCallAsk       = 150     // the same in its confirm dialog
	maxBlockText     = 3000    // text in one block of an answer
	maxPartText      = 9000    // text in one message of an answer; a longer answer is several messages
	maxPageText      = 9000    // arguments on one page of the modal
	maxFormFields    = 40      // more arguments than this are edited as JSON
	maxFormBytes     = 200_000 // of all fields together; what is more of it stays as it is
	maxNameShown     = 60      // of a person, a tool or a role
	maxBoundsTold    = 6       // arguments that a grant bounds, or leaves free
	maxBoundShown    = 80      // a value that it fixes
	maxGrantsListed  = 10
	maxWaitingListed = 10
	maxSaidText      = 7000 // what the model had written of an answer that it did not end
	maxSentence      = 2500 // a problem, a notice
	maxPauseReason   = 300  // why everything is paused
)
