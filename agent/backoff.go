package agent

import (
	"hash/fnv"
	"math"
	"time"
)

// Retry configures how often a failed model call is repeated within a turn, and at what intervals. Each further delay
// is 2.5 times as long as the delay before, up to Longest. Each delay then varies by up to a fifth. A delay is never
// shorter than the delay that the server asked for.
type Retry struct {
	Tries   int           // total number of calls; default 5
	First   time.Duration // delay after the first failure; default 2 s
	Longest time.Duration // the longest delay; if a server asks for a longer delay, the turn ends; default 2 minutes
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

// next returns the delay before the next call. If the call must not be repeated, next returns false. failures is the
// number of earlier failures in the turn.
func (r Retry) next(turn string, failures int, f *failure) (time.Duration, bool) {
	if !f.worth || failures+1 >= r.Tries || f.slow && failures > 0 || f.after > r.Longest {
		return 0, false
	}
	pause := float64(r.First)
	for range failures {
		pause = min(pause*2.5, float64(r.Longest))
	}
	// The delay varies by up to a fifth, depending on the turn. If all delays were equal, conversations that failed
	// at the same time would also retry at the same time. The delay is at least the delay that the server asked for.
	pause *= 0.8 + 0.4*spread(turn, failures)
	return max(f.after, min(time.Duration(pause), r.Longest)), true
}

// spread returns a number from 0 to 1 that differs between turns and failures.
func spread(turn string, failures int) float64 {
	h := fnv.New32a()
	h.Write([]byte(turn))
	h.Write([]byte{byte(failures)})
	return float64(h.Sum32()) / math.MaxUint32
}
