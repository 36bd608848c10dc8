package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow/settings"
	"countersign/bot"
	"countersign/bot/rotation"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/policyfile"
	"countersign/config"
	"countersign/internal/redact"
	"countersign/internal/tracing"
	"countersign/store"
	"countersign/store/bolt"
	"countersign/store/postgres"
)

func serveCommand() *cobra.Command {
	var replacedApp string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "The bot, in your Slack",
		Long: `Runs the bot until it is stopped. Everything is set in the environment and the policy file; docs/environment.md lists
the variables, and "countersign check" says what is wrong with them. A changed policy file comes into force by
itself, and immediately on SIGHUP; a file that can't be used is refused, and the previous policy stays in force.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd, replacedApp) },
	}
	cmd.Flags().StringVar(&replacedApp, "replaces-app", "", "the id of the Slack app that owned the store, if another app has replaced it in the same workspace")
	return cmd
}

func serve(cmd *cobra.Command, replacedApp string) error {
	if os.Getenv("GOGC") == "" {
		boundGarbage()
	}
	ctx := cmd.Context()
	env, err := config.ReadEnv(config.Serve)
	if err != nil {
		return cli.Misused("the environment is not complete:\n%w", err)
	}
	log := logger(env.Log, env.LogFormat)
	logEverything(log)
	return logError(serveWith(ctx, env, replacedApp, log), log)
}

// serveWith runs serve with an environment that was already read. For replacedApp, see the flag --replaces-app.
func serveWith(ctx context.Context, env config.Env, replacedApp string, log *slog.Logger) error {
	tracer, err := openTraces(ctx, env, time.Now, log)
	if err != nil {
		return err
	}
	defer sendTraces(tracer, log)
	for _, w := range env.Warnings {
		log.WarnContext(ctx, "the environment: "+w.Error())
	}
	tools, err := catalog.New(catalog.Config{Log: log, Version: version()})
	if err != nil {
		return err
	}
	policies, err := policyfile.Open(env.Policy, tools, log)
	if err != nil {
		return err
	}
	policies.Shared = env.Store.Backend == config.Postgres
	policies.Hangup = make(chan os.Signal, 1)
	signal.Notify(policies.Hangup, syscall.SIGHUP)
	defer signal.Stop(policies.Hangup)
	admin, err := listen("the admin server", "COUNTERSIGN_ADMIN_ADDR", env.AdminAddr)
	if err != nil {
		return err
	}
	defer admin.Close()
	var requests net.Listener
	if env.Transport == config.HTTPMode {
		if requests, err = listen("the server for Slack's requests", "COUNTERSIGN_HTTP_ADDR", env.HTTPAddr); err != nil {
			return err
		}
		defer requests.Close()
	}
	var callers net.Listener
	if env.GatewayAddr != "" {
		if callers, err = listen("the gateway", "COUNTERSIGN_GATEWAY_ADDR", env.GatewayAddr); err != nil {
			return err
		}
		defer callers.Close()
	}
	db, err := openToServe(ctx, env, log)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	if err := refuseDemo(ctx, env.Store, db); err != nil {
		return errors.Join(err, db.Close())
	}
	return unlessHung(ctx, db, log, func() error {
		return serveStore(ctx, env, replacedApp, policies, db, listeners{admin, requests, callers}, tracer, log)
	})
}

// openTraces returns the tracer that the environment configures. If the environment configures no traces, openTraces
// returns nil.
func openTraces(ctx context.Context, env config.Env, now func() time.Time, log *slog.Logger) (*tracing.Tracer, error) {
	t, err := tracing.FromEnv(ctx, os.Getenv, env.TraceHeaders.Reveal(), tracing.Service{Version: version(), Instance: cli.ProcessName()}, now, log)
	if err != nil {
		return nil, cli.Misused("%w", err)
	}
	return t, nil
}

// sendTraces sends the remaining traces before the process ends.
func sendTraces(t *tracing.Tracer, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		log.WarnContext(ctx, "the last traces could not be sent", "error", redact.Error(err))
	}
}

// openToServe opens the store for serve, and creates it if it does not exist.
func openToServe(ctx context.Context, env config.Env, log *slog.Logger) (openstore.Store, error) {
	if env.Store.Backend == config.Postgres {
		db, err := openstore.Database(ctx, env.Store, postgres.Options{Create: true, Migrate: env.Store.Migrate}, true)
		if err != nil {
			return nil, err
		}
		if excess := db.Rights().Excess(); excess != "" {
			log.WarnContext(ctx, "the database's role may do more than the bot needs", "what", excess, "do", db.Rights().Remedy())
		}
		return db, nil
	}
	if err := audit.MayCreate(env.Store.Path, env.Audit.Heads); err != nil {
		return nil, err
	}
	atStart.compact(ctx, env.Store.Path, log)
	return openstore.Opened(openstore.ToWrite(ctx, env.Store.Path, env.Audit))
}

// refuseDemo returns an error if the store belongs to a demo, because later demos would write into it.
func refuseDemo(ctx context.Context, at config.Store, db store.Store) error {
	is, err := isDemo(context.WithoutCancel(ctx), db)
	switch {
	case errors.Is(err, store.ErrDamaged):
		return nil // the mark of a demo can't be read; the bot starts, and works with the rows that can be read
	case err == nil && is:
		return cli.Misused("%s is the store of a demo: set COUNTERSIGN_STORE to an empty database, to another schema with search_path in the address, or to a new file", at)
	}
	return err
}

// listeners are the open listeners of serve.
type listeners struct {
	admin net.Listener
	slack net.Listener // nil: Socket Mode
	// gateway is the listener for the requests of other agents. It is nil if the bot has no gateway.
	gateway net.Listener
}

// unlessEnded returns the error of a start. If ctx ended before the bot started, the error has no meaning, so unlessEnded
// returns nil.
func unlessEnded(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// serveStore serves with an open store.
func serveStore(
	ctx context.Context, env config.Env, replacedApp string, policies *policyfile.Source, db openstore.Store, l listeners, tracer *tracing.Tracer, log *slog.Logger,
) error {
	if err := hold(ctx, env, policies, db, l, log); err != nil || ctx.Err() != nil {
		return err
	}
	socket, err := openControl(env.Control, log)
	if err != nil {
		return err
	}
	if socket != nil {
		defer func() { _ = socket.Close() }() // needed only if nothing was served; otherwise the socket is already closed
	}
	seal, err := openSealing(ctx, env.Audit, db, log)
	if err != nil {
		return err
	}
	s := setup{
		botToken: env.BotToken.Reveal(), appToken: env.AppToken.Reveal(), slackURL: env.SlackAPIURL,
		model: agent.Model{BaseURL: env.ModelURL, Key: env.ModelKey.Reveal(), Name: env.Model},
		build: cli.ThisBuild(), historyTokens: env.HistoryTokens,
		policies: policies, store: db, tools: policies.Tools, admin: l.admin, control: socket, storePath: env.Store.Path, audit: env.Audit, log: log,
		seal: seal, tracer: tracer,
	}
	systemd := newNotifier(os.Getenv, os.Getpid(), log)
	s.systemd = &systemd
	if len(env.SecretFiles) > 0 {
		s.secrets = &secrets{used: env, log: log}
	}
	if l.gateway != nil {
		s.gatewayURL = env.GatewayURL
		if s.receiptKey, err = openReceiptKey(env.GatewayKey); err != nil {
			return err
		}
		s.gateway = l.gateway
	}
	if s.stopWait = env.StopWait; s.stopWait == 0 {
		s.stopWait = -1
	}
	if l.slack != nil {
		s.listen, s.signingSecret = func() (net.Listener, error) { return l.slack, nil }, env.SigningSecret.Reveal()
	}
	if file, ok := db.(*bolt.Store); ok {
		file.OnReturn(func() error { return audit.StillNewest(env.Store.Path, env.Audit.Heads, db) })
	}
	if database, ok := db.(*postgres.Store); ok {
		replica, err := database.Join(ctx, postgres.ReplicaOptions{
			Name: cli.ProcessName(), Version: version(), Jobs: oneReplicaJobs, Log: log, Able: policies.Usable,
		})
		if err != nil {
			return unlessEnded(ctx, openstore.DatabaseError(err))
		}
		s.replica, s.now, s.clockOffset = replica, replica.Now, replica.ClockOffset
		tracer.SetClock(replica.Now)
	}
	if env.Rotation.On() {
		s.rotation = rotation.New(rotation.Options{
			App: appOf(env), Store: db, Replica: s.replica, Job: tokenJob, URL: env.SlackAPIURL, Log: log, Now: s.now,
		})
		if s.botToken, err = s.rotation.Token(ctx); err != nil {
			return unlessEnded(ctx, noToken(err))
		}
	}
	s.crashes = openCrashes(env.Store.Path+".crashes", log)
	defer s.crashes.stop()
	p := s.assemble()
	if err := reach(ctx, p, log); err != nil {
		return unlessEnded(ctx, err)
	}
	if err := s.install(ctx, p, replacedApp); err != nil {
		return unlessEnded(ctx, err)
	}
	log.InfoContext(ctx, "countersign is up", "version", s.build.String(), "seal", seal.keys[0].Public, "policy", env.Policy, "store", env.Store.String(),
		"transport", string(env.Transport), "admin", l.admin.Addr().String(), "gateway", addressOf(l.gateway), "control", env.Control,
		"gated", strings.Join(gated(policies.Tools.Policy(), policies.Tools.Registry), ", "))
	return s.run(ctx, p)
}

// appOf returns the credentials with which the bot renews its token.
func appOf(env config.Env) rotation.App {
	r := env.Rotation
	return rotation.App{ClientID: r.ClientID.Reveal(), ClientSecret: r.ClientSecret.Reveal(), RefreshToken: r.RefreshToken.Reveal()}
}

// noToken returns the error of a start without a bot token.
func noToken(err error) error {
	switch {
	case errors.Is(err, rotation.ErrRefused):
		return cli.Misused("%w", err)
	case store.Refused(err):
		return couldNotStart(err)
	}
	return cli.CouldNot("the bot token could not be obtained from Slack; check the network, and SLACK_API_URL if it is set: %w", err)
}

// The function "gated" lists the tools whose calls always wait for approval, with any arguments.
func gated(p *approvers.Policy, tools *agent.Registry) []string {
	var out []string
	for _, tool := range tools.All() {
		if t, _ := p.Tool(tool.Name, ""); t.Confirm {
			out = append(out, fmt.Sprintf("%s (%s)", tool.Name, t.Risk))
		}
	}
	return out
}

// install checks that the store belongs to the bot's installation of the Slack app. While other replicas work on the
// store, they may be bots of the replaced app, so the store can't get another app.
func (s setup) install(ctx context.Context, p parts, replacedApp string) error {
	is, err := p.bot.Installation(ctx)
	if err != nil {
		return err
	}
	if s.ownReplica().Alive() > 1 {
		replacedApp = ""
	}
	err = p.workflow.History.Install(ctx, is, replacedApp)
	var other *settings.OtherInstallation
	if errors.As(err, &other) {
		return cli.Misused("%w", other)
	}
	return couldNotStart(err)
}

// reach checks once whether Slack and the model can be used. Therefore a wrong token causes a clear error at the start.
// If requests are waiting, a model that is unreachable or refuses the key does not prevent the start, because decisions
// don't need the model.
func reach(ctx context.Context, p parts, log *slog.Logger) error {
	if err := p.bot.Check(ctx); err != nil {
		if errors.Is(err, bot.ErrToken) {
			return cli.Misused("%w", err)
		}
		return cli.CouldNot("%w", err)
	}
	err := p.agent.Ping(ctx)
	if err == nil {
		return nil
	}
	waiting, failed := p.workflow.Views.Waiting(ctx)
	if failed != nil {
		return failed
	}
	switch {
	case waiting:
	case errors.Is(err, agent.ErrModelKey):
		return cli.Misused("%w", err)
	default:
		return cli.CouldNot("%w. Check OPENAI_BASE_URL, OPENAI_API_KEY and the network", err)
	}
	log.ErrorContext(ctx, "the model can't be used now; requests can be decided, and the bot answers when the model works again: check OPENAI_BASE_URL, OPENAI_API_KEY and the network", "error", err)
	return nil
}
