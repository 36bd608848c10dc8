package bot

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// If Slack, or a stand-in for it, does not say which app the bot belongs to, the bot works without the app's id. If
// Slack fails, the bot asks again.
func TestAppIsUnknown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		answer string
		app    string
		fails  bool
	}{
		"an answer":          {http.StatusOK, `{"ok":true,"bot":{"id":"B1","app_id":"A1"}}`, "A1", false},
		"a missing scope":    {http.StatusOK, `{"ok":false,"error":"missing_scope"}`, "", false},
		"no such method":     {http.StatusOK, `{"ok":false,"error":"method_not_found"}`, "", false},
		"unknown arguments":  {http.StatusOK, `{"ok":false,"error":"invalid_arguments"}`, "", false},
		"a missing page":     {http.StatusNotFound, "not found", "", false},
		"a failure of Slack": {http.StatusOK, `{"ok":false,"error":"internal_error"}`, "", true},
		"a rate limit":       {http.StatusOK, `{"ok":false,"error":"ratelimited"}`, "", true},
		"a broken server":    {http.StatusBadGateway, "", "", true},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/bots.info") {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.answer)
				return
			}
			_, _ = io.WriteString(w, `{"ok":true,"url":"https://x.slack.com/","team_id":"T1","user_id":"U1","bot_id":"B1"}`)
		}))
		defer srv.Close()
		me, err := New(Config{BotToken: "xoxb-1", APIURL: srv.URL + "/api/", Log: slog.New(slog.DiscardHandler)}).whoAmI(t.Context())
		if me.App != c.app || (err != nil) != c.fails || err == nil && me.User != "U1" {
			t.Errorf("%s: %+v, %v", name, me, err)
		}
	}
}
