package main

import (
	"context"
	"sync"

	"countersign/agent"
)

// interruptedRun stops the bot during a tool's run, so that the next bot does not know the outcome.
type interruptedRun struct {
	mu    sync.Mutex
	tool  string // empty: none
	acted bool   // stop after the tool has acted, rather than before
	stop  func()
	done  bool // the bot has stopped, and no other one has started
}

func (c *interruptedRun) arm(tool string, acted bool, stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tool, c.acted, c.stop = tool, acted, stop
}

// between wraps a tool to interrupt its run.
func (c *interruptedRun) between(t *agent.Tool) {
	name, run := t.Name, t.Run
	t.Run = func(ctx context.Context, in agent.Invocation) (string, error) {
		cut, acted := c.takes(name)
		if !cut {
			return run(ctx, in)
		}
		if acted {
			if _, err := run(ctx, in); err != nil {
				c.again(name)
				return "", err
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.done = true
		c.stop()
		return "", agent.ErrOutcomeUnknown
	}
}

// takes reports whether this run of a tool is the one to interrupt, and whether it acts before.
func (c *interruptedRun) takes(tool string) (cut, acted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tool != tool {
		return false, false
	}
	c.tool = ""
	return true, c.acted
}

// again interrupts the next run of the tool instead: this one did not count.
func (c *interruptedRun) again(tool string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tool = tool
}

// taken reports whether the bot has stopped and has to be started again.
func (c *interruptedRun) taken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

// mended records that the bot was started again.
func (c *interruptedRun) mended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = false
}
