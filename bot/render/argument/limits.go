package argument

// These values limit the arguments that a card shows. A limit is in characters unless its comment says otherwise.
const (
	MaxCardArgs  = 3000 // longer arguments open in a modal, and can be approved only there
	maxCardLines = 60
	MaxDiff      = 1500 // the earlier and the changed value in an edit
)
