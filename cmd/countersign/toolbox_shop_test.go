package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"countersign/agent"
	"countersign/agent/mcp"
	"countersign/agent/pins"
	"countersign/config"
	"countersign/internal/shop"
)

// boxed are tools that a test registers itself. Nothing else is offered.
func boxed(r *agent.Registry) *toolbox {
	return &toolbox{Registry: r, log: slog.New(slog.DiscardHandler), calls: newServerCalls()}
}

// shopPins are the pins of the sample shop's tools, as its server describes them.
var shopPins = sync.OnceValues(func() (pins.Lock, error) {
	web := httptest.NewServer(shop.New(time.Now).Handler())
	defer web.Close()
	ctx, stop := context.WithCancel(context.Background())
	var lock pins.Lock
	var failed error
	client := mcp.Open(mcp.Config{
		Servers: []config.Server{{Name: shopServer, URL: web.URL + "/mcp", Bare: true, Allow: []string{"127.0.0.1"}, Timeout: time.Minute, MaxResult: 1 << 20}},
		Offer: func(server string, tools []agent.Tool) {
			for _, t := range tools {
				p, err := pins.Make(t.Name, server, t.Definition, "a test", time.Unix(0, 0))
				if err != nil {
					failed = err
				}
				lock = lock.With(p)
			}
		},
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = client.Run(ctx)
	}()
	err := client.Settled(ctx)
	stop()
	<-done
	if err == nil && failed == nil && len(lock.Pins) != 10 {
		err = fmt.Errorf("the shop offered %d tools", len(lock.Pins))
	}
	if err == nil {
		err = failed
	}
	return lock, err
})

// pinShop writes the lock beside a policy file, with the shop's tools in it.
func pinShop(t testing.TB, policy string) {
	t.Helper()
	lock, err := shopPins()
	if err == nil {
		err = lock.Write(pins.Beside(policy))
	}
	if err != nil {
		t.Fatal(err)
	}
}
