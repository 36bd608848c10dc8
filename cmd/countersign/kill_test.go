package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/internal/scriptedmodel"
	"countersign/internal/workspace"
)

// TestKills kills a bot that is a process of its own, with SIGKILL, at random moments in the middle of real approvals by real clicks, and
// starts it again each time. Afterwards the store, the tools' traces and what Slack shows have to agree: no acknowledged decision
// lost, nothing run twice that must not be, nothing left hanging.
//
// COUNTERSIGN_KILLS says how often; COUNTERSIGN_SEED repeats the moments and the people's choices of an earlier run, as far as the
// machine's scheduling lets it.
func TestKills(t *testing.T) {
	t.Parallel()
	kills, seed := 50, rand.Uint64()
	if text := os.Getenv("COUNTERSIGN_KILLS"); text != "" {
		kills, _ = strconv.Atoi(text)
	}
	if text := os.Getenv("COUNTERSIGN_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	if kills < 1 {
		t.Fatal("COUNTERSIGN_KILLS is not a number of kills")
	}
	t.Logf("COUNTERSIGN_SEED=%d", seed)
	began := time.Now()
	c := openCampaign(t, seed)
	c.run(kills)
	v := c.findings()
	t.Logf("kills=%d acknowledged=%d double=%d lost=%d unknown=%d reported=%d conversations=%d calls=%d in %s",
		kills, v.acknowledged, v.double, v.lost, v.unknown, v.reported, len(c.asks), v.calls, time.Since(began).Round(time.Second))
	if v.acknowledged < kills/2 || v.calls < kills/2 {
		t.Errorf("too little went on between %d kills: %d acknowledged clicks, %d calls", kills, v.acknowledged, v.calls)
	}
}

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

// These bound a failure; nothing waits for them to pass.
const (
	startTime  = 30 * time.Second
	settleTime = time.Minute
)

// campaign is the world around the bot that is killed: workspace, model and people, which stay.
type campaign struct {
	*testing.T
	conf  witnessConfig
	dir   string
	seed  uint64
	bells map[string]chan struct{} // what the killer can wait for

	mu    sync.Mutex
	last  bool // people begin nothing new
	asks  []*ask
	deeds []deed
}

func openCampaign(t *testing.T, seed uint64) *campaign {
	t.Helper()
	dir := t.TempDir()
	l, err := listen("the campaign", "", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + l.Addr().String()
	c := &campaign{T: t, dir: dir, seed: seed, bells: map[string]chan struct{}{}, conf: witnessConfig{
		Base: base, Policy: filepath.Join(dir, "policy.yaml"), Store: filepath.Join(dir, "store.db"),
		Seen: filepath.Join(dir, "seen"), Heard: filepath.Join(dir, "heard"), Slow: 20 * time.Millisecond,
	}}
	for _, bell := range []string{"model", "tool", "click", "acknowledged"} {
		c.bells[bell] = make(chan struct{}, 1)
	}
	if err := os.WriteFile(c.conf.Policy, []byte(killPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	retries := make([]time.Duration, 200) // events come again until they are taken: what a person said is never lost for good
	for i := range retries {
		retries[i] = 100 * time.Millisecond
	}
	ws, err := workspace.New(workspace.Config{Seed: workspace.DemoSeed(), BaseURL: base, RetryDelays: retries, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	model := scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.ResponderFunc(c.respond)})
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

// run has people work and kills the bot the given number of times, lets everything settle, and stops the bot in good order.
func (c *campaign) run(kills int) {
	c.Helper()
	ctx, cancel := context.WithCancel(c.Context())
	people, busy := errgroup.WithContext(ctx)
	defer people.Wait()
	defer cancel()
	for i, who := range []string{"sam", "teo", "ingrid"} {
		people.Go(func() error { return c.live(busy, who, rand.New(rand.NewPCG(c.seed, uint64(i)))) })
	}
	random := rand.New(rand.NewPCG(c.seed, 99))
	for range kills {
		c.kill(ctx, random)
	}
	bot := c.start(ctx)
	c.mu.Lock()
	c.last = true
	c.mu.Unlock()
	defer time.AfterFunc(settleTime, cancel).Stop()
	if err := people.Wait(); err != nil {
		bot.end(syscall.SIGKILL)
		c.Fatalf("%v\nwhat the bot said last:\n%s", err, c.tail())
	}
	if err := bot.end(syscall.SIGTERM); err != nil {
		c.Errorf("the bot, asked to stop, ended with: %v\n%s", err, c.tail())
	}
}

// kill starts the bot, waits for the random moment and kills it.
func (c *campaign) kill(ctx context.Context, random *rand.Rand) {
	c.Helper()
	moments := []struct {
		bell string
		late time.Duration
	}{
		{"", 150 * time.Millisecond},   // while it starts
		{"up", 300 * time.Millisecond}, // whatever it does
		{"model", 25 * time.Millisecond},
		{"tool", 25 * time.Millisecond},
		{"tool", 60 * time.Millisecond},
		{"click", 6 * time.Millisecond},
		{"acknowledged", time.Millisecond},
		{"acknowledged", 5 * time.Millisecond},
		{"acknowledged", 15 * time.Millisecond},
	}
	m := moments[random.IntN(len(moments))]
	late := time.Duration(random.Int64N(int64(m.late)))
	bot := c.start(ctx)
	if m.bell != "" {
		select {
		case <-bot.up:
		case <-bot.gone:
			c.Fatalf("the bot did not come up: %v\n%s", bot.err, c.tail())
		case <-time.After(startTime):
			bot.end(syscall.SIGKILL)
			c.Fatalf("the bot did not come up in time\n%s", c.tail())
		}
	}
	if bell := c.bells[m.bell]; bell != nil {
		select { // what rang before doesn't count
		case <-bell:
		default:
		}
		select {
		case <-bell:
		case <-time.After(2 * time.Second): // nothing of the kind is going on: any moment will do
		}
	}
	<-time.After(late)
	if err := bot.end(syscall.SIGKILL); err == nil {
		c.Errorf("the bot had ended by itself\n%s", c.tail())
	}
}

// process is the bot under way.
type process struct {
	cmd  *exec.Cmd
	in   io.Closer
	up   chan struct{} // closed when it is connected
	gone chan struct{} // closed when it has ended
	err  error
}

// start starts the bot.
func (c *campaign) start(ctx context.Context) *process {
	c.Helper()
	conf, err := json.Marshal(c.conf)
	if err != nil {
		c.Fatal(err)
	}
	said, err := os.OpenFile(filepath.Join(c.dir, "said"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		c.Fatal(err)
	}
	defer said.Close()
	cmd := exec.CommandContext(ctx, os.Args[0])
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
	p := &process{cmd: cmd, in: in, up: make(chan struct{}), gone: make(chan struct{})}
	go func() {
		defer close(p.gone)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			switch {
			case lines.Text() == "up":
				close(p.up)
			case strings.HasPrefix(lines.Text(), "tool "):
				c.ring("tool")
			}
		}
		p.err = cmd.Wait()
	}()
	return p
}

// end sends a signal and waits for the process. A process that was killed, or had ended badly, is an error.
func (p *process) end(s syscall.Signal) error {
	p.cmd.Process.Signal(s) // one that is gone can't be signalled; Wait knows
	<-p.gone
	p.in.Close()
	return p.err
}

func (c *campaign) ring(bell string) {
	select {
	case c.bells[bell] <- struct{}{}:
	default:
	}
}

// tail is the end of what the bot wrote on its standard error.
func (c *campaign) tail() string {
	said, err := os.ReadFile(filepath.Join(c.dir, "said"))
	if err != nil {
		return err.Error()
	}
	return string(said[max(0, len(said)-4000):])
}

// respond is the model: it asks for the tools that the last message names, a step for each part between "then", and answers when they have
// their results.
func (c *campaign) respond(_ context.Context, r scriptedmodel.Request) (scriptedmodel.Reply, error) {
	c.ring("model")
	said, steps := "", 0
	for _, m := range r.Messages {
		switch {
		case m.Role == "user":
			said, steps = m.Content, 0
		case len(m.ToolCalls) > 0:
			steps++
		}
	}
	order, number, ok := strings.Cut(said[strings.Index(said, "do ")+3:], " #")
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
		tool := map[string]string{"ask": toolAct}[word] // act, but only with a countersignature
		if tool == "" {
			tool = word
		}
		args := map[string]any{"n": fmt.Sprintf("%s.%d.%d", number, steps, i), "gated": word == "ask"}
		reply.Calls = append(reply.Calls, scriptedmodel.NewCall(tool, args))
	}
	return reply, nil
}

// finished is the model's answer to the order with the number.
func finished(number string) string { return "finished " + number + " now" }
