package yamldoc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Quote quotes a text of the file for use in a problem. A long text is cut, and invisible characters are escaped.
func Quote(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:60]) + "…"
	}
	return strconv.Quote(s)
}

// OneOf writes a list for a sentence: a, b or c.
func OneOf(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// OrHint returns the suggestion or, if there is none, another hint.
func OrHint(suggestion, otherwise string) string {
	if suggestion != "" {
		return suggestion
	}
	return otherwise
}

// SortedUnique returns the names sorted and without duplicates.
func SortedUnique(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out)
}

func number(n int) string { return strconv.Itoa(n) }

// Count writes a number with its noun: 1 token, 200,000 tokens.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return GroupDigits(strconv.Itoa(n)) + " " + noun
}

// GroupDigits puts a comma between each group of three digits before the point: 12,500.5.
func GroupDigits(n string) string {
	sign := ""
	if strings.HasPrefix(n, "-") {
		sign, n = "-", n[1:]
	}
	whole, fraction, hasFraction := strings.Cut(n, ".")
	var b strings.Builder
	for i, digit := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	if hasFraction {
		return sign + b.String() + "." + fraction
	}
	return sign + b.String()
}

// FormatDuration writes a time as a policy does: 30m, 1h30m, 2d.
func FormatDuration(d time.Duration) string {
	if d > 0 && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
	text := ""
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}} {
		if n := d / unit.size; n > 0 {
			text += fmt.Sprintf("%d%s", n, unit.name)
			d -= n * unit.size
		}
	}
	if d > 0 || text == "" {
		text += d.String()
	}
	return text
}
