package campaign

// Brief is how much of n there is time for where everything is several times slower: a quarter under the race detector, which looks for other
// faults than the campaign does, and all of it otherwise.
func Brief(n int) int {
	if Racing {
		return max(1, n/4)
	}
	return n
}
