package config

import (
	"strconv"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

var windows = map[string]time.Duration{
	"m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour,
}

// maxCount is the largest count of a limit. A higher limit would have no effect.
const maxCount = 1_000_000

func readLimitKey(f yamldoc.Fields, key string, to *approvers.Limit) bool {
	v, ok := f[key]
	if !ok {
		return false
	}
	l, ok := readLimit(v)
	if ok {
		*to = l
	}
	return ok
}

func readLimit(v yamldoc.Value) (approvers.Limit, bool) {
	return readLimitOr(v, "would let nothing run by itself", "write confirm: true instead")
}

// readLimitOr reads a limit. The parameter named nothing explains a zero limit, and the parameter named instead
// describes the right form of a limit.
func readLimitOr(v yamldoc.Value, nothing, instead string) (approvers.Limit, bool) {
	const hint = "write a count per minute, hour or day, such as 10/min, 5/h or 3/d"
	if n, ok := v.Integer(); ok {
		v.Wrongf("write "+n+"/h for an hour, or /min or /d", "%s has no time unit", n)
		return approvers.Limit{}, false
	}
	text, ok := v.Text("a limit such as 5/h")
	if !ok {
		return approvers.Limit{}, false
	}
	count, window, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(strings.TrimSpace(count))
	per, known := windows[strings.TrimSpace(window)]
	switch {
	case err != nil || !known || n < 0 || n > maxCount:
		v.Wrong(yamldoc.Quote(text)+" is not a limit", hint)
	case n == 0:
		v.Wrong(yamldoc.Quote(text)+" "+nothing, instead)
	default:
		return approvers.Limit{Count: n, Per: per}, true
	}
	return approvers.Limit{}, false
}
