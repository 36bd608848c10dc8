package workspace

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
)

func TestCallFaults(t *testing.T) {
	b := newHarness(t)
	inject := func(body obj) { t.Helper(); b.must(b.post("/faults", body)) }
	post := func() error {
		_, _, err := b.api.PostMessage("C0001", text("x"))
		return err
	}
	posted := func() int { return len(b.messages("sam", "C0001", "")) }

	inject(obj{"fault": "rate_limited", "method": "chat.postMessage", "times": 2, "retry_after": 7})
	for range 2 {
		var limited *slack.RateLimitedError
		if err := post(); !errors.As(err, &limited) || limited.RetryAfter != 7*time.Second {
			t.Errorf("rate limited: %v", err)
		}
	}
	inject(obj{"fault": "server_error", "method": "chat.postMessage", "status": 503})
	var status slack.StatusCodeError
	if err := post(); !errors.As(err, &status) || status.Code != 503 {
		t.Errorf("server error: %v", err)
	}
	inject(obj{"fault": "error", "method": "chat.postMessage", "error": "restricted_action"})
	if err := post(); code(err) != "restricted_action" {
		t.Errorf("error: %v", err)
	}
	inject(obj{"fault": "lost_request", "method": "chat.postMessage"})
	if err := post(); err == nil || posted() != 0 {
		t.Errorf("lost request: %v, %d posted", err, posted())
	}
	inject(obj{"fault": "lost_response", "method": "chat.postMessage"})
	if err := post(); err == nil || posted() != 1 {
		t.Errorf("lost response: %v, %d posted", err, posted())
	}
	inject(obj{"fault": "slow", "delay_ms": 1})
	if err := post(); err != nil || posted() != 2 {
		t.Errorf("slow: %v", err)
	}
	inject(obj{"fault": "rate_limited", "method": "chat.update"})
	if err := post(); err != nil {
		t.Errorf("a fault of another method: %v", err)
	}
	if r := b.get("/faults"); r.text("faults", "0", "method") != "chat.update" {
		t.Errorf("the remaining faults: %v", r)
	}
	inject(obj{"fault": "clear"})
	if r := b.get("/faults"); len(r.body["faults"].([]any)) != 0 {
		t.Errorf("after clearing: %v", r)
	}
	for _, bad := range []obj{
		{"fault": "nonsense"}, {"fault": "error"}, {"fault": "slow", "method": "chat.shout"}, {"fault": "slow", "delay": 3},
		{"fault": "rate_limited", "times": -1}, {"fault": "server_error", "status": 200}, {"fault": "disconnect", "reason": "tired"},
		{"fault": "user", "user": "U9999", "set": obj{}}, {"fault": "user", "user": "U0001", "set": obj{"tz": "Mars"}}, {"fault": "group", "group": "S9", "users": arr{}}, {},
	} {
		if r := b.post("/faults", bad); r.status != 400 || r.code() != "invalid_fault" || r.text("details", "0") == "" {
			t.Errorf("%v: %v", bad, r)
		}
	}
}

func TestRealRates(t *testing.T) {
	b := newHarness(t)
	b.srv.SetRealRates(true)
	post := func(channel string) error {
		_, _, err := b.api.PostMessage(channel, text("x"))
		return err
	}
	var limited *slack.RateLimitedError
	for i := range 5 {
		if err := post("C0001"); err != nil {
			t.Fatalf("post %d of a burst: %v", i+1, err)
		}
	}
	if err := post("C0001"); !errors.As(err, &limited) || limited.RetryAfter != time.Second {
		t.Errorf("a sixth post within a second: %v", err)
	}
	if err := post("C0002"); err != nil {
		t.Errorf("in another channel: %v", err)
	}
	for i := range 3 {
		b.clock.advance(time.Second)
		if err := post("C0001"); err != nil {
			t.Errorf("%d seconds later: %v", i+1, err)
		}
		if err := post("C0001"); !errors.As(err, &limited) {
			t.Errorf("a second post in that second: %v", err)
		}
	}
	b.clock.advance(time.Minute)
	posted := 0
	for i := range 400 { // many channels, with one post per second in each
		if err := post(fmt.Sprintf("C1%03d", i%8)); code(err) == "channel_not_found" {
			posted++ // the call passed the rate limit, which is checked first
		}
		b.clock.advance(125 * time.Millisecond)
	}
	if posted != 300 {
		t.Errorf("%d posts within a minute in the workspace", posted)
	}
	b.clock.advance(time.Minute)
	for i := range 20 {
		if _, err := b.api.GetUserGroupMembers("S0001"); err != nil {
			t.Fatalf("call %d of a tier 2 method: %v", i+1, err)
		}
		b.clock.advance(time.Second)
	}
	if _, err := b.api.GetUserGroupMembers("S0001"); !errors.As(err, &limited) || limited.RetryAfter != 40*time.Second {
		t.Errorf("the 21st call within a minute: %v", err)
	}
	b.clock.advance(40 * time.Second)
	if _, err := b.api.GetUserGroupMembers("S0001"); err != nil {
		t.Errorf("after Retry-After: %v", err)
	}
}

// If a person is deactivated, the app gets an event, the user group loses a member, and nobody can act as the
// deactivated person. A fault can also set the members of a user group.
func TestPeopleChange(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	b.must(b.post("/faults", obj{"fault": "user", "user": "U0001", "set": obj{"deactivated": true}}))
	if e := inner(t, wait(t, app.events)).(*slackevents.UserChangeEvent); e.User.ID != "U0001" || !e.User.Deleted {
		t.Errorf("user_change: %+v", e)
	}
	if e := inner(t, wait(t, app.events)).(*slackevents.SubteamMembersChangedEvent); e.SubteamID != "S0001" || len(e.RemovedUsers) != 1 {
		t.Errorf("subteam_members_changed: %+v", e)
	}
	if r := b.get("/people/ada/channels"); r.status != http.StatusForbidden {
		t.Errorf("acting as a deactivated person: %v", r)
	}
	b.must(b.post("/faults", obj{"fault": "group", "group": "@support", "users": arr{"U0002"}}))
	if members, err := b.api.GetUserGroupMembers("S0001"); err != nil || len(members) != 1 || members[0] != "U0002" {
		t.Errorf("the group: %v %v", members, err)
	}
}
