package render

import (
	"countersign/approvers/workflow"
)

// These values limit what a card shows in full, and how much of a longer text it shows. A limit is in characters unless
// its comment says otherwise. The bot sets these limits, not Slack. The limits keep the largest message within the
// 12,000 characters that Slack accepts. limits_test.go checks this.
const (
	MaxCardArgs      = 3000 // longer arguments open in a modal, and can be approved only there
	maxCardLines     = 60
	maxCutArgs       = 400 // the beginning of longer arguments
	maxCutLines      = 8
	maxBundleLines   = 20
	maxHeadline      = 600  // what will happen, from the preview
	maxDiff          = 1500 // an edit, before and after
	maxQuote         = 500  // the message that led to the call
	MaxNote          = 300  // a reason, an error, a sentence about one item of several
	maxWhy           = 700
	maxReason        = 600 // why a request ended
	maxResult        = workflow.CardResult
	maxResultLine    = 200  // the result of a run on a decided card
	maxRemark        = 500  // one question, answer or comment as written
	maxRemarks       = 1000 // all remarks together on the card
	maxAgainst       = 150  // the reason of one person's rejection, while the request is still pending
	maxStageName     = 120  // the roles of a stage
	maxStagesTold    = 5
	maxPeopleTold    = 6
	maxBundleText    = 200     // what one call of a bundle would do
	maxBundleLine    = 160     // arguments of one call of a bundle on one line; longer arguments are a table
	maxBundleCall    = 800     // arguments of one call of a bundle as a table; longer tables open in a modal
	maxBundleArgs    = 2800    // arguments of all calls of a bundle
	maxBundleNote    = 250     // warnings about misleading text
	maxBriefly       = 33      // what a call of a long bundle would do, if it is decided or not shown in full
	maxBriefQuote    = 33      // quotation of the person who asked, in the shortest form of a bundle
	maxTerseQuote    = 80      // quotation of the person who asked, in a bundle that would be too tall for a phone
	maxStepUp        = 150     // why a value must be typed
	maxStepText      = 1500    // the model's text beside its calls
	MaxStepCalls     = 12      // a step with more calls shows each of them in fewer words
	maxStepParts     = 20      // blocks of the model's text beside its calls
	maxPlanTasks     = 50      // Slack's limit for one plan
	maxTasksTold     = 6       // number of calls that show their state, if a step has more than MaxStepCalls calls
	maxTaskTitle     = 80      // title of a task, if there are many
	maxPlanText      = 8000    // all tasks together; of further tasks, only the number is shown
	maxElicited      = 1200    // a tool's question to a person during its run
	maxCallText      = 200     // what one of several calls would do, or why it failed
	maxCallAsk       = 150     // what one call would do, in its confirmation dialog
	maxPageText      = 9000    // arguments on one page of the modal
	maxFormFields    = 40      // a call with more arguments is edited as JSON
	maxFormBytes     = 200_000 // all fields together, in bytes; fields beyond this size are locked
	MaxNameShown     = 60      // the name of a person, a tool or a role
	maxBoundsTold    = 6       // arguments that are named in the list of what a grant bounds or leaves free
	maxBoundShown    = 80      // a value that an argument must have under a grant
	MaxGrantsListed  = 10
	MaxWaitingListed = 10
	maxSaidText      = 7000 // the text of an unfinished answer
	MaxSentence      = 2500 // a problem, a notice
	MaxPauseReason   = 300  // the reason for a pause
	MaxErrorText     = 300  // the error of one form field; it must stay readable beside the field
)
