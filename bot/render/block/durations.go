package block

import (
	"strings"
	"time"
)

// Period formats a duration for people: "1 hour 30 minutes".
func Period(d time.Duration) string {
	var parts []string
	for _, unit := range []struct {
		long time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := d / unit.long; n > 0 {
			parts = append(parts, Plural(int(n), unit.name))
			d -= n * unit.long
		}
	}
	return strings.Join(parts, " ")
}

// RoughDuration formats a duration in one unit, rounded. The unit is the largest unit that fits at least three times
// into the duration, or that divides the duration without a remainder.
func RoughDuration(d time.Duration) string {
	for _, unit := range []struct {
		long time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if d >= 3*unit.long || d >= unit.long && d%unit.long == 0 {
			return Plural(int(d.Round(unit.long)/unit.long), unit.name)
		}
	}
	return Plural(int(d.Round(time.Second)/time.Second), "second")
}
