package main

import (
	"sync/atomic"
	"time"
)

// clock is a wall clock that a scenario can set. It runs at normal speed with an offset.
type clock struct{ off atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.off.Load())) }

// set sets the clock.
func (c *clock) set(t time.Time) { c.off.Store(int64(time.Until(t))) }

// reach advances the clock to a time. A time that has already passed is ignored: if the clock went back, new events
// could lie in its future, and nobody would wait for them.
func (c *clock) reach(t time.Time) {
	if t.After(c.now()) {
		c.set(t)
	}
}
