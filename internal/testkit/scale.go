package testkit

import "time"

// Patience is how long a test waits for one step. It is long, because a step may take many seconds on a busy machine;
// only a step that fails takes longer.
const Patience = time.Minute

// Scale returns a quarter of n under the race detector, where tests are several times slower, and n otherwise.
func Scale(n int) int {
	if RaceEnabled {
		return max(1, n/4)
	}
	return n
}
