package directory

import (
	"testing"

	"github.com/slack-go/slack"

	"countersign/approvers"
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
		"authorized the app":   {alone, user(func(u *slack.User) { u.IsAppUser = true }), approvers.Identity{ID: "T1/U1"}},
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
