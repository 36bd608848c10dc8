package main

import (
	"context"
	"time"

	"countersign/cmd/countersign/cli"
	"countersign/store"
)

// playedBot lets a scenario control the demo: it sets the clock, and stops and starts the bot.
type playedBot struct {
	setup       setup
	env         demoEnv
	clock       *clock
	interrupted *interruptedRun
	lasting     context.Context //nolint:containedctx // of the whole play: the bot outlives single calls
	bot         *running
}

func (b *playedBot) Store() store.Store { return b.env.store }

func (b *playedBot) WorkspaceURL() string { return b.env.base }

func (b *playedBot) Settled(ctx context.Context) (settled, paused bool, err error) {
	sent, all := b.env.ws.Delivered()
	if !all {
		return false, false, nil
	}
	idle, err := b.bot.workflow.Idle(ctx)
	if err != nil || !idle {
		return false, false, err
	}
	if now, all := b.env.ws.Delivered(); now != sent || !all {
		return false, false, nil // handled rows have created further work
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
	if err := b.setup.policies.become(path); err != nil {
		return cli.Problems(err), nil
	}
	return nil, b.bot.workflow.Reevaluate(ctx)
}

func (b *playedBot) Restart(ctx context.Context, down time.Duration) error {
	if err := b.bot.end(); err != nil {
		return err
	}
	b.clock.set(b.clock.now().Add(down))
	b.bot = b.setup.begin(b.lasting)
	return connected(ctx, b.bot.parts)
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
