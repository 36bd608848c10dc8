package block

// These values limit how much of a text a message shows. The packages for the kinds of messages have further limits. A
// limit is in characters unless its comment says otherwise. The bot sets these limits, not Slack. The limits keep the
// largest message within the 12,000 characters that Slack accepts. The tests of package render check this.
const (
	MaxBundleLines = 20
	MaxHeadline    = 600 // what will happen, from the preview
	MaxQuote       = 500 // the message that led to the call
	MaxNote        = 300 // a reason, an error, a sentence about one item of several
	MaxReason      = 600 // why a request ended
	MaxRemark      = 500 // one question, answer or comment as written
	MaxStageName   = 120 // the roles of a stage
	MaxStagesTold  = 5
	MaxPeopleTold  = 6
	MaxBundleText  = 200  // what one call of a bundle would do
	MaxBundleCall  = 800  // arguments of one call of a bundle as a table; longer tables open in a modal
	MaxBundleNote  = 250  // warnings about misleading text
	MaxElicited    = 1200 // a tool's question to a person during its run
	MaxCallText    = 200  // what one of several calls would do, or why it failed
	MaxNameShown   = 60   // the name of a person, a tool or a role
	MaxBoundsTold  = 6    // arguments that are named in the list of what a grant bounds or leaves free
	MaxSentence    = 2500 // a problem, a notice
)
