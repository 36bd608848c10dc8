package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/demo/workspace"
	"countersign/store"
)

const killPolicy = `version: 1
tools:
  act:
    risk: low
    rules: [{when: args.gated == true, risk: high, confirm: true}]
  once: {risk: medium, confirm: true}
  look: {risk: low}
approvers:
  team-lead: {title: Team Lead, members: [U0002, U0003], max_risk: high, can_approve: ["*"], cards: "#support-approvals"}
agents:
  support: {channels: ["#support"], prompt: Do as you are told., tools: ["*"]}
`

// These time limits are so long that only a failure reaches them.
const (
	startTime  = 2 * time.Minute
	settleTime = 2 * time.Minute
)

// killHarness is the environment that survives when the bot is killed: workspace, model and people.
type killHarness struct {
	*testing.T
	conf    witnessConfig
	dir     string
	seed    uint64
	wakeups map[string]chan struct{} // events for which the test can wait before a kill
	// faulty is true if errors in the bot's log are expected.
	faulty    bool
	tolerated []string     // beginnings of errors that are expected in the bot's log
	others    int          // how many replicas there are besides the bot
	started   atomic.Int64 // number of replicas that were started
	addresses atomic.Int64 // number of addresses that freeAddress has returned
	frozen    atomic.Int64 // number of suspended replicas that may still act when they are resumed
	hadHeads  uint64       // number of the heads that killed replicas have signed; other replicas must sign more heads
	// program starts a program instead of the campaign's bot. nil: the campaign's bot is started.
	program func(context.Context) *process
	// copied copies a file that a program uses, and returns the path of the copy.
	copied func() string
	ways   []string                              // how other agents make calls; empty: there are no other agents
	spares func(person string, t clickable) bool // reports whether a person must not click a button; nil: people click every button

	mu    sync.Mutex
	last  bool // people begin nothing new
	asks  []*ask
	jobs  []*job // calls of other agents
	deeds []deed
	runs  []string        // runs of tools that have begun: TOOL EXECUTION ARGUMENTS
	cards map[string]bool // numbers of the calls on the cards on which an approver clicked Approve
}

func openKillHarness(t *testing.T, seed uint64, change ...func(*workspace.Config)) *killHarness {
	t.Helper()
	return newKillHarness(t, seed, killPolicy, func(c *killHarness) scriptedmodel.Responder { return scriptedmodel.ResponderFunc(c.respond) }, change...)
}

// newKillHarness starts a workspace and a model, with the given policy.
func newKillHarness(t *testing.T, seed uint64, policy string, speaks func(*killHarness) scriptedmodel.Responder, change ...func(*workspace.Config)) *killHarness {
	t.Helper()
	dir := t.TempDir()
	l, err := listen("the campaign", "", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + l.Addr().String()
	c := &killHarness{T: t, dir: dir, seed: seed, wakeups: map[string]chan struct{}{}, cards: map[string]bool{}, conf: witnessConfig{
		Base: base, Policy: filepath.Join(dir, "policy.yaml"), Store: filepath.Join(dir, "store.db"),
		Seen: filepath.Join(dir, "seen"), Heard: filepath.Join(dir, "heard"), Slow: 20 * time.Millisecond,
	}}
	for _, wakeup := range []string{"model", "tool", "click", "acknowledged"} {
		c.wakeups[wakeup] = make(chan struct{}, 1)
	}
	if err := os.WriteFile(c.conf.Policy, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	// Unless change sets RetryDelays, the local workspace repeats an event up to 200 times, so that a kill loses none.
	retries := make([]time.Duration, 200)
	for i := range retries {
		retries[i] = 100 * time.Millisecond
	}
	conf := workspace.Config{Seed: workspace.DemoSeed(), BaseURL: base, RetryDelays: retries, Log: slog.New(slog.DiscardHandler)}
	for _, change := range change {
		change(&conf)
	}
	ws, err := workspace.New(conf)
	if err != nil {
		t.Fatal(err)
	}
	model := scriptedmodel.New(scriptedmodel.Config{Responder: speaks(c)})
	ctx, stop := context.WithCancel(context.Background())
	var g errgroup.Group
	g.Go(func() error { return serveHTTP(ctx, l, oneAddress(model, ws)) })
	t.Cleanup(func() {
		stop()
		if err := ws.Close(); err != nil {
			t.Error(err)
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// freeAddress returns an address for a bot that is about to start. Outgoing connections take ports of 127.0.0.1, so a
// port of another address is still free when the bot starts.
func (c *killHarness) freeAddress() string {
	c.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:0", 2+c.addresses.Add(1)%250))
	if err != nil {
		c.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// process is the running bot.
type process struct {
	cmd *exec.Cmd
	in  io.Closer
	up  chan struct{} // closed when the bot is connected
	// admin is the address of /readyz and /metrics. The address is known once the bot is up.
	admin   string
	handled chan struct{} // closed when the bot reports that it has handled all acknowledged deliveries; the test asks for this report; nil: the process is a program, which does not report this
	tools   atomic.Int32  // runs of tools that have begun
	gone    chan struct{} // closed when the process has ended
	err     error
}

// start starts the bot. If the parameter under is not empty, the bot runs under this command, for example strace.
func (c *killHarness) start(ctx context.Context, killPoint killPoint, under ...string) *process {
	c.Helper()
	if c.program != nil {
		return c.program(ctx)
	}
	its := c.conf
	its.Doom, its.Crashes = killPoint, c.conf.Store+".crashes"
	if c.others > 0 {
		n := c.started.Add(1)
		its.Crashes = filepath.Join(c.dir, fmt.Sprintf("crashes%d", n))
		if its.Audit.Key != "" && its.Audit.Heads == "" {
			its.Audit.Heads = filepath.Join(c.dir, fmt.Sprintf("heads-%d", n))
		}
	}
	conf, err := json.Marshal(its)
	if err != nil {
		c.Fatal(err)
	}
	said, err := os.OpenFile(filepath.Join(c.dir, "said"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		c.Fatal(err)
	}
	defer said.Close()
	line := append(under, os.Args[0])
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = append(os.Environ(), witnessEnv+"="+string(conf))
	cmd.Stderr = said
	in, err := cmd.StdinPipe()
	if err != nil {
		c.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	p := &process{cmd: cmd, in: in, up: make(chan struct{}), handled: make(chan struct{}), gone: make(chan struct{})}
	go func() {
		defer close(p.gone)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			switch {
			case lines.Text() == "up":
				close(p.up)
			case lines.Text() == "handled":
				close(p.handled)
			case strings.HasPrefix(lines.Text(), "admin "):
				p.admin = strings.TrimPrefix(lines.Text(), "admin ")
			case strings.HasPrefix(lines.Text(), "tool "):
				p.tools.Add(1)
				c.mu.Lock()
				c.runs = append(c.runs, strings.TrimPrefix(lines.Text(), "tool "))
				c.mu.Unlock()
				c.wake("tool")
			}
		}
		p.err = cmd.Wait()
	}()
	return p
}

// awaitUp waits until the bot is connected.
func (c *killHarness) awaitUp(bot *process) {
	c.Helper()
	select {
	case <-bot.up:
	case <-bot.gone:
		c.Fatalf("the bot did not come up: %v\n%s", bot.err, c.tail())
	case <-time.After(startTime):
		bot.end(syscall.SIGKILL)
		c.Fatalf("the bot did not come up in time\n%s", c.tail())
	}
}

// awaitHandled waits until the bot has handled every delivery that it acknowledged. The wait is needed because people
// may have clicked on a request after the request was settled.
func (c *killHarness) awaitHandled(bot *process) {
	c.Helper()
	c.awaitUp(bot)
	if bot.handled == nil {
		c.await("the bot to handle everything that it acknowledged", func() bool {
			left := 0
			c.beside(func(db store.Store) (err error) {
				left, err = unhandled(c.Context(), db)
				return err
			})
			return left == 0
		})
		return
	}
	if err := bot.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		c.Fatal(err)
	}
	select {
	case <-bot.handled:
	case <-bot.gone: // end returns the error
	case <-time.After(settleTime):
		c.Errorf("the bot has not handled everything that it acknowledged\n%s", c.tail())
	}
}

// end sends a signal and waits for the process. end returns an error if the process was killed or failed.
func (p *process) end(s syscall.Signal) error {
	p.cmd.Process.Signal(s) // a process that has ended can't be signalled; Wait returns its error
	<-p.gone
	p.in.Close()
	return p.err
}

// beside calls fn with the store while the bot works on it. If the store is a file, fn gets a copy.
func (c *killHarness) beside(fn func(store.Store) error) {
	c.Helper()
	path := c.conf.Store
	if c.copied != nil {
		path = c.copied()
	}
	db, err := openWitnessed(c.Context(), path, true)
	if err == nil {
		err = errors.Join(fn(db), db.Close())
	}
	if err != nil {
		c.Fatal(err)
	}
}

func (c *killHarness) wake(wakeup string) {
	select {
	case c.wakeups[wakeup] <- struct{}{}:
	default:
	}
}

// tail returns the end of the bot's standard error.
func (c *killHarness) tail() string {
	said, err := os.ReadFile(filepath.Join(c.dir, "said"))
	if err != nil {
		return err.Error()
	}
	return string(said[max(0, len(said)-4000):])
}

// respond is the model. The word "then" divides the last message into parts. For each part, respond returns one step
// that calls the tools named in the part. When respond has all results, it returns the final answer.
func (c *killHarness) respond(_ context.Context, r scriptedmodel.Request) (scriptedmodel.Reply, error) {
	c.wake("model")
	said, steps := "", 0
	for _, m := range r.Messages {
		switch {
		case m.Role == "user":
			said, steps = m.Content, 0
		case len(m.ToolCalls) > 0:
			steps++
		}
	}
	_, text, found := strings.Cut(said, "do ")
	if !found { // the bot has lost the message
		return scriptedmodel.Reply{Content: "There is no order."}, nil
	}
	order, number, ok := strings.Cut(text, " #")
	if !ok {
		return scriptedmodel.Reply{}, fmt.Errorf("the campaign's model does not understand %q", said)
	}
	reply := scriptedmodel.Reply{Fault: scriptedmodel.Fault{Delay: rand.N(30 * time.Millisecond)}}
	parts := strings.Split(order, " then ")
	if steps == len(parts) {
		reply.Content = finished(number)
		return reply, nil
	}
	for i, word := range strings.Fields(parts[steps]) {
		tool := map[string]string{"ask": toolAct}[word] // ask means: call act, which needs approval
		if tool == "" {
			tool = word
		}
		args := map[string]any{"n": fmt.Sprintf("%s.%d.%d", number, steps, i), "gated": word == "ask"}
		reply.Calls = append(reply.Calls, scriptedmodel.NewCall(tool, args))
	}
	return reply, nil
}

// The function "finished" returns the model's final answer to the message with this number.
func finished(number string) string { return "finished " + number + " now" }
