package render

// These values limit what a card shows in full, and how much of a longer text it shows. A limit is in characters unless
// its comment says otherwise. The bot sets these limits, not Slack. The limits keep the largest message within the
// 12,000 characters that Slack accepts. limits_test.go checks this.
const (
	maxBundleLines = 20
	maxHeadline    = 600 // what will happen, from the preview
	maxQuote       = 500 // the message that led to the call
	MaxNote        = 300 // a reason, an error, a sentence about one item of several
	maxReason      = 600 // why a request ended
	maxRemark      = 500 // one question, answer or comment as written
	maxStageName   = 120 // the roles of a stage
	maxStagesTold  = 5
	maxPeopleTold  = 6
	maxBundleText  = 200  // what one call of a bundle would do
	maxBundleCall  = 800  // arguments of one call of a bundle as a table; longer tables open in a modal
	maxBundleNote  = 250  // warnings about misleading text
	maxElicited    = 1200 // a tool's question to a person during its run
	maxCallText    = 200  // what one of several calls would do, or why it failed
	MaxNameShown   = 60   // the name of a person, a tool or a role
	maxBoundsTold  = 6    // arguments that are named in the list of what a grant bounds or leaves free
	MaxSentence    = 2500 // a problem, a notice
)
