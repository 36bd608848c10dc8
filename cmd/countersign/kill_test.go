package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/demo/workspace"
	"countersign/internal/demo/workspace/delivery"
	"countersign/internal/testkit"
)

// TestKills kills a bot in its own process with SIGKILL while people approve calls by real clicks. After each kill, the
// test starts the bot again. About half of the kills come at a random moment, and the others at a named point. The last
// kills come during the recovery from a kill. Afterwards the store, the recorded effects of the tools and the messages
// in Slack must agree. No acknowledged decision may be lost, no tool may have taken effect twice, and no work may be
// left. Slack delivers each event only once. Therefore the bot must read the channels' histories to find messages that
// people wrote while it was down. The bot must answer every request.
//
// In every third round, other agents also make calls over the gateway (kill_callers_test.go). The test kills these
// agents, and breaks their connections. Each answer that an agent gets must match the actual outcome of its call.
//
// COUNTERSIGN_KILLS sets the number of kills (12 with CI=true). The kills are made in rounds, each with its own
// workspace and store. At most six rounds run concurrently, unless the flag -parallel sets another number. Each round
// prints its seed. COUNTERSIGN_SEED repeats the moments of a round's kills and the choices of its people, as far as the
// machine's scheduling allows.
func TestKills(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	kills, seed := testkit.Size(t, "COUNTERSIGN_KILLS", 12), testkit.Seed(t)
	began := time.Now()
	var mu sync.Mutex
	var all figures
	t.Run("rounds", func(t *testing.T) {
		size := min(roundKills, (kills+2)/3) // at least three rounds: with the bot's own tools, with the tools of a server, and with other agents
		for round := 0; round*size < kills; round++ {
			n, seed := min(size, kills-round*size), seed+uint64(round)
			t.Run(fmt.Sprint(round), func(t *testing.T) {
				t.Parallel()
				recoveries := recoveryPoints
				if kills < len(recoveries) && round > 0 {
					recoveries = recoveries[:3]
				}
				f := killRound(t, n, seed, recoveries)
				t.Logf("%s=%d COUNTERSIGN_KILLS=%d: %s", testkit.SeedVariable, seed, 3*n, f)
				mu.Lock()
				defer mu.Unlock()
				all.add(f)
			})
		}
	})
	t.Logf("%s in %s", all, time.Since(began).Round(time.Second))
	if all.acknowledged < kills/2 || all.calls < kills/2 {
		t.Errorf("too little happened between %d kills: %d acknowledged clicks, %d calls", kills, all.acknowledged, all.calls)
	}
}

// roundKills is the number of kills in one round. A new round begins with an empty store. Therefore the bot reads less
// after each kill, and ten thousand kills take only minutes.
const roundKills = 100

// killRound runs one round, from an empty store until everything is settled. In every third round, the tools belong to
// an MCP server. If the bot is killed during a run, the next process does not know whether the server will act or has
// acted. In another third of the rounds, other agents make calls over the gateway. The campaign also kills these agents
// and their connections.
func killRound(t *testing.T, kills int, seed uint64, recoveries []string) figures {
	once := func(ws *workspace.Config) { ws.RetryDelays = []time.Duration{} }
	var c *killHarness
	points := campaignPoints
	switch seed % 3 {
	case 2:
		c = newKillHarness(t, seed, callersPolicy(killPolicy), func(c *killHarness) scriptedmodel.Responder { return scriptedmodel.ResponderFunc(c.respond) }, once)
		c.offerGateway(viaDecide, viaExecute, viaMCP, viaHook)
		points = slices.Concat(points, callerPoints)
	default:
		c = openKillHarness(t, seed, once)
	}
	c.begin()
	if seed%3 == 1 {
		c.offerWitnesses()
	}
	random := testkit.Chance(seed, 99)
	c.run(func(ctx context.Context) {
		for range kills {
			if random.IntN(2) == 0 {
				c.killAtPoint(ctx, points[random.IntN(len(points))], 1+random.IntN(2))
			} else {
				c.killAtMoment(ctx, random)
			}
		}
		for _, point := range recoveries {
			c.killAtPoint(ctx, point, 1)
		}
	})
	f := c.findings()
	f.kills = kills + len(recoveries)
	return f
}

// campaignPoints are the points at which a bot is killed. One kind of point lies before or after the commit of a
// transaction that people or tools cause. The other kind lies within a tool. Frequent points are listed several times.
var campaignPoints = func() []string {
	points := []string{toolCalled, toolActed, toolCalled, toolActed}
	often := []string{"Receive", "ReceiveMessage", "Begin", "Propose", "Delivered", "Decide", "Claim", "Finish"}
	for _, transaction := range slices.Concat(often, often, []string{"Recover", "ResolveAvailability", "DecideAll", "Report", "Answer", "Done"}) {
		points = append(points, transaction+testkit.BeforeCommit, transaction+testkit.BehindCommit)
	}
	return points
}()

// recoveryPoints are the points of the kills at the end of a round. The first kill comes while a tool runs. Each later
// kill comes while the next bot recovers from the previous kill. If a campaign has only few kills, its first round has
// all of these kills, and each other round the first three.
var recoveryPoints = []string{
	toolCalled, "Recover" + testkit.BeforeCommit, "Recover" + testkit.BehindCommit, "Claim" + testkit.BeforeCommit, "Claim" + testkit.BehindCommit, toolActed,
	"Recover" + testkit.BehindCommit,
}

// begin starts the first bot, and kills it when it is connected. The bot listens over HTTP if the tests use this
// transport. The bot must answer every message that people write after begin, even if the delivery of the message
// fails. In this test Slack does not retry failed deliveries.
func (c *killHarness) begin() {
	c.Helper()
	if usualTransport() == "http" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			c.Fatal(err)
		}
		c.conf.Listen = l.Addr().String()
		l.Close()
	}
	bot := c.start(c.Context(), killPoint{})
	c.awaitUp(bot)
	if c.conf.Listen != "" {
		body, err := json.Marshal(delivery.URLsAt("http://" + c.conf.Listen + "/slack/"))
		if err != nil {
			c.Fatal(err)
		}
		answer, err := http.Post(c.conf.Base+"/app/request_urls", "application/json", bytes.NewReader(body))
		if err != nil {
			c.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			c.Fatalf("the request URLs are not verified: %s\n%s", answer.Status, c.tail())
		}
	}
	c.killed(bot)
}

// run makes people work while the bot is killed. After that, run waits until all work is settled, and stops the bot in
// an orderly way.
func (c *killHarness) run(bringDown func(ctx context.Context)) {
	c.Helper()
	ctx, cancel := context.WithCancel(c.Context())
	people, busy := errgroup.WithContext(ctx)
	defer people.Wait()
	defer cancel()
	for i, who := range []string{"sam", "teo", "ingrid"} {
		people.Go(func() error { return c.live(busy, who, testkit.Chance(c.seed, uint64(i))) })
	}
	for i, via := range c.ways {
		people.Go(func() error { return c.callersLive(busy, via, testkit.Chance(c.seed, uint64(10+i))) })
	}
	bringDown(ctx)
	bot := c.start(ctx, killPoint{})
	var others []*process
	for range c.others {
		others = append(others, c.start(ctx, killPoint{}))
	}
	c.mu.Lock()
	c.last = true
	c.mu.Unlock()
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for stuck := isStuck(c.unsettled); !stuck(); {
			select {
			case <-ended:
				return
			case <-time.After(glance):
			}
		}
		cancel()
	})
	err := people.Wait()
	close(ended)
	watch.Wait()
	if err != nil {
		bot.end(syscall.SIGKILL)
		c.Fatalf("%v\nwhat the bot said last:\n%s", err, c.tail())
	}
	c.awaitHandled(bot)
	c.awaitSealed()
	for _, p := range append(others, bot) {
		c.awaitUp(p)
		if err := p.end(syscall.SIGTERM); err != nil {
			c.Errorf("the bot, asked to stop, ended with: %v\n%s", err, c.tail())
		}
	}
}

// patienceForPoint is how long a bot may take to reach the point at which it is killed. A bot that does not reach the
// point in this time is killed anyway.
const patienceForPoint = time.Second

// killAtPoint starts a bot that is killed when it reaches a point for the nth time.
func (c *killHarness) killAtPoint(ctx context.Context, point string, nth int) {
	c.Helper()
	bot := c.start(ctx, killPoint{Point: point, Nth: nth})
	select {
	case <-bot.gone:
	case <-time.After(patienceForPoint):
	}
	c.killed(bot)
}

// killAtMoment starts the bot, waits for a random moment and kills it.
func (c *killHarness) killAtMoment(ctx context.Context, random *rand.Rand) {
	c.Helper()
	moments := []struct {
		wakeup string
		late   time.Duration
	}{
		{"", 150 * time.Millisecond},   // while the bot starts
		{"up", 300 * time.Millisecond}, // at any time afterwards
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
	bot := c.start(ctx, killPoint{})
	if m.wakeup != "" {
		c.awaitUp(bot)
	}
	if wakeup := c.wakeups[m.wakeup]; wakeup != nil {
		select { // earlier wake-ups don't count
		case <-wakeup:
		default:
		}
		select {
		case <-wakeup:
		case <-time.After(2 * time.Second): // the awaited event does not happen, so the bot is killed now
		}
	}
	<-time.After(late)
	c.killed(bot)
}

// The method "killed" kills the bot if the bot still runs, and checks that only a kill has ended the bot.
func (c *killHarness) killed(bot *process) {
	c.Helper()
	bot.end(syscall.SIGKILL)
	if status, ok := bot.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		c.Fatalf("the bot had ended by itself: %v\n%s", bot.err, c.tail())
	}
}
