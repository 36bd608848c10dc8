package pins

// State is the state of an offered definition relative to its pin.
type State string

// The states of a tool.
const (
	None    State = ""        // the tool needs no pin, for example because it is compiled in, or declared in the policy file
	Same    State = "same"    // the source offers the pinned definition
	Waiting State = "waiting" // pinned; the source has not listed its tools yet
	New     State = "new"     // offered and not pinned
	Drifted State = "drifted" // the source offers a definition other than the pinned one
	Gone    State = "gone"    // pinned and not offered
)

// Open reports whether the operator has to review the tool before the policy allows its calls.
func (s State) Open() bool { return s == New || s == Drifted }
