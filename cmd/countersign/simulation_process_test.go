package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"countersign/agent"
	"countersign/bot"
	"countersign/bot/transport"
	"countersign/cmd/countersign/policyfile"
	"countersign/config"
	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/demo/workspace"
)

// life is one process of the bot.
type life struct {
	parts
	simulation *simulation
	n          int
	dead       atomic.Bool // the process was killed: its later operations have no effect
	stopping   bool
	receipts   transport.ReceiptClock
	doubts     atomic.Bool // the process does not know whether a commit succeeded, so it ends
	ctx        context.Context
	stop       context.CancelFunc
	policies   *policyfile.Source
	hangup     chan os.Signal
	done       chan struct{}
	err        error
}

// lifeKey is the context key of the process.
type lifeKey struct{}

const simulationBase = "http://slack.test"

// start starts the bot on the current store.
func (s *simulation) start() {
	s.lives++
	p := &life{simulation: s, n: s.lives, hangup: make(chan os.Signal, 8), done: make(chan struct{})}
	log := slog.New(simulationLog{s: s, p: p})
	tools := catalogOf(s.tools(p))
	policies, err := policyfile.Open(s.policyFile, tools, log)
	if err != nil {
		s.Fatal(err)
	}
	policies.Hangup, p.policies = p.hangup, policies
	set := setup{
		botToken: workspace.DemoBotToken, appToken: workspace.DemoAppToken, slackURL: simulationBase + "/api/",
		model: agent.Model{
			BaseURL: "http://model.test/v1", Key: "key", Name: scriptedmodel.DefaultModel, HTTP: &http.Client{Transport: modelWire{p}},
		},
		policies: policies, store: gatedStore{Store: s.db, p: p}, tools: tools, log: log, now: s.now,
		unlimited: s.unlimited, http: &http.Client{Transport: slackWire{p}, Timeout: 20 * time.Second},
		receive: func(ctx context.Context, _ *bot.Bot) error {
			<-ctx.Done() // the simulation itself makes the deliveries
			return nil
		},
	}
	p.parts = set.assemble()
	ctx := context.WithValue(context.Background(), lifeKey{}, p)
	p.ctx, p.stop = context.WithCancel(labels(ctx, "main"))
	s.bot = p
	s.operator.paused.Store(s.isPaused())
	s.step("process %d starts", p.n)
	go func() {
		defer close(p.done)
		p.err = set.run(p.ctx, p.parts)
	}()
}

// kill ends the process immediately, in the middle of its work.
func (s *simulation) kill(why string) {
	p := s.bot
	s.kills++
	s.step("process %d is killed: %s", p.n, why)
	p.dead.Store(true)
	p.stop()
	s.gate.clear(p)
	s.bot = nil
	s.settle()
	if s.chance(3) {
		s.reopen()
	}
}

// reopen closes the store and opens it again, as a new process does.
func (s *simulation) reopen() {
	if err := s.db.Close(); err != nil {
		s.violate("the store does not close: %v", err)
		return
	}
	s.open()
}

// The method "ended" handles the end of a process. The process has ended by itself, or because the simulation stopped
// it.
func (s *simulation) ended() {
	if s.bot == nil {
		return
	}
	select {
	case <-s.bot.done:
	default:
		return
	}
	p := s.bot
	s.note("process %d has ended: %v", p.n, p.err)
	if p.err == nil && !p.stopping {
		s.violate("the process ended by itself, and does not say why")
	}
	s.bot, s.upAt = nil, time.Now().Add(time.Duration(s.rnd.IntN(3000))*time.Millisecond)
	p.dead.Store(true)
	p.stop()
	s.gate.clear(p)
}

// shutDown requests an orderly stop of the process.
func (s *simulation) shutDown() {
	s.step("process %d is asked to stop", s.bot.n)
	s.bot.stopping = true
	s.bot.stop()
}

// putPolicy writes the policy file, and signals to the process that the file is complete.
func (s *simulation) putPolicy(r simulationPolicy) {
	text := []byte(r.text())
	s.policyOf[config.Hash(text)] = r
	if err := os.WriteFile(s.policyFile, text, 0o600); err != nil {
		s.Fatal(err)
	}
	if s.bot != nil {
		s.bot.hangup <- syscall.SIGHUP
	}
}

// simulationLog receives the lines of the bot's log.
type simulationLog struct {
	s *simulation
	p *life
}

func (l simulationLog) Enabled(context.Context, slog.Level) bool { return true }
func (l simulationLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l simulationLog) WithGroup(string) slog.Handler            { return l }

func (l simulationLog) Handle(_ context.Context, r slog.Record) error {
	if l.p.dead.Load() || r.Level < slog.LevelWarn {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Level, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%.200v", a.Key, a.Value)
		return true
	})
	l.s.logged(b.String())
	return nil
}
