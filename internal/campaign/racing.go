//go:build race

package campaign

// Racing reports whether the race detector is built in.
const Racing = true
