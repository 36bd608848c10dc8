package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// h.words returns a click that submits a text.
func (h *harness) words(who approvers.Identity, request, text string) workflow.Click {
	h.t.Helper()
	c := h.clickOn(who, "", request)
	c.Reason = text
	return c
}

func (h *harness) question(who approvers.Identity, request, text string) approvers.Request {
	h.t.Helper()
	r, err := h.Requests.Say(h.ctx(), h.words(who, request, text), approvers.Question)
	h.ok(err)
	return r
}

// h.notices lists the notices to people about a request, for example "fallen user:U0002 1".
func (h *harness) notices(request string) string {
	h.t.Helper()
	var out []string
	for _, s := range h.messagesOf(request) {
		if s.Kind == store.OutboxNotice {
			out = append(out, fmt.Sprintf("%s %s %d", s.Note, s.To, s.Step))
		}
	}
	return strings.Join(out, ", ")
}

// h.places lists the addresses of a request's outbox messages of a kind, in any state.
func (h *harness) places(request string, kind store.OutboxKind) string {
	h.t.Helper()
	var out []string
	for _, s := range h.messagesOf(request) {
		if s.Kind == kind {
			out = append(out, s.To)
		}
	}
	return strings.Join(out, ", ")
}

// lastFacts returns the facts and the payload of the last record of a kind in an audit chain.
func (h *harness) lastFacts(chain string, kind approvers.AuditKind) (facts map[string]string, payload string) {
	h.t.Helper()
	for _, a := range readStore(h, func(r store.Reader) ([]approvers.AuditRecord, error) { return r.Audit(chain) }) {
		if a.Kind != kind {
			continue
		}
		facts, payload = a.Facts, ""
		if a.PayloadHash != "" {
			p := readStore(h, func(r store.Reader) (approvers.AuditPayload, error) { return r.AuditPayload(chain, a.Seq) })
			payload = string(p.Body)
		}
	}
	return facts, payload
}

func TestAQuestionAndItsAnswer(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1}`)
	h.show(h.only(r.ID, store.OutboxCard))
	asked := h.question(lead, r.ID, "why so much?")
	if len(asked.Remarks) != 1 || !asked.ExpiresAt.Equal(r.ExpiresAt) {
		t.Fatalf("%+v, expires %s", asked.Remarks, asked.ExpiresAt)
	}
	if facts, text := h.lastFacts(r.ID, approvers.AuditRemarked); text != "why so much?" || facts["kind"] != "question" || facts["role"] != "team-lead" {
		t.Errorf("recorded %v with %q", facts, text)
	}
	q := h.only(r.ID, store.OutboxQuestion)
	if q.To != "conversation:"+r.Conversation || q.Step != 0 {
		t.Errorf("the question is at %s, of remark %d", q.To, q.Step)
	}
	if got := h.wanted(r.ID); !contains(got, "card ") || !contains(got, "question ") {
		t.Errorf("to be shown: %s", got)
	}
	if vm, err := h.Views.Message(h.ctx(), q.ID); err != nil || vm.Request == nil || len(vm.Cards) != 1 {
		t.Errorf("the question is drawn from %+v, %v", vm, err)
	}
	_, err := h.Requests.Reply(h.ctx(), h.words(fin1, r.ID, "because"), 0)
	wantDenied(t, err, approvers.DeniedNotRequester)
	answered, err := h.Requests.Reply(h.ctx(), h.words(alice, r.ID, "it is for two"), 0)
	h.ok(err)
	if !answered.Answered(0) {
		t.Errorf("%+v", answered.Remarks)
	}
	if got := h.notices(r.ID); got != "answered user:U0002 0" {
		t.Errorf("told: %s", got)
	}
	if now := h.message(q.ID); now.Revision <= q.Revision {
		t.Error("the question's message is not updated with the answer")
	}
	if facts, text := h.lastFacts(r.ID, approvers.AuditRemarked); text != "it is for two" || facts["kind"] != "answer" || facts["question"] != "1" {
		t.Errorf("recorded %v with %q", facts, text)
	}
	h.wantKinds(r.ID, "proposed shown remarked denied remarked")
	h.approve(lead, r.ID)
	_, err = h.Requests.Say(h.ctx(), h.words(lead, r.ID, "and?"), approvers.Question)
	wantDenied(t, err, approvers.DeniedResolved)
}

func TestACommentTellsNobody(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1}`)
	_, err := h.Requests.Say(h.ctx(), h.words(lead, r.ID, "the third this week"), approvers.Comment)
	h.ok(err)
	if h.notices(r.ID) != "" || h.places(r.ID, store.OutboxQuestion) != "" {
		t.Error("a comment was sent to somebody")
	}
	_, err = h.Requests.Say(h.ctx(), h.words(alice, r.ID, "please"), approvers.Comment)
	wantDenied(t, err, approvers.DeniedSelf)
	if facts, _ := h.lastFacts(r.ID, approvers.AuditDenied); facts["kind"] != "comment" || facts["code"] != "self_approval" {
		t.Errorf("the denial is recorded as %v", facts)
	}
}

// If Slack refuses a question in the conversation, the question goes to each requester by direct message, even if a
// requester has the card.
func TestAQuestionWhereTheThreadIsGone(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Tools[3].SelfApproval, p.Approvers[1].Members = true, users("U0002", "U0100")
	}))
	r := h.ask(`issue_refund {"amount":1}`)
	h.ok(h.Outbox.Expand(h.ctx(), h.only(r.ID, store.OutboxCard).ID, persons("U0002", "U0100")))
	h.question(lead, r.ID, "why?")
	h.ok(h.Outbox.Unreachable(h.ctx(), h.only(r.ID, store.OutboxQuestion).ID, "channel_not_found", ""))
	if got := h.places(r.ID, store.OutboxQuestion); got != "conversation:"+r.Conversation+", user:U0100" {
		t.Errorf("the question is at %s", got)
	}
}

func TestHandingOn(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`apply_discount {}`) // waits for the support agent, in a channel
	_, err := h.Requests.HandOn(h.ctx(), h.words(support, r.ID, ""), bob)
	denied := wantDenied(t, err, approvers.DeniedNotPeer)
	if denied.Role != "Support Agent" {
		t.Errorf("the denial names the role %q", denied.Role)
	}
	out, err := h.Requests.HandOn(h.ctx(), h.words(support, r.ID, ""), lead)
	h.ok(err)
	if len(out.Invited) != 1 || out.Invited[0].Who != lead.ID {
		t.Fatalf("%+v", out.Invited)
	}
	if got := h.places(r.ID, store.OutboxCard); got != "channel:#support-approvals, user:U0002" {
		t.Errorf("cards at %s", got)
	}
	if facts, _ := h.lastFacts(r.ID, approvers.AuditInvited); facts["person"] != string(lead.ID) || facts["role"] != "team-lead" || facts["by"] != string(support.ID) {
		t.Errorf("recorded %v", facts)
	}
	if out := h.approve(lead, r.ID); out.State != approvers.Approved || out.ClosedRole != "team-lead" {
		t.Errorf("%s as %s", out.State, out.ClosedRole)
	}
	h.wantKinds(r.ID, "proposed denied invited decided approved")
}

// A person may have the card of a request by direct message before the request is handed to the person. The person then
// gets a notice, because an update of the card would not notify the person.
func TestHandingOnToSomebodyWhoHasTheCard(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`cancel_account {}`)
	h.ok(h.Outbox.Expand(h.ctx(), h.only(r.ID, store.OutboxCard).ID, persons("U0003", "U0004")))
	_, err := h.Requests.HandOn(h.ctx(), h.words(fin1, r.ID, ""), fin2)
	h.ok(err)
	if got := h.places(r.ID, store.OutboxCard); got != "role:finance-director, user:U0003, user:U0004" {
		t.Errorf("cards at %s", got)
	}
	if got := h.notices(r.ID); got != "invited user:U0004 0" {
		t.Errorf("told: %s", got)
	}
}

func TestTakingAnApprovalBack(t *testing.T) {
	t.Run("before it runs", func(t *testing.T) {
		h := newHarness(t)
		r := h.ask(`issue_refund {"amount":1}`)
		h.approve(lead, r.ID)
		out, err := h.Requests.Revoke(h.ctx(), h.words(lead, r.ID, "the wrong order"))
		h.ok(err)
		if out.State != approvers.Revoked || out.Reason != "the wrong order" {
			t.Errorf("%s: %s", out.State, out.Reason)
		}
		h.notRun(r.Execution)
		if c := h.wantOutcome(r.Call, approvers.OutcomeRevoked); !contains(c.Result, "the wrong order") || !contains(c.Result, "Team Lead") {
			t.Errorf("the model is told %s", c.Result)
		}
		h.wantTurn(r.Turn, approvers.TurnThinking)
		h.wantKinds(r.ID, "proposed decided approved closed returned")
	})
	t.Run("while others are still needed", func(t *testing.T) {
		h := newHarness(t)
		r := h.ask(`issue_refund {"amount":900}`)
		h.approve(lead, r.ID)
		_, err := h.Requests.Revoke(h.ctx(), h.words(fin1, r.ID, "no"))
		wantDenied(t, err, approvers.DeniedNotApprover)
		_, err = h.Requests.Revoke(h.ctx(), h.words(lead, r.ID, "no"))
		h.ok(err)
		h.wantState(r.ID, approvers.Revoked)
		h.wantKinds(r.ID, "proposed decided advanced denied closed returned")
	})
	t.Run("too late", func(t *testing.T) {
		h := newHarness(t)
		r := h.ask(`issue_refund {"amount":1}`)
		h.approve(lead, r.ID)
		h.run(r.Execution, "refunded")
		_, err := h.Requests.Revoke(h.ctx(), h.words(lead, r.ID, "no"))
		wantDenied(t, err, approvers.DeniedStarted)
		if facts, _ := h.lastFacts(r.ID, approvers.AuditDenied); facts["kind"] != "revoke" {
			t.Errorf("the denial is recorded as %v", facts)
		}
	})
	t.Run("of something that is not known", func(t *testing.T) {
		h := newHarness(t)
		_, err := h.Requests.Revoke(h.ctx(), workflow.Click{Who: lead, Request: "req_none", Reason: "no"})
		wantDenied(t, err, approvers.DeniedNotFound)
	})
}

// If an edit or a stricter policy ends the effect of a decision, the person who decided gets a notice. The person who
// edited gets no notice.
func TestWhoseDecisionFallsIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		policy func(*approvers.Policy)
		before func(h *harness, request string)
		then   func(h *harness, request string)
		told   string
	}{
		"an edit": {
			before: func(h *harness, r string) { h.approve(lead, r); h.approve(fin1, r) },
			then:   func(h *harness, r string) { h.change(fin2, r, `{"amount":901}`) },
			told:   "fallen user:U0002 1, fallen user:U0003 1",
		},
		"their own edit tells nobody": {
			before: func(h *harness, r string) { h.approve(lead, r); h.approve(fin1, r) },
			then:   func(h *harness, r string) { h.change(fin1, r, `{"amount":901}`) },
			told:   "fallen user:U0002 1",
		},
		"each edit tells those whose approval it ended": {
			before: func(h *harness, r string) {
				h.approve(lead, r)
				h.change(fin2, r, `{"amount":901}`)
				h.approve(lead, r)
			},
			then: func(h *harness, r string) { h.change(fin2, r, `{"amount":902}`) },
			told: "fallen user:U0002 1, fallen user:U0002 2",
		},
		"a rejection that did not end the request": {
			policy: func(p *approvers.Policy) { p.Tools[3].Rules[0].Stages[1].Rejects = 2 },
			before: func(h *harness, r string) { h.approve(lead, r); h.reject(fin1, r) },
			then:   func(h *harness, r string) { h.change(fin2, r, `{"amount":901}`) },
			told:   "fallen user:U0002 1, fallen user:U0003 1",
		},
		"an edit that needs nobody else": {
			before: func(h *harness, r string) { h.approve(lead, r) },
			then:   func(h *harness, r string) { h.change(fin1, r, `{"amount":20}`) },
			told:   "fallen user:U0002 1",
		},
		"people who change their own decision are not told": {
			policy: func(p *approvers.Policy) { p.Tools[3].Rules[0].Stages[1].Rejects = 2 },
			before: func(h *harness, r string) { h.approve(lead, r); h.approve(fin1, r) },
			then:   func(h *harness, r string) { h.reject(fin1, r) },
		},
		"a stricter policy, at somebody's click": {
			before: func(h *harness, r string) { h.approve(lead, r) },
			then: func(h *harness, r string) {
				h.policy.Store(policy("policy-2", func(p *approvers.Policy) {
					p.Tools[3].Rules[0].Stages[0].Quorum = 2
					p.Approvers[1].Members = users("U0002", "U0005")
				}))
				_, err := h.Requests.Decide(h.ctx(), h.clickOn(person("U0005"), approvers.Approve, r)) // on a card with the old plan
				wantDenied(h.t, err, approvers.DeniedStage)
				h.approve(person("U0005"), r)
			},
			told: "fallen user:U0002 0",
		},
		"a stricter policy, when requests are re-evaluated": {
			before: func(h *harness, r string) {
				h.ok(h.Requests.Reevaluate(h.ctx()))
				h.approve(lead, r)
				h.approve(fin1, r)
			},
			then: func(h *harness, r string) {
				h.policy.Store(policy("policy-2", func(p *approvers.Policy) {
					p.Tools[3].Rules[0].Stages[0].Quorum = 2
					p.Approvers[1].Members = users("U0002", "U0005")
				}))
				h.ok(h.Requests.Reevaluate(h.ctx()))
			},
			told: "fallen user:U0002 0, fallen user:U0003 0",
		},
		"a stricter policy, when the call is about to run": {
			before: func(h *harness, r string) { h.approve(lead, r); h.approve(fin1, r); h.approve(fin2, r) },
			then: func(h *harness, r string) {
				h.policy.Store(policy("policy-2", func(p *approvers.Policy) {
					p.Tools[3].Rules[0].Stages[0].Quorum = 2
					p.Approvers[1].Members = users("U0002", "U0005")
				}))
				h.notRun(h.request(r).Execution)
			},
			told: "fallen user:U0002 0, fallen user:U0003 0, fallen user:U0004 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			if c.policy != nil {
				h.policy.Store(policy("policy-1", c.policy))
			}
			r := h.ask(`issue_refund {"amount":900}`)
			c.before(h, r.ID)
			c.then(h, r.ID)
			if got := h.notices(r.ID); got != c.told {
				t.Errorf("told: %s\nwant: %s", got, c.told)
			}
		})
	}
}

func (h *harness) change(who approvers.Identity, request, args string) {
	h.t.Helper()
	_, err := h.Requests.Decide(h.ctx(), h.edit(who, request, args))
	h.ok(err)
}

// A notice links to the card as soon as Slack shows the card. After an edit, there can be a new card at another
// address. The notice must then link to the new card.
func TestANoticeLeadsToTheCard(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":900}`)
	h.approve(lead, r.ID)
	h.change(fin1, r.ID, `{"amount":901}`)
	notice := h.show(h.only(r.ID, store.OutboxNotice))
	h.ok(h.Outbox.Expand(h.ctx(), h.messagesOf(r.ID)[0].ID, persons("U0002")))
	for _, s := range h.messagesOf(r.ID) {
		if s.Kind == store.OutboxCard && s.To == "user:U0002" {
			h.show(s)
		}
	}
	if now := h.message(notice.ID); now.State != store.OutboxWanted {
		t.Errorf("the notice is %s after the card was posted", now.State)
	}
}

// A rejection that does not end the request is recorded and shown like other decisions, and has no other effect.
func TestARejectionOfSeveral(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Tools[4].Stages = []approvers.Stage{{Approver: "finance-director", Quorum: 1, Rejects: 2}}
	}))
	r := h.ask(`cancel_account {}`)
	h.show(h.only(r.ID, store.OutboxCard))
	if out := h.reject(fin1, r.ID); out.State != approvers.Pending || len(out.Against(0)) != 1 {
		t.Fatalf("%s with %d against", out.State, len(out.Against(0)))
	}
	if got := h.wanted(r.ID); !contains(got, "card ") {
		t.Errorf("the card does not show it: %s", got)
	}
	h.wantTurn(r.Turn, approvers.TurnWaiting)
	if out := h.reject(fin2, r.ID); out.State != approvers.Rejected {
		t.Errorf("%s", out.State)
	}
	h.wantKinds(r.ID, "proposed shown decided decided closed returned")
}

// A stage with several roles has one card at each address where its roles read their cards. The cards of a stage with a
// user group go to the group's members.
func TestCardsOfAStage(t *testing.T) {
	group := func(p *approvers.Policy) {
		p.Tools[3].Stages, p.Tools[3].Rules = []approvers.Stage{{Group: "emea", Quorum: 1}}, nil
	}
	several := func(p *approvers.Policy) {
		p.Approvers[0].CanApprove, p.Approvers[0].MaxRisk = []string{"*"}, approvers.High
		p.Approvers[2].Cards = "#support-approvals"
		p.Tools[3].Rules = nil
		p.Tools[3].Stages = []approvers.Stage{
			{Approver: "support-agent", Or: []string{"team-lead", "finance-director"}, Quorum: 1},
			{Approver: "support-agent", Or: []string{"finance-director"}, Group: "emea", Quorum: 1},
		}
	}
	t.Run("several roles", func(t *testing.T) {
		h := newHarness(t)
		h.policy.Store(policy("policy-1", several))
		r := h.ask(`issue_refund {"amount":1}`)
		if got := h.places(r.ID, store.OutboxCard); got != "channel:#support-approvals, role:team-lead" {
			t.Errorf("cards at %s", got)
		}
		h.approve(lead, r.ID) // the next stage begins with the same role, but is for other people
		if got := h.places(r.ID, store.OutboxCard); got != "channel:#support-approvals, role:team-lead, group:emea" {
			t.Errorf("at the second stage, cards at %s", got)
		}
	})
	t.Run("a group alone", func(t *testing.T) {
		h := newHarness(t)
		h.policy.Store(policy("policy-1", group))
		r := h.ask(`issue_refund {"amount":1}`)
		card := h.only(r.ID, store.OutboxCard)
		if card.To != "group:emea" {
			t.Fatalf("the card is at %s", card.To)
		}
		h.ok(h.Outbox.Expand(h.ctx(), card.ID, nil)) // without members, the card also goes to the request's roles
		if got := h.places(r.ID, store.OutboxCard); got != "group:emea, role:team-lead, role:finance-director" {
			t.Errorf("cards at %s", got)
		}
	})
	t.Run("somebody in two of the roles gets one card", func(t *testing.T) {
		h := newHarness(t)
		h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
			p.Tools[3].Rules, p.Tools[3].Stages = nil, []approvers.Stage{{Approver: "team-lead", Or: []string{"finance-director"}, Quorum: 1}}
		}))
		r := h.ask(`issue_refund {"amount":1}`)
		for _, s := range h.messagesOf(r.ID) {
			h.ok(h.Outbox.Expand(h.ctx(), s.ID, persons("U0003")))
		}
		if got := h.places(r.ID, store.OutboxCard); got != "role:team-lead, role:finance-director, user:U0003" {
			t.Errorf("cards at %s", got)
		}
	})
	t.Run("a run with an unknown outcome is put to all of them", func(t *testing.T) {
		h := newHarness(t)
		h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
			several(p)
			p.Tools[3].Stages = p.Tools[3].Stages[:1]
		}))
		r := h.ask(`issue_refund {"amount":1}`)
		h.approve(fin1, r.ID)
		_, run, err := h.Runs.Claim(h.ctx(), r.Execution)
		h.ok(err)
		h.clock.pass(time.Hour)
		h.reopen()
		if _, again, err := h.Runs.Claim(h.ctx(), r.Execution); err != nil || !run || again {
			t.Fatalf("%t, then %t, %v", run, again, err)
		}
		if got := h.places(r.Execution, store.OutboxUnknown); got != "conversation:"+r.Conversation+", channel:#support-approvals, role:team-lead" {
			t.Errorf("asked at %s", got)
		}
	})
}

// TestAnAnswerThatIsEditedLater checks that the edit of a message does not change the recorded answer. The card is
// rendered again, the person who asked is told once, and an approval stays valid.
func TestAnAnswerThatIsEditedLater(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":600}`)
	h.question(lead, r.ID, "why?")
	h.showsQuestion(r.ID, store.OutboxQuestion, "1772442000.000001", false, store.ToConversation)
	answer := h.spoken(alice, "it broke")
	h.hear(answer)
	h.approve(lead, r.ID)
	card := h.show(h.messagesOf(r.ID)[0])
	told := h.notices(r.ID)
	h.rewrite(answer, "it broke")
	if got := h.request(r.ID).Remark(1); got.MessageEdit != nil || h.notices(r.ID) != told {
		t.Errorf("an edit that did not change the text: %+v, %s", got, h.notices(r.ID))
	}
	for i, change := range []func(){
		func() { h.rewrite(answer, "it did not break") },
		func() { h.rewrite(answer, "it did break") },
		func() { h.erase(answer, true) },
		func() { h.rewrite(answer, "who knows") }, // Slack reports this edit late
	} {
		change()
		r := h.request(r.ID)
		got := r.Remark(1)
		if got.Text != "it broke" || got.MessageEdit == nil || got.MessageEdit.Deleted != (i >= 2) || got.MessageEdit.Text != [4]string{"it did not break", "it did break"}[i] {
			t.Errorf("%d: %+v, %+v", i, got, got.MessageEdit)
		}
		if want := told + ", answer_edited user:U0002 0"; h.notices(r.ID) != want {
			t.Errorf("%d: notices %q; want %q", i, h.notices(r.ID), want)
		}
		if r.State != approvers.Pending || r.Stage != 1 || len(r.ValidApprovals()) != 1 {
			t.Errorf("%d: it is %s at stage %d with %d approvals", i, r.State, r.Stage, len(r.ValidApprovals()))
		}
	}
	if now := h.message(card.ID); now.State != store.OutboxWanted {
		t.Errorf("the card is %s", now.State)
	}
	h.wantKinds(r.ID, "proposed remarked shown remarked decided advanced shown reworded reworded reworded")
	h.reject(fin1, r.ID)
	h.clock.pass(time.Minute)
	h.rewrite(answer, "too late")
	h.wantKinds(r.ID, "proposed remarked shown remarked decided advanced shown reworded reworded reworded decided closed returned")
	if erased := h.request(r.ID).Erase().Remark(1); erased.Text != "" || erased.MessageEdit != nil {
		t.Errorf("erased: %+v", erased)
	}
}

// showsQuestion acts as Slack. The question is shown with a given ts at some addresses, and is refused at all other
// addresses. If lost is set, the question is deleted afterwards.
func (h *harness) showsQuestion(ref string, kind store.OutboxKind, ts string, lost bool, at ...string) {
	h.t.Helper()
	for range 2 { // a refusal in the thread creates the direct messages
		for _, s := range h.messagesOf(ref) {
			if s.Kind != kind || s.State != store.OutboxWanted || s.TS != "" {
				continue
			}
			if !slices.ContainsFunc(at, func(at string) bool { return strings.HasPrefix(s.To, at) }) {
				h.ok(h.Outbox.Unreachable(h.ctx(), s.ID, "channel_not_found", ""))
				continue
			}
			s.Channel, s.TS = "C-"+s.To, ts
			h.ok(h.Outbox.Delivered(h.ctx(), s, h.posted(s)))
			if lost {
				h.loses(h.message(s.ID))
			}
		}
	}
}

// reply returns a message in the thread without a mention. The message is received now.
func (h *harness) reply(who approvers.Identity, ts, text string) workflow.IncomingMessage {
	return workflow.IncomingMessage{
		Inbox: h.id("Ev"), At: h.clock.Now(), Team: "T0001", Thread: "100.1", TS: ts, Who: who, Text: text,
		Channel: approvers.ChannelRef{Channel: "C0001", Name: "support"},
	}
}

// A message in the thread answers an approver's question only if the message's author saw the question before writing.
func TestOnlyAShownQuestionIsAnsweredByWriting(t *testing.T) {
	const posted, earlier, later = "1790000100.000200", "1790000100.000100", "1790000160.000100"
	for name, c := range map[string]struct {
		shown  []string // where Slack shows the question; elsewhere Slack refuses it
		lost   bool     // the question was deleted in Slack
		edited bool     // the question's message is being edited, because there is a second question
		ts     string   // the timestamp of the message, which is received a minute after the question
		answer bool
	}{
		"written after it":                   {shown: []string{"conversation:"}, ts: later, answer: true},
		"while it is edited":                 {shown: []string{"conversation:"}, edited: true, ts: later, answer: true},
		"written before it, received late":   {shown: []string{"conversation:"}, ts: earlier},
		"written while it was posted":        {shown: []string{"conversation:"}, ts: posted},
		"shown by direct message":            {shown: []string{"user:U0100"}, ts: later, answer: true},
		"by direct message, written earlier": {shown: []string{"user:U0100"}, ts: earlier},
		"shown to somebody else alone":       {shown: []string{"user:U0200"}, ts: later},
		"refused everywhere":                 {ts: later},
		"deleted":                            {shown: []string{"conversation:"}, lost: true, ts: later},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			asking := h.say(alice, "please")
			h.say(bob, "for me, too")
			r := h.request(h.propose(asking.Turn, `issue_refund {"amount":1}`)[0].Request)
			h.question(lead, r.ID, "why?")
			h.showsQuestion(r.ID, store.OutboxQuestion, posted, c.lost, c.shown...)
			if c.edited {
				h.question(lead, r.ID, "and for whom?") // the question is not shown yet
			}
			h.clock.pass(time.Minute)
			heard := h.hear(h.reply(alice, c.ts, "and one more thing"))
			if now := h.request(r.ID); now.Answered(0) != c.answer || (heard.Passed == lead.ID) != c.answer || heard.Queued == c.answer {
				t.Errorf("%+v; remarks %+v", heard, now.Remarks)
			}
		})
	}
}
