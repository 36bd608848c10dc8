package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"countersign/config"
)

// house is the whole demo in this process: workspace, model, shop and bot, at an address of its own.
type house struct {
	*testing.T
	stage
	setup setup
	parts parts
}

// openHouse starts everything on dir and stops it with the test. change may set the bot up differently.
func openHouse(t *testing.T, dir string, change func(*setup)) *house {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	st, err := openStage(dir, "127.0.0.1:0", config.Env{}, log)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := registry(st.shop)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := demoPolicyFrom("", tools, log)
	if err != nil {
		t.Fatal(err)
	}
	h := &house{T: t, stage: st, setup: demoSetup(st, config.Env{}, policy, tools, log)}
	if change != nil {
		change(&h.setup)
	}
	h.parts = h.setup.assemble()
	ctx, stop := context.WithCancel(context.Background())
	up, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- st.around(ctx, func(ctx context.Context) error {
			close(up)
			return h.setup.run(ctx, h.parts)
		})
	}()
	<-up
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the bot ended with: %v", err)
		}
		if err := errors.Join(st.store.Check(context.Background()), st.store.Close()); err != nil {
			t.Errorf("the store after the test: %v", err)
		}
	})
	if err := connected(t.Context(), h.parts); err != nil {
		t.Fatal(err)
	}
	return h
}

// within is the time that one thing in a test may take at most. It bounds a failure; nothing waits for it to pass.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
