package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"countersign/agent"
	"countersign/bot/rotation"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/policyfile"
	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/demo/workspace"
	"countersign/internal/demo/workspace/delivery"
	"countersign/internal/testkit"
	"countersign/store/bolt"
)

// synctestHarness has the workspace, the model, people and the bot in faked time, so that hours pass in moments. The
// bot is the whole product. Its parts use HTTP and WebSockets over pipes, and the store is real.
type synctestHarness struct {
	*testing.T
	ws     *workspace.Server
	db     *bolt.Store
	setup  setup
	client *http.Client     // the people's client
	slack  *testkit.Network // network between the bot and Slack
	model  *testkit.Network // network between the bot and the model
	http   bool             // Slack delivers over HTTP, and not through sockets
	log    *lineLog
	ctx    context.Context
	bot    *running      // the only bot, or the first one of several bots
	board  *board        // divides the work among several bots; nil: there is only one bot
	others []replicaBot  // all bots, if there are several, in the order in which they started
	death  chan struct{} // signals that a call has killed the bot
	policy string
	app    rotation.App // zero: the app has no token rotation

	instead func(http.Handler) http.Handler // wraps the handler of the model; nil: no wrapper
	front   func(http.Handler) http.Handler // wraps Slack's handler; nil: no wrapper

	mu     sync.Mutex
	door   *testkit.Network       // the bot's listener for Slack's requests over HTTP
	decide func(apiCall) callFate // decides how the bot's calls end
	calls  []apiCall
	note   func(apiCall)                          // called with each call instead of recording the call; may be nil
	fates  func(delivery.Attempt) delivery.Mishap // chooses the fault of each delivery
	runs   map[string]int                         // number of runs of the tool, by the argument n

	requests map[string]string // ids of the requests, by the argument n
}

const synctestPolicy = `version: 1
defaults: {expires_after: 30m, escalate_after: 10m, remind_after: 8m, reminders: 3}
tools:
  plain: {risk: high, confirm: true}
  grave: {risk: critical, confirm: true, stages: [director]}
  alarm: {risk: critical, confirm: true, stages: [duty]}
  vote: {risk: high, confirm: true, stages: [{approver: crowd, quorum: 4}]}
  patient:
    risk: high
    confirm: true
    stages: [{approver: lead, expires_after: 24h, escalate_after: 23h}]
approvers:
  lead: {title: Lead, members: [U0002], max_risk: high, can_approve: ["*"], cards: "#support-approvals", lead: director}
  crowd: {title: Everybody, members: [U0001, U0002, U0003, U0004, U0101], max_risk: high, can_approve: [vote], cards: "#support-approvals"}
  duty: {title: On duty, members: [U0003], max_risk: critical, can_approve: [alarm], cards: "#support", lead: director}
  director: {title: Director, members: [U0003, U0004], max_risk: critical, can_approve: ["*"], cards: dm}
agents:
  support: {channels: ["#support", "#general"], prompt: Do as you are told., tools: ["*"]}
`

// inFakedTime runs a test in faked time. The function change may change the bot's configuration.
func inFakedTime(t *testing.T, change func(*synctestHarness), fn func(*synctestHarness)) {
	t.Helper()
	inSeededTime(t, workspace.DemoSeed(), change, fn)
}

// inSeededTime is like inFakedTime, with another content of the workspace.
func inSeededTime(t *testing.T, seed workspace.Seed, change func(*synctestHarness), fn func(*synctestHarness)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	synctest.Test(t, func(t *testing.T) {
		b := &synctestHarness{T: t, policy: synctestPolicy, slack: testkit.NewNetwork(), model: testkit.NewNetwork(), log: new(lineLog), death: make(chan struct{}, 1), runs: map[string]int{}, http: usualTransport() == "http"}
		ctx, stop := context.WithCancel(context.Background())
		b.ctx = ctx
		people := testkit.NewNetwork()
		b.client = &http.Client{Transport: &http.Transport{DialContext: people.DialContext, MaxIdleConnsPerHost: 16}}
		log := slog.New(slog.NewTextHandler(b.log, nil))
		var err error
		requests := &http.Transport{DialContext: b.knock, MaxIdleConnsPerHost: 64}
		b.ws, err = workspace.New(workspace.Config{
			Seed: seed, BaseURL: "http://slack.test", Log: slog.New(slog.DiscardHandler), Mishaps: b.mishap, HTTP: &http.Client{Transport: requests},
		})
		b.ok(err)
		b.db, err = openstore.File(path)
		b.ok(err)
		tools := catalogOf(b.tools())
		slack, model := &http.Transport{DialContext: b.slack.DialContext, MaxIdleConnsPerHost: 64}, &http.Transport{DialContext: b.model.DialContext}
		b.setup = setup{
			botToken: workspace.DemoBotToken, appToken: workspace.DemoAppToken, slackURL: "http://slack.test/api/", unlimited: true,
			http:  &http.Client{Transport: slack, Timeout: 20 * time.Second},
			model: agent.Model{BaseURL: "http://model.test/v1", Key: "key", Name: scriptedmodel.DefaultModel, HTTP: &http.Client{Transport: model}},
			store: b.db, tools: tools, log: log,
		}
		if change != nil {
			change(b)
		}
		if b.setup.policies == nil {
			b.setup.policies, err = policyfile.New("policy.yaml", []byte(b.policy), tools, log)
			b.ok(err)
		}
		if b.http {
			b.setup.listen, b.setup.signingSecret = b.listen, workspace.DemoSigningSecret
		}
		var script http.Handler = scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.ResponderFunc(b.think)})
		if b.instead != nil {
			script = b.instead(script)
		}
		slackSide := b.ws.Handler()
		if b.front != nil {
			slackSide = b.front(slackSide)
		}
		servers := map[*testkit.Network]http.Handler{people: b.ws.Handler(), b.slack: b.watched(slackSide), b.model: script}
		var serving sync.WaitGroup
		var closing []func() error
		for w, h := range servers {
			srv := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
			closing = append(closing, srv.Close)
			serving.Go(func() { srv.Serve(w) })
		}
		b.start()
		defer func() { // also runs if fn ends the test, because nothing may be left in the bubble
			err := b.endAll()
			stop()
			err = errors.Join(err, b.ws.Close())
			for _, end := range closing {
				err = errors.Join(err, end())
			}
			for _, t := range []*http.Transport{slack, model, requests, b.client.Transport.(*http.Transport)} {
				t.CloseIdleConnections()
			}
			serving.Wait()
			if err := errors.Join(err, b.db.Check(context.Background()), b.db.Close()); err != nil {
				t.Error(err)
			}
			if t.Failed() && testing.Verbose() {
				t.Log(strings.Join(b.log.all(), "\n"))
			}
		}()
		b.pass(2 * time.Second)
		if b.http {
			b.ok(b.ws.SetRequestURLs(ctx, delivery.URLsAt("http://bot.test/slack/")))
		}
		fn(b)
	})
}

// usePolicy sets the policy with which the bot starts next.
func (b *synctestHarness) usePolicy(text string) {
	b.Helper()
	policies, err := policyfile.New("policy.yaml", []byte(text), b.setup.tools, b.setup.log)
	b.ok(err)
	b.setup.policies = policies
}

func (b *synctestHarness) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// listen opens the listener on which a bot receives Slack's requests.
func (b *synctestHarness) listen() (net.Listener, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.door = testkit.NewNetwork()
	return b.door, nil
}

// knock connects Slack to the current bot.
func (b *synctestHarness) knock(ctx context.Context, network, addr string) (net.Conn, error) {
	b.mu.Lock()
	door := b.door
	b.mu.Unlock()
	return door.DialContext(ctx, network, addr)
}

// replicas is the number of bots in a test with several bots.
const replicas = 3

// start starts a bot, as a new process on the same store. If the harness has a board, start starts several bots.
func (b *synctestHarness) start() {
	if b.board == nil {
		b.bot = b.begin(b.setup)
		return
	}
	for range replicas {
		b.startReplica()
	}
	b.bot = b.others[0].running
}

// begin starts one bot. If the app has token rotation, the bot first gets its token.
func (b *synctestHarness) begin(s setup) *running {
	b.Helper()
	if b.app != (rotation.App{}) {
		s.rotation = rotation.New(rotation.Options{App: b.app, Store: s.store, Replica: s.replica, Job: tokenJob, URL: s.slackURL, HTTP: s.http, Log: s.log})
		var err error
		s.botToken, err = s.rotation.Token(b.ctx)
		b.ok(err)
	}
	return s.begin(b.ctx)
}

// restart replaces the bot with a new process on the same store. If several bots run, restart replaces one of them.
func (b *synctestHarness) restart() {
	b.Helper()
	if b.board == nil {
		b.ok(b.bot.end())
		b.start()
		return
	}
	b.ok(b.endReplica())
	b.startReplica()
	b.bot = b.others[0].running
}

func (b *synctestHarness) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// The method "within" waits until a condition holds, up to a limit, and returns how long the wait took.
func (b *synctestHarness) within(most time.Duration, what string, is func() bool) time.Duration {
	b.Helper()
	began := time.Now()
	for !is() {
		if time.Since(began) > most {
			b.Fatalf("it did not come to this within %s: %s", most, what)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(began)
}

// The method "idle" reports whether all work is done and all messages are shown in Slack.
func (b *synctestHarness) idle() bool {
	_, all := b.ws.Delivered()
	for _, bot := range b.bots() {
		idle, err := bot.workflow.Idle(b.ctx)
		b.ok(err)
		all = all && idle
	}
	return all
}

// The method "ready" returns how many bots say that they are ready.
func (b *synctestHarness) ready() (n int) {
	for _, bot := range b.bots() {
		n += b2i(bot.bot.Ready(b.ctx) == nil)
	}
	return n
}
