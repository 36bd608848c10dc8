package directory

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/slackapi"
)

// In an enterprise, Slack names one person by the id in the enterprise or by the id in the workspace. A role or a group
// that names the person by both ids has one member, whose address is the id in the enterprise.
func TestOneAddressForAPerson(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := map[string]any{"ok": true}
		switch r.URL.Path {
		case "/users.info":
			answer["user"] = map[string]any{"id": "U2", "team_id": "T1", "enterprise_user": map[string]any{"id": "W2", "enterprise_id": "E1"}}
			if user := r.FormValue("user"); user != "U1" && user != "W1" {
				break
			}
			answer["user"] = map[string]any{"id": "U1", "team_id": "T1", "enterprise_user": map[string]any{"id": "W1", "enterprise_id": "E1"}}
		case "/usergroups.list":
			answer["usergroups"] = []any{map[string]any{"id": "S1", "handle": "one", "users": []string{"U2", "U1", "W1"}}}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer web.Close()
	d := NewUsers(UsersOptions{
		API: slack.New("xoxb-1", slack.OptionAPIURL(web.URL+"/")), Self: func(context.Context) (Self, error) { return Self{Team: "T1", Enterprise: "E1"}, nil },
		CountsEmail: func(string) bool { return false }, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	role := approvers.Role{Name: "a", CanApprove: []string{"*"}}
	for _, user := range []string{"U1", "U2", "W1"} {
		role.Members = append(role.Members, approvers.Member{Kind: approvers.MemberUser, Value: user})
	}
	want := []string{"W1", "W2"}
	ids := func(people []approvers.Identity) (ids []string) {
		for _, who := range people {
			ids = append(ids, who.ID.User())
		}
		return ids
	}
	if got, err := d.RoleUsers(t.Context(), role); err != nil || !slices.Equal(ids(got), want) {
		t.Errorf("the role has %v (%v), want %v", got, err, want)
	}
	r := approvers.Request{Plan: approvers.Plan{Stages: []approvers.Stage{{Approver: "a", Group: "one"}}}}
	if got, err := d.GroupUsers(t.Context(), "one", &r, &approvers.Policy{Approvers: []approvers.Role{role}}); err != nil || !slices.Equal(ids(got), want) {
		t.Errorf("the group has %v (%v), want %v", got, err, want)
	}
}

// If Slack refuses to name the members of a user group, the group gives a person who acts no authority, and the identity
// says so. For a person who does not act, the look-up fails. If Slack can't be asked, both look-ups fail.
func TestGroupThatSlackDoesNotName(t *testing.T) {
	var refusal string
	var list []any
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := map[string]any{"ok": true, "user": map[string]any{"id": "U1", "team_id": "T1"}, "usergroups": list}
		if strings.HasPrefix(r.URL.Path, "/usergroups.") && (list == nil || r.URL.Path == "/usergroups.users.list") {
			answer = map[string]any{"ok": false, "error": refusal}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer web.Close()
	p := &approvers.Policy{Approvers: []approvers.Role{{CanApprove: []string{"*"}, Members: []approvers.Member{
		{Kind: approvers.MemberGroup, Value: "cut"}, {Kind: approvers.MemberGroup, Value: "one"},
	}}}}
	some := []any{map[string]any{"id": "S1", "handle": "one", "users": []string{"U1"}}, map[string]any{"id": "S2", "handle": "cut"}}
	for _, tt := range []struct {
		refusal         string
		list            []any
		groups, unnamed []string
		fails           bool
	}{
		{"missing_scope", nil, nil, []string{"cut", "one"}, false},
		{"missing_scope", some, []string{"one"}, []string{"cut"}, false},
		{"internal_error", nil, nil, nil, true},
		{"invalid_auth", some, nil, nil, true},
	} {
		refusal, list = tt.refusal, tt.list
		d := NewUsers(UsersOptions{
			API: slack.New("xoxb-1", slack.OptionAPIURL(web.URL+"/")), Self: func(context.Context) (Self, error) { return Self{Team: "T1"}, nil },
			CountsEmail: func(string) bool { return false }, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		})
		who, err := d.Clicker(t.Context(), "U1", p, "t", approvers.High, nil)
		if (err != nil) != tt.fails || !slices.Equal(who.Groups, tt.groups) || !slices.Equal(who.Unnamed, tt.unnamed) {
			t.Errorf("%s: a person who clicks has %q and not %q (%v)", tt.refusal, who.Groups, who.Unnamed, err)
		}
		if who, err := d.Approver(t.Context(), "U1", p, "t", approvers.High, nil); slackapi.ErrorCode(err) != tt.refusal || who.ID != "" {
			t.Errorf("%s: the look-up of %v did not fail: %v", tt.refusal, who, err)
		}
	}
}

// One call answers for all groups of a click. A separate call reads the members of a group only if Slack does not list
// the person and may have left out some members. Disabled groups and unknown groups have no members. For a high risk,
// and for several requests with a high risk among them, the bot asks again.
func TestGroupsOfClicker(t *testing.T) {
	group := func(id, handle string, deleted int, users ...string) map[string]any {
		return map[string]any{"id": id, "handle": handle, "date_delete": deleted, "users": append([]string{}, users...)}
	}
	unlisted := group("S6", "unlisted", 0)
	delete(unlisted, "users")
	many := slices.Repeat([]string{"U3"}, mayBeCut-1)
	var calls []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls = append(calls, r.URL.Path[1:])
		w.Header().Set("Content-Type", "application/json")
		answer := map[string]any{"ok": true}
		switch r.URL.Path {
		case "/users.info":
			answer["user"] = map[string]any{"id": "U1", "team_id": "T1"}
		case "/usergroups.list":
			if r.FormValue("include_users") != "true" {
				t.Error("the members of the groups were not asked for")
			}
			answer["usergroups"] = []any{
				group("S1", "one", 0, "U1"), group("S2", "two", 0, "U2"), group("S3", "three", 0, append(many, "U4")...), group("S4", "off", 99, "U1"),
				group("S5", "empty", 0), unlisted, group("S7", "crowd", 0, append(many, "U1")...),
			}
		case "/usergroups.users.list":
			if id := r.FormValue("usergroup"); id != "S3" && id != "S6" {
				t.Errorf("asked for the members of %s", r.FormValue("usergroup"))
			}
			answer["users"] = []string{"U3", "U1"}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer web.Close()
	d := NewUsers(UsersOptions{
		API: slack.New("xoxb-1", slack.OptionAPIURL(web.URL+"/")), Self: func(context.Context) (Self, error) { return Self{Team: "T1"}, nil },
		CountsEmail: func(string) bool { return false }, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	role := func(groups ...string) approvers.Role {
		r := approvers.Role{CanApprove: []string{"*"}}
		for _, g := range groups {
			r.Members = append(r.Members, approvers.Member{Kind: approvers.MemberGroup, Value: g})
		}
		return r
	}
	list, one := []string{"users.info", "usergroups.list"}, "usergroups.users.list"
	small, large, none := []string{"S1", "one"}, []string{"one", "three"}, []string{}
	for _, tt := range []struct {
		name   string
		groups []string
		risk   approvers.Risk
		want   []string
		calls  []string
	}{
		{"without groups", nil, approvers.High, none, list[:1]},
		{"small groups", []string{"one", "S1", "two", "empty"}, approvers.High, small, list},
		{"a group that is cut", []string{"one", "two", "three"}, approvers.Critical, large, append(slices.Clone(list), one)},
		{"a long list with the person", []string{"crowd"}, approvers.High, []string{"crowd"}, list},
		{"no list of members", []string{"unlisted"}, approvers.High, []string{"unlisted"}, append(slices.Clone(list), one)},
		{"low risk", []string{"one", "two", "three"}, approvers.Low, large, nil},
		{"no such group", []string{"off", "S4", "S9"}, approvers.High, none, list},
	} {
		p := &approvers.Policy{Approvers: []approvers.Role{role(tt.groups...), role(tt.groups...)}}
		for _, look := range []func() (approvers.Identity, error){
			func() (approvers.Identity, error) { return d.Clicker(t.Context(), "U1", p, "t", tt.risk, nil) },
			func() (approvers.Identity, error) {
				r := []*approvers.Request{{Tool: "t"}, {Tool: "u", Plan: approvers.Plan{Risk: tt.risk}}}
				return d.ClickerOfAll(t.Context(), "U1", p, r)
			},
		} {
			calls = nil
			who, err := look()
			if err != nil || fmt.Sprint(who.Groups) != fmt.Sprint(tt.want) || !slices.Equal(calls, tt.calls) {
				t.Errorf("%s: %q (%v) after %q; want %q after %q", tt.name, who.Groups, err, calls, tt.want, tt.calls)
			}
		}
	}
}
