package directory

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"countersign/bot/slackapi"

	"github.com/slack-go/slack"
)

// The bot finds a channel that it is in without a list of all channels. That list can have more pages than Slack allows
// calls in a minute.
func TestChannelIDs(t *testing.T) {
	var calls []string
	refused := false
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls = append(calls, r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case refused && r.URL.Path == "/users.conversations":
			fmt.Fprint(w, `{"ok":false,"error":"missing_scope"}`)
		case r.URL.Path == "/conversations.list":
			fmt.Fprint(w, `{"ok":true,"channels":[{"id":"C1","name":"cards"},{"id":"C3","name":"elsewhere"}],"response_metadata":{"next_cursor":""}}`)
		case r.FormValue("cursor") == "": // a page may be empty although others follow
			fmt.Fprint(w, `{"ok":true,"channels":[],"response_metadata":{"next_cursor":"more"}}`)
		default:
			fmt.Fprint(w, `{"ok":true,"channels":[{"id":"C1","name":"cards"}],"response_metadata":{"next_cursor":""}}`)
		}
	}))
	defer web.Close()
	own, all := []string{"/users.conversations", "/users.conversations"}, []string{"/conversations.list"}
	p := NewChannels(slack.New("xoxb-1", slack.OptionAPIURL(web.URL+"/")), time.Now)
	for _, step := range []struct {
		event, named, id string
		calls            []string
	}{
		{"", "C9", "C9", nil},
		{"", "#cards", "C1", own},
		{"", "cards", "C1", nil},
		{"", "#elsewhere", "C3", all}, // the bot is not in this channel
		{"", "#nowhere", "", all},
		{"member_joined_channel", "#cards", "C1", own},
	} {
		calls = nil
		p.Invalidate(step.event, "")
		id, err := p.ID(t.Context(), step.named)
		if id != step.id || (err == nil) != (step.id != "") || err != nil && slackapi.ErrorCode(err) != "channel_not_found" || !slices.Equal(calls, step.calls) {
			t.Errorf("%s: %q, %v after %q", step.named, id, err, calls)
		}
	}
	refused = true
	p.Invalidate("channel_created", "")
	if id, err := p.ID(t.Context(), "#cards"); id != "C1" || err != nil {
		t.Errorf("without the bot's own channels: %q, %v", id, err)
	}
}
