package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/policyfile"
	"countersign/internal/testkit"
)

// TestFloodInSlack makes a client request 90 calls at once. The cards of these calls are all in one channel, and Slack
// applies its published limits. Then another client requests a call. At most a few of the 90 cards appear before this
// call's card, and all cards appear in the end. In the second case, people also write to the bot and get answers in the
// same channel. In the third case, Slack refuses a card because of its limits, and the bot delays all cards.
func TestFloodInSlack(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	for _, tt := range []struct {
		name, channel string
		refuses       bool
		within        time.Duration
	}{
		{"a channel of cards", "#support-approvals", false, 10 * time.Second},
		{"a busy channel", "#support", false, 10 * time.Second},
		{"a refused post", "#support-approvals", true, 40 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inFakedTime(t, func(b *synctestHarness) {
				b.setup.unlimited = false
				text := strings.Replace(synctestPolicy, `cards: "#support-approvals", lead`, fmt.Sprintf(`cards: %q, lead`, tt.channel), 1) + fmt.Sprintf(`clients:
  ci: {token: "sha256:%s", agent: support, owner: U0100, tools: ["*"]}
  other: {token: "sha256:%s", agent: support, owner: U0100, tools: ["*"]}
`, tokenHash(ciToken), tokenHash(otherToken))
				var err error
				b.setup.policies, err = policyfile.New("policy.yaml", []byte(text), b.setup.tools, b.setup.log)
				b.ok(err)
			}, func(b *synctestHarness) {
				b.ws.SetRealRates(true)
				var mu sync.Mutex
				began, refused := time.Now(), false
				b.decide = func(c apiCall) callFate {
					mu.Lock()
					defer mu.Unlock()
					if tt.refuses && !refused && c.method == "chat.postMessage" && time.Since(began) > 5*time.Second {
						refused = true
						return callRefused // Slack asks the bot to wait for 30 seconds
					}
					return callFine
				}
				cards := map[string]time.Time{} // by the argument n
				b.note = func(c apiCall) {
					mu.Lock()
					defer mu.Unlock()
					if _, after, card := strings.Cut(c.form.Get("blocks"), "flood-"); card && c.done && c.method == "chat.postMessage" {
						n, _, _ := strings.Cut(after, ".")
						cards[n] = time.Now()
					}
				}
				asks := func(client, n string) {
					known, ok := b.setup.tools.Policy().Client(client)
					if !ok {
						b.Fatalf("the policy has no client %s", client)
					}
					_, _, err := b.bot.workflow.Callers.Propose(b.ctx, workflow.CallerCall{
						Client: known, Key: n, Mode: approvers.ExecuteMode, Tool: "plain", Args: json.RawMessage(fmt.Sprintf(`{"n":"flood-%s."}`, n)),
					})
					b.ok(err)
				}
				for i := range 90 {
					asks("ci", fmt.Sprint("ci", i))
				}
				if tt.channel == "#support" {
					for i := range 30 {
						_, err := b.as("sam").Say(b.ctx, "#support", "", fmt.Sprintf("@Countersign plain %d", i))
						b.ok(err)
					}
				}
				b.pass(10 * time.Second)
				at := time.Now()
				asks("other", "other")
				b.pass(5 * time.Minute)
				mu.Lock()
				defer mu.Unlock()
				before := 0
				for n, shown := range cards {
					if n != "other" && shown.After(at) && shown.Before(cards["other"]) {
						before++
					}
				}
				if len(cards) != 91 {
					t.Fatalf("%d cards were posted", len(cards))
				}
				waited := cards["other"].Sub(at)
				t.Logf("the other client's card appeared after %s, after %d more cards of the flood", waited, before)
				if waited > tt.within || before > 5 {
					t.Errorf("the other client's card appeared after %s, after %d more cards of the flood", waited, before)
				}
			})
		})
	}
}
