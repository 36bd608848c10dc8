package bot

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/bot/render/control"
	"countersign/internal/demo/workspace"
	"countersign/store"
)

func botMessages(h *harness, user, channel, thread string) (out []posted) {
	for _, p := range h.sees(user, channel, thread) {
		if p.User == "U0BOT" && !p.Ephemeral {
			out = append(out, p)
		}
	}
	return out
}

// If the response to a post is lost, the bot finds the posted message by its metadata. The message is not posted twice.
func TestLostPost(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	if err := h.slack.Inject(workspace.Fault{Fault: workspace.FaultLostResponse, Method: "chat.postMessage", Times: 2}); err != nil {
		t.Fatal(err)
	}
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.finds("sam", "#support", root, "Waits for")
	h.until("the thread links to the card", func() bool {
		return strings.Contains(h.finds("sam", "#support", root, "Waits for").raw, "See the card")
	})
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
	h.finds("teo", "#support-approvals", "", "It ran")
	if a, b := botMessages(h, "teo", "#support-approvals", ""), botMessages(h, "sam", "#support", root); len(a) != 1 || len(b) != 2 {
		t.Errorf("%d cards and %d messages in the thread", len(a), len(b))
	}
}

// After a restart, pending requests wait as before the restart, and people can decide them on their cards.
func TestRestart(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.until("all is shown", func() bool { return len(undelivered(t, h)) == 0 })
	h.stop()
	h.start()
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
	if p := h.finds("teo", "#support-approvals", "", "It ran"); p.TS != card.TS {
		t.Error("the card is another message")
	}
}

func undelivered(t *testing.T, h *harness) []store.Timer {
	t.Helper()
	var due []store.Timer
	err := h.store.View(t.Context(), func(r store.Reader) error {
		due = nil
		for _, kind := range store.ShowTimers {
			timers, err := r.Timers(kind, 100)
			if err != nil {
				return err
			}
			due = append(due, timers...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return due
}

// If the bot is not a member of the cards' channel, the card goes to each approver by direct message.
func TestUnreachableChannel(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) { h.policy.Approvers[1].Cards = "#finance" })
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "U0BOT", "", "Waits for Team Lead")
	h.clicks("teo", "U0BOT", card, control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
	if !strings.Contains(h.log.String(), "can't write in a channel") {
		t.Error("the operator was not told")
	}
}

// A deactivated approver gets no card, but the other approvers do.
func TestRoleExpandsToPeople(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) {
		h.policy.Approvers[2].Members = append(h.policy.Approvers[2].Members,
			approvers.Member{Kind: approvers.MemberUser, Value: "U0902"}, approvers.Member{Kind: approvers.MemberUser, Value: "U0904"},
			approvers.Member{Kind: approvers.MemberEmail, Value: "teo@example.com"}, approvers.Member{Kind: approvers.MemberEmail, Value: "nobody@example.com"},
			approvers.Member{Kind: approvers.MemberGroup, Value: "support"})
	})
	h.says("sam", "#support", `@bot call mystery {}`)
	for _, user := range []string{"ingrid", "kenji", "teo", "ada", "priya"} {
		h.finds(user, "U0BOT", "", "Mystery", "The policy does not know this tool: mystery.")
	}
}

// If the process stops while a tool runs, the bot asks people for the outcome, and their report goes to the agent.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action string
		want   string
	}{
		"happened": {control.ActHappened, "a person reported that it happened"},
		"did not":  {control.ActDidNot, "a person reported that it did not happen"},
		"leave":    {control.ActLeave, "results: unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			root, ask := h.lost("#support")
			h.finds("teo", "#support-approvals", "", "It is not known whether it happened: the bot stopped while issue_refund was running")
			h.clicks("gus", "#support", h.finds("gus", "#support", root, "Did this happen?"), c.action)
			h.clicks("teo", "#support-approvals", ask, c.action)
			if c.action == control.ActHappened {
				if out := h.submits("teo", h.opened("teo", control.ActHappened), map[string]any{control.FieldResult: "RF-9"}); out["ok"] != true {
					t.Fatalf("%v", out)
				}
			}
			h.finds("sam", "#support", root, c.want)
			if n := len(h.runs()); n != 1 {
				t.Errorf("it ran %d times", n)
			}
		})
	}
}

// If Slack refuses an edit of a card, a new card replaces the card. No message with live buttons is left.
func TestUneditableCard(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.until("all is shown", func() bool { return len(undelivered(t, h)) == 0 })
	if err := h.slack.Inject(workspace.Fault{Fault: workspace.FaultError, Method: "chat.update", Error: "edit_window_closed", Times: 1}); err != nil {
		t.Fatal(err)
	}
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.finds("teo", "#support-approvals", "", "It ran")
	h.finds("sam", "#support", root, "results: executed")
	h.until("all is shown", func() bool { return len(undelivered(t, h)) == 0 })
	for _, p := range append(botMessages(h, "teo", "#support-approvals", ""), botMessages(h, "sam", "#support", root)...) {
		if p.live() {
			t.Errorf("a live button is left: %s", p.raw)
		}
	}
}

// An ephemeral message that Slack refuses is sent as a direct message.
func TestToldByDirectMessage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	if err := h.slack.Inject(workspace.Fault{Fault: workspace.FaultError, Method: "chat.postEphemeral", Error: "user_not_in_channel"}); err != nil {
		t.Fatal(err)
	}
	h.clicks("ada", "#support-approvals", card, control.ActApprove)
	h.finds("ada", "U0BOT", "", "you are not a member of that role")
}

// If the bot could not open the loading view, the person is told to click again. A second click works.
func TestFormNotOpened(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	if err := h.slack.Inject(workspace.Fault{Fault: workspace.FaultError, Method: "views.open", Error: "expired_trigger_id"}); err != nil {
		t.Fatal(err)
	}
	h.clicks("teo", "#support-approvals", card, control.ActReject)
	h.finds("teo", "#support-approvals", "", "The form could not be opened in time")
	h.clicks("teo", "#support-approvals", card, control.ActReject)
	h.opened("teo", control.ActReject)
}

// If Slack refuses a form, another view reports the refusal in place of the loading view. The log names the refused
// form, and the click changes nothing. If Slack also refuses this view, or the loading view itself, the person gets an
// ephemeral message.
func TestFormRefused(t *testing.T) {
	for name, c := range map[string]struct {
		method, code string
		times        int
		inView       bool
	}{
		"the form":                      {"views.update", "invalid_blocks", 1, true},
		"the form and what replaces it": {"views.update", "invalid_arguments", 2, false},
		"the loading view":              {"views.open", "invalid_arguments", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.says("sam", "#support", refundCall)
			card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
			if err := h.slack.Inject(workspace.Fault{Fault: workspace.FaultError, Method: c.method, Error: c.code, Times: c.times}); err != nil {
				t.Fatal(err)
			}
			h.clicks("teo", "#support-approvals", card, control.ActReject)
			told := "Slack refused to show this form (" + c.code + "). Nothing was changed."
			if c.inView {
				h.until("the loading view says so", func() bool {
					return strings.Contains(fmt.Sprint(h.call("GET", "/people/teo/views", nil)["views"]), told)
				})
			} else {
				h.finds("teo", "#support-approvals", "", told)
			}
			if log := h.log.String(); !strings.Contains(log, "Slack refused a form") || !strings.Contains(log, "method="+c.method+" form=Reject cause="+c.code) {
				t.Errorf("the log does not say what Slack refused: %s", log)
			}
			h.clicks("teo", "#support-approvals", card, control.ActReject)
			h.opened("teo", control.ActReject)
		})
	}
}

// If Slack refuses a token, Run ends with an error. The error names the token, and says where to find the right token.
func TestRefusedTokens(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, c := range []struct {
		bot, app, want string
		expired        func()
	}{
		{"xoxb-wrong", workspace.DemoAppToken, "Set SLACK_BOT_TOKEN", nil}, {workspace.DemoBotToken, "xapp-wrong", "Set SLACK_APP_TOKEN", nil},
		{"xoxe.xoxb-wrong", workspace.DemoAppToken, "set SLACK_REFRESH_TOKEN", func() {}},
	} {
		b := New(Config{BotToken: c.bot, AppToken: c.app, APIURL: h.url + "/api", Workflow: Use(h.workflow), Tools: h.tools, Expired: c.expired, Log: h.bot.Log})
		if err := b.Run(t.Context()); !errors.Is(err, ErrToken) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v", err)
		}
	}
}
