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
