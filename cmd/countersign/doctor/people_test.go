package doctor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"countersign/approvers"
	"countersign/bot/installation"
)

// If Slack refuses to name the members of a user group, the doctor names the group, and checks the other members.
func TestGroupThatSlackDoesNotName(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := `{"ok":false,"error":"missing_scope"}`
		switch r.URL.Path {
		case "/auth.test":
			answer = `{"ok":true,"user_id":"UBOT","team_id":"T1"}`
		case "/users.info":
			answer = `{"ok":true,"user":{"id":"U1","team_id":"T1","name":"ada"}}`
		}
		if _, err := fmt.Fprint(w, answer); err != nil {
			t.Error(err)
		}
	}))
	defer web.Close()
	role := func(name string, members ...approvers.Member) approvers.Role {
		return approvers.Role{Name: name, Title: name, Members: append(members, approvers.Member{Kind: approvers.MemberGroup, Value: "support"})}
	}
	var d Doctor
	e := installation.New("xoxb-1", "", web.URL)
	if _, err := e.App(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.people(t.Context(), e, &approvers.Policy{Approvers: []approvers.Role{
		role("Leads", approvers.Member{Kind: approvers.MemberUser, Value: "U1"}), role("Agents"),
	}})
	var got []string
	for _, f := range d.findings {
		got = append(got, string(f.State)+" "+f.What)
	}
	const unnamed = ": Slack refuses to name the members of the user group @support, so they can't decide: usergroups.list: missing_scope"
	want := []string{"warn Leads" + unnamed, "ok Leads: 1 member can decide (ada)", "fail Agents" + unnamed, "fail Agents: nobody can decide in this role"}
	if !slices.Equal(got, want) {
		t.Errorf("the findings are %q", got)
	}
}
