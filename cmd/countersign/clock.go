package main

import (
	"sync/atomic"
	"time"
)

// clock is the wall clock, set by a scenario: it runs as fast, and is ahead or behind.
type clock struct{ off atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.off.Load())) }

// set has the clock show a time from now on.
func (c *clock) set(t time.Time) { c.off.Store(int64(time.Until(t))) }

// reach has the clock go on to a time. One that has passed while something was done stays passed: a clock that goes back would have what comes in next lie
// ahead of it, where nobody would wait for it.
func (c *clock) reach(t time.Time) {
	if t.After(c.now()) {
		c.set(t)
	}
}
