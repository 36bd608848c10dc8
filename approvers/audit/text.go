package audit

import (
	"fmt"
	"time"
)

// count formats a number with its noun: "1 record", "2 records".
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// moment formats a time for the operator.
func moment(t time.Time) string { return t.UTC().Format(time.DateTime) + " UTC" }
