package bot

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign/bot/directory"
	"countersign/bot/render/control"
)

// The replica that handles an event about a person makes the other replicas forget Slack's answers about this person.
func TestReplicasForgetOldAnswers(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	other := &Replicas{core: &core{users: directory.NewUsers(directory.UsersOptions{Now: time.Now})}}
	other.Share = func() (int, time.Time) { return 2, time.Time{} }
	other.Tell = func(news string) { h.bot.Replicas.Hear(news) }
	for user, want := range map[string]bool{"U0001": true, "U0002": false} {
		if _, err := h.bot.users.User(context.Background(), "U0002", false); err != nil {
			t.Fatal(err)
		}
		other.invalidate(event{Type: userChange, User: json.RawMessage(`"` + user + `"`)})
		if _, known := h.bot.users.Known("U0002"); known != want {
			t.Errorf("after an event about %s, the answer about U0002 is cached: %v, want %v", user, known, want)
		}
	}
}

// twoOpeners is the network to Slack. Before the bot opens a view, another replica opens the same view for the same
// click.
type twoOpeners struct {
	code string // Slack's refusal of the second view; empty: the workspace's refusal
}

func (o twoOpeners) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(req.URL.Path, "/views.open") {
		return http.DefaultTransport.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	earlier := req.Clone(req.Context())
	earlier.Body = io.NopCloser(bytes.NewReader(body))
	resp, err := http.DefaultTransport.RoundTrip(earlier)
	if err != nil {
		return nil, err
	}
	if o.code != "" {
		resp.Body = io.NopCloser(strings.NewReader(`{"ok":false,"error":"` + o.code + `"}`))
		resp.ContentLength = -1
		return resp, nil
	}
	resp.Body.Close()
	req.Body = io.NopCloser(bytes.NewReader(body))
	return http.DefaultTransport.RoundTrip(req)
}

// If a click reaches two replicas, Slack opens only one loading view. The replica that handles the click shows the form
// in this view, even if the other replica opened the view.
func TestAnotherReplicaOpensTheForm(t *testing.T) {
	for _, code := range []string{"", "duplicate_external_id"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, func(h *harness) { h.http = &http.Client{Transport: twoOpeners{code}} })
			h.says("sam", "#support", refundCall)
			card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
			h.clicks("teo", "#support-approvals", card, control.ActReject)
			h.opened("teo", control.ActReject)
		})
	}
}
