package bot

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"countersign/bot/directory"
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
