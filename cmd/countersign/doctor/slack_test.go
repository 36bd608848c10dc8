package doctor

import (
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/bot/installation"
	"countersign/config"
)

// What a wrong clock of this machine means depends on whether the bot uses the time of a database.
func TestWrongClock(t *testing.T) {
	webhooks := &approvers.Policy{Clients: []approvers.Client{{Name: "ci", Webhook: &approvers.Webhook{}}}}
	for _, c := range []struct {
		name      string
		skew      time.Duration
		backend   string
		transport config.Transport
		state     state
		says      string
	}{
		{"a file", 10 * time.Minute, config.Bolt, config.SocketMode, stateFail, "receivers of webhooks refuse"},
		{"a file, by two minutes", -2 * time.Minute, config.Bolt, config.SocketMode, stateWarn, "deadlines and the history use this clock"},
		{"a database", 10 * time.Minute, config.Postgres, config.SocketMode, stateWarn, "over HTTP, the bot refuses"},
		{"a database, over HTTP", 10 * time.Minute, config.Postgres, config.HTTPMode, stateFail, "the bot refuses Slack's requests"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var d Doctor
			env := config.Env{Transport: c.transport, Store: config.Store{Backend: c.backend}}
			d.clock(installation.App{Dated: true, Skew: c.skew}, env, webhooks)
			if len(d.findings) != 1 || d.findings[0].State != c.state || !strings.Contains(d.findings[0].What+d.findings[0].Do, c.says) {
				t.Errorf("got %+v", d.findings)
			}
		})
	}
}
