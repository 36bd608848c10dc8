package bot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

func TestIdentity(t *testing.T) {
	alone := self{User: "UBOT", Team: "T1"}
	grid := self{User: "UBOT", Team: "T1", Enterprise: "E1"}
	user := func(f func(*slack.User)) slack.User {
		u := slack.User{ID: "U1", TeamID: "T1", Name: "ann"}
		u.Profile.Email = "Ann@Example.com"
		f(&u)
		return u
	}
	none := func(*slack.User) {}
	for name, c := range map[string]struct {
		me   self
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
		got := identity(c.me, c.u)
		if got.ID != c.want.ID || got.Local != c.want.Local || got.Deleted != c.want.Deleted || got.Guest != c.want.Guest || got.Foreign != c.want.Foreign || got.Bot != c.want.Bot {
			t.Errorf("%s: %+v", name, got)
		}
		if name == "member" && (got.Email != c.want.Email || got.Name != c.want.Name) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestMemory(t *testing.T) {
	now := noon
	m := newMemory[int](func() time.Time { return now }, trusted)
	asked := 0
	ask := func() (int, error) { asked++; return asked, nil }
	get := func(fresh bool) int { v, _ := m.get("k", fresh, ask); return v }
	if get(false) != 1 || get(false) != 1 {
		t.Error("an answer is not remembered")
	}
	now = now.Add(trusted - time.Second)
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
	if _, err := m.get("x", false, func() (int, error) { return 0, errors.New("no") }); err == nil {
		t.Error("an error is swallowed")
	}
	// An event that comes while Slack is being asked: the answer may be from before it, and is not kept.
	if v, _ := m.get("race", false, func() (int, error) { m.forget("race"); return 7, nil }); v != 7 {
		t.Error(v)
	}
	if v, _ := m.get("race", false, func() (int, error) { return 8, nil }); v != 8 {
		t.Error("an answer from before the change was kept")
	}
}

// Every reason for denying somebody has words of its own.
func TestEveryDenialHasWords(t *testing.T) {
	source, err := os.ReadFile("../approvers/denied.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`Code = "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(codes) < 20 {
		t.Fatalf("%d codes found", len(codes))
	}
	r := testRequest(refundArgs)
	seen := map[string]string{}
	for _, c := range codes {
		d := &approvers.Denied{Code: approvers.Code(c[1]), Role: "team-lead", Need: approvers.High, By: "T0001/U0002", State: approvers.Rejected, At: noon, Detail: "det<ai>l"}
		words := denied(d, &r, testPolicy()).plain.String()
		if strings.Contains(words, "("+c[1]+")") {
			t.Errorf("%s has no words of its own", c[1])
		}
		if other, twice := seen[words]; twice {
			t.Errorf("%s and %s are told the same", c[1], other)
		}
		if strings.Contains(words, "det<ai>l") {
			t.Errorf("%s: other people's text is not escaped: %s", c[1], words)
		}
		seen[words] = c[1]
	}
	for _, s := range []approvers.State{approvers.Approved, approvers.Consumed, approvers.Rejected, approvers.Expired, approvers.Withdrawn, approvers.Revoked, approvers.Voided, approvers.Refused} {
		for _, by := range []approvers.PersonID{"", "T0001/U0002"} {
			words := denied(&approvers.Denied{Code: approvers.DeniedResolved, By: by, State: s, At: noon}, &r, nil).plain.String()
			if !strings.HasPrefix(words, "Too late: ") || strings.Contains(words, "  ") {
				t.Errorf("%s by %q: %s", s, by, words)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	limited := fmt.Errorf("x: %w", slow(&slack.RateLimitedError{RetryAfter: 7 * time.Second}))
	var says interface{ After() time.Duration }
	if !errors.As(limited, &says) || says.After() != 7*time.Second {
		t.Error("Retry-After is lost")
	}
	if !errors.As(slow(slack.StatusCodeError{Code: 429}), &says) || !errors.As(slow(slack.SlackErrorResponse{Err: "ratelimited"}), &says) {
		t.Error("a 429 without Retry-After is not waited for")
	}
	if errors.As(slow(errors.New("x")), &says) {
		t.Error("every error waits")
	}
	if errorCode(fmt.Errorf("x: %w", slack.SlackErrorResponse{Err: "is_archived"})) != "is_archived" || errorCode(context.Canceled) != "" {
		t.Error("Slack's code is not read")
	}
}
