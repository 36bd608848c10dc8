package transport

import (
	"sync"
	"time"
)

// ReceiptClock assigns each delivery a different time of receipt, in order of arrival. Timers of one lane are handled
// in the order of these times. If the system clock is set back by a second or more, the times of receipt follow the
// clock. So no delivery gets a time in the future. The zero value is ready to use.
type ReceiptClock struct {
	mu   sync.Mutex
	last time.Time
}

// Next returns the time of receipt of a delivery that arrives now.
func (c *ReceiptClock) Next(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now = now.UTC().Truncate(time.Microsecond)
	if behind := c.last.Sub(now); behind >= 0 && behind < time.Second {
		now = c.last.Add(time.Microsecond)
	}
	c.last = now
	return now
}
