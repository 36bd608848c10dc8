package desk_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// words is a click that brings words along.
func (o *office) words(who approvers.Identity, request, text string) desk.Click {
	o.t.Helper()
	c := o.clickOn(who, "", request)
	c.Reason = text
	return c
}

func (o *office) question(who approvers.Identity, request, text string) approvers.Request {
	o.t.Helper()
	r, err := o.Say(o.ctx(), o.words(who, request, text), approvers.Question)
	o.ok(err)
	return r
}

// notices lists what people were told of a request: "fallen user:U0002 1".
func (o *office) notices(request string) string {
	o.t.Helper()
	var out []string
	for _, s := range o.surfacesOf(request) {
		if s.Kind == store.SurfaceNotice {
			out = append(out, fmt.Sprintf("%s %s %d", s.Note, s.To, s.Step))
		}
	}
	return strings.Join(out, ", ")
}

// places lists where a kind of surface of a request is, or is to be.
func (o *office) places(request string, kind store.SurfaceKind) string {
	o.t.Helper()
	var out []string
	for _, s := range o.surfacesOf(request) {
		if s.Kind == kind {
			out = append(out, s.To)
		}
	}
	return strings.Join(out, ", ")
}

// lastFacts are the facts of a chain's last record of a kind, and its payload.
func (o *office) lastFacts(chain string, kind approvers.AuditKind) (facts map[string]string, payload string) {
	o.t.Helper()
	for _, a := range view(o, func(r store.Reader) ([]approvers.AuditRecord, error) { return r.Audit(chain) }) {
		if a.Kind != kind {
			continue
		}
		facts, payload = a.Facts, ""
		if a.PayloadHash != "" {
			p := view(o, func(r store.Reader) (approvers.AuditPayload, error) { return r.AuditPayload(chain, a.Seq) })
			payload = string(p.Body)
		}
	}
	return facts, payload
}

func TestAQuestionAndItsAnswer(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`issue_refund {"amount":1}`)
	o.show(o.only(r.ID, store.SurfaceCard))
	asked := o.question(lead, r.ID, "why so much?")
	if len(asked.Remarks) != 1 || !asked.ExpiresAt.Equal(r.ExpiresAt) {
		t.Fatalf("%+v, expires %s", asked.Remarks, asked.ExpiresAt)
	}
	if facts, text := o.lastFacts(r.ID, approvers.AuditRemarked); text != "why so much?" || facts["kind"] != "question" || facts["role"] != "team-lead" {
		t.Errorf("recorded %v with %q", facts, text)
	}
	q := o.only(r.ID, store.SurfaceQuestion)
	if q.To != "conversation:"+r.Conversation || q.Step != 0 {
		t.Errorf("the question is at %s, of remark %d", q.To, q.Step)
	}
	if got := o.wanted(r.ID); !contains(got, "card ") || !contains(got, "question ") {
		t.Errorf("to be shown: %s", got)
	}
	if sight, err := o.See(o.ctx(), q.ID); err != nil || sight.Request == nil || len(sight.Cards) != 1 {
		t.Errorf("the question is drawn from %+v, %v", sight, err)
	}
	_, err := o.Reply(o.ctx(), o.words(fin1, r.ID, "because"), 0)
	wantDenied(t, err, approvers.DeniedNotRequester)
	answered, err := o.Reply(o.ctx(), o.words(alice, r.ID, "it is for two"), 0)
	o.ok(err)
	if !answered.Answered(0) {
		t.Errorf("%+v", answered.Remarks)
	}
	if got := o.notices(r.ID); got != "answered user:U0002 0" {
		t.Errorf("told: %s", got)
	}
	if now := o.surface(q.ID); now.Want <= q.Want {
		t.Error("the answer is not to be shown where the question is")
	}
	if facts, text := o.lastFacts(r.ID, approvers.AuditRemarked); text != "it is for two" || facts["kind"] != "answer" || facts["question"] != "1" {
		t.Errorf("recorded %v with %q", facts, text)
	}
	o.wantKinds(r.ID, "proposed shown remarked denied remarked")
	o.approve(lead, r.ID)
	_, err = o.Say(o.ctx(), o.words(lead, r.ID, "and?"), approvers.Question)
	wantDenied(t, err, approvers.DeniedResolved)
}

func TestACommentTellsNobody(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`issue_refund {"amount":1}`)
	_, err := o.Say(o.ctx(), o.words(lead, r.ID, "the third this week"), approvers.Comment)
	o.ok(err)
	if o.notices(r.ID) != "" || o.places(r.ID, store.SurfaceQuestion) != "" {
		t.Error("a comment was sent to somebody")
	}
	_, err = o.Say(o.ctx(), o.words(alice, r.ID, "please"), approvers.Comment)
	wantDenied(t, err, approvers.DeniedSelf)
	if facts, _ := o.lastFacts(r.ID, approvers.AuditDenied); facts["kind"] != "comment" || facts["code"] != "self_approval" {
		t.Errorf("the denial is recorded as %v", facts)
	}
}

// A question that Slack does not take in the conversation goes to each requester, also where one of them has the card.
func TestAQuestionWhereTheThreadIsGone(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Tools[3].SelfApproval, p.Approvers[1].Members = true, users("U0002", "U0100")
	}))
	r := o.ask(`issue_refund {"amount":1}`)
	o.ok(o.Expand(o.ctx(), o.only(r.ID, store.SurfaceCard).ID, []string{"U0002", "U0100"}))
	o.question(lead, r.ID, "why?")
	o.ok(o.Unreachable(o.ctx(), o.only(r.ID, store.SurfaceQuestion).ID, "channel_not_found", ""))
	if got := o.places(r.ID, store.SurfaceQuestion); got != "conversation:"+r.Conversation+", user:U0100" {
		t.Errorf("the question is at %s", got)
	}
}

func TestHandingOn(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`apply_discount {}`) // waits for the support agent, in a channel
	_, err := o.HandOn(o.ctx(), o.words(support, r.ID, ""), bob)
	denied := wantDenied(t, err, approvers.DeniedNotPeer)
	if denied.Role != "Support Agent" {
		t.Errorf("in place of %q", denied.Role)
	}
	out, err := o.HandOn(o.ctx(), o.words(support, r.ID, ""), lead)
	o.ok(err)
	if len(out.Invited) != 1 || out.Invited[0].Who != lead.ID {
		t.Fatalf("%+v", out.Invited)
	}
	if got := o.places(r.ID, store.SurfaceCard); got != "channel:#support-approvals, user:U0002" {
		t.Errorf("cards at %s", got)
	}
	if facts, _ := o.lastFacts(r.ID, approvers.AuditInvited); facts["person"] != string(lead.ID) || facts["role"] != "team-lead" || facts["by"] != string(support.ID) {
		t.Errorf("recorded %v", facts)
	}
	if out := o.approve(lead, r.ID); out.State != approvers.Approved || out.ClosedRole != "team-lead" {
		t.Errorf("%s as %s", out.State, out.ClosedRole)
	}
	o.wantKinds(r.ID, "proposed denied invited decided approved")
}

// Whoever has the card by direct message already would not notice it: they are told.
func TestHandingOnToSomebodyWhoHasTheCard(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`cancel_account {}`)
	o.ok(o.Expand(o.ctx(), o.only(r.ID, store.SurfaceCard).ID, []string{"U0003", "U0004"}))
	_, err := o.HandOn(o.ctx(), o.words(fin1, r.ID, ""), fin2)
	o.ok(err)
	if got := o.places(r.ID, store.SurfaceCard); got != "role:finance-director, user:U0003, user:U0004" {
		t.Errorf("cards at %s", got)
	}
	if got := o.notices(r.ID); got != "invited user:U0004 0" {
		t.Errorf("told: %s", got)
	}
}

func TestTakingAnApprovalBack(t *testing.T) {
	t.Run("before it runs", func(t *testing.T) {
		o := newOffice(t)
		r := o.ask(`issue_refund {"amount":1}`)
		o.approve(lead, r.ID)
		out, err := o.Revoke(o.ctx(), o.words(lead, r.ID, "the wrong order"))
		o.ok(err)
		if out.State != approvers.Revoked || out.Reason != "the wrong order" {
			t.Errorf("%s: %s", out.State, out.Reason)
		}
		o.notRun(r.Execution)
		if c := o.wantOutcome(r.Call, approvers.OutcomeRevoked); !contains(c.Result, "the wrong order") || !contains(c.Result, "Team Lead") {
			t.Errorf("the model is told %s", c.Result)
		}
		o.wantTurn(r.Turn, approvers.TurnThinking)
		o.wantKinds(r.ID, "proposed decided approved closed returned")
	})
	t.Run("while others are still needed", func(t *testing.T) {
		o := newOffice(t)
		r := o.ask(`issue_refund {"amount":900}`)
		o.approve(lead, r.ID)
		_, err := o.Revoke(o.ctx(), o.words(fin1, r.ID, "no"))
		wantDenied(t, err, approvers.DeniedNotApprover)
		_, err = o.Revoke(o.ctx(), o.words(lead, r.ID, "no"))
		o.ok(err)
		o.wantState(r.ID, approvers.Revoked)
		o.wantKinds(r.ID, "proposed decided advanced denied closed returned")
	})
	t.Run("too late", func(t *testing.T) {
		o := newOffice(t)
		r := o.ask(`issue_refund {"amount":1}`)
		o.approve(lead, r.ID)
		o.run(r.Execution, "refunded")
		_, err := o.Revoke(o.ctx(), o.words(lead, r.ID, "no"))
		wantDenied(t, err, approvers.DeniedStarted)
		if facts, _ := o.lastFacts(r.ID, approvers.AuditDenied); facts["kind"] != "revoke" {
			t.Errorf("the denial is recorded as %v", facts)
		}
	})
	t.Run("of something that is not known", func(t *testing.T) {
		o := newOffice(t)
		_, err := o.Revoke(o.ctx(), desk.Click{Who: lead, Request: "req_none", Reason: "no"})
		wantDenied(t, err, approvers.DeniedNotFound)
	})
}

// Whoever approved what was changed afterwards is told, and whoever was against it; not the editor.
func TestWhoseDecisionFallsIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		policy func(*approvers.Policy)
		before func(o *office, request string)
		then   func(o *office, request string)
		told   string
	}{
		"an edit": {
			before: func(o *office, r string) { o.approve(lead, r); o.approve(fin1, r) },
			then:   func(o *office, r string) { o.change(fin2, r, `{"amount":901}`) },
			told:   "fallen user:U0002 1, fallen user:U0003 1",
		},
		"their own edit tells nobody": {
			before: func(o *office, r string) { o.approve(lead, r); o.approve(fin1, r) },
			then:   func(o *office, r string) { o.change(fin1, r, `{"amount":901}`) },
			told:   "fallen user:U0002 1",
		},
		"each edit, those whose approval fell by it": {
			before: func(o *office, r string) { o.approve(lead, r); o.change(fin2, r, `{"amount":901}`); o.approve(lead, r) },
			then:   func(o *office, r string) { o.change(fin2, r, `{"amount":902}`) },
			told:   "fallen user:U0002 1, fallen user:U0002 2",
		},
		"a rejection that did not end it": {
			policy: func(p *approvers.Policy) { p.Tools[3].Rules[0].Stages[1].Rejects = 2 },
			before: func(o *office, r string) { o.approve(lead, r); o.reject(fin1, r) },
			then:   func(o *office, r string) { o.change(fin2, r, `{"amount":901}`) },
			told:   "fallen user:U0002 1, fallen user:U0003 1",
		},
		"an edit that needs nobody else": {
			before: func(o *office, r string) { o.approve(lead, r) },
			then:   func(o *office, r string) { o.change(fin1, r, `{"amount":20}`) },
			told:   "fallen user:U0002 1",
		},
		"a changed mind is one's own": {
			policy: func(p *approvers.Policy) { p.Tools[3].Rules[0].Stages[1].Rejects = 2 },
			before: func(o *office, r string) { o.approve(lead, r); o.approve(fin1, r) },
			then:   func(o *office, r string) { o.reject(fin1, r) },
		},
		"a stricter policy, at somebody's click": {
			before: func(o *office, r string) { o.approve(lead, r) },
			then: func(o *office, r string) {
				o.policy.Store(policy("policy-2", func(p *approvers.Policy) {
					p.Tools[3].Rules[0].Stages[0].Quorum = 2
					p.Approvers[1].Members = users("U0002", "U0005")
				}))
				o.approve(person("U0005"), r)
			},
			told: "fallen user:U0002 0",
		},
		"a stricter policy, when what waits is looked through": {
			before: func(o *office, r string) { o.ok(o.Reconsider(o.ctx())); o.approve(lead, r); o.approve(fin1, r) },
			then: func(o *office, r string) {
				o.policy.Store(policy("policy-2", func(p *approvers.Policy) {
					p.Tools[3].Rules[0].Stages[0].Quorum = 2
					p.Approvers[1].Members = users("U0002", "U0005")
				}))
				o.ok(o.Reconsider(o.ctx()))
			},
			told: "fallen user:U0002 0, fallen user:U0003 0",
		},
		"a stricter policy, when it was to run": {
			before: func(o *office, r string) { o.approve(lead, r); o.approve(fin1, r); o.approve(fin2, r) },
			then: func(o *office, r string) {
				o.policy.Store(policy("policy-2", func(p *approvers.Policy) {
					p.Tools[3].Rules[0].Stages[0].Quorum = 2
					p.Approvers[1].Members = users("U0002", "U0005")
				}))
				o.notRun(o.request(r).Execution)
			},
			told: "fallen user:U0002 0, fallen user:U0003 0, fallen user:U0004 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			if c.policy != nil {
				o.policy.Store(policy("policy-1", c.policy))
			}
			r := o.ask(`issue_refund {"amount":900}`)
			c.before(o, r.ID)
			c.then(o, r.ID)
			if got := o.notices(r.ID); got != c.told {
				t.Errorf("told: %s\nwant: %s", got, c.told)
			}
		})
	}
}

func (o *office) change(who approvers.Identity, request, args string) {
	o.t.Helper()
	_, err := o.Decide(o.ctx(), o.edit(who, request, args))
	o.ok(err)
}

// A notice leads to the card as soon as Slack shows it: an edit can bring a new one, somewhere else.
func TestANoticeLeadsToTheCard(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`issue_refund {"amount":900}`)
	o.approve(lead, r.ID)
	o.change(fin1, r.ID, `{"amount":901}`)
	notice := o.show(o.only(r.ID, store.SurfaceNotice))
	o.ok(o.Expand(o.ctx(), o.surfacesOf(r.ID)[0].ID, []string{"U0002"}))
	for _, s := range o.surfacesOf(r.ID) {
		if s.Kind == store.SurfaceCard && s.To == "user:U0002" {
			o.show(s)
		}
	}
	if now := o.surface(notice.ID); now.State != store.SurfaceWanted {
		t.Errorf("the notice is %s after the card was posted", now.State)
	}
}

// A rejection that does not end the request is a decision like others: recorded, shown, and nothing else.
func TestARejectionOfSeveral(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Tools[4].Stages = []approvers.Stage{{Approver: "finance-director", Quorum: 1, Rejects: 2}}
	}))
	r := o.ask(`cancel_account {}`)
	o.show(o.only(r.ID, store.SurfaceCard))
	if out := o.reject(fin1, r.ID); out.State != approvers.Pending || len(out.Against(0)) != 1 {
		t.Fatalf("%s with %d against", out.State, len(out.Against(0)))
	}
	if got := o.wanted(r.ID); !contains(got, "card ") {
		t.Errorf("the card does not show it: %s", got)
	}
	o.wantTurn(r.Turn, approvers.TurnWaiting)
	if out := o.reject(fin2, r.ID); out.State != approvers.Rejected {
		t.Errorf("%s", out.State)
	}
	o.wantKinds(r.ID, "proposed shown decided decided closed returned")
}

// A stage of several roles has a card where each of them reads its cards, each place once; one of a user group has it at the group's members.
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
		o := newOffice(t)
		o.policy.Store(policy("policy-1", several))
		r := o.ask(`issue_refund {"amount":1}`)
		if got := o.places(r.ID, store.SurfaceCard); got != "channel:#support-approvals, role:team-lead" {
			t.Errorf("cards at %s", got)
		}
		o.approve(lead, r.ID) // the next stage begins with the same role, and is for other people all the same
		if got := o.places(r.ID, store.SurfaceCard); got != "channel:#support-approvals, role:team-lead, group:emea" {
			t.Errorf("at the second stage, cards at %s", got)
		}
	})
	t.Run("a group alone", func(t *testing.T) {
		o := newOffice(t)
		o.policy.Store(policy("policy-1", group))
		r := o.ask(`issue_refund {"amount":1}`)
		card := o.only(r.ID, store.SurfaceCard)
		if card.To != "group:emea" {
			t.Fatalf("the card is at %s", card.To)
		}
		o.ok(o.Expand(o.ctx(), card.ID, nil)) // nobody is in it: the roles see at least that something waits
		if got := o.places(r.ID, store.SurfaceCard); got != "group:emea, role:team-lead, role:finance-director" {
			t.Errorf("cards at %s", got)
		}
	})
	t.Run("somebody in two of the roles gets one card", func(t *testing.T) {
		o := newOffice(t)
		o.policy.Store(policy("policy-1", func(p *approvers.Policy) {
			p.Tools[3].Rules, p.Tools[3].Stages = nil, []approvers.Stage{{Approver: "team-lead", Or: []string{"finance-director"}, Quorum: 1}}
		}))
		r := o.ask(`issue_refund {"amount":1}`)
		for _, s := range o.surfacesOf(r.ID) {
			o.ok(o.Expand(o.ctx(), s.ID, []string{"U0003"}))
		}
		if got := o.places(r.ID, store.SurfaceCard); got != "role:team-lead, role:finance-director, user:U0003" {
			t.Errorf("cards at %s", got)
		}
	})
	t.Run("what nobody knows the end of is put to all of them", func(t *testing.T) {
		o := newOffice(t)
		o.policy.Store(policy("policy-1", func(p *approvers.Policy) {
			several(p)
			p.Tools[3].Stages = p.Tools[3].Stages[:1]
		}))
		r := o.ask(`issue_refund {"amount":1}`)
		o.approve(fin1, r.ID)
		_, run, err := o.Claim(o.ctx(), r.Execution)
		o.ok(err)
		o.clock.pass(time.Hour)
		o.reopen()
		if _, again, err := o.Claim(o.ctx(), r.Execution); err != nil || !run || again {
			t.Fatalf("%t, then %t, %v", run, again, err)
		}
		if got := o.places(r.Execution, store.SurfaceUnknown); got != "conversation:"+r.Conversation+", channel:#support-approvals, role:team-lead" {
			t.Errorf("asked at %s", got)
		}
	})
}
