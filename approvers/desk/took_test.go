package desk_test

import (
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// clickAt is a click on a card as Slack shows it now, with the time that the card carries.
func (o *office) clickAt(who approvers.Identity, kind approvers.DecisionKind, request, to string) desk.Click {
	o.t.Helper()
	for _, s := range o.surfacesOf(request) {
		if s.To != to {
			continue
		}
		shown, err := o.Rendering(o.ctx(), s.ID, s.Posts)
		o.ok(err)
		c := o.clickOn(who, kind, request)
		c.FirstSeen = shown.Of(request).Since
		return c
	}
	o.t.Fatalf("there is no card at %s", to)
	return desk.Click{}
}

// shows has Slack show every card of a request as it is now.
func (o *office) shows(request string) {
	o.t.Helper()
	for _, s := range o.surfacesOf(request) {
		if s.Kind == store.SurfaceCard && s.State == store.SurfaceWanted {
			o.show(s)
		}
	}
}

// took is how long the last decision took, as it is stored and as the audit has it in milliseconds.
func (o *office) took(request string) (time.Duration, string) {
	o.t.Helper()
	r := o.request(request)
	var fact string
	for _, a := range view(o, func(r store.Reader) ([]approvers.AuditRecord, error) { return r.Audit(request) }) {
		if a.Kind == approvers.AuditDecided {
			fact = a.Facts["took"]
		}
	}
	return r.Decisions[len(r.Decisions)-1].Took, fact
}

func (o *office) wantTook(request string, want time.Duration, fact string) {
	o.t.Helper()
	if got, audited := o.took(request); got != want || audited != fact {
		o.t.Errorf("took %v, %q ms in the audit; want %v, %q", got, audited, want, fact)
	}
}

// TestTook: a decision's time counts from when the card first showed these arguments, however often it was drawn anew since.
func TestTook(t *testing.T) {
	const to = "channel:#support-approvals"
	o := newOffice(t)
	r := o.ask(`apply_discount {"amount":10}`)
	o.clock.pass(time.Second) // until Slack shows it
	o.shows(r.ID)
	o.clock.pass(40 * time.Second)
	comment := o.clickOn(support, "", r.ID)
	_, err := o.Say(o.ctx(), comment, approvers.Comment)
	o.ok(err)
	o.shows(r.ID) // with the comment
	o.clock.pass(2500 * time.Millisecond)
	_, err = o.Decide(o.ctx(), o.clickAt(support, approvers.Approve, r.ID, to))
	o.ok(err)
	o.wantTook(r.ID, 42500*time.Millisecond, "42500")
}

// TestTookAfterAnEdit: the changed arguments are new to everybody.
func TestTookAfterAnEdit(t *testing.T) {
	const to = "channel:#support-approvals"
	o := newOffice(t)
	o.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Tools[2].Stages = []approvers.Stage{{Approver: "support-agent", Quorum: 2}}
		p.Approvers[0].Members = users("U0001", "U0005")
	}))
	r := o.ask(`apply_discount {"amount":10}`)
	o.shows(r.ID)
	o.clock.pass(time.Minute)
	edit := o.clickAt(support, approvers.Modify, r.ID, to)
	edit.Args = []byte(`{"amount":20}`)
	_, err := o.Decide(o.ctx(), edit)
	o.ok(err)
	o.wantTook(r.ID, time.Minute, "60000")

	o.clock.pass(time.Second)
	o.shows(r.ID)
	o.clock.pass(2 * time.Second)
	_, err = o.Decide(o.ctx(), o.clickAt(person("U0005"), approvers.Approve, r.ID, to))
	o.ok(err)
	o.wantTook(r.ID, 2*time.Second, "2000")
}

// TestTookAtALaterStage: what a place showed before its stage came up does not count.
func TestTookAtALaterStage(t *testing.T) {
	const to = "channel:#support-approvals"
	o := newOffice(t)
	o.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Tools[2].Stages = []approvers.Stage{{Approver: "support-agent", Quorum: 1}, {Approver: "team-lead", Quorum: 1}}
		p.Approvers[1].Cards = "#support-approvals"
	}))
	r := o.ask(`apply_discount {"amount":10}`)
	o.shows(r.ID)
	o.clock.pass(time.Hour / 4)
	_, err := o.Decide(o.ctx(), o.clickAt(support, approvers.Approve, r.ID, to))
	o.ok(err)
	o.wantTook(r.ID, 15*time.Minute, "900000")
	o.shows(r.ID)
	o.clock.pass(5 * time.Second)
	_, err = o.Decide(o.ctx(), o.clickAt(lead, approvers.Approve, r.ID, to))
	o.ok(err)
	o.wantTook(r.ID, 5*time.Second, "5000")
}

// TestTookIsNotKnown: a decision on something of which nobody knows when it was shown has no time, and one that was received before it was
// recorded that Slack shows the card has a short one.
func TestTookIsNotKnown(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`apply_discount {"amount":10}`)
	o.approve(support, r.ID)
	o.wantTook(r.ID, 0, "")

	o = newOffice(t)
	r = o.ask(`issue_refund {"amount":10}`)
	c := o.clickOn(lead, approvers.Approve, r.ID)
	c.FirstSeen = c.At.Add(time.Second)
	_, err := o.Decide(o.ctx(), c)
	o.ok(err)
	o.wantTook(r.ID, time.Millisecond, "1")
}

// TestTookInABundle: each call of a bundle has its own time. What was decided all at once took as long as each was there.
func TestTookInABundle(t *testing.T) {
	o := newOffice(t)
	rs := o.bundled(`apply_discount {"a":1}`, `apply_discount {"a":2}`, `apply_discount {"a":3}`)
	bundle := o.only(rs[0].Turn, store.SurfaceBundle)
	shown := func() []store.Shown {
		t.Helper()
		bundle.Channel, bundle.TS, bundle.Want = "C0002", "200.1", o.surface(bundle.ID).Want
		sight, err := o.See(o.ctx(), bundle.ID)
		o.ok(err)
		o.ok(o.Shown(o.ctx(), bundle, desk.Posted{Body: []byte("{}"), Shows: putUp(sight)}))
		rendering, err := o.Rendering(o.ctx(), bundle.ID, o.surface(bundle.ID).Posts)
		o.ok(err)
		return rendering.Shows
	}
	first := shown()
	o.clock.pass(10 * time.Second)
	alone := o.clickOn(support, approvers.Reject, rs[0].ID)
	alone.FirstSeen = first[0].Since
	_, err := o.Decide(o.ctx(), alone)
	o.ok(err)
	o.wantTook(rs[0].ID, 10*time.Second, "10000")
	rest := shown() // without the one that is decided
	o.clock.pass(4 * time.Second)
	_, err = o.decideAll(support, approvers.Approve, rest)
	o.ok(err)
	o.wantTook(rs[1].ID, 14*time.Second, "14000")
	o.wantTook(rs[2].ID, 14*time.Second, "14000")
}
