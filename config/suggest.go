package config

import (
	"fmt"
	"slices"
	"strings"
)

// didYouMean names the candidate that was probably meant, or "" where none is near.
func didYouMean(written string, candidates []string) string {
	best, bestAt := "", max(1, len([]rune(written))/3)+1
	for _, c := range candidates {
		if d := distance(plain(written), plain(c)); d < bestAt {
			best, bestAt = c, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %s?", best)
}

// plain is a name as people confuse them: in lower case, with one kind of separator.
func plain(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "_")) }

// distance is how many letters must be changed, added, dropped or swapped with their neighbour.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	var before []int
	row := make([]int, len(t)+1)
	for j := range row {
		row[j] = j
	}
	for i := range s {
		next := make([]int, len(t)+1)
		next[0] = i + 1
		for j := range t {
			cost := 1
			if s[i] == t[j] {
				cost = 0
			}
			next[j+1] = min(row[j+1]+1, next[j]+1, row[j]+cost)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(t)]
}

// oneOf is a list for a sentence: a, b or c.
func oneOf(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// sorted is the names without those that are there twice.
func sorted(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out)
}
