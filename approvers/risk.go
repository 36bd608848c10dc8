package approvers

import (
	"fmt"
	"strings"
)

// Risk is the risk level of a tool call. Risk depends on the harm that the call can do. The zero value is not a level,
// and is invalid in a policy.
type Risk int

// The risk levels, in rising order.
const (
	Low      Risk = iota + 1 // reads only, neither sensitive nor costly
	Medium                   // reversible writes
	High                     // destructive, irreversible or sensitive
	Critical                 // payments, legal effects, publications
)

var riskNames = [...]string{Low: "low", Medium: "medium", High: "high", Critical: "critical"}

// ParseRisk reads a risk level by its name in the policy file.
func ParseRisk(s string) (Risk, error) {
	for r := Low; r <= Critical; r++ {
		if riskNames[r] == s {
			return r, nil
		}
	}
	return 0, fmt.Errorf("%q is not a risk level; write one of %s", s, strings.Join(riskNames[Low:], ", "))
}

// Valid reports whether r is one of the four levels.
func (r Risk) Valid() bool { return r >= Low && r <= Critical }

func (r Risk) String() string {
	if !r.Valid() {
		return fmt.Sprintf("Risk(%d)", int(r))
	}
	return riskNames[r]
}

// MarshalText writes the name that the policy file uses for the risk level.
func (r Risk) MarshalText() ([]byte, error) {
	if r == 0 {
		return nil, nil
	}
	if !r.Valid() {
		return nil, fmt.Errorf("approvers: risk %d is out of range", int(r))
	}
	return []byte(riskNames[r]), nil
}

// UnmarshalText reads the name that the policy file uses for the risk level.
func (r *Risk) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*r = 0
		return nil
	}
	v, err := ParseRisk(string(b))
	*r = v
	return err
}
