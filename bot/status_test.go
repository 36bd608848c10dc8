package bot

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers/workflow/settings"
)

// failingStatuses answers in place of Slack. While its value is true, calls that set a status get the status 503. If
// alone is false, all other calls get it, too.
type failingStatuses struct {
	atomic.Bool
	alone bool
}

func (f *failingStatuses) RoundTrip(req *http.Request) (*http.Response, error) {
	status, body := http.StatusOK, `{"ok":true}`
	if f.Load() && (!f.alone || strings.HasSuffix(req.URL.Path, refusedStatuses)) {
		status, body = http.StatusServiceUnavailable, ""
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// refusedOutbox accepts the record of a refusal.
type refusedOutbox struct{ Outbox }

func (refusedOutbox) Refused(context.Context, settings.Refusal) error { return nil }

// During an outage of Slack, the bot does not conclude that Slack refuses statuses. If only the calls that set a status
// fail, the bot sets none for a while. An outage after this time does not make it longer.
func TestStatusesFail(t *testing.T) {
	for _, alone := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			slackSide := &failingStatuses{alone: alone}
			slackSide.Store(true)
			b := New(Config{BotToken: "xoxb-1", Workflow: Workflow{Outbox: refusedOutbox{}}, Log: slog.New(slog.DiscardHandler), HTTP: &http.Client{Transport: slackSide}, Now: time.Now})
			b.refused.read = true // this bot has no store from which it could read refusals
			setSome := func() {
				for i := range 3 * mostUnusable {
					b.api.AuthTestContext(t.Context()) //nolint:errcheck // if this call succeeds, Slack is up
					b.Display.statuses.set(t.Context(), destination{"C1", strconv.Itoa(i)}, status{turn: "turn", text: "is thinking…"}, false)
					time.Sleep(time.Second)
				}
			}
			setSome()
			if refused := b.refused.has(t.Context(), refusedStatuses); refused != alone {
				t.Errorf("only statuses fail: %v, and statuses count as refused: %v", alone, refused)
			}
			time.Sleep(methodFailed)
			slackSide.alone = false
			for range mostUnusable {
				b.api.AuthTestContext(t.Context()) //nolint:errcheck // begins an outage
			}
			setSome()
			if b.refused.has(t.Context(), refusedStatuses) {
				t.Errorf("only statuses failed: %v, and statuses count as refused because of an outage", alone)
			}
		})
	}
}
