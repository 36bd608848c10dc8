package wording

// These values limit the length of texts about a request. A limit is in characters unless its comment says otherwise.
const (
	maxAgainst    = 150 // the reason of one person's rejection, while the request is still pending
	maxCallAsk    = 150 // the effect of one call, in the call's confirmation dialog
	maxStepUp     = 150 // the reason why a value must be typed
	maxWhy        = 700
	maxBoundShown = 80 // a value that an argument must have under a grant
)
