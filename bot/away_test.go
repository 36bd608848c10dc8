package bot

import (
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/internal/workspace"
)

// commands types a slash command.
func (w *workbench) commands(user, channel, text string) {
	w.t.Helper()
	out := w.call("POST", "/people/"+user+"/commands", map[string]any{"channel": channel, "command": "/countersign", "text": text})
	if out["ok"] != true {
		w.t.Fatalf("%s could not type %q: %v", user, text, out)
	}
}

// answered waits for what only the person is told, wherever they typed.
func (w *workbench) answered(user, channel string, words ...string) posted {
	w.t.Helper()
	p := w.finds(user, channel, "", words...)
	if !p.Ephemeral {
		w.t.Errorf("everybody is told: %s", p.Text)
	}
	return p
}

// Whoever is away says so where they are, in their own time zone, and the answer repeats it in words. What waits for them goes to whoever stands in.
func TestAway(t *testing.T) { inBothWays(t, testAway) }

func testAway(t *testing.T, w *workbench) {
	w.commands("teo", "#general", "away for 3 days, delegate to @ingrid")
	said := w.answered("teo", "#general", "You are away until", "(America/New_York)", "<@U0003> stands in for you", "Team Lead: they can decide all of it", "/countersign back")
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	if until := midnight(time.Now().In(zone), 3).Format("Monday, January 2, 2006, 3:04 PM"); !strings.Contains(said.Text, until) {
		t.Errorf("%s\ndoes not say %s", said.Text, until)
	}
	w.finds("ingrid", "U0BOT", "", "<@U0002> is away", "has named you to stand in", "You decide in your own name", "Team Lead: you can decide all of it")

	w.says("sam", "#support", refundCall)
	card := w.finds("ingrid", "U0BOT", "", "Refund for order ORD-123", "You stand in for <@U0002>, who is away")
	if public := w.finds("ada", "#support-approvals", "", "Waits for Team Lead"); strings.Contains(public.Text, "Team Lead: <@U0002>") {
		t.Errorf("somebody away is called: %s", public.Text)
	}
	w.clicks("ingrid", "U0BOT", card, actApprove)
	w.finds("ada", "#support-approvals", "", "Approved by <@U0003> (Finance Director)", "It ran")

	w.commands("teo", "U0BOT", "away")
	w.answered("teo", "U0BOT", "You are away until")
	w.commands("teo", "U0BOT", "back")
	w.answered("teo", "U0BOT", "Welcome back")
	w.finds("ingrid", "U0BOT", "", "This no longer holds: <@U0002> is back")
	w.commands("teo", "U0BOT", "back")
	w.answered("teo", "U0BOT", "You were not away")
	w.commands("teo", "U0BOT", "away")
	w.answered("teo", "U0BOT", "You are not away", "/countersign away until monday")
}

// Whoever is named is told what they can't do for the person, and so is the person.
func TestAwayWithALesserStandIn(t *testing.T) {
	w := newWorkbench(t)
	w.commands("ingrid", "#finance", "away for 2 hours, delegate to @teo")
	w.answered("ingrid", "#finance", "Finance Director: nothing, because no role of theirs may decide as much.")
	w.finds("teo", "U0BOT", "", "Finance Director: nothing, because no role of yours may decide as much.")
	w.commands("sam", "#support", "away for 2 hours, delegate to @teo")
	w.answered("sam", "#support", "You hold no role that decides anything")
	w.finds("teo", "U0BOT", "", "<@U0100> is away", "They hold no role that decides anything")
}

// What can't be understood or taken is answered with what to write, and changes nothing.
func TestAwayRefused(t *testing.T) {
	w := newWorkbench(t)
	for _, tt := range []struct{ user, channel, text, want string }{
		{"teo", "#general", "away until the cows come home", "Nothing was changed. “the” is no day or time that I know"},
		{"teo", "#general", "away for 3 days, delegate to @teo", "that is you. Name somebody else"},
		{"teo", "#general", "away for 3 days, delegate to @gus", "<@U0900> can't stand in: guests can't decide anything."},
		{"teo", "#general", "away for 3 days, delegate to @dora", "that account is deactivated"},
		{"teo", "#general", "away for 3 days, delegate to @deploybot", "that is no person"},
		{"teo", "#general", "away for 3 days, delegate to @nobody", "choose the person from Slack's list"},
		{"teo", "#general", "away for 3 days, delegate to <@U0BADBAD>", "Slack does not know them"},
		{"gus", "#general", "away until monday", "Guests decide nothing here"},
		{"teo", "#general", "", "/countersign away until monday"},
		{"teo", "#general", "help", "/countersign back"},
		{"teo", "#general", "Refund ORD-123", "I don't know “refund”."},
	} {
		w.commands(tt.user, tt.channel, tt.text)
		w.answered(tt.user, tt.channel, tt.want)
	}
	w.says("sam", "#support", refundCall)
	w.finds("ada", "#support-approvals", "", "Team Lead: <@U0002>")
}

// A role whose people all are in do-not-disturb can't be reached: its lead is told at once.
func TestDoNotDisturb(t *testing.T) {
	w := newWorkbench(t)
	w.call("POST", "/people/teo/snooze", map[string]any{"minutes": 30})
	w.says("sam", "#support", refundCall)
	w.finds("ingrid", "U0BOT", "", "Nobody has decided yet, so this comes to you as Finance Director")
}

// Where Slack does not say whether somebody can be disturbed, they count as reachable, and nothing waits.
func TestDoNotDisturbUnknown(t *testing.T) {
	w := newWorkbench(t)
	w.call("POST", "/people/teo/snooze", map[string]any{"minutes": 30})
	if err := w.slack.Inject(workspace.Fault{Fault: workspace.FaultError, Method: "dnd.info", Error: "missing_scope", Times: 100}); err != nil {
		t.Fatal(err)
	}
	w.says("sam", "#support", refundCall)
	w.finds("ada", "#support-approvals", "", "Waits for Team Lead")
	w.until("the people of the stage are looked up", func() bool { return strings.Contains(w.log.String(), "does not say whether somebody can be disturbed") })
	for _, p := range w.sees("ingrid", "U0BOT", "") {
		t.Errorf("the lead is told: %s", p.Text)
	}
}

// A reminder comes by direct message, leads to the card and decides nothing. It says when the request is settled.
func TestReminder(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) {
		w.policy.Defaults.RemindAfter, w.policy.Defaults.Reminders = 50*time.Millisecond, 1
	})
	w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	told := w.finds("teo", "U0BOT", "", "Still waits for you: Refund for order ORD-123", "Asked by <@U0100>", "If nobody decides by")
	if strings.Contains(told.raw, `"type":"button"`) {
		t.Errorf("it can be decided from a reminder: %s", told.raw)
	}
	w.finds("teo", "#support-approvals", "", "Waits for Team Lead", "Reminded once.")
	w.until("the reminder leads to the card", func() bool {
		return strings.Contains(w.finds("teo", "U0BOT", "", "Still waits for you").raw, "/p"+strings.ReplaceAll(card.TS, ".", ""))
	})
	w.clicks("teo", "#support-approvals", w.finds("teo", "#support-approvals", "", "Reminded once."), actApprove)
	done := w.finds("teo", "U0BOT", "", "Refund for order ORD-123: Approved by <@U0002> (Team Lead)")
	if done.TS != told.TS || strings.Contains(done.Text, "Still waits") {
		t.Errorf("the reminder still waits: %s", done.Text)
	}
}

// An absence that begins while a card waits calls whoever stands in.
func TestAwayWhileItWaits(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) {
		w.policy.Approvers = append(w.policy.Approvers, approvers.Role{Name: "deputy", Title: "Deputy", MaxRisk: approvers.High, CanApprove: []string{"*"},
			Members: []approvers.Member{{Kind: approvers.MemberEmail, Value: "priya@example.com"}, {Kind: approvers.MemberGroup, Value: "support"}}})
	})
	w.says("sam", "#support", refundCall)
	w.finds("ada", "#support-approvals", "", "Waits for Team Lead")
	w.commands("teo", "#support-approvals", "away for 2 hours, delegate to @priya")
	card := w.finds("priya", "U0BOT", "", "Refund for order ORD-123", "You stand in for <@U0002>, who is away")
	w.quiet() // a card that is drawn anew at this moment would refuse the click
	w.clicks("priya", "U0BOT", card, actApprove)
	w.finds("ada", "#support-approvals", "", "Approved by <@U0101> (Deputy)")
}

// What somebody types first is done first, also where Slack makes the first one wait.
func TestCommandsKeepTheirOrder(t *testing.T) {
	w := newWorkbench(t)
	w.call("POST", "/faults", map[string]any{"fault": "slow", "method": "users.info", "delay_ms": 500})
	w.commands("teo", "#general", "away for 3 days")
	w.commands("teo", "#general", "back")
	w.answered("teo", "#general", "You are away until")
	w.answered("teo", "#general", "Welcome back")
}
