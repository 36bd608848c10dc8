package workflow

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// slackClock is how late it is by Slack's clock at least, as the newest message says that the workflow has seen. Ours
// may be set by an hour, or be wrong altogether: what is compared with the timestamps of messages goes by theirs.
type slackClock struct{ seconds atomic.Int64 }

// saw takes in the ts of a message that is there.
func (c *slackClock) saw(ts string) {
	at := sentAt(ts).Unix()
	for seen := c.seconds.Load(); at > seen && !c.seconds.CompareAndSwap(seen, at); seen = c.seconds.Load() {
	}
}

// time is the latest time seen; zero before the first.
func (c *slackClock) time() time.Time {
	seen := c.seconds.Load()
	if seen == 0 {
		return time.Time{}
	}
	return time.Unix(seen, 0).UTC()
}

// sentAt is when Slack took a message, as its ts says.
func sentAt(ts string) time.Time {
	seconds, _, _ := strings.Cut(ts, ".")
	n, _ := strconv.ParseInt(seconds, 10, 64) // what is no ts was sent long ago
	return time.Unix(n, 0)
}

// sentBefore reports whether the message with the first ts was sent before the one with the second.
func sentBefore(ts, other string) bool {
	if a, b := sentAt(ts), sentAt(other); !a.Equal(b) {
		return a.Before(b)
	}
	return ts < other
}
