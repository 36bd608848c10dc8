package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/agent/gateway"
	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/policyfile"
	"countersign/cmd/countersign/scenario"
	"countersign/config"
	"countersign/internal/demo/workspace"
)

//go:embed demo.yaml
var demoPolicy []byte

//go:embed exercise.txt
var exercise string

type demoOptions struct {
	addr      string
	data      string
	store     string // address; empty: a file in the data directory
	policy    string
	noBrowser bool
	play      string
	transport string
	patience  time.Duration // how long the workspace waits for the app's acknowledgements, and accepts triggers; zero: as long as in Slack
}

const builtIn = "the built-in exercise"

func demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo [flags] [FILE]",
		Short: "Everything on this machine with no account: a workspace in the browser, a model, a sample shop",
		Long: `Runs the bot with a local Slack workspace whose page opens in the browser, a scripted model, and a sample shop with
state that changes. With OPENAI_API_KEY or OPENAI_BASE_URL set (and OPENAI_MODEL), that model is used instead.

With --play a scenario is played without a browser: FILE, or the built-in exercise. Its transcript is printed with who
decided what; the exit code is 1 when anything differs from what the file expects.

With --store the store is another file, or a PostgreSQL database (docs/demo.md). It must be empty, or made by an earlier demo: a demo never
writes into a bot's store. Tables are made in an empty database. COUNTERSIGN_STORE is not used.`,
		Example: `  countersign demo --play scenario.txt
  countersign demo --store postgres://countersign@localhost/countersign_demo`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && o.play == "" {
				return fmt.Errorf("a FILE goes with --play only")
			}
			return cli.Args(0, 1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.play = args[0]
			}
			if o.play != "" && !cmd.Flags().Changed("addr") {
				o.addr = "127.0.0.1:0" // the port does not matter
			}
			if t := config.Transport(o.transport); t != config.SocketMode && t != config.HTTPMode {
				return cli.Misused("--transport %s is not known; write socket or http", o.transport)
			}
			return demo(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.addr, "addr", "127.0.0.1:8484", "where the page is served")
	f.StringVar(&o.data, "data", "", "directory that keeps everything, so that the demo can be continued later; default: nothing is kept")
	f.StringVar(&o.store, "store", "", "where the store is, as in COUNTERSIGN_STORE; default: a file in the data directory")
	f.StringVar(&o.policy, "policy", "", "another policy file than the demo's")
	f.StringVar(&o.transport, "transport", string(config.SocketMode), "how the workspace's events reach the bot: socket or http")
	f.BoolVar(&o.noBrowser, "no-browser", false, "do not open the page in the browser")
	f.StringVar(&o.play, "play", "", "play a scenario and print its transcript")
	f.Lookup("play").NoOptDefVal = builtIn
	cli.PathFlags(f, "data", "store", "policy", "play")
	return cmd
}

func demo(ctx context.Context, o demoOptions, out io.Writer) error {
	script, err := readScript(o.play)
	if err != nil {
		return err
	}
	env, err := config.ReadEnv(config.Demo)
	if err != nil {
		return cli.Misused("the environment can't be used:\n%w", err)
	}
	level := env.Log
	if os.Getenv("COUNTERSIGN_LOG") == "" {
		level = slog.LevelWarn // the log leaves out normal events, because the page shows them
	}
	log := logger(level, cmp.Or(env.LogFormat, config.TextLog)) // by default, the log is text, because people read the demo's log
	dir, remove, err := dataDir(o.data)
	if err != nil {
		return err
	}
	defer remove()
	c := new(clock)
	if script != nil && !script.Begins.IsZero() {
		c.set(script.Begins)
	}
	st, err := openDemoEnv(ctx, dir, o, env, c.now, log)
	if err != nil {
		return err
	}
	cut := new(interruptedRun)
	of := shopCatalog(st.shop, st.base+shopPath)
	of.Wrap, of.Log = cut.between, log
	tools, err := catalog.New(of)
	if err != nil {
		return errors.Join(err, st.close())
	}
	if o.policy == "" && script != nil {
		o.policy = script.Policy
	}
	policies, err := demoPolicies(o.policy, tools, log)
	if err != nil {
		return errors.Join(err, st.close())
	}
	if o.policy != "" {
		hint, err := ownHint(o.policy, tools)
		if err != nil {
			return errors.Join(err, st.close())
		}
		st.ws.Introduce(hint)
	}
	st.gatewayAddr = env.GatewayAddr
	s := demoSetup(st, env, policies, log)
	if s.tracer, err = openTraces(ctx, env, s.now, log); err != nil {
		return errors.Join(err, st.close())
	}
	defer sendTraces(s.tracer, log)
	return unlessHung(ctx, st.store, log, func() error {
		return st.serveAround(ctx, func(ctx context.Context) error {
			if script != nil {
				return rehearse(ctx, *script, &playedBot{setup: s, env: st, clock: c, interrupted: cut}, out)
			}
			return perform(ctx, s, st, o, out)
		})
	})
}

// demoSetup configures the bot for the demo's services.
func demoSetup(st demoEnv, env config.Env, policies *policyfile.Source, log *slog.Logger) setup {
	s := setup{
		botToken: workspace.DemoBotToken, appToken: workspace.DemoAppToken, slackURL: st.base + "/api/", unlimited: true,
		build: cli.ThisBuild(), model: st.model, historyTokens: env.HistoryTokens, policies: policies, store: st.store, tools: policies.Tools, log: log, now: st.now, seal: st.seal,
	}
	if st.listener != nil {
		s.listen, s.signingSecret = st.listener.listen, workspace.DemoSigningSecret
	}
	return s
}

// perform runs the bot in the demo until ctx ends.
func perform(ctx context.Context, s setup, st demoEnv, o demoOptions, out io.Writer) error {
	s.storePath, s.audit = st.at.Path, config.AuditBeside(st.at.Path)
	if l, err := openControl(config.ControlBeside(st.at.Path), s.log); err != nil {
		s.log.WarnContext(ctx, "the operator's commands can't reach this demo; choose another directory with --data", "why", err)
	} else if s.control = l; l != nil {
		defer func() { _ = l.Close() }() // needed only if nothing was served; otherwise l is already closed
	}
	if len(s.tools.Policy().Clients) > 0 {
		l, err := listen("the gateway", "COUNTERSIGN_GATEWAY_ADDR", cmp.Or(st.gatewayAddr, "127.0.0.1:0"))
		if err != nil {
			return err
		}
		defer l.Close()
		s.gateway, s.receiptKey = l, gateway.NewReceiptKey()
	}
	p := s.assemble()
	if err := reach(ctx, p, s.log); err != nil {
		return err
	}
	announce(out, st, s, o)
	return s.run(ctx, p)
}

// rehearse plays a scenario with the demo's bot.
func rehearse(ctx context.Context, script scenario.Scenario, b *playedBot, out io.Writer) error {
	if err := reach(ctx, b.setup.assemble(), b.setup.log); err != nil {
		return err
	}
	b.lasting, b.setup.receiptKey = ctx, gateway.NewReceiptKey()
	if err := b.begin(ctx); err != nil {
		if b.bot != nil {
			err = errors.Join(err, b.bot.end())
		}
		return err
	}
	differ, err := scenario.Play(ctx, script, b, "T0001", out)
	if err == nil && differ > 0 {
		err = cli.AnswerNo("%s: %d lines differ from what was expected", script.Name, differ)
	}
	return errors.Join(err, b.bot.end())
}

// The function "connected" waits until the bot receives events from the workspace.
func connected(ctx context.Context, p parts) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for p.bot.Ready(ctx) != nil {
		select {
		case <-ctx.Done():
			return cli.CouldNot("the bot did not connect to the workspace: %w", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

// dataDir returns the demo's data directory: the given directory, or else a new temporary directory.
func dataDir(given string) (dir string, remove func(), err error) {
	if given != "" {
		if err := os.MkdirAll(given, 0o700); err != nil {
			return "", nil, cli.CouldNot("the data directory can't be made: %w", err)
		}
		return given, func() {}, nil
	}
	dir, err = os.MkdirTemp("", "countersign-demo-")
	if err != nil {
		return "", nil, cli.CouldNot("no temporary directory can be made; name one with --data: %w", err)
	}
	return dir, func() { os.RemoveAll(dir) }, nil
}

// demoPolicies returns the policy in the file at the path. If the path is empty, demoPolicies returns the demo's own
// policy.
func demoPolicies(path string, tools *catalog.Catalog, log *slog.Logger) (*policyfile.Source, error) {
	if path != "" {
		return policyfile.Open(path, tools, log)
	}
	ps, err := policyfile.New("demo.yaml", demoPolicy, tools, log)
	if err != nil {
		return nil, cli.Misused("the demo's policy can't be used:\n%w", err)
	}
	return ps, nil
}

func readScript(name string) (*scenario.Scenario, error) {
	text := exercise
	switch name {
	case "":
		return nil, nil
	case builtIn:
	default:
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, cli.Misused("the scenario can't be read: %w", err)
		}
		text = string(b)
	}
	s, err := scenario.Parse(name, text)
	return &s, err
}

// announce prints the first steps for a new user. Without --no-browser, announce also opens the page.
func announce(out io.Writer, st demoEnv, s setup, o demoOptions) {
	page := st.base + "/#/U0100/C0001"
	fmt.Fprintf(out, "Countersign's demo is open.\n\n  The workspace   %s\n  The sample shop %s/shop/\n  The model       %s at %s\n", page, st.base, s.model.Name, modelPlace(s.model))
	if o.store != "" {
		fmt.Fprintf(out, "  The store       %s\n", st.at)
	}
	switch {
	case o.data != "":
		fmt.Fprintf(out, "  Kept            in %s\n", o.data)
	case o.store != "":
		fmt.Fprintf(out, "  Kept            only the store; start with --data DIR, too, to continue later\n")
	default:
		fmt.Fprintf(out, "  Kept            nothing; start with --data DIR to continue later\n")
	}
	warnIfOpen(out, st.l)
	if call := suggestion(s.tools, s.tools.Policy()); call != "" {
		fmt.Fprintf(out, "\nYou are Sam. Write in #support:  @Countersign %s\nThen switch to one of the approvers, and decide. Ctrl-C ends the demo.\n", call)
	} else {
		fmt.Fprintf(out, "\nYou are Sam. Write in #support:  @Countersign refund ORD-123, it arrived broken\nThen switch to Teo, the Team Lead, and decide. Ctrl-C ends the demo.\n")
	}
	if names := s.tools.PolicyServers(); len(names) > 0 {
		fmt.Fprintf(out, "\nThe policy's servers are there too: %s. Write \"help\" to see how their tools are called.\n", strings.Join(names, ", "))
	}
	if s.gateway != nil {
		announceGateway(out, s)
	}
	switch {
	case s.control == nil:
	case st.at.Backend == config.Postgres:
		fmt.Fprintf(out, "\nAs its operator, in another terminal: set COUNTERSIGN_STORE to the address of --store,\nthen  export COUNTERSIGN_CONTROL='%s'  and then  countersign pending\n",
			config.ControlBeside(st.at.Path))
	default:
		fmt.Fprintf(out, "\nAs its operator, in another terminal:  export COUNTERSIGN_STORE='%s'  and then  countersign pending\n", st.at)
	}
	if !o.noBrowser {
		openBrowser(page)
	}
}

// announceGateway prints how another agent can request a call.
func announceGateway(out io.Writer, s setup) {
	fmt.Fprintf(out, "\nOther agents ask at http://%s. As the demo's CI bot, in another terminal:\n", s.gateway.Addr())
	if c, ok := s.tools.Policy().ClientOf(demoClientToken); ok {
		fmt.Fprintf(out, `
  curl -s http://%s/v1/requests -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' \
    -H 'Idempotency-Key: deploy-1' -d '{"tool":"deploy","args":{"service":"shop","version":"1.4.2"},"summary":"All tests passed","wait":55}'

Then become Teo, and approve it. The answer says what %s may do. MCP clients call the shop's tools at /mcp, such as

  claude mcp add --transport http countersign http://%[1]s/mcp --header 'Authorization: Bearer %[2]s'
`, s.gateway.Addr(), demoClientToken, c.Title)
	}
}

// demoClientToken is the token of the demo's client. The token is not a secret, because the demo is open to everybody
// on this machine.
const demoClientToken = "cs_demo"

// suggestion returns a call in the syntax of the scripted model. The tool is from a source that the policy names, and
// not from the sample shop. suggestion prefers a tool that the policy lists by its exact name, and whose calls wait for
// approval. The result is empty if no such tool can be called.
func suggestion(tools *catalog.Catalog, policy *approvers.Policy) string {
	first := ""
	for _, t := range tools.All() {
		if t.Source == "" || t.Blocked != "" || tools.IsOwn(t.Source) {
			continue
		}
		var in struct{ Required []string }
		_ = json.Unmarshal(t.Schema, &in) // always an object, or the tool would not be registered
		call := "call " + t.Name
		for _, name := range in.Required {
			call += " " + name + "=…"
		}
		if p, named := policy.Tool(t.Name, ""); named && p.Confirm {
			return call
		}
		if first == "" {
			first = call
		}
	}
	return first
}

func modelPlace(m agent.Model) string {
	if m.BaseURL == "" {
		return "OpenAI"
	}
	return m.BaseURL
}

// openBrowser opens the page if the machine has a browser. An error is ignored, because the address was already
// printed.
func openBrowser(url string) {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	cmd := exec.Command(name, args...)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }() // reaps the process
	}
}
