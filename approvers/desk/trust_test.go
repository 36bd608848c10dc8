package desk_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// ran has alice get a refund that lead approves as it is, and runs it.
func (o *office) ran(amount int) approvers.Request {
	o.t.Helper()
	r := o.ask(fmt.Sprintf(`issue_refund {"amount":%d,"currency":"USD"}`, amount))
	o.approve(lead, r.ID)
	o.run(r.Execution, "RF")
	o.answer(r.Turn)
	return r
}

// row is how many calls of issue_refund in a row were approved as they were.
func (o *office) row() int {
	o.t.Helper()
	return view(o, func(r store.Reader) (int, error) {
		var trust approvers.Trust
		s, err := r.Setting(store.SettingTrust + "support/issue_refund")
		if errors.Is(err, store.ErrNotFound) {
			return 0, nil
		}
		if err == nil {
			err = json.Unmarshal(s.Value, &trust)
		}
		return trust.Row, err
	})
}

func trusting(t *testing.T) *office {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", granting))
	return o
}

// TestAGrantIsOffered after three calls in a row, to the lead of the role that approved; nothing runs under it until it is taken up.
func TestAGrantIsOffered(t *testing.T) {
	o := trusting(t)
	for _, amount := range []int{20, 120, 3} {
		if len(o.grants()) != 0 {
			t.Fatal("offered too early")
		}
		o.ran(amount)
	}
	g := o.grants()[0]
	if g.State != approvers.GrantOffered || g.OfferedTo != "finance-director" || g.Row != 3 || string(g.Bounds[0].AtMost) != "120" || g.Conversation != "" {
		t.Errorf("%+v", g)
	}
	if got := o.wanted(g.ID); got != "grant role:finance-director" || o.row() != 0 {
		t.Errorf("shown: %s; the row goes on with %d", got, o.row())
	}
	r := o.wantAsked(o.next(`issue_refund {"amount":1,"currency":"USD"}`))
	o.reject(lead, r.ID)
	o.answer(r.Turn)

	_, err := o.AcceptGrant(o.ctx(), o.clickGrant(lead, g.ID))
	wantDenied(t, err, approvers.DeniedNotMember)
	o.clock.pass(time.Hour)
	_, err = o.AcceptGrant(o.ctx(), o.clickGrant(fin1, g.ID))
	o.ok(err)
	_, err = o.DeclineGrant(o.ctx(), o.clickGrant(fin2, g.ID))
	wantDenied(t, err, approvers.DeniedResolved)
	c := o.propose(o.sayIn("900.1", bob, "and one for me").Turn, `issue_refund {"amount":120,"currency":"USD"}`)[0]
	o.run(c.Execution, "RF")
	if e := o.execution(c.Execution); e.Grant != g.ID || o.row() != 0 {
		t.Errorf("ran under %q; a row of %d", e.Grant, o.row())
	}
	o.wantKinds("grant:"+g.ID, "granted denied granted denied granted")
	o.clock.pass(time.Hour)
	o.due()
	if g = o.grant(g.ID); g.State != approvers.GrantExpired || g.Left != 4 {
		t.Errorf("%s with %d left", g.State, g.Left)
	}
}

// TestAnOfferLapses after a day. An answer that was received before that counts, however late it is handled.
func TestAnOfferLapses(t *testing.T) {
	o := trusting(t)
	for range 3 {
		o.ran(20)
	}
	g := o.grants()[0]
	o.clock.pass(approvers.OfferHolds - time.Minute)
	click := o.clickGrant(fin1, g.ID)
	o.clock.pass(2 * time.Minute)
	o.ok(o.LapseGrant(o.ctx(), o.timers(store.TimerGrant)[g.ID]))
	if g := o.grant(g.ID); g.State != approvers.GrantOffered {
		t.Fatalf("%s before the click was handled", g.State)
	}
	_, err := o.AcceptGrant(o.ctx(), click)
	o.ok(err)
	if g = o.grant(g.ID); g.State != approvers.GrantLive || g.Until != o.clock.Now().Add(time.Hour) {
		t.Errorf("%s until %s", g.State, g.Until)
	}
	o.revokeGrant(fin2, g.ID)
	for range 3 {
		o.ran(20)
	}
	g = o.grants()[0]
	o.clock.pass(approvers.OfferHolds)
	o.due()
	if g = o.grant(g.ID); g.State != approvers.GrantExpired {
		t.Errorf("%s after a day", g.State)
	}
	_, err = o.AcceptGrant(o.ctx(), o.clickGrant(fin1, g.ID))
	wantDenied(t, err, approvers.DeniedResolved)
}

// TestOneOfferAtATime: while there is one, or a grant that came of one, the next row offers nothing.
func TestOneOfferAtATime(t *testing.T) {
	o := trusting(t)
	for range 7 {
		o.ran(20)
	}
	if n := len(o.grants()); n != 1 {
		t.Errorf("%d offers", n)
	}
	_, err := o.DeclineGrant(o.ctx(), o.clickGrant(fin1, o.grants()[0].ID))
	o.ok(err)
	for range 2 {
		o.ran(20)
	}
	if n := len(o.grants()); n != 1 {
		t.Errorf("%d offers after one was declined", n)
	}
}

// TestWhatEndsTheRow is whatever shows that somebody has to look.
func TestWhatEndsTheRow(t *testing.T) {
	for name, c := range map[string]struct {
		do  func(o *office)
		row int
	}{
		"a rejection": {do: func(o *office) { o.reject(lead, o.ask(oneRefund).ID) }},
		"a change": {do: func(o *office) {
			r := o.ask(oneRefund)
			_, err := o.Decide(o.ctx(), o.edit(lead, r.ID, `{"amount":10,"currency":"USD"}`))
			o.ok(err)
			o.run(o.request(r.ID).Execution, "RF")
		}},
		"an approval taken back": {do: func(o *office) {
			r := o.ask(oneRefund)
			o.approve(lead, r.ID)
			_, err := o.Revoke(o.ctx(), o.clickOn(lead, "", r.ID))
			o.ok(err)
		}},
		"a failure": {do: func(o *office) {
			r := o.ask(oneRefund)
			o.approve(lead, r.ID)
			_, _, err := o.Claim(o.ctx(), r.Execution)
			o.ok(err)
			o.ok(o.Finish(o.ctx(), r.Execution, false, "no"))
		}},
		"an unknown outcome, although it happened": {do: func(o *office) {
			r := o.ask(oneRefund)
			o.approve(lead, r.ID)
			_, _, err := o.Claim(o.ctx(), r.Execution)
			o.ok(err)
			o.ok(o.Lose(o.ctx(), r.Execution))
			click := o.clickOn(lead, "", r.ID)
			click.Execution = r.Execution
			o.ok(o.Report(o.ctx(), click, desk.Happened))
		}},
		"silence does not":    {row: 2, do: func(o *office) { o.ask(oneRefund); o.clock.pass(expiresAfter); o.due() }},
		"withdrawal does not": {row: 2, do: func(o *office) { o.withdraw(o.ask(oneRefund).ID) }},
		"another tool does not": {row: 2, do: func(o *office) {
			o.reject(support, o.ask(`apply_discount {}`).ID)
		}},
		"another definition begins one": {row: 1, do: func(o *office) {
			o.tools.change("issue_refund", func(t *desk.Tool) { t.Hash = "another" })
			o.ran(20)
		}},
		"other terms begin one": {row: 1, do: func(o *office) {
			o.policy.Store(policy("policy-2", granting, func(p *approvers.Policy) { p.Tools[3].Grants.Uses = 4 }))
			o.ran(20)
		}},
		"one that went up does not": {row: 2, do: func(o *office) {
			r := o.ask(`issue_refund {"amount":900,"currency":"USD"}`)
			for _, who := range []approvers.Identity{lead, fin1, fin2} {
				o.approve(who, r.ID)
			}
			o.run(r.Execution, "RF")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := trusting(t)
			o.ran(20)
			o.ran(20)
			c.do(o)
			if got := o.row(); got != c.row || len(o.grants()) != 0 {
				t.Errorf("a row of %d, %d offers; want %d", got, len(o.grants()), c.row)
			}
		})
	}
}

// TestARunUnderAGrantEarnsNothing: nobody looked at it. That it failed counts.
func TestARunUnderAGrantEarnsNothing(t *testing.T) {
	o := trusting(t)
	o.granted(3)
	c := o.next(oneRefund)
	o.run(c.Execution, "RF")
	o.answer(c.Turn)
	if o.row() != 1 {
		t.Errorf("a row of %d; want the one that was approved", o.row())
	}
	c = o.next(oneRefund)
	_, _, err := o.Claim(o.ctx(), c.Execution)
	o.ok(err)
	o.ok(o.Finish(o.ctx(), c.Execution, false, "no"))
	if o.row() != 0 {
		t.Errorf("a row of %d after a failure", o.row())
	}
}
