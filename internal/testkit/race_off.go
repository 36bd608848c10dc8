//go:build !race

package testkit

// RaceEnabled reports whether the race detector is built in.
const RaceEnabled = false
