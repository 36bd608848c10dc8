package directory

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/bottest"
)

func TestIdentity(t *testing.T) {
	alone := Self{User: "UBOT", Team: "T1"}
	grid := Self{User: "UBOT", Team: "T1", Enterprise: "E1"}
	user := func(f func(*slack.User)) slack.User {
		u := slack.User{ID: "U1", TeamID: "T1", Name: "ann"}
		u.Profile.Email = "Ann@Example.com"
		f(&u)
		return u
	}
	none := func(*slack.User) {}
	for name, c := range map[string]struct {
		me   Self
		u    slack.User
		want approvers.Identity
	}{
		"member":               {alone, user(none), approvers.Identity{ID: "T1/U1", Name: "ann", Email: "ann@example.com"}},
		"deactivated":          {alone, user(func(u *slack.User) { u.Deleted = true }), approvers.Identity{ID: "T1/U1", Deleted: true}},
		"guest":                {alone, user(func(u *slack.User) { u.IsRestricted = true }), approvers.Identity{ID: "T1/U1", Guest: true}},
		"single-channel guest": {alone, user(func(u *slack.User) { u.IsUltraRestricted = true }), approvers.Identity{ID: "T1/U1", Guest: true}},
		"stranger":             {alone, user(func(u *slack.User) { u.IsStranger = true }), approvers.Identity{ID: "T1/U1", Foreign: true}},
		"another workspace":    {alone, user(func(u *slack.User) { u.TeamID = "T2" }), approvers.Identity{ID: "T2/U1", Foreign: true}},
		"bot":                  {alone, user(func(u *slack.User) { u.IsBot = true }), approvers.Identity{ID: "T1/U1", Bot: true}},
		"workflow":             {alone, user(func(u *slack.User) { u.IsWorkflowBot = true }), approvers.Identity{ID: "T1/U1", Bot: true}},
		"slackbot":             {alone, user(func(u *slack.User) { u.ID = "USLACKBOT" }), approvers.Identity{ID: "T1/USLACKBOT", Bot: true}},
		"grid, same workspace": {grid, user(none), approvers.Identity{ID: "E1/U1"}},
		"grid, sister": {grid, user(func(u *slack.User) { u.TeamID, u.Enterprise.EnterpriseID = "T2", "E1" }),
			approvers.Identity{ID: "E1/U1"}},
		"grid, one person in two workspaces": {grid, user(func(u *slack.User) { u.Enterprise = slack.EnterpriseUser{ID: "W1", EnterpriseID: "E1"} }),
			approvers.Identity{ID: "E1/W1", Local: "U1"}},
		"another grid":         {grid, user(func(u *slack.User) { u.TeamID, u.Enterprise.EnterpriseID = "T9", "E9" }), approvers.Identity{ID: "E9/U1", Foreign: true}},
		"no grid into a grid":  {grid, user(func(u *slack.User) { u.TeamID = "T9" }), approvers.Identity{ID: "T9/U1", Foreign: true}},
		"a workspace not said": {alone, user(func(u *slack.User) { u.TeamID = "" }), approvers.Identity{ID: "/U1", Foreign: true}},
	} {
		got := Identity(c.me, c.u)
		if got.ID != c.want.ID || got.Local != c.want.Local || got.Deleted != c.want.Deleted || got.Guest != c.want.Guest || got.Foreign != c.want.Foreign || got.Bot != c.want.Bot {
			t.Errorf("%s: %+v", name, got)
		}
		if name == "member" && (got.Email != c.want.Email || got.Name != c.want.Name) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestMemory(t *testing.T) {
	now := bottest.Noon
	m := NewCache[int](func() time.Time { return now }, IdentityTTL)
	asked := 0
	ask := func() (int, error) { asked++; return asked, nil }
	get := func(fresh bool) int { v, _ := m.Get("k", fresh, ask); return v }
	if get(false) != 1 || get(false) != 1 {
		t.Error("an answer is not remembered")
	}
	now = now.Add(IdentityTTL - time.Second)
	if get(false) != 1 {
		t.Error("an answer is forgotten too soon")
	}
	now = now.Add(2 * time.Second)
	if get(false) != 2 {
		t.Error("an answer is trusted too long")
	}
	if get(true) != 3 || get(false) != 3 {
		t.Error("a fresh answer is not asked for, or not remembered")
	}
	m.forget("k")
	if get(false) != 4 {
		t.Error("a forgotten answer is used")
	}
	if _, err := m.Get("x", false, func() (int, error) { return 0, errors.New("no") }); err == nil {
		t.Error("an error is swallowed")
	}
	// If an event arrives while the bot asks Slack, the bot does not cache the answer, because the answer may be older
	// than the event.
	if v, _ := m.Get("race", false, func() (int, error) { m.forget("race"); return 7, nil }); v != 7 {
		t.Error(v)
	}
	if v, _ := m.Get("race", false, func() (int, error) { return 8, nil }); v != 8 {
		t.Error("an answer from before the change was kept")
	}
}

// While a key's value is requested, other calls wait for it. A call with fresh does not wait, because the requested
// value may be too old. If the request fails, a waiting call makes its own request.
func TestOneRequestForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewCache[int64](time.Now, IdentityTTL)
		var asked atomic.Int64
		proceed := make(chan error)
		ask := func() (int64, error) { return asked.Add(1), <-proceed }
		get := func(fresh bool) { _, _ = m.Get("k", fresh, ask) }
		for range 3 {
			go get(false)
			synctest.Wait()
		}
		if asked := asked.Load(); asked != 1 {
			t.Errorf("%d requests for one value", asked)
		}
		go get(true)
		synctest.Wait()
		if asked.Load() != 2 {
			t.Error("a fresh answer was not asked for")
		}
		m.forget("")
		proceed <- errors.New("no")
		proceed <- nil // an answer from before the forget
		synctest.Wait()
		if asked.Load() < 3 {
			t.Error("after the failed request nobody asks")
		}
		for n := asked.Load(); n > 2; n-- {
			proceed <- nil
		}
		synctest.Wait()
		if v, ok := m.peek("k"); !ok || v < 3 {
			t.Errorf("%d %t", v, ok)
		}
	})
}
