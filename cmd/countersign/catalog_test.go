package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/agent/mcp"
	"countersign/agent/pins"
	"countersign/cmd/countersign/policyfile"
	"countersign/config"
	"countersign/internal/demo/shop"
)

// catalogOf returns a catalog that has only the tools that the test itself registers.
func catalogOf(r *agent.Registry) *catalog.Catalog {
	c, err := catalog.New(catalog.Config{Registry: r})
	if err != nil {
		panic(err) // only built-in tools can fail, and the test has none
	}
	return c
}

// boxPolicy is the beginning of a policy, for tests that add tools. crmEntry adds the tools of a server by its URL.
const (
	boxPolicy = `version: 1
approvers: {boss: {title: Boss, members: [U0001], max_risk: critical, can_approve: ["*"]}}
agents: {support: {channels: ["#support"], prompt: x, tools: ["*"]}}
`
	crmEntry = "servers:\n  crm: {url: %q, allow: [127.0.0.1]}\n"
)

// openCatalog returns a catalog for a policy. The function begin connects the policy's servers until the test ends.
func openCatalog(t *testing.T, policy string) (c *catalog.Catalog, begin func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "countersign.yaml")
	write(t, path, []byte(boxPolicy+policy))
	c, err := catalog.New(catalog.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := policyfile.Open(path, c, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	return c, func() { t.Cleanup(c.Begin(t.Context())) }
}

// shopEntry is the policy's entry for the sample shop, as in docs/policy.md. shopStart is the part that makes the bot
// start the shop.
const (
	shopStart = "command: [countersign, shop, --file, countersign-shop.json]"
	shopEntry = `
servers:
  shop:
    ` + shopStart + `
    prefix: false
    effects: {search_orders: read-only, preview_refund: read-only, update_shipping_address: idempotent, update_profile: idempotent, apply_discount: idempotent, issue_refund: idempotent, process_payment: idempotent, export_customer_data: idempotent}
`
)

// shopPins has the pins of the sample shop's tools, with the definitions from the shop's server.
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
	if err == nil && failed == nil && len(lock.Pins) != 11 {
		err = fmt.Errorf("the shop offered %d tools", len(lock.Pins))
	}
	if err == nil {
		err = failed
	}
	return lock, err
})

// pinShop writes a lock file with the shop's tools next to a policy file.
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
