package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/agent/gateway"
	"countersign/agent/gateway/mcpserver"
	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/bot"
	"countersign/bot/rotation"
	"countersign/bot/slackapi"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/metrics"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/policyfile"
	"countersign/config"
	"countersign/internal/control"
	"countersign/internal/tracing"
	"countersign/store"
	"countersign/store/jobs"
	"countersign/store/postgres"
)

// setup configures the bot. The command serve fills setup from the environment. The command demo fills setup from its
// own services.
type setup struct {
	botToken, appToken, slackURL string
	model                        agent.Model
	historyTokens                int
	stopWait                     time.Duration // how long a shutdown waits for running tools; zero: 15 s; negative: no wait
	policies                     *policyfile.Source
	store                        store.Store
	replica                      store.Replica // nil: this process is the only one on the store
	tools                        *catalog.Catalog
	admin                        net.Listener // nil: no admin address
	gateway                      net.Listener // nil: there is no gateway
	receiptKey                   gateway.ReceiptKey
	gatewayURL                   string            // address for which access tokens are issued; empty: no access token is accepted
	control                      *control.Listener // nil: no control socket
	storePath                    string            // path of the store, for the control socket
	audit                        config.Audit      // location of the store's signing key and heads
	seal                         sealing
	build                        cli.Build // the build of this program, for the history, the metrics and the Home tab; zero in tests
	log                          *slog.Logger
	now                          func() time.Time                      // clock of stored times; nil: time.Now
	clockOffset                  func() time.Duration                  // the database's time minus this machine's time; nil: the store is a file
	unlimited                    bool                                  // no rate limits, because the workspace is on this machine
	http                         *http.Client                          // HTTP client for Slack; nil: the bot's own client
	listen                       func() (net.Listener, error)          // opens the listener for Slack's HTTP requests; nil: Socket Mode
	systemd                      *notifier                             // nil: no reports to systemd
	secrets                      *secrets                              // nil: the secrets never change
	rotation                     *rotation.Keeper                      // nil: the app has no token rotation
	signingSecret                string                                // signing secret of Slack's HTTP requests
	crashes                      *crashes                              // nil: current work is not recorded
	tracer                       *tracing.Tracer                       // nil: nothing is traced
	receive                      func(context.Context, *bot.Bot) error // receives Slack's events until ctx ends; nil: the bot's own function
}

// These constants are the numbers of workers of the scheduler. They can be large, because model calls and tools mostly
// wait for other services, and cards wait for Slack.
const (
	inboxWorkers   = 16
	thinkWorkers   = 32
	runWorkers     = 32
	previewWorkers = 4 // concurrent preview calls to tools
	showWorkers    = 8 // number of workers for each priority
	lookWorkers    = 4 // handlers that ask Slack about people's availability
)

// parts has the bot, which talks to Slack, the agent, which talks to the model, and the workflow between them.
type parts struct {
	workflow *workflow.Workflow
	bot      *bot.Bot
	agent    *agent.Agent
	metrics  *metrics.Metrics
	traces   traces
	webhooks *gateway.Webhooks
	mcp      *atomic.Pointer[mcpserver.Server] // empty until the gateway is open
	sealer   *audit.Sealer                     // nil: no sealing
	reporter *audit.Reporter

	inspections *atomic.Int64 // how many inspections of the store have ended
}

// assemble connects the layers. assemble makes no network calls.
func (s setup) assemble() parts {
	if s.now == nil {
		s.now = time.Now
	}
	t := traces{s.tracer, s.now}
	s.log = slog.New(s.tracer.Handler(s.log.Handler()))
	m := metrics.New(s.store, s.tools.Policy)
	m.Exemplar = t.exemplar
	m.WatchBuild(s.build)
	m.WatchReplicas(s.ownReplica())
	m.WatchClock(s.clockOffset)
	conf := workflow.Config{
		Store: s.store, Replica: s.ownReplica(), Policy: s.tools.Policy, PolicySource: s.policies, Tools: s.tools.Registry, Log: s.log, Now: s.now,
		Admits: agent.Admits, Trace: s.tracer.ID, Wrote: func(took time.Duration) { m.CountWrite(took) },
		Count: func(ctx context.Context, e workflow.Event) {
			m.Count(e)
			t.happened(ctx, e)
		},
	}
	if s.crashes != nil {
		conf.Crashes = s.crashes
	}
	wf := workflow.New(conf)
	b := bot.New(bot.Config{
		BotToken: s.botToken, AppToken: s.appToken, APIURL: s.slackURL, Workflow: bot.Use(wf), Tools: s.tools.Registry, Log: s.log, Now: s.now, Admits: agent.Admits,
		HTTP: s.http, Unlimited: s.unlimited, Share: s.sharing, Version: s.build.Version,
		Count: func(ctx context.Context, c slackapi.Call) {
			m.CountCall(c)
			t.called(ctx, c)
		},
		Listen: s.listen, SigningSecret: s.signingSecret, CountRequest: m.CountRequest, Reread: s.reread(), Expired: s.expired(),
	})
	m.WatchSlack(s.store, b.Ready)
	m.WatchPause(wf)
	m.WatchFeedback(wf, s.log)
	m.WatchWaiting(wf, s.store, s.log)
	m.WatchSize(s.store, s.log)
	m.WatchDisk(wf)
	m.WatchDamage(s.store)
	m.WatchStall(s.store)
	m.WatchStore(func(ctx context.Context) error { return takesWrites(ctx, wf) })
	m.WatchTools(s.tools)
	m.WatchPolicies(s.policies)
	var mcp atomic.Pointer[mcpserver.Server]
	wf.GrantOwner, wf.Team = b.Identities.GrantOwner, b.Team
	wf.HearTold = func(what string) {
		if server := mcp.Load(); server == nil || !server.Hear(what) {
			b.Replicas.Hear(what)
		}
	}
	a := agent.New(agent.Config{
		Turns: wf.Turns, Runs: wf.Runs, Questions: wf.Questions, Results: wf.Views, Tools: s.tools.Registry, About: b.Identities.About,
		Model: s.model, HistoryTokens: s.historyTokens, Log: s.log, Now: s.now, Count: m.CountModel, Grace: s.stopWait,
		Draft:    func(turn string, step int) agent.Draft { return b.Drafts.Draft(turn, step) },
		Progress: func(e approvers.Execution) agent.Gauge { return b.Display.Progress(e.Turn, e.Call, e.ID) },
	})
	if s.secrets != nil {
		s.secrets.renewBot = b.Renew
		s.secrets.renewKey = a.RenewKey
	}
	if s.rotation != nil {
		m.WatchBotToken(s.rotation.Expires)
		if s.secrets != nil {
			s.secrets.renewApp = s.rotation.SetApp
		}
		s.rotation.Use = func(ctx context.Context, token string) error { return b.Renew(ctx, bot.Secrets{BotToken: token}) }
	}
	p := parts{workflow: wf, bot: b, agent: a, metrics: m, traces: t, mcp: &mcp, inspections: new(atomic.Int64)}
	p.reporter = audit.NewReporter(wf.History, s.store, s.tools.Policy, s.log)
	p.webhooks = gateway.NewWebhooks(gateway.WebhookConfig{
		Callers: wf.Callers, Views: wf.Views, Policy: s.tools.Policy, Lookup: config.Lookup, Log: s.log, Now: s.now, Count: m.CountWebhook,
	})
	if len(s.seal.keys) > 0 {
		p.sealer = audit.NewSealer(s.seal.keys, s.seal.places, wf.History, s.store, s.log)
		p.sealer.Trusted = s.seal.trusted
		m.WatchSeal(s.store, p.sealer)
	}
	return p
}

// reread returns the function that looks for new secrets. If the secrets never change, reread returns nil.
func (s setup) reread() func(context.Context) bool {
	if s.secrets == nil {
		return nil
	}
	return func(ctx context.Context) bool { return s.secrets.reread(ctx, true) }
}

// expired returns the function that is called when the bot token has expired. If the app has no token rotation, expired
// returns nil.
func (s setup) expired() func() {
	if s.rotation == nil {
		return nil
	}
	return s.rotation.Expired
}

// probes returns the probes of /readyz. Only the first ones decide whether the bot is ready.
func (s setup) probes(p parts) []probe {
	return slices.Concat([]probe{
		{name: "store", ready: func(ctx context.Context) error { return takesWrites(ctx, p.workflow) }},
		{name: "deliveries", ready: p.bot.Receiving},
		{name: "policy in force", ready: s.policies.InForce},
		{name: "rows", ready: undamaged(s.store), notice: true},
		{name: "mended", ready: repaired(s.store), notice: true},
		{name: "slack", ready: p.bot.Available, notice: true},
		{name: "refused by Slack", ready: refusedBySlack(p.workflow), notice: true},
		{name: "model", ready: p.agent.Ping, notice: true},
		{name: "policy", ready: s.policies.State, notice: true},
		{name: "pins", ready: s.policies.Pinned, notice: true},
		{name: "servers", ready: s.tools.Reachable, notice: true},
		{name: "running", ready: reportPause(p.workflow), notice: true},
		{name: "channels", ready: reportLostChannels(p.workflow), notice: true},
		{name: "cards", ready: reportUnreached(p.workflow), notice: true},
		{name: "messages", ready: reportUndelivered(p.workflow), notice: true},
		{name: "webhooks", ready: reportWebhooks(p.workflow), notice: true},
		{name: "scopes", ready: p.bot.Permissions.Complete, notice: true},
	}, s.requestProbe(p), s.clockProbe(), s.rotationProbes(), sealProbes(p.sealer))
}

// clockProbe returns the probe that says on /readyz how far this machine's clock is from the database's.
func (s setup) clockProbe() []probe {
	if s.clockOffset == nil {
		return nil
	}
	return []probe{{name: "clock", notice: true, ready: func(context.Context) error {
		if what, do := postgres.ClocksApart(s.clockOffset()); what != "" {
			return fmt.Errorf("%s: %s", what, do)
		}
		return nil
	}}}
}

// rotationProbes returns the probes that say on /readyz whether the bot token is valid, and was renewed in time.
func (s setup) rotationProbes() []probe {
	if s.rotation == nil {
		return nil
	}
	return []probe{{name: "bot token", ready: s.rotation.Valid, notice: true}, {name: "renewal of the bot token", ready: s.rotation.Renewed, notice: true}}
}

// The method "workers" returns the workers of the kinds of timer that the bot and the agent handle.
func (p parts) workers() map[store.TimerKind]jobs.Worker {
	answer := jobs.Worker{Handle: p.bot.Display.Show, Concurrency: showWorkers, Worth: p.bot.Worth} // Yields is not set, so the answers in a thread keep their order
	show := answer
	show.Yields = true
	card := show
	card.Flow = p.workflow.Outbox.Flow // many cards of one requester do not delay the cards of other requesters
	return map[store.TimerKind]jobs.Worker{
		store.TimerInbox:        {Handle: p.bot.Inbox.Handle, Concurrency: inboxWorkers},
		store.TimerThink:        {Handle: p.agent.Think, Concurrency: thinkWorkers},
		store.TimerRun:          {Handle: p.agent.Run, Concurrency: runWorkers},
		store.TimerPreview:      {Handle: p.agent.Preview, Concurrency: previewWorkers},
		store.TimerShowFirst:    card,
		store.TimerShow:         card,
		store.TimerShowAnswer:   answer,
		store.TimerShowLast:     show,
		store.TimerAvailability: {Handle: p.bot.Availability.Resolve, Concurrency: lookWorkers, Worth: p.bot.Worth},
		store.TimerRemind:       {Handle: p.bot.Availability.Remind, Concurrency: lookWorkers, Worth: p.bot.Worth},
		store.TimerCatchUp:      {Handle: p.bot.Gaps.CatchUp, Concurrency: 1, Worth: p.bot.Worth},
		store.TimerLeftover:     {Handle: p.bot.Leftovers.Delete, Concurrency: 1, Worth: p.bot.Worth},
		store.TimerWebhook:      {Handle: p.webhooks.Deliver, Concurrency: gateway.WebhookWorkers},
		store.TimerAway:         {Handle: p.bot.Availability.AbsenceChanged, Concurrency: 1, Worth: p.bot.Worth},
	}
}

// running is a bot in operation.
type running struct {
	parts
	stop context.CancelFunc
	done chan struct{} // closed at the end, after err is set
	err  error
}

// begin starts the bot in the background, until ctx ends or end is called.
func (s setup) begin(ctx context.Context) *running {
	ctx, stop := context.WithCancel(ctx)
	r := &running{parts: s.assemble(), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = s.run(ctx, r.parts)
	}()
	return r
}

// end stops the bot and waits for the work in progress.
func (r *running) end() error {
	r.stop()
	<-r.done
	return r.err
}

// run runs the bot until ctx ends, and then waits for the work in progress.
func (s setup) run(ctx context.Context, p parts) error {
	watchDamage(s.store, s.log)
	if err := s.enter(ctx, p); err != nil {
		return unlessEnded(ctx, couldNotStart(err))
	}
	letGo := s.tools.Begin(ctx)
	unsure := false // true if the store's content is unknown, so that the process must end immediately
	defer func() {
		if unsure {
			go letGo()
		} else {
			letGo()
		}
	}()
	if err := s.recover(ctx, p); err != nil {
		return unlessEnded(ctx, couldNotStart(err))
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	if s.crashes != nil { // from here on, an end of the process does not count as a crash of the work in progress
		defer s.crashes.stop()
		defer context.AfterFunc(ctx, s.crashes.stop)()
	}
	g.Go(func() error {
		if s.receive != nil {
			return s.receive(ctx, p.bot)
		}
		return p.bot.Run(ctx)
	})
	g.Go(func() error { return p.workflow.Work(ctx, p.traced(p.workers())) })
	g.Go(func() error { return p.bot.Statuses.Keep(ctx) })
	g.Go(func() error { return s.policies.Watch(ctx, p.workflow) })
	g.Go(func() error { return inspect(ctx, s.store, p.inspections, s.log) })
	s.followMachine(ctx, g)
	g.Go(func() error {
		return s.inOneReplica(ctx, upkeepJob, func(ctx context.Context) error { return forget(ctx, p.workflow, p.metrics, s.log) })
	})
	g.Go(func() error { return s.inOneReplica(ctx, upkeepJob, p.reporter.Run) })
	if p.sealer != nil {
		g.Go(func() error { return s.inOneReplica(ctx, sealingJob, p.sealer.Run) })
	}
	g.Go(func() error {
		return s.inOneReplica(ctx, sealingJob, func(ctx context.Context) error { return s.tellChecks(ctx, p) })
	})
	if s.admin != nil {
		h := admin(s.probes(p), p.metrics.Handler())
		g.Go(func() error { return serveHTTP(ctx, s.admin, h) })
	}
	if s.gateway != nil {
		door, err := s.openGateway(ctx, p)
		if err != nil {
			return couldNotStart(err)
		}
		g.Go(func() error { return serveOn(ctx, door, limitConnections(s.gateway, gateway.MaxConnections)) })
	}
	endControl := s.serveControl(ctx, g, p)
	ended := make(chan error, 1)
	go func() { ended <- g.Wait() }()
	var err error
	select {
	case err = <-ended:
		if errors.Is(err, bot.ErrToken) {
			err = cli.Misused("%w", err)
		}
	case <-storeBroken(s.store):
		err = store.ErrCommitUnknown
	}
	if unsure = errors.Is(err, store.ErrCommitUnknown); unsure {
		return s.unknown(err)
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if waited := p.agent.Wait(late); waited != nil {
		s.log.WarnContext(ctx, "a tool was still running when the process ended; the next start determines the outcome")
	}
	endControl()
	if p.sealer != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second) // the tool and the commands may have used up the time above
		defer cancel()
		if own, leave, ok := s.ownReplica().Enter(late, sealingJob); ok {
			p.sealer.Finish(own)
			leave()
		}
	}
	if w, ok := s.store.(openstore.Watchable); ok && err == nil && w.Failure() != nil { // the store stopped while the last head was written
		return s.unknown(w.Failure())
	}
	if errors.Is(err, store.ErrDamaged) {
		return cli.CouldNot("the bot has stopped: %w", err)
	}
	return err
}

// serveControl serves the control socket until the returned function is called. While a stopping bot waits for tools,
// operators can still list what waits, and interrupt the tools with a pause. If the server fails, so does the group.
func (s setup) serveControl(ctx context.Context, g *errgroup.Group, p parts) (end func()) {
	if s.control == nil {
		return func() {}
	}
	r := newControlServer(s.storePath, s.audit, s.store, p.workflow, s.log)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	failed, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		failed <- r.serve(serving, s.control)
	}()
	g.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		}
	})
	return func() {
		stop()
		<-ended
	}
}

// Only one replica at a time does each of these jobs. That replica also handles its own shares of the timers.
const (
	sealingJob = "sealing" // seals the history, and tells the operators of failing checks
	upkeepJob  = "upkeep"  // drops old deliveries, erases data beyond the policy's retention, and makes the weekly report
	tokenJob   = "token"   // renews the bot token of an app with token rotation
)

var oneReplicaJobs = []string{sealingJob, upkeepJob, tokenJob}

// ownReplica returns the replica of this process. If there are no replicas, ownReplica returns store.Alone.
func (s setup) ownReplica() store.Replica {
	if s.replica == nil {
		return store.Alone{}
	}
	return s.replica
}

// sharing returns how many replicas share Slack's limits. The other replicas send notices about their calls to Slack.
// The result hears is the time at which this replica began to receive these notices.
func (s setup) sharing() (replicas int, hears time.Time) {
	return s.ownReplica().Alive(), s.ownReplica().Hears()
}

// recover takes over the work that an earlier process left. If there are several replicas, each replica takes over the
// work in the shares that it gets.
func (s setup) recover(ctx context.Context, p parts) error {
	if !store.IsAlone(s.ownReplica()) {
		return nil
	}
	return p.workflow.Runs.Recover(ctx, store.AllShares)
}

// claimAgain is the time between two attempts to get the claim on a job.
const claimAgain = time.Second

// inOneReplica does a job while this replica has the job's claim. inOneReplica returns when ctx ends or the job fails.
func (s setup) inOneReplica(ctx context.Context, job string, work func(context.Context) error) error {
	for {
		if own, leave, ok := s.ownReplica().Enter(ctx, job); ok {
			err := work(own)
			leave()
			if ctx.Err() != nil || err != nil && !errors.Is(err, store.ErrFenced) && own.Err() == nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(claimAgain):
		}
	}
}

// enter makes this process use the policy in force, and records that this process begins to work on the store.
func (s setup) enter(ctx context.Context, p parts) error {
	if err := s.policies.Join(ctx, p.workflow); err != nil || s.build.Version == "" {
		return err
	}
	return p.workflow.History.Started(ctx, s.startFacts())
}

// followMachine reports the bot's state to systemd, watches the files of the secrets, and keeps the bot token valid.
func (s setup) followMachine(ctx context.Context, g *errgroup.Group) {
	if s.systemd != nil {
		g.Go(func() error {
			err := s.systemd.watch(ctx, s.store)
			s.systemd.say("STOPPING=1")
			return err
		})
	}
	if s.secrets != nil {
		g.Go(func() error { return s.secrets.watch(ctx) })
	}
	if s.rotation != nil {
		g.Go(func() error { return s.rotation.Run(ctx) })
	}
}

// startFacts returns the facts that identify the started program in the history.
func (s setup) startFacts() map[string]string {
	facts := map[string]string{"version": s.build.Version, "go": s.build.Go, "platform": s.build.Platform, "process": cli.ProcessName()}
	if s.build.Commit != "" {
		facts["commit"] = s.build.Commit
	}
	if s.build.Changed {
		facts["changed"] = "true"
	}
	return facts
}

// couldNotStart adds an exit code and advice to an error of the start, if the store caused the error by refusing an
// operation.
func couldNotStart(err error) error {
	if store.Refused(err) {
		return cli.CouldNot("the bot can't start: %w. Correct that, and start the bot again", err)
	}
	return err
}

// The method "unknown" returns the error of a process that ends because the store's content is unknown. The process
// does not wait for running tools, because it can't record their results. The next process asks people about the
// outcomes.
func (s setup) unknown(err error) error {
	if w, ok := s.store.(openstore.Watchable); ok && w.Failure() != nil {
		err = w.Failure()
	}
	if errors.Is(err, store.ErrRewound) {
		err = errors.Join(err, s.keepNewestHead())
	}
	if errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrRewound) {
		return cli.CouldNot("the bot has stopped: %w", err)
	}
	return cli.CouldNot("it is unknown whether the last write succeeded; start again, and the bot continues from the stored state: %w", err)
}

// keepNewestHead writes the newest head that this process knows to the heads file, so that the next start finds that
// the database lacks it. A replica that does not sign writes no other heads to its file.
func (s setup) keepNewestHead() error {
	db, ok := s.store.(*postgres.Store)
	if !ok || s.audit.Heads == "" {
		return nil
	}
	h, ok := db.Newest()
	if !ok {
		return nil
	}
	return audit.HeadFile(s.audit.Heads).Keep(h)
}

// requestProbe returns the probe that says on /readyz whether Slack's HTTP requests arrive. Socket Mode has no such
// probe.
func (s setup) requestProbe(p parts) []probe {
	if s.listen == nil {
		return nil
	}
	return []probe{{name: "requests", ready: func(context.Context) error { return p.bot.Arriving() }, notice: true}}
}
