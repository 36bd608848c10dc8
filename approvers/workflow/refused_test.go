package workflow_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// refuse acts as Slack, and refuses all waiting outbox messages of a request. A refusal may add messages, so refuse
// repeats the refusal until no message waits.
func (h *harness) refuse(request string, members ...string) {
	h.t.Helper()
	for waits := true; waits; {
		waits = false
		for _, s := range h.messagesOf(request) {
			if s.State != store.OutboxWanted {
				continue
			}
			waits = true
			if strings.HasPrefix(s.To, store.ToRole) {
				h.ok(h.Outbox.Expand(h.ctx(), s.ID, persons(members...)))
				continue
			}
			h.ok(h.Outbox.Unreachable(h.ctx(), s.ID, "conversations.open: missing_scope: im:write", ""))
		}
	}
}

// noLead changes a policy so that the team lead has no lead.
func noLead(p *approvers.Policy) {
	for i := range p.Approvers {
		p.Approvers[i].Lead = ""
	}
}

// TestNobodyCanSeeTheCard checks a request whose card Slack refuses at all addresses. The request immediately records
// that nobody can see the card. The bot tries the card again after growing delays, and the log has one error about it.
// When the request expires, the reason names the cause.
func TestNobodyCanSeeTheCard(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", noLead))
	log := h.errors()
	r := h.requestIn(h.say(alice, "one").Turn, `issue_refund {"amount":1}`)
	h.refuse(r.ID, lead.ID.User())
	if got := h.request(r.ID); !got.ReachesNobody() || got.Unreached.Cause != "conversations.open: missing_scope: im:write" {
		t.Fatalf("unreached: %+v", got.Unreached)
	}
	for i, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute} {
		h.clock.pass(pause - time.Second)
		h.due()
		if got := h.where(r.ID); got != "" {
			t.Fatalf("%d: tried too early: %s", i, got)
		}
		h.clock.pass(time.Second)
		h.due()
		if got := h.where(r.ID); got == "" {
			t.Fatalf("%d: not tried again", i)
		}
		h.refuse(r.ID, lead.ID.User())
	}
	for _, once := range []string{"Slack refused a message permanently", "nobody can see the card of a request"} {
		if n := strings.Count(log.String(), once); n != 1 {
			t.Errorf("the log says %d times: %s; want it once", n, once)
		}
	}
	h.clock.pass(r.ExpiresAt.Sub(h.clock.Now()))
	h.due()
	if got := h.request(r.ID); got.State != approvers.Expired || got.Reason != "its card reached nobody (conversations.open: missing_scope: im:write)" {
		t.Errorf("%s: %s", got.State, got.Reason)
	}
	h.clock.pass(expiresAfter)
	h.due()
	if timers := h.timers(store.TimerRepost); len(timers) != 0 {
		t.Errorf("%d timers are left", len(timers))
	}
}

// If everybody who may decide a request loses their account, the request records this, and the operators get a notice
// about it. When somebody may decide the request again, the refused card is tried again at once.
func TestNobodyIsLeft(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", noLead, func(p *approvers.Policy) { p.Operators.Channel = "#ops" }))
	r := h.requestIn(h.say(alice, "one").Turn, `issue_refund {"amount":1}`)
	h.refuse(r.ID, lead.ID.User())
	problems := func() []settings.ProblemKind {
		kinds, _ := h.problems()
		return kinds
	}
	if got := problems(); !slices.Equal(got, []settings.ProblemKind{settings.ProblemCards}) {
		t.Errorf("the operators read of %v", got)
	}
	h.gone[lead.ID.User()] = true
	h.ok(h.People.AccountChanged(h.ctx(), h.command(), lead.ID, []string{"team-lead"}))
	h.due()
	if got := h.request(r.ID); !approvers.HasNobodyLeft(got) {
		t.Fatalf("unreached: %+v", got.Unreached)
	}
	if got := problems(); !slices.Equal(got, []settings.ProblemKind{settings.ProblemPeople}) {
		t.Errorf("the operators read of %v", got)
	}
	h.refuse(r.ID, lead.ID.User())
	h.gone[lead.ID.User()] = false
	h.ok(h.People.AccountChanged(h.ctx(), h.command(), lead.ID, []string{"team-lead"}))
	h.due()
	if got := h.request(r.ID); got.ReachesNobody() {
		t.Errorf("unreached: %+v", got.Unreached)
	}
	if got := h.where(r.ID); got == "" {
		t.Error("the card is not tried again")
	}
	if got := problems(); len(got) != 0 {
		t.Errorf("the operators read of %v", got)
	}
}

// answerAt acts as Slack, and shows or refuses the waiting outbox messages of a request at an address.
func (h *harness) answerAt(request, to string, shows bool) {
	h.t.Helper()
	for _, s := range h.messagesOf(request) {
		switch {
		case s.To != to || s.State != store.OutboxWanted:
		case shows:
			s.Channel, s.TS = "D-"+to, s.ID
			h.ok(h.Outbox.Delivered(h.ctx(), s, h.posted(s)))
		default:
			h.ok(h.Outbox.Unreachable(h.ctx(), s.ID, "cannot_dm", ""))
		}
	}
}

// twoStages makes refunds need two stages. U0005 may decide in both stages, U0002 in the first, and U0003 in the second.
func twoStages(p *approvers.Policy) {
	p.Approvers[1].Members = users("U0002", "U0005")
	p.Approvers[2].Members = users("U0003", "U0005")
	p.Tools[3].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 1}}
}

// A person of the second stage has a card from the first stage. This card counts in the second stage. If Slack shows
// only this card, somebody sees the request. If Slack refuses this card, and there is no other, nobody sees the request.
func TestACardOfAnEarlierStage(t *testing.T) {
	for name, shown := range map[string]bool{"shown": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			h := newHarnessWith(t, twoStages, noLead, func(p *approvers.Policy) {
				if !shown {
					p.Approvers[2].Members = users("U0005")
				}
			})
			r := h.ask(`issue_refund {"amount":1}`)
			h.expandCards(r.ID)
			h.answerAt(r.ID, "user:U0002", true)
			h.answerAt(r.ID, "user:U0005", shown)
			h.due()
			h.clock.pass(time.Second)
			h.approve(lead, r.ID)
			h.due()
			h.expandCards(r.ID)
			h.answerAt(r.ID, "user:U0005", shown)
			h.answerAt(r.ID, "user:U0003", false)
			if got := h.request(r.ID); got.ReachesNobody() == shown {
				t.Errorf("%+v", got.Unreached)
			}
		})
	}
}

// A card that Slack shows counts only if its person may still decide. If a person's approval counts in both stages, the
// person's card does not count. If a person's role is in both stages, the role gets no new card, and the person's card
// counts.
func TestWhoseCardOfAnEarlierStageCounts(t *testing.T) {
	for name, c := range map[string]struct {
		approves approvers.Identity
		second   approvers.Stage
		reached  bool
	}{
		"who has approved": {person("U0005"), approvers.Stage{Approver: "finance-director", Quorum: 1}, false},
		"the same role":    {person("U0005"), approvers.Stage{Approver: "team-lead", Or: []string{"finance-director"}, Quorum: 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarnessWith(t, twoStages, noLead, func(p *approvers.Policy) {
				p.Approvers[2].Members = users("U0003")
				if !c.reached {
					p.Approvers[2].Members = users("U0003", "U0005")
				}
				p.Tools[3].Stages[1] = c.second
			})
			r := h.ask(`issue_refund {"amount":1}`)
			h.expandCards(r.ID)
			h.answerAt(r.ID, "user:U0002", true)
			h.answerAt(r.ID, "user:U0005", true)
			h.due()
			h.clock.pass(time.Second)
			h.approve(c.approves, r.ID)
			h.due()
			h.expandCards(r.ID)
			h.answerAt(r.ID, "user:U0003", false)
			if got := h.request(r.ID); got.State != approvers.Pending || got.Stage != 1 || got.ReachesNobody() == c.reached {
				t.Errorf("%s in stage %d: %+v", got.State, got.Stage, got.Unreached)
			}
		})
	}
}

// problems returns the kinds of the problems that last, and how many entries the operators' notices have.
func (h *harness) problems() (kinds []settings.ProblemKind, entries int) {
	h.t.Helper()
	o := readStore(h, func(r store.Reader) (settings.Operators, error) {
		o, _, err := settings.ReadOperators(r)
		return o, err
	})
	for _, n := range o.Notices {
		entries += len(n.Problems)
		for _, p := range n.Problems {
			if p.Lasts() {
				kinds = append(kinds, p.Kind)
			}
		}
	}
	return kinds, entries
}

// If a stage needs two people and only one is left, the operators get one notice about it, also if the check is
// repeated. If nobody can see the card in the meantime, this other problem takes precedence. When the stage has enough
// people again, the problem ends.
func TestTooFewAreLeft(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Tools[4].Stages = []approvers.Stage{{Approver: "finance-director", Quorum: 2}}
		p.Operators.Channel = "#ops"
	}, noLead))
	r := h.requestIn(h.say(alice, "one").Turn, `cancel_account {}`)
	h.due()
	h.gone[fin2.ID.User()] = true
	h.ok(h.People.AccountChanged(h.ctx(), h.command(), fin2.ID, []string{"finance-director"}))
	want := func(what string, entries int, kinds ...settings.ProblemKind) {
		t.Helper()
		if got, n := h.problems(); !slices.Equal(got, kinds) || n != entries {
			t.Errorf("%s: %v in %d entries; want %v in %d", what, got, n, kinds, entries)
		}
	}
	for range 3 {
		h.due()
		want("one is left", 1, settings.ProblemQuorum)
		if got := h.request(r.ID); !approvers.HasTooFew(got) || got.ReachesNobody() {
			t.Errorf("%+v", got.Unreached)
		}
		h.clock.pass(5 * time.Minute)
	}
	h.refuse(r.ID, "U0003")
	want("the card is refused", 2, settings.ProblemCards)
	h.ok(h.Outbox.RetryUnreached(h.ctx()))
	h.expandCards(r.ID)
	for _, s := range h.messagesOf(r.ID) {
		if s.State == store.OutboxWanted && strings.HasPrefix(s.To, store.ToUser) {
			s.Channel, s.TS = "D-fin", s.ID
			h.ok(h.Outbox.Delivered(h.ctx(), s, h.posted(s)))
		}
	}
	h.due()
	want("the card is shown", 2, settings.ProblemQuorum)
	h.gone[fin2.ID.User()] = false
	h.clock.pass(5 * time.Minute) // no event comes
	h.due()
	want("both are there", 2)
	if got := h.request(r.ID); approvers.NeedsOperator(got) {
		t.Errorf("%+v", got.Unreached)
	}
}

// A role without members is only one problem. The bot may first find that no member can get messages, and then that
// nobody is left. The problem keeps the time at which it began.
func TestAnEmptyRoleIsOneProblem(t *testing.T) {
	for _, cardFirst := range []bool{true, false} {
		h := newHarness(t)
		h.policy.Store(policy("policy-1", noLead, func(p *approvers.Policy) { p.Operators.Channel = "#ops" }))
		h.gone[lead.ID.User()] = true
		r := h.requestIn(h.say(alice, "one").Turn, `issue_refund {"amount":1}`)
		if !cardFirst {
			h.due()
		}
		since := h.clock.Now()
		h.ok(h.Outbox.Expand(h.ctx(), h.only(r.ID, store.OutboxCard).ID, nil))
		h.clock.pass(time.Second)
		h.due()
		kinds, entries := h.problems()
		if !slices.Equal(kinds, []settings.ProblemKind{settings.ProblemPeople}) || entries != 1 {
			t.Errorf("card first %t: the operators read of %v in %d entries", cardFirst, kinds, entries)
		}
		if got := h.request(r.ID); !approvers.HasNobodyLeft(got) || !got.Unreached.Since.Equal(since) {
			t.Errorf("card first %t: %+v; want since %s", cardFirst, got.Unreached, since)
		}
	}
}

// A person of a stage may leave the user group that the role or the stage names, or become a guest. If nobody is left,
// the request records this immediately. Requests that wait for other people are not checked.
func TestNobodyIsLeftInAGroup(t *testing.T) {
	member, left, guest := lead, lead, lead
	member.Groups, guest.Guest = []string{"oncall"}, true
	account := func(h *harness) error {
		return h.People.AccountChanged(h.ctx(), h.command(), lead.ID, []string{"team-lead"})
	}
	group := func(roles ...string) func(*harness) error {
		return func(h *harness) error {
			return h.People.GroupChanged(h.ctx(), h.command(), roles, func(group string) bool { return group == "oncall" })
		}
	}
	for name, c := range map[string]struct {
		change  func(*approvers.Policy)
		changed approvers.Identity
		event   func(*harness) error
	}{
		"a guest":          {noLead, guest, account},
		"the role's group": {noLead, guest, group("team-lead")},
		"the stage's group": {func(p *approvers.Policy) {
			p.Tools[3].Stages = []approvers.Stage{{Approver: "team-lead", Group: "oncall", Quorum: 1}}
		}, left, group()},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.policy.Store(policy("policy-1", noLead, c.change))
			h.known = map[approvers.PersonID]approvers.Identity{lead.ID: member}
			r := h.requestIn(h.say(alice, "one").Turn, `issue_refund {"amount":1}`)
			other := h.propose(h.sayIn("101.1", alice, "please").Turn, `cancel_account {}`)[0].Request
			h.due()
			for _, nobody := range []bool{true, false} {
				if h.known[lead.ID] = member; nobody {
					h.known[lead.ID] = c.changed
				}
				h.ok(c.event(h))
				if _, looked := h.timers(store.TimerAvailability)[other]; looked {
					t.Error("a request that waits for other people is checked")
				}
				h.due()
				if got := h.request(r.ID); approvers.HasNobodyLeft(got) != nobody {
					t.Errorf("nobody is left: %v, want %v", !nobody, nobody)
				}
			}
		})
	}
}

// The recorded reason changes when the members change. At first, nobody in the stage's user group has the role. Then
// the only member is in the group again, but with a deactivated account.
func TestWhyNobodyIsLeft(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", noLead, func(p *approvers.Policy) {
		p.Tools[3].Stages = []approvers.Stage{{Approver: "team-lead", Group: "oncall", Quorum: 1}}
	}))
	r := h.requestIn(h.say(alice, "one").Turn, `issue_refund {"amount":1}`)
	h.due()
	before := h.request(r.ID)
	if !approvers.HasNobodyLeft(before) || !before.Unreached.Empty {
		t.Fatalf("nobody in the group: %+v", before.Unreached)
	}
	member := lead
	member.Groups = []string{"oncall"}
	h.known, h.gone[lead.ID.User()] = map[approvers.PersonID]approvers.Identity{lead.ID: member}, true
	h.clock.pass(5 * time.Minute)
	h.due()
	if got := h.request(r.ID); !approvers.HasNobodyLeft(got) || got.Unreached.Empty || !got.Unreached.Since.Equal(before.Unreached.Since) {
		t.Errorf("the member is deactivated: %+v", got.Unreached)
	}
}

// One of two necessary approvers approves after the other's account was deactivated. Then nobody is left, and the bot
// notices this after the decision. When the account is active again, the other approver can decide.
func TestNobodyIsLeftAfterADecision(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Tools[4].Stages = []approvers.Stage{{Approver: "finance-director", Quorum: 2}}
	}, noLead))
	r := h.requestIn(h.say(alice, "one").Turn, `cancel_account {}`)
	h.due()
	h.gone[fin2.ID.User()] = true
	h.ok(h.People.AccountChanged(h.ctx(), h.command(), fin2.ID, []string{"finance-director"}))
	h.due()
	if got := h.request(r.ID); got.ReachesNobody() {
		t.Fatalf("before the decision: %+v", got.Unreached)
	}
	h.approve(fin1, r.ID)
	h.due()
	if got := h.request(r.ID); !approvers.HasNobodyLeft(got) {
		t.Errorf("after the decision: %+v", got.Unreached)
	}
	h.gone[fin2.ID.User()] = false
	h.clock.pass(5 * time.Minute) // no event comes
	h.due()
	if got := h.request(r.ID); got.ReachesNobody() {
		t.Errorf("the account is active again: %+v", got.Unreached)
	}
	h.approve(fin2, r.ID)
	h.wantState(r.ID, approvers.Approved)
}

// Slack refused the channel of the cards, so the members of the role have the card by direct message. Then nobody is
// left in the role. When people join the role, the card also goes to them.
func TestNewMembersGetTheCard(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", noLead, leads))
	r := h.requestIn(h.say(alice, "one").Turn, `issue_refund {"amount":1}`)
	for _, s := range h.messagesOf(r.ID) {
		if s.To == "channel:#leads" {
			h.ok(h.Outbox.Unreachable(h.ctx(), s.ID, "restricted_action", ""))
		}
	}
	for _, s := range h.messagesOf(r.ID) {
		if s.To == "role:team-lead" {
			h.ok(h.Outbox.Expand(h.ctx(), s.ID, persons(lead.ID.User())))
		}
	}
	for _, s := range h.messagesOf(r.ID) {
		if s.To == "user:"+lead.ID.User() {
			s.Channel, s.TS = "D-lead", s.ID
			h.ok(h.Outbox.Delivered(h.ctx(), s, h.posted(s)))
		}
	}
	if got := h.where(r.ID); got != "card user:"+lead.ID.User() {
		t.Fatalf("the card is at %s", got)
	}
	for _, gone := range []bool{true, false} {
		h.gone[lead.ID.User()] = gone
		h.ok(h.People.AccountChanged(h.ctx(), h.command(), lead.ID, []string{"team-lead"}))
		h.due()
	}
	if got := h.where(r.ID); !strings.Contains(got, "card role:team-lead") {
		t.Errorf("the card is at %s, want it to go to the members of the role again", got)
	}
}

// TestACardThatIsShownAgain checks a refused card that Slack finally shows. The request then counts as seen. If the
// request expires later, the reason is that nobody decided.
func TestACardThatIsShownAgain(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", noLead))
	r := h.requestIn(h.say(alice, "one").Turn, `issue_refund {"amount":1}`)
	h.refuse(r.ID, lead.ID.User())
	h.ok(h.Outbox.RetryUnreached(h.ctx()))
	for _, s := range h.messagesOf(r.ID) {
		if s.State == store.OutboxWanted {
			s.Channel, s.TS = "C-support", s.ID
			h.ok(h.Outbox.Delivered(h.ctx(), s, h.posted(s)))
		}
	}
	if got := h.request(r.ID); got.ReachesNobody() {
		t.Errorf("unreached: %+v", got.Unreached)
	}
	h.clock.pass(r.ExpiresAt.Sub(h.clock.Now()))
	h.due()
	if got := h.request(r.ID); got.Reason != "nobody decided in time" {
		t.Errorf("%s: %s", got.State, got.Reason)
	}
}

// Slack refuses the cards of a role, and the role of the lead who is asked next has no members. The operators still read
// Slack's reason, because the first role has members.
func TestARefusalComesBeforeAnEmptyRole(t *testing.T) {
	h := newHarnessWith(t, func(p *approvers.Policy) { p.Operators.Channel, p.Approvers[1].Lead = "#ops", "" })
	r := h.ask(`apply_discount {}`)
	h.due()
	h.answerAt(r.ID, "channel:#support-approvals", false)
	h.expandCards(r.ID)
	h.answerAt(r.ID, "user:U0001", false)
	h.gone[lead.ID.User()] = true
	h.due()
	for _, s := range h.messagesOf(r.ID) {
		if s.To == "role:team-lead" {
			h.ok(h.Outbox.Expand(h.ctx(), s.ID, nil))
		}
	}
	if got := h.request(r.ID); got.Unreached.Cause != "cannot_dm" {
		t.Errorf("%+v", got.Unreached)
	}
	if kinds, entries := h.problems(); !slices.Equal(kinds, []settings.ProblemKind{settings.ProblemCards}) || entries != 1 {
		t.Errorf("the operators read of %v in %d entries", kinds, entries)
	}
}

// Slack refuses the cards, and then shows the card of the lead who was asked. Everybody is in do-not-disturb, but no
// other lead is asked, because somebody sees the request.
func TestACardThatIsShownAsksNobody(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`apply_discount {}`)
	h.due()
	h.answerAt(r.ID, "channel:#support-approvals", false)
	h.expandCards(r.ID)
	h.answerAt(r.ID, "user:U0001", false)
	h.due()
	h.expandCards(r.ID)
	morning := h.clock.Now().Add(8 * time.Hour)
	h.quiet["U0001"], h.quiet["U0002"] = morning, morning
	h.answerAt(r.ID, "user:U0002", true)
	h.due()
	if got := h.request(r.ID); got.ReachesNobody() || !slices.Equal(got.Joined, []string{"team-lead"}) {
		t.Errorf("joined %v; unreached %+v", got.Joined, got.Unreached)
	}
}

// TestRetriesOutOfTurn checks that an early retry of a refused answer does not change the delays between the later
// retries.
func TestRetriesOutOfTurn(t *testing.T) {
	h := newHarness(t)
	said := h.say(alice, "one")
	h.answer(said.Turn)
	refuse := func() (answer string) {
		t.Helper()
		for waits := true; waits; {
			waits = false
			for _, s := range h.messagesOf(said.Turn) {
				if s.State == store.OutboxWanted {
					waits, answer = true, s.ID
					h.ok(h.Outbox.Unreachable(h.ctx(), s.ID, "chat.postMessage: msg_too_long", ""))
				}
			}
		}
		return answer
	}
	for range 4 {
		answer := refuse()
		if timer := h.timers(store.TimerRepost)[answer]; timer.Due.Sub(h.clock.Now()) != 10*time.Minute {
			t.Fatalf("it is tried again in %s", timer.Due.Sub(h.clock.Now()))
		}
		h.clock.pass(time.Minute)
		h.ok(h.Outbox.RetryUnreached(h.ctx()))
	}
}

// TestTheLeadIfNobodyCanSeeTheCard checks that the lead is asked immediately if nobody can see the card, without
// waiting for escalate_after.
func TestTheLeadIfNobodyCanSeeTheCard(t *testing.T) {
	h := newHarness(t)
	r := h.requestIn(h.say(alice, "one").Turn, `issue_refund {"amount":1}`)
	h.refuse(r.ID, lead.ID.User())
	h.due()
	got := h.request(r.ID)
	if len(got.Joined) != 1 || !got.Unreached.Added(got, got.Joined[0]) {
		t.Fatalf("joined: %v", got.Joined)
	}
	h.refuse(r.ID, fin1.ID.User())
	if got := h.request(r.ID); !got.ReachesNobody() || !got.Unreached.Added(got, got.Joined[0]) {
		t.Errorf("unreached: %+v", got.Unreached)
	}
}

// TestARefusedQuestionIsAskedLater checks a question that Slack refuses in the thread and by direct message. The bot
// tries to post the question again as long as people can answer it.
func TestARefusedQuestionIsAskedLater(t *testing.T) {
	h := newHarness(t)
	_, c := h.askPeople()
	h.refuse(c.ID)
	if got := h.where(c.ID); got != "" {
		t.Fatalf("it is shown: %s", got)
	}
	for i, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		h.clock.pass(pause - time.Second)
		h.due()
		if got := h.where(c.ID); got != "" {
			t.Fatalf("%d: tried too early: %s", i, got)
		}
		h.clock.pass(time.Second)
		h.due()
		if got := h.where(c.ID); got != "inquiry user:"+alice.ID.User() {
			t.Fatalf("%d: not tried again: %q", i, got)
		}
		h.refuse(c.ID)
	}
	h.ok(h.Questions.Answer(h.ctx(), workflow.Click{At: h.clock.Now(), Who: alice, Call: c.ID}, 0))
	h.clock.pass(time.Hour)
	h.due()
	h.ok(h.Outbox.RetryUnreached(h.ctx()))
	if got, timers := h.where(c.ID), h.timers(store.TimerRepost); got != "" || len(timers) != 0 {
		t.Errorf("after the answer: shown %q, %d timers", got, len(timers))
	}
}
