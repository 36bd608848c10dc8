package agent

import (
	"hash/fnv"
	"math"
	"time"
)

// Retry says how often a model call that failed is tried again within a turn, and how far apart.
type Retry struct {
	Tries   int           // in all; zero is 5
	First   time.Duration // pause after the first failure, 2.5 times as long after each further one; zero is 2 s
	Longest time.Duration // a server that asks for a longer pause ends the turn instead; zero is 2 minutes
}

func (r Retry) withDefaults() Retry {
	if r.Tries <= 0 {
		r.Tries = 5
	}
	if r.First <= 0 {
		r.First = 2 * time.Second
	}
	if r.Longest <= 0 {
		r.Longest = 2 * time.Minute
	}
	return r
}

// next says how long to wait after a failure in a turn, or that it is not to be tried again. failures counts those before it.
func (r Retry) next(turn string, failures int, f *failure) (time.Duration, bool) {
	if !f.worth || failures+1 >= r.Tries || f.after > r.Longest {
		return 0, false
	}
	pause := float64(r.First)
	for range failures {
		pause = min(pause*2.5, float64(r.Longest))
	}
	// A fifth of it is the turn's own, so that conversations that failed together don't come back together. Never before the server's time.
	pause *= 0.8 + 0.4*spread(turn, failures)
	return max(f.after, min(time.Duration(pause), r.Longest)), true
}

// spread is a number from 0 to 1 that differs from turn to turn and from failure to failure.
func spread(turn string, failures int) float64 {
	h := fnv.New32a()
	h.Write([]byte(turn))
	h.Write([]byte{byte(failures)})
	return float64(h.Sum32()) / math.MaxUint32
}
