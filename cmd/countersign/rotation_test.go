package main

import (
	"strings"
	"testing"
	"time"

	"countersign/bot/rotation"
	"countersign/internal/demo/workspace"
)

// rotatingApp has the credentials of the app in rotatingSeed.
var rotatingApp = rotation.App{ClientID: "1.2", ClientSecret: "0123456789abcdef", RefreshToken: "xoxe-1-first"}

// rotatingSeed is the demo's workspace, with an app with token rotation.
func rotatingSeed() workspace.Seed {
	seed := workspace.DemoSeed()
	seed.App.BotTokens = nil
	seed.App.Rotation = workspace.SeedRotation{ClientID: rotatingApp.ClientID, ClientSecret: rotatingApp.ClientSecret, RefreshToken: rotatingApp.RefreshToken}
	return seed
}

// renewals counts the calls that exchange a refresh token.
func (b *synctestHarness) renewals() int {
	return len(b.made(time.Time{}, func(c apiCall) bool { return c.method == "oauth.v2.access" }))
}

// asksAndApproves asks for a call, and approves it.
func (b *synctestHarness) asksAndApproves(n string) {
	b.Helper()
	b.says("plain " + n)
	b.asked(n)
	b.within(time.Minute, "a card for "+n, b.idle)
	b.ok(b.approve("teo", n, b.card(n)))
	b.within(time.Minute, "a run of "+n, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.runs[n] == 1
	})
}

// TestTokenRotation runs bots whose token expires every 12 hours. The bots renew it in time. One replica gets the token,
// and all replicas use it. A restarted bot uses the stored token. If Slack says that the token has expired, the bot
// renews it, and sends the refused messages again.
func TestTokenRotation(t *testing.T) {
	for _, c := range []struct {
		name    string
		several bool
		hours   time.Duration
		renewed int // every 6 hours, and at the start
	}{{"one", false, 13, 3}, {"replicas", true, 0, 1}} {
		t.Run(c.name, func(t *testing.T) {
			inSeededTime(t, rotatingSeed(), func(b *synctestHarness) { b.app, b.board = rotatingApp, boardIf(c.several) }, func(b *synctestHarness) {
				b.asksAndApproves("1")
				b.pass(c.hours * time.Hour)
				b.asksAndApproves("2")
				if got := b.renewals(); got != c.renewed {
					t.Errorf("the token was renewed %d times", got)
				}
				b.restart()
				b.pass(time.Minute)
				if got := b.renewals(); got != c.renewed {
					t.Errorf("after a restart, the token was renewed again: %d times", got)
				}
				b.asksAndApproves("3")
				if c.several {
					return
				}
				b.ws.ExpireTokens() // the next call tells the bot
				b.asksAndApproves("4")
				if got := b.renewals(); got != c.renewed+1 {
					t.Errorf("the expired token was not renewed: %d times", got)
				}
				if log := strings.Join(b.log.all(), "\n"); strings.Contains(log, "xoxe") {
					t.Errorf("the log has a token:\n%s", log)
				}
			})
		})
	}
}
