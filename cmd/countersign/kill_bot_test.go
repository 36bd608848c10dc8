package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/agent/gateway"
	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/policyfile"
	"countersign/config"
	"countersign/internal/demo/shop"
	"countersign/internal/demo/workspace"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/postgres"
)

// If the environment variable witnessEnv is set, the test binary runs as the bot of the kill campaign (TestKills). The
// value of the variable is a witnessConfig.
const witnessEnv = "COUNTERSIGN_TEST_WITNESS"

// witnessConfig is the configuration that the test process gives the bot of the kill campaign.
type witnessConfig struct {
	Base   string // address of the workspace and the model
	Policy string
	Store  string
	// Crashes is the file that records the current work of this process. Each replica has its own file.
	Crashes string
	Seen    string // file with a synced line "TOOL EXECUTION" for each effect of a tool
	Heard   string // file that records which click became which inbox row
	Shop    string // address of the sample shop's tools, which the bot uses instead of the campaign's tools
	Server  string // address of a server with the campaign's tools, which survives the kills of the bot; empty: the tools run in the bot
	Listen  string // address for Slack's requests; empty: Socket Mode
	Gateway string // address for other agents' calls; empty: none
	Slow    time.Duration
	Lease   time.Duration // lease of a replica; zero: the usual lease
	Doom    killPoint
	Audit   config.Audit // the key that signs the history, and the file of the signed heads; empty: no sealing
}

// killPoint is a point at which a process kills itself. The process kills itself when it reaches the point for the nth
// time. The zero value means that there is no such point.
type killPoint struct {
	Point string
	Nth   int
}

// A process can kill itself at these points in a tool of the campaign. A process can also kill itself before and after
// the commit of a transaction.
const (
	toolCalled = "the tool is called, but has not acted"
	toolActed  = "the tool has acted, but has not answered"
)

// fate holds the killPoint of this process.
type fate struct {
	killPoint
	count atomic.Int64
}

// The process calls reach at each point of its work. At the nth call for the killPoint, reach kills the process.
func (f *fate) reach(point string) {
	if point != f.Point || f.count.Add(1) != int64(f.Nth) {
		return
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(err)
	}
	select {}
}

// witnessMain runs the bot as serve does, with tools that record their effects. The bot prints a line to standard
// output when it is up, and when a tool begins. The bot ends on SIGTERM, or when its parent process has ended. If the
// database does not answer while the bot starts, witnessMain starts the bot again, as systemd does.
func witnessMain(conf string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(9) // the parent is gone
	}()
	var up atomic.Bool
	err := witnessRun(ctx, conf, &up)
	for errors.Is(err, store.ErrUnavailable) && !up.Load() && ctx.Err() == nil {
		err = witnessRun(ctx, conf, &up)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bot:", err)
	}
	return cli.Code(err)
}

// witnessRun runs the bot. witnessRun sets isUp when the bot is connected.
func witnessRun(ctx context.Context, conf string, isUp *atomic.Bool) (err error) {
	var c witnessConfig
	if err := json.Unmarshal([]byte(conf), &c); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	end := &fate{killPoint: c.Doom}
	tools, err := end.tools(c, log)
	if err != nil {
		return err
	}
	policies, err := policyfile.Open(c.Policy, tools, log)
	if err != nil {
		return err
	}
	db, err := openWitnessed(ctx, c.Store, true)
	if err != nil {
		return err
	}
	defer func() {
		if closed := db.Close(); err == nil {
			err = closed
		}
	}()
	heard, err := os.OpenFile(c.Heard, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer heard.Close()
	seal := sealing{}
	if c.Audit.Key != "" {
		if seal, err = openSealing(ctx, c.Audit, db, log); err != nil {
			return err
		}
	}
	s := setup{
		botToken: workspace.DemoBotToken, appToken: workspace.DemoAppToken, slackURL: c.Base + "/api/", unlimited: true,
		model: agent.Model{BaseURL: c.Base + "/v1", Key: "witness", Name: "countersign-scripted"}, policies: policies,
		store: overheard{db, db.(store.Inspected), heard, end}, tools: tools, log: log, crashes: openCrashes(c.Crashes, log), seal: seal,
	}
	defer s.crashes.stop()
	if database, ok := db.(*postgres.Store); ok {
		policies.Shared = true
		if s.replica, err = database.Join(ctx, postgres.ReplicaOptions{
			Name: cli.ProcessName(), Jobs: oneReplicaJobs, Log: log, Lease: c.Lease, Beat: c.Lease / 6, Margin: c.Lease / 4,
		}); err != nil {
			return err
		}
	}
	if c.Listen != "" {
		s.listen, s.signingSecret = func() (net.Listener, error) { return net.Listen("tcp", c.Listen) }, workspace.DemoSigningSecret
	}
	if c.Gateway != "" {
		s.receiptKey = gateway.NewReceiptKey()
		if s.gateway, err = listen("the gateway", "", c.Gateway); err != nil {
			return err
		}
	}
	if s.admin, err = listen("the admin server", "", "127.0.0.1:0"); err != nil {
		return err
	}
	fmt.Println("admin", s.admin.Addr())
	p := s.assemble()
	if err := reach(ctx, p, log); err != nil {
		return err
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	ctx, over := context.WithCancel(ctx)
	var up sync.WaitGroup
	up.Go(func() {
		if connected(ctx, p) == nil {
			isUp.Store(true)
			fmt.Println("up")
		}
		select {
		case <-asked:
			if awaitHandled(ctx, db) == nil {
				fmt.Println("handled")
			}
		case <-ctx.Done():
		}
	})
	err = s.run(ctx, p)
	over()
	up.Wait()
	return err
}

// openWitnessed opens the store of the campaign: a file, or a database.
func openWitnessed(ctx context.Context, at string, shared bool) (openstore.Store, error) {
	if !strings.HasPrefix(at, "postgres:") {
		return openstore.Opened(openstore.File(at))
	}
	db, err := postgres.Open(ctx, at, postgres.Options{Create: true})
	if err != nil {
		return nil, err
	}
	if err := db.Hold(ctx, shared); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// awaitHandled waits until the bot has handled every delivery that it acknowledged, and deleted the messages that were
// posted twice.
func awaitHandled(ctx context.Context, db store.Store) error {
	for {
		if left, err := unhandled(ctx, db); err != nil || left == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(glance):
		}
	}
}

// unhandled returns 0 if the bot has handled every delivery that it acknowledged, and deleted the messages that were
// posted twice.
func unhandled(ctx context.Context, db store.Store) (left int, err error) {
	err = db.View(ctx, func(r store.Reader) error {
		left = 0
		for _, kind := range []store.TimerKind{store.TimerInbox, store.TimerLeftover} {
			timers, err := r.Timers(kind, 1)
			if err != nil {
				return err
			}
			left += len(timers)
		}
		return nil
	})
	return left, err
}

// The method "tools" returns the bot's tools. With the shop's tools, the process may be killed during a refund. Refunds
// then behave like refunds of a system without idempotency keys.
func (f *fate) tools(c witnessConfig, log *slog.Logger) (*catalog.Catalog, error) {
	switch {
	case c.Server != "":
		return f.remote(c, log)
	case c.Shop == "":
		r, err := witnesses(c, f)
		return catalogOf(r), err
	}
	const refund = "issue_refund"
	of := shopCatalog(shop.New(time.Now), c.Shop)
	of.Own[0].Effects[refund] = approvers.Unprotected
	of.Log = log
	of.Wrap = func(t *agent.Tool) {
		if t.Name != refund {
			return
		}
		run := t.Run
		t.Run = func(ctx context.Context, in agent.Invocation) (string, error) {
			f.reach(toolCalled)
			result, err := run(ctx, in)
			f.reach(toolActed)
			return result, err
		}
	}
	return catalog.New(of)
}

// The campaign has one tool for each kind of effect.
const (
	toolAct  = "act"  // unprotected: every run leaves a line
	toolOnce = "once" // idempotent: the first run under a key leaves a line
	toolLook = "look" // read-only: every run leaves a line, and any number of runs is allowed
)

const witnessSchema = `{"type":"object","properties":{"n":{"type":"string"},"gated":{"type":"boolean"}},"required":["n","gated"]}`

var witnessEffects = map[string]approvers.Effect{toolAct: approvers.Unprotected, toolOnce: approvers.Idempotent, toolLook: approvers.ReadOnly}

// actor returns the function that makes the effects of the tools. An effect is one synced line in a file. The
// idempotent tool writes its line only once for each key.
func actor(path string) (func(tool, key string) error, error) {
	seen, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	return func(tool, key string) error {
		mu.Lock()
		defer mu.Unlock()
		if err := syscall.Flock(int(seen.Fd()), syscall.LOCK_EX); err != nil { // replicas use the same file
			return err
		}
		defer syscall.Flock(int(seen.Fd()), syscall.LOCK_UN) //nolint:errcheck // the process ends if this fails
		if tool == toolOnce {
			done, err := os.ReadFile(path)
			if err != nil || strings.Contains(string(done), tool+" "+key+"\n") {
				return err
			}
		}
		if _, err := fmt.Fprintf(seen, "%s %s\n", tool, key); err != nil {
			return err
		}
		return seen.Sync()
	}, nil
}

// The function "witnesses" returns tools that wait for a random time before and after they act. The effect of each tool
// is one synced line in a file.
func witnesses(c witnessConfig, end *fate) (*agent.Registry, error) {
	act, err := actor(c.Seen)
	if err != nil {
		return nil, err
	}
	r := &agent.Registry{}
	for name, effect := range witnessEffects {
		err := r.Register(agent.Tool{
			Name: name, Description: "Leaves a trace.", Schema: json.RawMessage(witnessSchema), Effect: effect,
			Run: func(ctx context.Context, in agent.Invocation) (string, error) {
				fmt.Println("tool", name, in.Key, string(in.Args))
				work(c.Slow)
				end.reach(toolCalled)
				if err := act(name, in.Key); err != nil {
					return "", fmt.Errorf("%w: %w", agent.ErrOutcomeUnknown, err)
				}
				end.reach(toolActed)
				work(c.Slow)
				return `{"done":true}`, nil
			},
		})
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// work waits for a random time up to the limit.
func work(longest time.Duration) { <-time.After(rand.N(longest)) }

// overheard is a store that records which delivery became which inbox row. With this record, the campaign can look up
// acknowledged deliveries. overheard can also kill the process in a transaction.
type overheard struct {
	store.Store
	store.Inspected
	notes *os.File
	end   *fate
}

// notedDelivery records which inbox row holds the delivery of a click or a form.
type notedDelivery struct {
	Inbox   string
	Trigger string
	View    string
}

func (o overheard) Update(ctx context.Context, fn func(store.Tx) error) error {
	transaction := testkit.CallingTransition()
	err := o.Store.Update(ctx, func(t store.Tx) error {
		err := fn(overheardTx{t, t.(store.SetAside), o.notes})
		if err == nil {
			o.end.reach(transaction + testkit.BeforeCommit)
		}
		return err
	})
	if err == nil {
		o.end.reach(transaction + testkit.BehindCommit)
	}
	return err
}

type overheardTx struct {
	store.Tx
	store.SetAside
	notes *os.File
}

func (t overheardTx) PutInbox(row store.Inbox) error {
	if row.HandledAt.IsZero() {
		if err := note(t.notes, row); err != nil {
			return err
		}
	}
	return t.Tx.PutInbox(row)
}

// note writes a line about the row of a click or a form.
func note(notes io.Writer, row store.Inbox) error {
	if row.Kind != store.InboxInteraction {
		return nil
	}
	var p struct {
		Trigger string `json:"trigger_id"`
		View    struct{ ID string }
	}
	if err := json.Unmarshal(row.Payload, &p); err != nil {
		return err
	}
	return json.NewEncoder(notes).Encode(notedDelivery{Inbox: row.ID, Trigger: p.Trigger, View: p.View.ID})
}
