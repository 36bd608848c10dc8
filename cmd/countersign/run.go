package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/agent"
	"countersign/approvers/desk"
	"countersign/bot"
	"countersign/store"
)

// setup is all that the bot is made of. serve fills it in from the environment, demo from what it started itself.
type setup struct {
	botToken, appToken, slackURL string
	model                        agent.Model
	historyTokens                int
	policies                     *policies
	store                        store.Store
	tools                        *agent.Registry
	admin                        net.Listener // nil: no admin address
	log                          *slog.Logger
	now                          func() time.Time // nil: time.Now
}

// Workers of the agenda. Model calls and tools mostly wait for others; cards wait for Slack.
const (
	inboxWorkers = 16
	thinkWorkers = 32
	runWorkers   = 32
	showWorkers  = 16
	lookWorkers  = 4 // they ask Slack where people are
)

// parts are the two edges and the desk between them.
type parts struct {
	desk    *desk.Desk
	bot     *bot.Bot
	agent   *agent.Agent
	metrics *metrics
}

// assemble joins the floors. It talks to nobody.
func (s setup) assemble() parts {
	m := newMetrics(s.store, s.policies.inForce.Load)
	d := desk.New(desk.Config{Store: s.store, Policy: s.policies.inForce.Load, Tools: s.tools, Log: s.log, Count: m.count, Now: s.now})
	b := bot.New(bot.Config{
		BotToken: s.botToken, AppToken: s.appToken, APIURL: s.slackURL, Desk: d, Tools: s.tools, Log: s.log, Now: s.now,
	})
	d.Giver = b.Giver
	a := agent.New(agent.Config{
		Desk: d, Tools: s.tools, Model: s.model, Log: s.log, Now: s.now, About: b.About, HistoryTokens: s.historyTokens,
	})
	return parts{desk: d, bot: b, agent: a, metrics: m}
}

// running is the bot at work.
type running struct {
	parts
	stop context.CancelFunc
	done chan struct{} // closed when it has ended, with err set
	err  error
}

// begin has the bot work beside the caller, until ctx ends or it is ended.
func (s setup) begin(ctx context.Context) *running {
	ctx, stop := context.WithCancel(ctx)
	r := &running{parts: s.assemble(), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = s.run(ctx, r.parts)
	}()
	return r
}

// end stops the bot and waits for what is under way.
func (r *running) end() error {
	r.stop()
	<-r.done
	return r.err
}

// run works until ctx ends, and then waits for what is under way.
func (s setup) run(ctx context.Context, p parts) error {
	if err := p.desk.Recover(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.bot.Run(ctx) })
	g.Go(func() error {
		return p.desk.Work(ctx, map[store.TimerKind]desk.Duty{
			store.TimerInbox:  {Handle: p.bot.Handle, Workers: inboxWorkers},
			store.TimerThink:  {Handle: p.agent.Think, Workers: thinkWorkers},
			store.TimerRun:    {Handle: p.agent.Run, Workers: runWorkers},
			store.TimerShow:   {Handle: p.bot.Show, Workers: showWorkers},
			store.TimerMuster: {Handle: p.bot.Muster, Workers: lookWorkers},
			store.TimerRemind: {Handle: p.bot.Remind, Workers: lookWorkers},
			store.TimerAway:   {Handle: p.bot.Depart, Workers: 1},
		})
	})
	g.Go(func() error { return s.policies.watch(ctx, p.desk) })
	g.Go(func() error { return forget(ctx, p.desk) })
	if s.admin != nil {
		h := admin([]probe{
			{name: "store", ready: func(ctx context.Context) error {
				return s.store.View(ctx, func(store.Reader) error { return nil })
			}},
			{name: "slack", ready: p.bot.Ready},
			{name: "model", ready: p.agent.Ping},
			{name: "policy", ready: s.policies.state, notice: true},
		}, p.metrics.handler())
		g.Go(func() error { return serveHTTP(ctx, s.admin, h) })
	}
	err := g.Wait()
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if waited := p.agent.Wait(late); waited != nil {
		s.log.Warn("a tool was still running when the process ended; its outcome is looked into at the next start")
	}
	if errors.Is(err, store.ErrCommitUnknown) {
		return couldNot("the store could not say whether it wrote; start again, and the bot goes on from what is stored: %w", err)
	}
	return err
}

// remembered is how long deliveries are known for, so that a redelivery changes nothing. Slack's last retry comes after about six minutes (SLACK.md).
const remembered = 2 * time.Hour

// forget drops what the inbox need not remember any more.
func forget(ctx context.Context, d *desk.Desk) error {
	tick := time.NewTicker(10 * time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := d.Forget(ctx, remembered); err != nil && ctx.Err() == nil {
			return fmt.Errorf("inbox: %w", err)
		}
	}
}
