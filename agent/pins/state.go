package pins

// State is how what a source offers stands to what is pinned of it.
type State string

// The states of a tool.
const (
	None    State = ""        // it needs no pin: it is compiled in, or the policy file itself declares it
	Same    State = "same"    // its source offers what is pinned
	Waiting State = "waiting" // it is pinned, and its source did not say yet what it offers
	New     State = "new"     // its source offers it, and nobody has pinned it
	Drifted State = "drifted" // its source offers another definition than the one that is pinned
	Gone    State = "gone"    // it is pinned, and its source does not offer it any more
)

// Open reports whether the operator has to look at the tool before it may be called by what the policy says of it.
func (s State) Open() bool { return s == New || s == Drifted }

// Compare says how a definition stands to a pin. offered is nil where the source does not offer the tool, pinned where nobody has pinned it.
func Compare(pinned, offered *string) State {
	switch {
	case pinned == nil && offered == nil:
		return None
	case pinned == nil:
		return New
	case offered == nil:
		return Gone
	case *pinned != *offered:
		return Drifted
	}
	return Same
}
