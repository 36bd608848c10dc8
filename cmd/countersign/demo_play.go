package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"countersign/agent"
	"countersign/agent/client"
	"countersign/cmd/countersign/cli"
	"countersign/store"
)

// playedBot lets a scenario control the demo. playedBot sets the clock, and stops and starts the bot.
type playedBot struct {
	setup       setup
	env         demoEnv
	clock       *clock
	interrupted *interruptedRun
	lasting     context.Context //nolint:containedctx // lasts for the whole play, because the bot outlives the call that starts it
	bot         *running
}

func (b *playedBot) Store() store.Store { return b.env.store }

func (b *playedBot) WorkspaceURL() string { return b.env.base }

func (b *playedBot) Settled(ctx context.Context) (settled, paused bool, err error) {
	sent, all := b.env.ws.Delivered()
	// The bot may not have recorded yet that its connection is up again. If the clock advanced now, the recorded gap
	// would be too long.
	if !all || !b.bot.bot.Gaps.Recorded() {
		return false, false, nil
	}
	idle, err := b.bot.workflow.Idle(ctx)
	if err != nil || !idle {
		return false, false, err
	}
	if now, all := b.env.ws.Delivered(); now != sent || !all {
		return false, false, nil // while Idle looked, the bot received further deliveries
	}
	pause, err := b.bot.workflow.Views.Paused(ctx)
	return err == nil, pause.On, err
}

func (b *playedBot) Now() time.Time { return b.clock.now() }

func (b *playedBot) NextDue(ctx context.Context) (time.Time, error) {
	return b.bot.workflow.NextDue(ctx)
}

func (b *playedBot) Advance(to time.Time) {
	b.clock.reach(to)
	b.bot.workflow.Wake()
}

func (b *playedBot) Reload(ctx context.Context, path string) (problems []error, err error) {
	if err := b.setup.policies.Become(ctx, path); err != nil {
		return cli.Problems(err), nil
	}
	return nil, b.bot.workflow.Requests.Reevaluate(ctx)
}

func (b *playedBot) Restart(ctx context.Context, down time.Duration) error {
	if err := b.bot.end(); err != nil {
		return err
	}
	b.clock.set(b.clock.now().Add(down))
	return b.begin(ctx)
}

// begin starts a bot, and a gateway if the policy names clients.
func (b *playedBot) begin(ctx context.Context) error {
	b.setup.gateway = nil
	if len(b.setup.tools.Policy().Clients) > 0 {
		l, err := listen("the gateway", "COUNTERSIGN_GATEWAY_ADDR", "127.0.0.1:0")
		if err != nil {
			return err
		}
		b.setup.gateway = l
	}
	b.bot = b.setup.begin(b.lasting)
	return connected(ctx, b.bot.parts)
}

func (b *playedBot) Gateway(name string) (*client.Client, error) {
	c, known := b.setup.tools.Policy().ClientOf(demoClientToken)
	switch {
	case !known || c.Name != name:
		return nil, fmt.Errorf("the policy has no client %s with the token %s", name, demoClientToken)
	case b.setup.gateway == nil:
		return nil, errors.New("the policy had no client when the bot started")
	}
	return client.New("http://"+b.setup.gateway.Addr().String(), demoClientToken)
}

func (b *playedBot) StopDuring(tool string, afterItActed bool) {
	b.interrupted.arm(tool, afterItActed, b.bot.stop)
}

func (b *playedBot) Interrupted() bool { return b.interrupted.taken() }

func (b *playedBot) Resume(ctx context.Context) error {
	if err := b.Restart(ctx, 0); err != nil {
		return err
	}
	b.interrupted.mended()
	return nil
}

func (b *playedBot) Ended() <-chan struct{} { return b.bot.done }

func (b *playedBot) Err() error { return b.bot.err }

// interruptedRun stops the bot during a tool's run, so that the outcome of the run is unknown to the next bot.
type interruptedRun struct {
	mu    sync.Mutex
	tool  string // the tool whose next run is interrupted; empty: no run is interrupted
	acted bool   // stop after the tool has acted, rather than before
	stop  func()
	done  bool // the bot has stopped, and no other bot has started
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
		cut, acted := c.interrupts(name)
		if !cut {
			return run(ctx, in)
		}
		if acted {
			if _, err := run(ctx, in); err != nil {
				c.interruptNext(name)
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

// interrupts reports whether this run of a tool is the one to interrupt, and whether the tool acts before the
// interruption.
func (c *interruptedRun) interrupts(tool string) (cut, acted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tool != tool {
		return false, false
	}
	c.tool = ""
	return true, c.acted
}

// interruptNext makes the bot stop during the next run of the tool, because the current run returned an error.
func (c *interruptedRun) interruptNext(tool string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tool = tool
}

// The method "taken" reports whether the bot has stopped and has to be started again.
func (c *interruptedRun) taken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

// The method "mended" records that the bot was started again.
func (c *interruptedRun) mended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = false
}

// clock is a wall clock that a scenario can set. clock runs at normal speed with an offset.
type clock struct{ off atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.off.Load())) }

func (c *clock) set(t time.Time) { c.off.Store(int64(time.Until(t))) }

// reach advances the clock to a time. A time that has already passed is ignored. The clock must not go back, because
// the events that were just recorded would then have times in the future. The scenario would not wait for these events.
func (c *clock) reach(t time.Time) {
	if t.After(c.now()) {
		c.set(t)
	}
}
