package card

// These values limit the parts of a card. A limit is in characters unless its comment says otherwise.
const (
	maxBriefQuote = 33   // quotation of the person who asked, in the shortest form of a bundle
	maxBriefly    = 33   // the effect of a call of a long bundle, if the call is decided or is not shown in full
	MaxBundleArgs = 2800 // arguments of all calls of a bundle
	maxBundleLine = 160  // arguments of one call of a bundle on one line; longer arguments are a table
	maxCutArgs    = 400  // the beginning of longer arguments
	maxCutLines   = 8
	maxTerseQuote = 80  // quotation of the person who asked, in a bundle that would be too tall for a phone
	maxResultLine = 200 // the result of a run on a decided card
)
