package approvers

import (
	"fmt"
	"time"
)

// Reached reports whether n runs in the window use the limit up.
func (l Limit) Reached(n int) bool { return l.Count > 0 && n >= l.Count }

func (l Limit) String() string {
	switch l.Per {
	case time.Minute:
		return fmt.Sprintf("%d/min", l.Count)
	case time.Hour:
		return fmt.Sprintf("%d/h", l.Count)
	case 24 * time.Hour:
		return fmt.Sprintf("%d/d", l.Count)
	}
	return fmt.Sprintf("%d/%s", l.Count, l.Per)
}

// Within returns the limit's window for people: "within an hour".
func (l Limit) Within() string {
	switch l.Per {
	case time.Minute:
		return "within a minute"
	case time.Hour:
		return "within an hour"
	case 24 * time.Hour:
		return "within a day"
	}
	return "within " + l.Per.String()
}

// looser reports whether l permits more than o in some window.
func (l Limit) looser(o Limit) bool {
	return float64(l.Count)*float64(o.Per) > float64(o.Count)*float64(l.Per) || l.Count > o.Count
}
