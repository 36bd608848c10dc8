package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// maxFaults is the maximum size in bytes of the form errors in an acknowledgement. On a socket Slack silently drops
// acknowledgements of 20 KB or more.
const maxFaults = 16 << 10

// FitFormErrors returns as many form errors as fit in one acknowledgement. The last one says how many are missing;
// those appear when the form is submitted again.
func FitFormErrors(faults map[string]string) map[string]string {
	out := map[string]string{}
	size := 0
	for i, block := range slices.Sorted(maps.Keys(faults)) {
		text := Clip(faults[block], MaxErrorText)
		left := len(faults) - i - 1
		size += bytesOf(block) + bytesOf(text) + 2
		if last := size+MaxErrorText*4 > maxFaults; last && left > 0 {
			text = Clip(text, MaxErrorText/2) + fmt.Sprintf(" (More is to be mended: %s.)", Plural(left, "further field"))
			out[block] = text
			return out
		}
		out[block] = text
	}
	return out
}

// bytesOf returns the length of a string as JSON.
func bytesOf(s string) int {
	raw, err := json.Marshal(s)
	if err != nil {
		return maxFaults
	}
	return len(raw)
}
