package bot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"countersign/approvers"
	"countersign/bot/render/control"
	"countersign/internal/demo/workspace"
	"countersign/store"
)

// leadsByDM lets the team lead get cards by direct message, and leaves the team lead without a lead.
func leadsByDM(h *harness) {
	h.policy.Approvers[1].Cards, h.policy.Approvers[1].Lead = approvers.CardsDM, ""
}

// unreached returns the requests whose cards nobody can see.
func (h *harness) unreached() []approvers.Request {
	h.t.Helper()
	out, err := h.workflow.Views.Unreached(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

// Without the scope im:write, nobody gets cards by direct message. The requester and the operator are told immediately,
// and the card is shown when the scope is granted.
func TestCardWithoutPermission(t *testing.T) { inBothWays(t, testCardWithoutPermission, leadsByDM) }

func testCardWithoutPermission(t *testing.T, h *harness) {
	h.slack.Withhold("im:write")
	root := h.says("sam", "#support", refundCall)
	h.finds("sam", "#support", root, "Nobody could be shown this, because I lack a permission in Slack. My operator has been told, and I keep trying.", "Team Lead can decide it on my Home tab.")
	h.quiet()
	if got := h.unreached(); len(got) != 1 || !strings.Contains(got[0].Unreached.Cause, "missing_scope: im:write") {
		t.Fatalf("unreached: %+v", got)
	}
	for _, said := range []string{"nobody can see the card of a request", "the bot token lacks a scope"} {
		h.until("the operator's log says: "+said, func() bool { return strings.Contains(h.log.String(), said) })
	}
	if err := h.bot.Permissions.Complete(context.Background()); err == nil || !strings.Contains(err.Error(), "im:write (the bot can't write to approvers in direct messages)") {
		t.Errorf("permitted: %v", err)
	}
	h.looks("teo", "ORD-123", "Approve") // the Home tab needs no permission
	h.slack.Withhold()
	h.says("sam", "#support", "@bot hello") // any answer of Slack shows that the scopes have changed
	card := h.finds("teo", "U0BOT", "", "Waits for Team Lead")
	h.clicks("teo", "U0BOT", card, control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
	if got := h.unreached(); len(got) != 0 {
		t.Errorf("unreached: %+v", got)
	}
	if err := h.bot.Permissions.Complete(context.Background()); err != nil {
		t.Errorf("permitted: %v", err)
	}
}

// The cards of a role go by direct message, and Slack does not say who all of the role's members are, because a scope
// is missing. The members whom the bot knows get the card. If the bot knows none of them, the requester and the
// operators are told, and the members get the card when the scope is granted.
func TestMembersAreUnknownWithoutPermission(t *testing.T) {
	for name, c := range map[string]struct {
		member approvers.Member
		scope  string
	}{
		"group":   {approvers.Member{Kind: approvers.MemberGroup, Value: "leads"}, "usergroups:read"},
		"address": {approvers.Member{Kind: approvers.MemberEmail, Value: "teo@example.com"}, "users:read.email"},
	} {
		t.Run("only a "+name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, leadsByDM, func(h *harness) { h.policy.Approvers[1].Members = []approvers.Member{c.member} })
			h.slack.AddGroup(workspace.SeedGroup{ID: "S0009", Handle: "leads", Name: "Leads", Users: []string{"U0002"}})
			h.slack.Withhold(c.scope)
			root := h.says("sam", "#support", refundCall)
			h.finds("sam", "#support", root, "Nobody could be shown this, because I lack a permission in Slack. My operator has been told, and I keep trying.")
			if got := h.unreached(); len(got) != 1 || !strings.Contains(got[0].Unreached.Cause, "missing_scope: "+c.scope) {
				t.Fatalf("unreached: %+v", got)
			}
			h.slack.Withhold()
			h.says("sam", "#support", "@bot hello") // any answer of Slack shows that the scopes have changed
			h.finds("teo", "U0BOT", "", "Waits for Team Lead")
		})
		t.Run("a person and a "+name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, leadsByDM, func(h *harness) {
				h.policy.Approvers[1].Members = []approvers.Member{{Kind: approvers.MemberUser, Value: "U0002"}, c.member}
			})
			h.slack.Withhold(c.scope)
			h.says("sam", "#support", refundCall)
			h.finds("teo", "U0BOT", "", "Waits for Team Lead")
			h.until("the log names the scope", func() bool { return strings.Contains(h.log.String(), "missing_scope: "+c.scope) })
		})
	}
}

// The only members of a role are those of a user group, and the group becomes empty, or is empty from the start. So
// nobody is left who may decide the request. A new member of the group gets the card.
func TestNewMemberOfAGroupGetsTheCard(t *testing.T) {
	for name, before := range map[string][]string{"the last member leaves": {"U0002"}, "the group has no members": {}} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, leadsByDM, func(h *harness) {
				h.policy.Approvers[1].Members = []approvers.Member{{Kind: approvers.MemberGroup, Value: "leads"}}
			})
			h.slack.AddGroup(workspace.SeedGroup{ID: "S0009", Handle: "leads", Name: "Leads", Users: before})
			root := h.says("sam", "#support", refundCall)
			if len(before) > 0 {
				h.finds("teo", "U0BOT", "", "Waits for Team Lead")
				h.quiet()
				h.groupHas("leads")
			}
			h.finds("sam", "#support", root, "Nobody in Team Lead can decide this: there are no members, or their user group is disabled.")
			if log := h.log.String(); strings.Contains(log, "Slack refuse") {
				t.Errorf("Slack refused nothing, and the log says: %s", log)
			}
			h.quiet()
			h.groupHas("leads", "U0101")
			card := h.finds("priya", "U0BOT", "", "Waits for Team Lead")
			h.quiet() // a card that is being redrawn would reject the click
			h.clicks("priya", "U0BOT", card, control.ActApprove)
			h.finds("sam", "#support", root, "results: executed")
		})
	}
}

// A person joins the approvers' user group while another member has the card. The new member gets the card, and the
// other member gets no second card. The same holds for a member whose account is activated again.
func TestNewMemberBesideOthersGetsTheCard(t *testing.T) {
	user := func(id string) approvers.Member { return approvers.Member{Kind: approvers.MemberUser, Value: id} }
	for name, c := range map[string]struct {
		members []approvers.Member
		gone    bool
		join    func(h *harness)
	}{
		"joins the group": {
			members: []approvers.Member{{Kind: approvers.MemberGroup, Value: "leads"}},
			join:    func(h *harness) { h.groupHas("leads", "U0002", "U0101") },
		},
		"the account is activated": {
			members: []approvers.Member{user("U0002"), user("U0101")}, gone: true,
			join: func(h *harness) { h.deactivate("U0101", false) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, leadsByDM, func(h *harness) { h.policy.Approvers[1].Members = c.members })
			h.slack.AddGroup(workspace.SeedGroup{ID: "S0009", Handle: "leads", Name: "Leads", Users: []string{"U0002"}})
			h.deactivate("U0101", c.gone)
			root := h.says("sam", "#support", refundCall)
			h.finds("teo", "U0BOT", "", "Waits for Team Lead")
			h.quiet()
			c.join(h)
			card := h.finds("priya", "U0BOT", "", "Waits for Team Lead")
			h.quiet() // a card that is being redrawn would reject the click
			if cards := h.sees("teo", "U0BOT", ""); len(cards) != 1 {
				t.Errorf("the other member has %d messages: %+v", len(cards), cards)
			}
			h.clicks("priya", "U0BOT", card, control.ActApprove)
			h.finds("sam", "#support", root, "results: executed")
		})
	}
}

// deactivate deactivates a person's account, or activates it again.
func (h *harness) deactivate(user string, gone bool) {
	h.t.Helper()
	if err := h.slack.ChangeUser(user, workspace.UserChange{Deactivated: &gone}); err != nil {
		h.t.Fatal(err)
	}
}

// groupHas changes the members of a user group.
func (h *harness) groupHas(group string, users ...string) {
	h.t.Helper()
	if err := h.slack.SetGroupUsers(group, users); err != nil {
		h.t.Fatal(err)
	}
}

// Only events about user groups that the policy names are stored. The policy may name a group by id or handle, in a
// role, in a stage, or in a stage of a rule.
func TestEventsAboutUserGroups(t *testing.T) {
	t.Parallel()
	stage := func(group string) []approvers.Stage {
		return []approvers.Stage{{Approver: "team-lead", Group: group, Quorum: 1}}
	}
	h := newHarness(t, func(h *harness) {
		h.policy.Tools[2].Stages = stage("S0010")
		h.policy.Tools[3].Rules = []approvers.Rule{{Stages: stage("oncall")}}
	})
	for name, c := range map[string]struct {
		kind, group, handle string
		stored              bool
	}{
		"a role's": {"subteam_updated", "S0001", "support", true}, "a stage's": {"subteam_updated", "S0010", "ten", true},
		"a rule's": {"subteam_created", "S0011", "oncall", true}, "another": {"subteam_updated", "S0012", "lunch", false}, "no handle": {"subteam_updated", "S0012", "", false},
		"the other event": {"subteam_members_changed", "S0001", "support", false},
	} {
		id := "Ev" + strings.NewReplacer(" ", "", "'", "").Replace(name)
		payload := fmt.Sprintf(`{"type":"event_callback","event_id":%q,"team_id":"T0001","event":{"type":%q,"subteam":{"id":%q,"handle":%q}}}`, id, c.kind, c.group, c.handle)
		if _, err := h.receive(store.InboxEvent, []byte(payload)); err != nil {
			t.Fatal(err)
		}
		if _, err := h.bot.Views.Inbox(context.Background(), id); (err == nil) != c.stored {
			t.Errorf("%s: %v; want it stored: %v", name, err, c.stored)
		}
	}
	h.quiet()
}

// A stage asks for people of a user group, and the group is disabled. Nobody may decide the request until the group is
// enabled again.
func TestGroupOfTheStageIsDisabled(t *testing.T) {
	h := newHarness(t, leadsByDM, func(h *harness) {
		h.policy.Tools[2].Stages = []approvers.Stage{{Approver: "team-lead", Group: "oncall", Quorum: 1}}
	})
	h.slack.AddGroup(workspace.SeedGroup{ID: "S0009", Handle: "oncall", Name: "On call", Users: []string{"U0002"}})
	root := h.says("sam", "#support", refundCall)
	h.finds("teo", "U0BOT", "", "ORD-123")
	h.quiet()
	if err := h.slack.DisableGroup("oncall", true); err != nil {
		t.Fatal(err)
	}
	h.finds("sam", "#support", root, "can decide this: the user group @oncall has no members who hold the role, or is disabled.")
	h.quiet()
	if err := h.slack.DisableGroup("oncall", false); err != nil {
		t.Fatal(err)
	}
	h.until("somebody may decide the request again", func() bool { return len(h.unreached()) == 0 })
	h.quiet()
	h.clicks("teo", "U0BOT", h.finds("teo", "U0BOT", "", "ORD-123"), control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
}

// A stage asks for two people of a user group. When one of them leaves the group, the requester and the operators are
// told that one person is too few. When nobody of the role is left in the group, the text says so, and not that the
// group is empty. When both are back, the request continues.
func TestTooFewInTheGroupOfAStage(t *testing.T) {
	t.Parallel()
	h := newHarness(t, leadsByDM, func(h *harness) {
		h.policy.Approvers[1].Members = []approvers.Member{{Kind: approvers.MemberUser, Value: "U0002"}, {Kind: approvers.MemberUser, Value: "U0101"}}
		h.policy.Tools[2].Stages = []approvers.Stage{{Approver: "team-lead", Group: "oncall", Quorum: 2}}
		h.policy.Operators.Channel = "#support-approvals"
	})
	h.slack.AddGroup(workspace.SeedGroup{ID: "S0009", Handle: "oncall", Name: "On call", Users: []string{"U0002", "U0101"}})
	root := h.says("sam", "#support", refundCall)
	h.finds("teo", "U0BOT", "", "ORD-123")
	h.finds("priya", "U0BOT", "", "ORD-123")
	h.quiet()
	h.groupHas("oncall", "U0002")
	h.finds("sam", "#support", root, "Waits for @oncall (Team Lead), 0 of 2 agreed.", "It needs the approval of 2 people, and only 1 can give it. My operator has been told.")
	h.finds("ada", "#support-approvals", "", "Too few people are left who may decide requests for Team Lead")
	h.until("the log says it", func() bool {
		return strings.Contains(h.log.String(), "too few people are left who may decide a request")
	})
	h.quiet()
	h.groupHas("oncall", "U0001")
	h.finds("sam", "#support", root, "Nobody in @oncall (Team Lead) can decide this: the user group @oncall has no members who hold the role, or is disabled.")
	h.quiet()
	h.groupHas("oncall", "U0002", "U0101")
	h.until("enough people may decide the request again", func() bool { return len(h.unreached()) == 0 })
	h.quiet()
	h.finds("ada", "#support-approvals", "", "Over since", "too few people were left who may decide requests for Team Lead")
	h.clicks("teo", "U0BOT", h.finds("teo", "U0BOT", "", "ORD-123"), control.ActApprove)
	h.quiet()
	h.clicks("priya", "U0BOT", h.finds("priya", "U0BOT", "", "ORD-123"), control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
}

// The only approver becomes a guest while a card in a channel waits. The request says that nobody is left, and the card
// no longer mentions the approver.
func TestApproverBecomesAGuest(t *testing.T) {
	h := newHarness(t, func(h *harness) { h.policy.Approvers[1].Lead = "" })
	root := h.says("sam", "#support", refundCall)
	h.finds("ada", "#support-approvals", "", "Waits for Team Lead", "Team Lead: <@U0002>")
	h.quiet()
	if err := h.slack.ChangeUser("U0002", workspace.UserChange{Guest: new(true)}); err != nil {
		t.Fatal(err)
	}
	h.finds("sam", "#support", root, "Nobody in Team Lead can decide this")
	h.quiet()
	if card := h.finds("ada", "#support-approvals", "", "Waits for Team Lead"); strings.Contains(card.Text, "<@U0002>") {
		t.Errorf("the card mentions somebody who can't decide: %s", card.Text)
	}
	if err := h.slack.ChangeUser("U0002", workspace.UserChange{Guest: new(false)}); err != nil {
		t.Fatal(err)
	}
	h.until("somebody may decide the request again", func() bool { return len(h.unreached()) == 0 })
	h.finds("ada", "#support-approvals", "", "Team Lead: <@U0002>")
}

// refusesCards answers each post outside of the requester's channel with a code.
func refusesCards(code string) func(method, body string) string {
	return func(method, body string) string {
		if method == "conversations.open" || method == "chat.postMessage" && !strings.Contains(body, "channel=C0001") {
			return code
		}
		return ""
	}
}

// The requester is told about each kind of refusal. The bot tries the card again when an event suggests that the cause
// is gone, and the card is shown.
func TestCardThatReachedNobody(t *testing.T) {
	for code, words := range map[string]string{
		"missing_scope": "I lack a permission in Slack", "not_in_channel": "I am not in the channel for it", "channel_not_found": "Slack can't find the channel for it",
		"is_archived": "the channel for it is archived", "restricted_action": "I may not write in the channel for it", "user_disabled": "the accounts are deactivated",
		"access_denied": "Slack refuses it", "no_permission": "Slack refuses it", "app_access_restricted": "Slack refuses it",
	} {
		t.Run(code, func(t *testing.T) {
			slack := &refuser{}
			h := newHarness(t, func(h *harness) {
				h.http = &http.Client{Transport: slack}
				h.policy.Approvers[1].Lead = ""
			})
			slack.refuse(refusesCards(code))
			root := h.says("sam", "#support", refundCall)
			h.finds("sam", "#support", root, "Nobody could be shown this, because "+words)
			h.quiet()
			slack.refuse(nil)
			back := map[string]func(){
				"missing_scope": func() { h.commands("sam", "#support", "pending") },
				"not_in_channel": func() {
					h.does("teo", "remove", "#support-approvals", "U0BOT")
					h.does("teo", "invite", "#support-approvals", "U0BOT")
				},
				"channel_not_found": func() { h.call("GET", "/people/teo/home", nil) },
			}[code]
			if back == nil {
				back = func() { h.stop(); h.start() }
			}
			back()
			card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
			h.finds("sam", "#support", root, "Waits for Team Lead. Rejected at")
			h.clicks("teo", "#support-approvals", card, control.ActApprove)
			h.finds("sam", "#support", root, "results: executed")
		})
	}
}

// If Slack repeatedly refuses a card with a code that the bot does not know, the card counts as unreachable. A refusal
// of the token does not count, because it is not about the card.
func TestUnknownRefusalOfACard(t *testing.T) {
	for code, gone := range map[string]bool{"some_new_code": true, "invalid_auth": false} {
		slack := &refuser{}
		h := newHarness(t, func(h *harness) {
			h.http = &http.Client{Transport: slack}
			h.policy.Approvers[1].Lead = ""
		})
		slack.refuse(refusesCards(code))
		h.says("sam", "#support", refundCall)
		h.until("Slack refuses the card", func() bool { return strings.Contains(h.log.String(), code) })
		card := func() (card store.OutboxMessage) {
			err := h.store.View(t.Context(), func(r store.Reader) error {
				open, err := r.OpenRequests(store.RequestCursor{}, 1)
				if err != nil || len(open) == 0 {
					return errors.Join(err, store.ErrNotFound)
				}
				messages, err := r.OutboxMessagesOf(open[0].ID)
				i := slices.IndexFunc(messages, func(s store.OutboxMessage) bool { return strings.HasPrefix(s.To, store.ToChannel) })
				if err != nil || i < 0 {
					return errors.Join(err, store.ErrNotFound)
				}
				card = messages[i]
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return card
		}
		err := h.bot.Display.Show(t.Context(), store.Timer{Kind: store.TimerShow, Ref: card().ID, Tries: mostUnusable})
		if s := card(); (err == nil) != gone || (s.State == store.OutboxUnreachable && strings.Contains(s.LastError, code)) != gone {
			t.Errorf("%s: %v; the card: %s, %s", code, err, s.State, s.LastError)
		}
	}
}

// If the cause of a refusal ends during the refused call, the bot tries the card again. No other event would cause a
// new try.
func TestCauseGoesDuringTheRefusal(t *testing.T) {
	slack := &refuser{}
	h := newHarness(t, func(h *harness) {
		h.http = &http.Client{Transport: slack}
		leadsByDM(h)
	})
	refuses := refusesCards("missing_scope")
	slack.refuse(func(method, body string) string {
		code := refuses(method, body)
		if code != "" {
			slack.refuse(nil)
			h.bot.Permissions.retryUnreached(context.Background())
		}
		return code
	})
	h.says("sam", "#support", refundCall)
	h.finds("teo", "U0BOT", "", "Waits for Team Lead")
}

// If the people who can't see the card have a lead, the bot asks the lead immediately. The lead's card gives the
// reason.
func TestLeadIsAskedForThoseWhoCantBeShownIt(t *testing.T) {
	slack := &refuser{}
	h := newHarness(t, func(h *harness) { h.http = &http.Client{Transport: slack} })
	slack.refuse(func(_, body string) string {
		if strings.Contains(body, "users=U0002") || strings.Contains(body, "channel=C0002") {
			return "restricted_action"
		}
		return ""
	})
	root := h.says("sam", "#support", refundCall)
	card := h.finds("kenji", "U0BOT", "", "I could not show this to Team Lead, because I may not write in the channel for it, so Finance Director is asked.")
	h.finds("sam", "#support", root, "I could not show it to Team Lead, because I may not write in the channel for it, so I asked Finance Director at once. My operator has been told.")
	h.clicks("kenji", "U0BOT", card, control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
}

// The bot reports a missing permission immediately: to the person in words, and to the operator with the scope's name.
func TestPermissionIsMissing(t *testing.T) {
	for scope, words := range map[string]string{
		"users:read":    "I keep it and try again for an hour. My operator has been told.",
		"channels:read": "I lack a permission in Slack that I need for this, so nothing was done. My operator has been told.",
	} {
		t.Run(scope, func(t *testing.T) {
			h := newHarness(t)
			h.slack.Withhold(scope)
			h.says("sam", "#support", refundCall)
			h.answered("sam", "#support", words)
			h.until("the log names the scope", func() bool { return strings.Contains(h.log.String(), "missing_scope: "+scope) })
			if err := h.bot.Permissions.Complete(context.Background()); err == nil || !strings.Contains(err.Error(), scope+" (the bot can't ") {
				t.Errorf("permitted: %v", err)
			}
			h.unseen("sam", "#support", "", "not set up to answer")
		})
	}
}

// If the policy names a channel by id, the bot needs no permission to read the channel's name.
func TestChannelByIDWithoutPermission(t *testing.T) {
	h := newHarness(t, func(h *harness) { h.policy.Agents[0].Channels = []string{"C0001"} })
	h.slack.Withhold("channels:read")
	root := h.says("sam", "#support", "@bot hello")
	h.finds("sam", "#support", root, "results:")
}

// Scopes of features that the policy does not use do not count as missing.
func TestMissingScopesAreThoseInUse(t *testing.T) {
	h := newHarness(t)
	var names []string
	for _, s := range MissingScopes([]string{"chat:write"}, h.policy) {
		names = append(names, s.Name)
	}
	plain := *h.policy
	plain.Approvers = slices.Clone(plain.Approvers)
	plain.Approvers[0].Members = plain.Approvers[1].Members
	var fewer []string
	for _, s := range MissingScopes([]string{"chat:write"}, &plain) {
		fewer = append(fewer, s.Name)
	}
	want := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "usergroups:read" || name == "users:read.email" })
	if len(names) != len(Scopes())-1 || !slices.Equal(fewer, want) || len(want) != len(names)-2 {
		t.Errorf("missing: %v, without groups and addresses: %v", names, fewer)
	}
	plain.Defaults.UnknownTool.Stages = []approvers.Stage{{Group: "finance"}}
	if !slices.ContainsFunc(MissingScopes([]string{"chat:write"}, &plain), func(s Scope) bool { return s.Name == "usergroups:read" }) {
		t.Error("a user group decides about unknown tools, but its scope does not count as missing")
	}
}

// Slack refuses one message because the bot is not in the channel. The bot then asks Slack whether it is a member of
// the channel. If it is a member, only this message is sent to another address. If it is not a member, or Slack does
// not say, all open messages of the channel are sent to other addresses.
func TestOneMessageIsRefusedInAChannel(t *testing.T) {
	for name, c := range map[string]struct {
		info  string // the code with which Slack refuses conversations.info; empty: Slack does not refuse it
		moves bool
	}{
		"a member": {"", false}, "Slack does not say": {"access_denied", true},
	} {
		t.Run(name, func(t *testing.T) {
			slack := &refuser{}
			h := newHarness(t, func(h *harness) { h.http = &http.Client{Transport: slack} })
			h.says("sam", "#support", refundCall)
			h.finds("teo", "#support-approvals", "", "ORD-123")
			h.quiet()
			var mu sync.Mutex
			refused := 0
			slack.refuse(func(method, body string) string {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case method == "conversations.info" && refused > 0:
					return c.info
				case method == "chat.postMessage" && strings.Contains(body, "channel=C0002") && refused == 0:
					refused++
					return "not_in_channel"
				}
				return ""
			})
			h.says("sam", "#support", strings.ReplaceAll(refundCall, "ORD-123", "ORD-456"))
			h.finds("teo", "U0BOT", "", "ORD-456")
			h.quiet()
			if moved := len(botMessages(h, "teo", "U0BOT", "")) == 2; moved != c.moves {
				t.Errorf("the other card moved: %t", moved)
			}
			if lost := strings.Contains(h.log.String(), "the bot can't write in a channel any more"); lost != c.moves {
				t.Errorf("the channel counts as lost: %t", lost)
			}
		})
	}
}

// The first event about a guest is stored if the policy names the guest, or if the bot has looked the guest up. Later
// events about the guest are not stored. When the person is no longer a guest, the event about this change is stored,
// too.
func TestEventsAboutGuests(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	n := 0
	stored := func(user, flags string) bool {
		n++
		id := fmt.Sprintf("EvGuest%d", n)
		payload := fmt.Sprintf(`{"type":"event_callback","event_id":%q,"team_id":"T0001","event":{"type":"user_change","user":{"id":%q%s}}}`, id, user, flags)
		if _, err := h.receive(store.InboxEvent, []byte(payload)); err != nil {
			t.Fatal(err)
		}
		_, err := h.bot.Views.Inbox(context.Background(), id)
		return err == nil
	}
	const guest, single, member = `,"is_restricted":true`, `,"is_ultra_restricted":true`, ""
	for _, c := range []struct {
		user, flags string
		want        bool
	}{
		{"U0002", guest, true}, {"U0002", guest, false}, {"U0002", single, false}, {"U0002", member, true}, {"U0002", member, false}, {"U0002", guest, true},
		{"U0777", guest, false}, {"U0777", member, false}, {"U0777", `,"deleted":true`, true},
	} {
		if got := stored(c.user, c.flags); got != c.want {
			t.Errorf("event %d, about %s with %q: stored: %v, want %v", n, c.user, c.flags, got, c.want)
		}
	}
	h.quiet()
}
