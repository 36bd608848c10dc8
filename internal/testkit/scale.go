package testkit

// Scale returns a quarter of n under the race detector, where tests are several times slower, and n otherwise.
func Scale(n int) int {
	if RaceEnabled {
		return max(1, n/4)
	}
	return n
}
