package yamldoc

import (
	"fmt"
	"strings"
)

// DidYouMean suggests the candidate that the author probably meant. If no candidate is similar, DidYouMean returns "".
func DidYouMean(written string, candidates []string) string {
	if similar := Similar(written, candidates); similar != "" {
		return fmt.Sprintf("did you mean %s?", similar)
	}
	return ""
}

// Similar returns the most similar candidate, or "" if no candidate is similar.
func Similar(written string, candidates []string) string {
	best, bestAt := "", max(1, len([]rune(written))/3)+1
	for _, c := range candidates {
		if d := EditDistance(FoldName(written), FoldName(c)); d < bestAt {
			best, bestAt = c, d
		}
	}
	return best
}

// FoldName removes the differences between names that people confuse. FoldName makes letters lower-case, and replaces
// - by _.
func FoldName(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "_")) }

// EditDistance returns how many letters must be changed, added, removed or swapped with a neighbour to turn a into b.
func EditDistance(a, b string) int {
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
