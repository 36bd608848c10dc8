package block

// These values limit how much of a text a message shows. The packages for the kinds of messages have further limits. A
// limit is in characters unless its comment says otherwise. The bot sets these limits, not Slack. The limits keep the
// largest message within the 12,000 characters that Slack accepts. The tests of package render check this.
const (
	MaxBundleLines = 20
	MaxHeadline    = 600 // the sentence about the effect of the call, from the preview
	MaxQuote       = 500 // the message that led to the call
	MaxNote        = 300 // a reason, an error, or a sentence about one of several items
	MaxReason      = 600 // the reason why a request ended
	MaxRemark      = 500 // one question, answer or comment, as the person wrote it
	MaxStageName   = 120 // the names of a stage's roles
	MaxStagesTold  = 5
	MaxPeopleTold  = 6
	MaxBundleText  = 200  // the effect of one call of a bundle
	MaxBundleCall  = 800  // arguments of one call of a bundle as a table; longer tables open in a modal
	MaxBundleNote  = 250  // warnings about misleading text
	MaxElicited    = 1200 // a tool's question to a person during its run
	MaxCallText    = 200  // the effect of one of several calls, or the reason why the call failed
	MaxNameShown   = 60   // the name of a person, a tool or a role
	MaxBoundsTold  = 6    // number of arguments that a text about a grant names
	MaxSentence    = 2500 // a sentence about a problem, or a notice
)
