package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"countersign/agent/catalog"
	"countersign/config"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
	"countersign/store"
)

// demoHarness is the whole demo in this process: workspace, model, shop and bot, at its own address.
type demoHarness struct {
	*testing.T
	demoEnv
	setup setup
	clock clock
	bot   *running
	ctx   context.Context // ends when the test ends
}

// usualTransport is the transport of tests that don't choose one. With COUNTERSIGN_TRANSPORT=http, the transport is
// HTTP for scenarios, demo harnesses and tests in faked time.
func usualTransport() string { return os.Getenv("COUNTERSIGN_TRANSPORT") }

// openDemoHarness starts the whole demo with its files in dir, and stops the demo when the test ends. The function
// change may change the bot's configuration.
func openDemoHarness(t *testing.T, dir string, change func(*setup)) *demoHarness {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	h := &demoHarness{T: t}
	st, err := openDemoEnv(t.Context(), dir, demoOptions{addr: "127.0.0.1:0", patience: patience, transport: usualTransport()}, config.Env{}, h.clock.now, log)
	if err != nil {
		t.Fatal(err)
	}
	of := shopCatalog(st.shop, st.base+shopPath)
	of.Log = log
	tools, err := catalog.New(of)
	if err != nil {
		t.Fatal(err)
	}
	policies, err := demoPolicies("", tools, log)
	if err != nil {
		t.Fatal(err)
	}
	h.demoEnv, h.setup = st, demoSetup(st, config.Env{}, policies, log)
	h.setup.now = h.clock.now
	if change != nil {
		change(&h.setup)
	}
	ctx, stop := context.WithCancel(context.Background())
	h.ctx = ctx
	up, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- st.serveAround(ctx, func(ctx context.Context) error {
			close(up)
			<-ctx.Done()
			return nil
		})
	}()
	<-up
	h.bot = h.setup.begin(ctx)
	t.Cleanup(func() {
		err := h.bot.end()
		stop()
		if err = errors.Join(err, <-done); err != nil {
			t.Errorf("the bot ended with: %v", err)
		}
		if err := errors.Join(st.store.Check(context.Background()), st.store.Close()); err != nil {
			t.Errorf("the store after the test: %v", err)
		}
	})
	if err := connected(t.Context(), h.bot.parts); err != nil {
		t.Fatal(err)
	}
	return h
}

// The method "down" stops the bot, lets time pass without a bot, and starts a new bot on the same store.
func (h *demoHarness) down(d time.Duration) {
	h.Helper()
	if err := h.bot.end(); err != nil {
		h.Fatal(err)
	}
	h.clock.set(h.clock.now().Add(d))
	h.bot = h.setup.begin(h.ctx)
	if err := connected(h.Context(), h.bot.parts); err != nil {
		h.Fatal(err)
	}
}

func (h *demoHarness) watcher(user string) watcher {
	return watcher{h.T, workspaceclient.Client{Base: h.base, User: user}}
}

// The function "within" returns a context that limits the time of one step of a test. Only a failure reaches the limit.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	t.Cleanup(cancel)
	return ctx
}

// The method "calls" lists the tool calls of the conversation whose thread starts at ts in #support, in the order of
// its turns.
func (h *demoHarness) calls(ts string) (out []store.Call, err error) {
	err = h.store.View(h.Context(), func(r store.Reader) error {
		out = nil
		conv, err := r.ConversationAt("T0001/C0001/" + ts)
		if err != nil {
			return err
		}
		messages, err := r.Messages(conv.ID, 0)
		if err != nil {
			return err
		}
		for _, m := range messages {
			if m.Role != store.RoleAssistant || m.Calls == 0 {
				continue
			}
			calls, err := r.Calls(m.Turn)
			if err != nil {
				return err
			}
			out = append(out, calls...)
		}
		return nil
	})
	return out, err
}
