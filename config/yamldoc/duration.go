package yamldoc

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// maxDuration is the longest duration that a policy may contain. A longer duration is probably a mistake, because
// nobody waits for a year.
const maxDuration = 365 * 24 * time.Hour

func (v Value) duration() (time.Duration, bool) { return v.DurationOr("") }

// DurationOr reads a duration. If the value is not a duration, DurationOr adds the parameter named otherwise to the
// hint.
func (v Value) DurationOr(otherwise string) (time.Duration, bool) {
	hint := "write a time such as 90s, 30m, 1h30m or 2d" + otherwise
	if n, ok := v.node.(*ast.IntegerNode); ok {
		v.Wrongf("write "+n.GetToken().Value+"m for minutes; the units are s, m, h and d", "%s has no unit", n.GetToken().Value)
		return 0, false
	}
	text, ok := v.Text("a time such as 30m")
	if !ok {
		return 0, false
	}
	d, err := ParseDuration(text)
	switch {
	case err != nil:
		v.Wrong(Quote(text)+" is not a time", hint)
	case d < time.Second:
		v.Wrong(Quote(text)+" is too short: the shortest is 1s", hint)
	case d > maxDuration:
		v.Wrong(Quote(text)+" is too long: the longest is 365d", hint)
	default:
		return d, true
	}
	return 0, false
}

// maxDays is the largest number of days that is read exactly. A larger number is read as this number, because a
// Duration holds 292 years.
const maxDays = 100_000

// ParseDuration reads a duration in Go's syntax. The text may start with a number of days.
func ParseDuration(text string) (time.Duration, error) {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseFloat(days, 64)
	if err != nil || n < 0 || math.IsNaN(n) {
		return 0, fmt.Errorf("days: %q", days)
	}
	d := time.Duration(min(n, maxDays) * 24 * float64(time.Hour))
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	if err == nil && more < 0 {
		err = fmt.Errorf("negative: %q", rest)
	}
	if d+more < d {
		return math.MaxInt64, err
	}
	return d + more, err
}
