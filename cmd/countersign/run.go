package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/agent"
	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/bot"
	"countersign/internal/control"
	"countersign/store"
)

// setup is all that the bot is made of. serve fills it in from the environment, demo from what it started itself.
type setup struct {
	botToken, appToken, slackURL string
	model                        agent.Model
	historyTokens                int
	policies                     *policies
	store                        store.Store
	tools                        *toolbox
	admin                        net.Listener      // nil: no admin address
	control                      *control.Listener // nil: no control socket
	storePath                    string            // of the store that the control socket is for
	seal                         sealing
	log                          *slog.Logger
	now                          func() time.Time                      // nil: time.Now
	unlimited                    bool                                  // this Slack has no rate limits: it is a workspace on this machine
	http                         *http.Client                          // with which Slack is called; nil: one of the bot's own
	listen                       func() (net.Listener, error)          // where Slack's requests over HTTP come in; nil: Socket Mode
	signingSecret                string                                // of those requests
	receive                      func(context.Context, *bot.Bot) error // has the bot receive until ctx ends; nil: by itself
}

// Workers of the agenda. Model calls and tools mostly wait for others; cards wait for Slack.
const (
	inboxWorkers   = 16
	thinkWorkers   = 32
	runWorkers     = 32
	previewWorkers = 4 // tools that are asked for previews at a time
	showWorkers    = 8 // of each rank
	lookWorkers    = 4 // they ask Slack where people are
)

// parts are the two edges and the desk between them.
type parts struct {
	desk    *desk.Desk
	bot     *bot.Bot
	agent   *agent.Agent
	metrics *metrics
	sealer  *sealer // nil: nothing is sealed
}

// assemble joins the floors. It talks to nobody.
func (s setup) assemble() parts {
	m := newMetrics(s.store, s.policies.inForce.Load)
	d := desk.New(desk.Config{Store: s.store, Policy: s.policies.inForce.Load, Tools: s.tools.Registry, Log: s.log, Count: m.count, Now: s.now, Admits: agent.Admits})
	b := bot.New(bot.Config{
		BotToken: s.botToken, AppToken: s.appToken, APIURL: s.slackURL, Desk: d, Tools: s.tools.Registry, Log: s.log, Now: s.now,
		HTTP: s.http, Unlimited: s.unlimited, Count: m.countCall, Listen: s.listen, SigningSecret: s.signingSecret, CountRequest: m.countRequest,
	})
	m.watchSlack(s.store, b.Ready)
	m.watchPause(d)
	m.watchRatings(d, s.log)
	m.watchDisk(d)
	m.watchServers(s.tools)
	d.Giver = b.Giver
	a := agent.New(agent.Config{
		Desk: d, Tools: s.tools.Registry, Model: s.model, Log: s.log, Now: s.now, About: b.About, HistoryTokens: s.historyTokens,
		Draft:    func(turn string, step int) agent.Draft { return b.Draft(turn, step) },
		Progress: func(e approvers.Execution) agent.Gauge { return b.Progress(e.Turn, e.Call, e.ID) },
	})
	p := parts{desk: d, bot: b, agent: a, metrics: m}
	if len(s.seal.keys) > 0 {
		p.sealer = newSealer(s.seal, d, s.store, s.log)
		m.watchSeal(s.store, p.sealer)
	}
	return p
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
	letGo := s.tools.begin(ctx)
	defer letGo()
	if err := p.desk.Recover(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // asked to stop before it began
		}
		if errors.Is(err, store.ErrFull) {
			return couldNot("the bot can't begin: %w. Then start it again", err)
		}
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if s.receive != nil {
			return s.receive(ctx, p.bot)
		}
		return p.bot.Run(ctx)
	})
	tell := desk.Duty{Handle: p.bot.Show, Workers: showWorkers, Worth: p.bot.Worth} // what is told in a thread keeps its order
	show := tell
	show.Yields = true
	g.Go(func() error {
		return p.desk.Work(ctx, map[store.TimerKind]desk.Duty{
			store.TimerInbox:     {Handle: p.bot.Handle, Workers: inboxWorkers},
			store.TimerThink:     {Handle: p.agent.Think, Workers: thinkWorkers},
			store.TimerRun:       {Handle: p.agent.Run, Workers: runWorkers},
			store.TimerPreview:   {Handle: p.agent.Preview, Workers: previewWorkers},
			store.TimerShowFirst: show,
			store.TimerShow:      show,
			store.TimerShowLast:  tell,
			store.TimerMuster:    {Handle: p.bot.Muster, Workers: lookWorkers, Worth: p.bot.Worth},
			store.TimerRemind:    {Handle: p.bot.Remind, Workers: lookWorkers, Worth: p.bot.Worth},
			store.TimerAway:      {Handle: p.bot.Depart, Workers: 1, Worth: p.bot.Worth},
		})
	})
	g.Go(func() error { return p.bot.Keep(ctx) })
	g.Go(func() error { return s.policies.watch(ctx, p.desk) })
	g.Go(func() error { return forget(ctx, p.desk, p.metrics, s.log) })
	if p.sealer != nil {
		g.Go(func() error { return p.sealer.work(ctx) })
	}
	if s.admin != nil {
		h := admin(append([]probe{
			{name: "store", ready: func(ctx context.Context) error { return takesWrites(ctx, p.desk) }},
			{name: "slack", ready: p.bot.Ready},
			{name: "model", ready: p.agent.Ping},
			{name: "policy", ready: s.policies.state, notice: true},
			{name: "pins", ready: s.policies.pinState, notice: true},
			{name: "servers", ready: s.tools.state, notice: true},
			{name: "running", ready: runs(p.desk), notice: true},
		}, append(s.requestProbe(p), p.sealer.probes()...)...), p.metrics.handler())
		g.Go(func() error { return serveHTTP(ctx, s.admin, h) })
	}
	if s.control != nil {
		r := newReception(s.storePath, s.store, p.desk, s.log)
		g.Go(func() error { return r.serve(ctx, s.control) })
	}
	err := g.Wait()
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if waited := p.agent.Wait(late); waited != nil {
		s.log.Warn("a tool was still running when the process ended; its outcome is looked into at the next start")
	}
	if p.sealer != nil {
		p.sealer.finish(late)
	}
	if errors.Is(err, store.ErrCommitUnknown) {
		return couldNot("the store could not say whether it wrote; start again, and the bot goes on from what is stored: %w", err)
	}
	return err
}

// requestProbe shows whether Slack's requests over HTTP arrive.
func (s setup) requestProbe(p parts) []probe {
	if s.listen == nil {
		return nil
	}
	return []probe{{name: "requests", ready: func(context.Context) error { return p.bot.Heard() }, notice: true}}
}

// remembered is how long deliveries are known for, so that a redelivery changes nothing. Slack's last retry comes after about six minutes (SLACK.md).
const remembered = 2 * time.Hour

// forget drops what the inbox need not remember any more, and erases what is older than the policy keeps it.
func forget(ctx context.Context, d *desk.Desk, m *metrics, log *slog.Logger) error {
	tick := time.NewTicker(10 * time.Minute)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := d.Forget(ctx, remembered)
		if err == nil && n%retainEvery == 0 {
			err = retain(ctx, d, m, log)
		}
		if err != nil && !errors.Is(err, store.ErrFull) && ctx.Err() == nil { // with a full disk it is done the next time
			return fmt.Errorf("forget: %w", err)
		}
	}
}
