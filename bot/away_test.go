package bot

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/bot/render/control"
	"countersign/internal/demo/workspace"
	"countersign/store"
)

// commands sends a slash command.
func (h *harness) commands(user, channel, text string) {
	h.t.Helper()
	out := h.call("POST", "/people/"+user+"/commands", map[string]any{"channel": channel, "command": "/countersign", "text": text})
	if out["ok"] != true {
		h.t.Fatalf("%s could not type %q: %v", user, text, out)
	}
}

// The method "answered" waits for a private reply in the channel of the command.
func (h *harness) answered(user, channel string, words ...string) posted {
	h.t.Helper()
	p := h.finds(user, channel, "", words...)
	if !p.Ephemeral {
		h.t.Errorf("the reply is visible to everybody: %s", p.Text)
	}
	return p
}

// A person records an absence in their own time zone, and the bot's answer repeats the end of the absence. The person's
// waiting requests go to the stand-in.
func TestAway(t *testing.T) { inBothWays(t, testAway) }

func testAway(t *testing.T, h *harness) {
	before := time.Now()
	h.commands("teo", "#general", "away for 3 days, delegate to @ingrid")
	said := h.answered("teo", "#general", "You are away until", "(America/New_York)", "<@U0003> stands in for you", "Team Lead: they can decide all of it", "/countersign back")
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	in3Days := func(from time.Time) string {
		return from.In(zone).AddDate(0, 0, 3).Format("Monday, January 2, 2006, 3:04 PM")
	}
	if !strings.Contains(said.Text, in3Days(before)) && !strings.Contains(said.Text, in3Days(time.Now())) {
		t.Errorf("%s\ndoes not say %s", said.Text, in3Days(before))
	}
	h.finds("ingrid", "U0BOT", "", "<@U0002> is away", "has named you to stand in", "You decide in your own name", "Team Lead: you can decide all of it")

	h.says("sam", "#support", refundCall)
	card := h.finds("ingrid", "U0BOT", "", "Refund for order ORD-123", "You stand in for <@U0002>, who is away")
	if public := h.finds("ada", "#support-approvals", "", "Waits for Team Lead"); strings.Contains(public.Text, "Team Lead: <@U0002>") {
		t.Errorf("an absent person is mentioned: %s", public.Text)
	}
	h.clicks("ingrid", "U0BOT", card, control.ActApprove)
	h.finds("ada", "#support-approvals", "", "Approved by <@U0003> (Finance Director)", "It ran")

	h.commands("teo", "U0BOT", "away")
	h.answered("teo", "U0BOT", "You are away until")
	h.commands("teo", "U0BOT", "back")
	h.answered("teo", "U0BOT", "Welcome back")
	h.finds("ingrid", "U0BOT", "", "You no longer stand in for <@U0002>")
	h.commands("teo", "U0BOT", "back")
	h.answered("teo", "U0BOT", "You were not away")
	h.commands("teo", "U0BOT", "away")
	h.answered("teo", "U0BOT", "You are not away", "/countersign away until monday")
}

// The bot tells a stand-in and the absent person which calls the stand-in can't decide.
func TestAwayWithALesserStandIn(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.commands("ingrid", "#finance", "away for 2 hours, delegate to @teo")
	h.answered("ingrid", "#finance", "Finance Director: nothing, because no role of theirs may approve as much.")
	h.finds("teo", "U0BOT", "", "Finance Director: nothing, because no role of yours may approve as much.")
	h.commands("sam", "#support", "away for 2 hours, delegate to @teo")
	h.answered("sam", "#support", "You have no role that decides")
	h.finds("teo", "U0BOT", "", "<@U0100> is away", "They have no role that decides")
}

// An unclear or invalid absence is rejected with a hint, and changes nothing.
func TestAwayRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, tt := range []struct{ user, channel, text, want string }{
		{"teo", "#general", "away until the cows come home", "Nothing was changed. “the” is not a day or time that I know"},
		{"teo", "#general", "away for 3 days, delegate to @teo", "that is you. Name somebody else"},
		{"teo", "#general", "away for 3 days, delegate to @gus", "<@U0900> can't stand in: guests can't decide anything."},
		{"teo", "#general", "away for 3 days, delegate to @dora", "that account is deactivated"},
		{"teo", "#general", "away for 3 days, delegate to @deploybot", "that is not a person"},
		{"teo", "#general", "away for 3 days, delegate to @nobody", "choose the person from Slack's list"},
		{"teo", "#general", "away for 3 days, delegate to <@U0BADBAD>", "Slack does not know them"},
		{"gus", "#general", "away until monday", "Guests decide nothing here"},
		{"teo", "#general", "", "/countersign away until monday"},
		{"teo", "#general", "help", "/countersign back"},
		{"teo", "#general", "Refund ORD-123", "I don't know “refund”."},
	} {
		h.commands(tt.user, tt.channel, tt.text)
		h.answered(tt.user, tt.channel, tt.want)
	}
	h.says("sam", "#support", refundCall)
	h.finds("ada", "#support-approvals", "", "Team Lead: <@U0002>")
}

// If all people of a role are in do-not-disturb, the bot tells the role's lead immediately.
func TestDoNotDisturb(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.call("POST", "/people/teo/snooze", map[string]any{"minutes": 30})
	h.says("sam", "#support", refundCall)
	h.finds("ingrid", "U0BOT", "", "Not decided yet, so Finance Director is asked as well")
}

// If Slack does not say whether a person can be disturbed, the person counts as reachable. The request is not delayed.
func TestDoNotDisturbUnknown(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.call("POST", "/people/teo/snooze", map[string]any{"minutes": 30})
	if err := h.slack.Inject(workspace.Fault{Fault: workspace.FaultError, Method: "dnd.info", Error: "missing_scope", Times: 100}); err != nil {
		t.Fatal(err)
	}
	h.says("sam", "#support", refundCall)
	h.finds("ada", "#support-approvals", "", "Waits for Team Lead")
	h.until("the people of the stage are looked up", func() bool { return strings.Contains(h.log.String(), "does not say whether somebody can be disturbed") })
	for _, p := range h.sees("ingrid", "U0BOT", "") {
		t.Errorf("the lead is told: %s", p.Text)
	}
}

// A reminder is a direct message with a link to the card and without decision buttons. The reminder is updated when the
// request is decided.
func TestReminder(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) {
		h.policy.Defaults.RemindAfter, h.policy.Defaults.Reminders = 50*time.Millisecond, 1
	})
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	told := h.finds("teo", "U0BOT", "", "Still waits for you: Refund for order ORD-123", "Asked by <@U0100>", "Rejected at ")
	if strings.Contains(told.raw, `"type":"button"`) {
		t.Errorf("the reminder has decision buttons: %s", told.raw)
	}
	h.until("the reminder leads to the card", func() bool {
		return strings.Contains(h.finds("teo", "U0BOT", "", "Still waits for you").raw, "/p"+strings.ReplaceAll(card.TS, ".", ""))
	})
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	done := h.finds("teo", "U0BOT", "", "Refund for order ORD-123: Approved by <@U0002> (Team Lead)")
	if done.TS != told.TS || strings.Contains(done.Text, "Still waits") {
		t.Errorf("the reminder still waits: %s", done.Text)
	}
}

// When an absence begins while a card waits, the stand-in is invited.
func TestAwayWhileItWaits(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) {
		h.policy.Approvers = append(h.policy.Approvers, approvers.Role{Name: "deputy", Title: "Deputy", MaxRisk: approvers.High, CanApprove: []string{"*"},
			Members: []approvers.Member{{Kind: approvers.MemberEmail, Value: "priya@example.com"}, {Kind: approvers.MemberGroup, Value: "support"}}})
	})
	h.says("sam", "#support", refundCall)
	h.finds("ada", "#support-approvals", "", "Waits for Team Lead")
	h.commands("teo", "#support-approvals", "away for 2 hours, delegate to @priya")
	card := h.finds("priya", "U0BOT", "", "Refund for order ORD-123", "You stand in for <@U0002>, who is away")
	h.quiet() // a card that is being redrawn would reject the click
	h.clicks("priya", "U0BOT", card, control.ActApprove)
	h.finds("ada", "#support-approvals", "", "Approved by <@U0101> (Deputy)")
}

// If the account of the only approver is deactivated while a card waits, the lead is asked immediately. The lead's card
// gives the reason.
func TestDeactivatedWhileItWaits(t *testing.T) { inBothWays(t, testDeactivatedWhileItWaits) }

func testDeactivatedWhileItWaits(t *testing.T, h *harness) {
	h.says("sam", "#support", refundCall)
	h.finds("ada", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
	for _, change := range []workspace.UserChange{{Title: new(string)}, {Deactivated: new(true)}} { // a changed title has no effect on the request
		if err := h.slack.ChangeUser("U0002", change); err != nil {
			t.Fatal(err)
		}
	}
	card := h.finds("ingrid", "U0BOT", "", "The account of <@U0002> is deactivated, so Finance Director is asked.")
	h.quiet()
	h.clicks("ingrid", "U0BOT", card, control.ActApprove)
	h.finds("ada", "#support-approvals", "", "Approved by <@U0003> (Finance Director)")
}

// If Slack refuses to name the members of user groups, the lead is still asked when the account of the only approver is
// deactivated, because the policy names both by id. This also applies if the approver's role has a user group.
func TestDeactivatedWithoutUserGroups(t *testing.T) {
	t.Parallel()
	for name, group := range map[string][]approvers.Member{"no group": nil, "a group": {{Kind: approvers.MemberGroup, Value: "support"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tap := new(recordingTransport)
			h := newHarness(t, func(h *harness) {
				h.http = &http.Client{Timeout: 10 * time.Second, Transport: tap}
				for i := range h.policy.Approvers {
					if role := &h.policy.Approvers[i]; role.Name == "team-lead" {
						role.Members = slices.Concat(role.Members, group)
					}
				}
			})
			for _, method := range []string{"usergroups.list", "usergroups.users.list"} {
				tap.answering(method, func(url.Values) string { return `{"ok":false,"error":"missing_scope"}` })
			}
			testDeactivatedWhileItWaits(t, h)
		})
	}
}

// accountChanges notes the roles whose requests are checked when an account has changed.
type accountChanges struct {
	People
	roles []string
}

func (c *accountChanges) AccountChanged(_ context.Context, _ string, _ approvers.PersonID, roles []string) error {
	c.roles = roles
	return nil
}

// absences notes the people whose absence has begun or ended.
type absences struct {
	People
	who []approvers.PersonID
}

func (a *absences) AbsenceChanged(_ context.Context, _ store.Timer, who approvers.Identity) error {
	a.who = append(a.who, who.ID)
	return nil
}

// An absence begins although Slack refuses to name the members of user groups.
func TestAbsenceWithoutUserGroups(t *testing.T) {
	t.Parallel()
	tap := new(recordingTransport)
	h := newHarness(t, func(h *harness) { h.http = &http.Client{Timeout: 10 * time.Second, Transport: tap} })
	tap.answering("usergroups.list", func(url.Values) string { return `{"ok":false,"error":"missing_scope"}` })
	begun := &absences{}
	config := h.bot.Config
	config.People = begun
	availability := &Availability{core: &core{Config: config, users: h.bot.users}}
	err := availability.AbsenceChanged(t.Context(), store.Timer{Kind: store.TimerAway, Ref: "T0001/U0002"})
	if err != nil || !slices.Equal(begun.who, []approvers.PersonID{"T0001/U0002"}) {
		t.Errorf("the absence of %v has begun: %v", begun.who, err)
	}
}

// A person becomes a guest while Slack refuses to name the members of user groups. The person may be in any group, so
// the requests of each role with a group are checked. If Slack names the members, only the person's roles are checked.
func TestGuestWithoutUserGroups(t *testing.T) {
	t.Parallel()
	tap := new(recordingTransport)
	h := newHarness(t, func(h *harness) { h.http = &http.Client{Timeout: 10 * time.Second, Transport: tap} })
	if err := h.slack.ChangeUser("U0002", workspace.UserChange{Guest: new(true)}); err != nil {
		t.Fatal(err)
	}
	changes := &accountChanges{}
	config := h.bot.Config
	config.People = changes
	availability := &Availability{core: &core{Config: config, users: h.bot.users}, replicas: h.bot.Replicas}
	for answer, inGroup := range map[string]bool{"": false, `{"ok":false,"error":"missing_scope"}`: true} {
		tap.answering("usergroups.list", nil)
		if answer != "" {
			tap.answering("usergroups.list", func(url.Values) string { return answer })
		}
		h.bot.users.Forget()
		if err := availability.accountChanged(t.Context(), store.Inbox{ID: "Ev1"}, event{Type: userChange, User: []byte(`{"id":"U0002"}`)}); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(changes.roles, "team-lead") || slices.Contains(changes.roles, "support-agent") != inGroup {
			t.Errorf("with the answer %q, the requests of %v are checked", answer, changes.roles)
		}
	}
}

// The account of the only approver is deactivated, so the card reaches nobody. When the account is active again, the
// approver gets the card.
func TestActivatedAgainWhileItWaits(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) {
		for i := range h.policy.Approvers {
			if role := &h.policy.Approvers[i]; role.Name == "team-lead" {
				role.Cards, role.Lead = approvers.CardsDM, ""
			}
		}
	})
	if err := h.slack.ChangeUser("U0002", workspace.UserChange{Deactivated: new(true)}); err != nil {
		t.Fatal(err)
	}
	root := h.says("sam", "#support", refundCall)
	h.finds("sam", "#support", root, "can decide this: their accounts are deactivated")
	h.quiet()
	if err := h.slack.ChangeUser("U0002", workspace.UserChange{Deactivated: new(false)}); err != nil {
		t.Fatal(err)
	}
	h.finds("teo", "U0BOT", "", "Waits for Team Lead")
}

// The bot handles a person's commands in order, even if a look-up for the first command is slow.
func TestCommandsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.call("POST", "/faults", map[string]any{"fault": "slow", "method": "users.info", "delay_ms": 500})
	h.commands("teo", "#general", "away for 3 days")
	h.commands("teo", "#general", "back")
	h.answered("teo", "#general", "You are away until")
	h.answered("teo", "#general", "Welcome back")
}
