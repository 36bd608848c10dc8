package testkit

import "time"

// Patience is how long a test waits for one step. Patience is long, because a step may take many seconds on a busy
// machine. A test waits for this time only if a step fails.
const Patience = time.Minute

// Scale returns n, or a quarter of n under the race detector, because the race detector makes tests several times
// slower.
func Scale(n int) int {
	if RaceEnabled {
		return max(1, n/4)
	}
	return n
}
