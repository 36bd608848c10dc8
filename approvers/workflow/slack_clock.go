package workflow

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// slackClock is the latest time on Slack's clock that the workflow knows, from the newest message that it has seen. The
// local clock may be wrong by any amount, so times that are compared with message timestamps come from slackClock.
type slackClock struct{ seconds atomic.Int64 }

// saw records the ts of an existing message.
func (c *slackClock) saw(ts string) {
	at := sentAt(ts).Unix()
	for seen := c.seconds.Load(); at > seen && !c.seconds.CompareAndSwap(seen, at); seen = c.seconds.Load() {
	}
}

// time returns the latest known time; zero if there is none yet.
func (c *slackClock) time() time.Time {
	seen := c.seconds.Load()
	if seen == 0 {
		return time.Time{}
	}
	return time.Unix(seen, 0).UTC()
}

// sentAt returns the time in a message's ts.
func sentAt(ts string) time.Time {
	seconds, _, _ := strings.Cut(ts, ".")
	n, _ := strconv.ParseInt(seconds, 10, 64) // an invalid ts counts as long ago
	return time.Unix(n, 0)
}

// sentBefore reports whether the message with the first ts was sent before the one with the second.
func sentBefore(ts, other string) bool {
	if a, b := sentAt(ts), sentAt(other); !a.Equal(b) {
		return a.Before(b)
	}
	return ts < other
}
