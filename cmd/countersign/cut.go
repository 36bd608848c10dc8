package main

import (
	"context"
	"regexp"
	"sync"

	"countersign/agent"
)

// cutLines stop the bot in the middle of a tool.
var cutLines = []line{
	{"The bot will stop while TOOL runs · The bot will stop while TOOL runs, after it acted", regexp.MustCompile(`^The bot will stop while ([\w.-]+) runs(, after it acted)?$`), func(m []string) (scene, error) {
		return happens(func(_ context.Context, p *player) error {
			p.cut.arm(m[1], m[2] != "", p.bot.stop)
			return nil
		})
	}},
}

// cut is a run in the middle of which the bot stops, so that the next one can't know how it ended.
type cut struct {
	mu    sync.Mutex
	tool  string // empty: none
	acted bool   // it stops after the tool acted, and not before
	stop  func()
	done  bool // it has stopped, and no other has begun
}

func (c *cut) arm(tool string, acted bool, stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tool, c.acted, c.stop = tool, acted, stop
}

// between stands between the bot and a tool.
func (c *cut) between(t *agent.Tool) {
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

// takes reports whether this run of a tool is the one, and whether it acts.
func (c *cut) takes(tool string) (cut, acted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tool != tool {
		return false, false
	}
	c.tool = ""
	return true, c.acted
}

// again has the next run of a tool be the one: this one came to nothing.
func (c *cut) again(tool string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tool = tool
}

// taken reports whether the bot has stopped, and another one has to begin.
func (c *cut) taken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

// mended notes that another one has begun.
func (c *cut) mended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = false
}
