package doctor

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign/bot/transport"
	"countersign/config"
)

// deaf is a bot that fails the test if it receives a request.
type deaf struct{ t *testing.T }

func (d deaf) Lane(transport.Delivery) string { return "" }

func (d deaf) Receive(_ context.Context, got transport.Delivery) (any, error) {
	d.t.Errorf("the bot received %s", got.Payload)
	return nil, nil
}

// The doctor tries each of the three Request URLs. If a URL does not lead to the bot, the doctor names the URL and the
// settings page.
func TestEachRequestURLIsTried(t *testing.T) {
	const secret = "c0de51c0de51c0de51c0de51c0de51c0"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := transport.NewHTTP(transport.HTTPOptions{
		Options: transport.Options{Handler: deaf{t}, Log: slog.New(slog.DiscardHandler), Now: time.Now},
		Listen:  func() (net.Listener, error) { return l, nil }, SigningSecret: func() string { return secret },
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	bot := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: l.Addr().String()})
	for name, c := range map[string]struct {
		lost  string            // the path that the proxy does not forward
		moved map[string]string // paths that the proxy forwards to other paths
		url   string            // the bot's URL, as a path below the proxy's address
		want  []string          // beginnings of the findings' states and texts
		do    string
	}{
		"all lead to the bot":          {want: []string{"ok /slack/events", "ok /slack/interactions", "ok /slack/commands"}},
		"one URL for all":              {url: "/slack/events", want: []string{"ok /slack/events", "ok /slack/events", "ok /slack/events"}},
		"interactivity is lost":        {lost: "/slack/interactions", want: []string{"ok /slack/events", "fail no clicks and forms arrive: /slack/interactions", "ok /slack/commands"}, do: "https://api.slack.com/apps/A0001/interactive-messages"},
		"commands are lost":            {lost: "/slack/commands", want: []string{"ok /slack/events", "ok /slack/interactions", "fail no slash commands arrive: /slack/commands"}, do: "https://api.slack.com/apps/A0001/slash-commands"},
		"interactivity leads astray":   {moved: map[string]string{"/slack/interactions": "/slack/commands"}, want: []string{"ok /slack/events", "fail no clicks and forms arrive: /slack/interactions", "ok /slack/commands"}},
		"another path than the events": {url: "/bot", want: []string{"fail no events arrive: /bot/slack/events", "fail no clicks and forms arrive: /bot/slack/interactions", "fail no slash commands arrive: /bot/slack/commands"}},
	} {
		t.Run(name, func(t *testing.T) {
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == c.lost {
					http.NotFound(w, r)
					return
				}
				if to, ok := c.moved[r.URL.Path]; ok {
					r.URL.Path = to
				}
				bot.ServeHTTP(w, r)
			}))
			defer web.Close()
			d := Doctor{URL: web.URL + c.url}
			d.requests(t.Context(), config.Env{SigningSecret: config.Secret(secret)}, "A0001")
			for i, f := range d.findings {
				got := string(f.State) + " " + strings.ReplaceAll(f.What, web.URL, "")
				if i >= len(c.want) || !strings.HasPrefix(got, c.want[i]+" ") || f.State == stateFail && !strings.Contains(f.Do, c.do) {
					t.Errorf("%s → %s", got, f.Do)
				}
			}
			if len(d.findings) != len(c.want) {
				t.Errorf("%d findings; want %d", len(d.findings), len(c.want))
			}
		})
	}
}
