package slackapi

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slack-go/slack"
)

// After new tokens replace the old ones, every kind of call has the new tokens. slack-go sends tokens in forms and in
// headers.
func TestRotatedTokens(t *testing.T) {
	var sent []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		form := r.FormValue("token")
		if form == "" {
			form = "-"
		}
		sent = append(sent, MethodOf(r)+" "+form+" "+r.Header.Get("Authorization"))
		w.Write([]byte(`{"ok":true,"url":"wss://x","user_id":"U1","team_id":"T1","view":{}}`))
	}))
	defer srv.Close()
	c := New(Options{BotToken: "xoxb-old", AppToken: "xapp-old", URL: srv.URL, HTTP: srv.Client(), Unlimited: true, Log: slog.New(slog.DiscardHandler)})
	all := func() []string {
		sent = nil
		_, err := c.AuthTestContext(t.Context())
		_, _, err2 := c.StartSocketModeContext(t.Context())
		_, err3 := c.OpenViewContext(t.Context(), "trigger", slack.ModalViewRequest{Type: slack.VTModal})
		_, _, err4 := c.PostMessageContext(t.Context(), "C1", slack.MsgOptionText("a & b=c ü", false))
		for _, err := range []error{err, err2, err3, err4} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return sent
	}
	check := func(bot, app string) {
		t.Helper()
		got, bots, apps := all(), 0, 0
		for _, line := range got {
			for _, form := range []string{bot + " ", "- Bearer " + bot} {
				if line[len(line)-len(form):] == form {
					bots++
				}
			}
			if line == "apps.connections.open - Bearer "+app {
				apps++
			}
		}
		if len(got) != 4 || bots != 3 || apps != 1 {
			t.Errorf("with %s and %s: %q", bot, app, got)
		}
	}
	check("xoxb-old", "xapp-old")
	c.SetTokens("xoxb-new", "xapp-new")
	check("xoxb-new", "xapp-new")
	c.SetTokens("xoxb-newer", "xapp-new")
	check("xoxb-newer", "xapp-new")
}

// Expired is called when Slack says that the bot token is no longer valid. Such a call is put off. After any other answer,
// or if the refused token is the app-level token, Expired is not called. If Expired is nil, the calls are refused.
// Several calls with an invalid token begin an outage.
func TestExpiredToken(t *testing.T) {
	for _, rotates := range []bool{true, false} {
		answer, expired := "", 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answer) }))
		defer srv.Close()
		o := Options{BotToken: "xoxe.xoxb-1", AppToken: "xapp-1", URL: srv.URL, HTTP: srv.Client(), Unlimited: true, Log: slog.New(slog.DiscardHandler)}
		if rotates {
			o.Expired = func() { expired++ }
		}
		c := New(o)
		for _, code := range []string{"token_expired", "token_revoked", "invalid_auth", "channel_not_found"} {
			answer, expired = `{"ok":false,"error":"`+code+`"}`, 0
			_, err := c.AuthTestContext(t.Context())
			if rotates && strings.HasPrefix(code, "token_") {
				if expired != 1 || !IsPutOff(err) || !IsNotSent(err) || IsRefused(err) {
					t.Errorf("%s: %v, and Expired was called %d times", code, err, expired)
				}
			} else if expired != 0 || ErrorCode(err) != code {
				t.Errorf("%s: %v, and Expired was called %d times", code, err, expired)
			}
			expired = 0
			if _, _, err := c.StartSocketModeContext(t.Context()); ErrorCode(err) != code || expired != 0 {
				t.Errorf("the app-level token: %v, and Expired was called %d times", err, expired)
			}
		}
		answer = `{"ok":false,"error":"token_expired"}`
		for range downAfter {
			_, err := c.AuthTestContext(t.Context())
			if err == nil {
				t.Error("the call with the expired token succeeded")
			}
		}
		if c.Available() == nil {
			t.Errorf("with rotation: %v, and there is no outage", rotates)
		}
	}
}
