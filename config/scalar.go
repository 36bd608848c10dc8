package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"countersign/approvers"
)

// fieldset are the values of a mapping with fixed keys. Its methods read one key into a place that
// holds the default, which stays where the key is absent or wrong. They report whether it was read.
type fieldset map[string]value

func (f fieldset) has(key string) bool {
	_, ok := f[key]
	return ok
}

// readable reports whether all values could be read. One that could not may have swallowed what follows it.
func (f fieldset) readable() bool {
	for _, v := range f {
		if v.node == nil {
			return false
		}
	}
	return true
}

func (f fieldset) flag(key string, to *bool) bool {
	v, ok := f[key]
	if !ok {
		return false
	}
	on, ok := v.flag()
	if ok {
		*to = on
	}
	return ok
}

func (f fieldset) risk(key string, to *approvers.Risk) bool {
	v, ok := f[key]
	if !ok {
		return false
	}
	risk, ok := v.risk()
	if ok {
		*to = risk
	}
	return ok
}

func (f fieldset) duration(key string, to *time.Duration) bool {
	v, ok := f[key]
	if !ok {
		return false
	}
	d, ok := v.duration()
	if ok {
		*to = d
	}
	return ok
}

func (f fieldset) limit(key string, to *approvers.Limit) bool {
	v, ok := f[key]
	if !ok {
		return false
	}
	l, ok := v.limit()
	if ok {
		*to = l
	}
	return ok
}

func (f fieldset) stages(key string, to *[]approvers.Stage) bool {
	v, ok := f[key]
	if !ok {
		return false
	}
	s, ok := v.stages()
	if ok {
		*to = s
	}
	return ok
}

func (v value) isBool() bool {
	_, ok := v.node.(*ast.BoolNode)
	return ok
}

func (v value) isMapping() bool { return isMapping(v.node) }

func isMapping(n ast.Node) bool {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	}
	return false
}

var riskLevels = []string{"low", "medium", "high", "critical"}

func (v value) risk() (approvers.Risk, bool) {
	text, ok := v.text(oneOf(riskLevels))
	if !ok {
		return 0, false
	}
	risk, err := approvers.ParseRisk(text)
	if err != nil {
		hint := "write " + oneOf(riskLevels)
		if meant := didYouMean(text, riskLevels); meant != "" {
			hint = meant
		}
		v.wrong(quote(text)+" is not a risk level", hint)
		return 0, false
	}
	return risk, true
}

// maxDuration is the longest time that a policy may name. Nobody waits a year; it was meant to be something else.
const maxDuration = 365 * 24 * time.Hour

func (v value) duration() (time.Duration, bool) { return v.durationOr("") }

// durationOr reads a time. The text is added to the hint where it is none.
func (v value) durationOr(otherwise string) (time.Duration, bool) {
	hint := "write a time such as 90s, 30m, 1h30m or 2d" + otherwise
	if n, ok := v.node.(*ast.IntegerNode); ok {
		v.wrongf("write "+n.GetToken().Value+"m for minutes; the units are s, m, h and d", "%s has no unit", n.GetToken().Value)
		return 0, false
	}
	text, ok := v.text("a time such as 30m")
	if !ok {
		return 0, false
	}
	d, err := parseDuration(text)
	switch {
	case err != nil:
		v.wrong(quote(text)+" is not a time", hint)
	case d < time.Second:
		v.wrong(quote(text)+" is too short: the shortest is 1s", hint)
	case d > maxDuration:
		v.wrong(quote(text)+" is too long: the longest is 365d", hint)
	default:
		return d, true
	}
	return 0, false
}

// parseDuration reads Go's durations with days in front.
func parseDuration(text string) (time.Duration, error) {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseFloat(days, 64)
	if err != nil || n < 0 || n > 1e6 || math.IsNaN(n) {
		return 0, fmt.Errorf("days: %q", days)
	}
	d := time.Duration(n * 24 * float64(time.Hour))
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	if err == nil && more < 0 {
		err = fmt.Errorf("negative: %q", rest)
	}
	return d + more, err
}

var windows = map[string]time.Duration{
	"m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour,
}

// maxCount is the largest count of a limit. Above it a limit limits nothing.
const maxCount = 1_000_000

func (v value) limit() (approvers.Limit, bool) {
	return v.limitOr("would let nothing run by itself", "write confirm: true instead")
}

// limitOr reads a limit. The texts say what a limit of none at all would mean, and what to write instead.
func (v value) limitOr(nothing, instead string) (approvers.Limit, bool) {
	const hint = "write a count per minute, hour or day, such as 10/min, 5/h or 3/d"
	if n, ok := v.node.(*ast.IntegerNode); ok {
		v.wrongf("write "+n.GetToken().Value+"/h for an hour, or /min or /d", "%s does not say in which time", n.GetToken().Value)
		return approvers.Limit{}, false
	}
	text, ok := v.text("a limit such as 5/h")
	if !ok {
		return approvers.Limit{}, false
	}
	count, window, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(strings.TrimSpace(count))
	per, known := windows[strings.TrimSpace(window)]
	switch {
	case err != nil || !known || n < 0 || n > maxCount:
		v.wrong(quote(text)+" is not a limit", hint)
	case n == 0:
		v.wrong(quote(text)+" "+nothing, instead)
	default:
		return approvers.Limit{Count: n, Per: per}, true
	}
	return approvers.Limit{}, false
}
