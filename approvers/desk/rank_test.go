package desk_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// ranks says which rank each kind of surface has, of those that name one of the refs.
func (o *office) ranks(refs ...string) map[store.SurfaceKind]store.Rank {
	o.t.Helper()
	out := map[store.SurfaceKind]store.Rank{}
	for _, ref := range refs {
		for _, s := range o.surfacesOf(ref) {
			if rank, seen := out[s.Kind]; seen && rank != s.Rank {
				o.t.Errorf("surfaces of kind %s are ranked %q and %q", s.Kind, rank, s.Rank)
			}
			out[s.Kind] = s.Rank
			if _, due := o.timers(s.Rank.Timer())[s.ID]; due != (s.State == store.SurfaceWanted) {
				o.t.Errorf("%s is %s; due to be shown: %t", s.Kind, s.State, due)
			}
		}
	}
	return out
}

// TestRanks: what must not wait goes before other cards, and those before what only tells.
func TestRanks(t *testing.T) {
	const first, plain, last = store.RankFirst, store.RankPlain, store.RankLast
	o := newOffice(t)
	plainOne := o.ask(`issue_refund {"amount":1}`)
	o.say(bob, "and?")
	want := map[store.SurfaceKind]store.Rank{store.SurfaceCard: plain, store.SurfaceStep: last, store.SurfaceQueued: last}
	if got := o.ranks(plainOne.ID, plainOne.Turn); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("ranks %q; want %q", got, want)
	}
	o.question(lead, plainOne.ID, "which one?")
	o.clock.pass(escalateAfter)
	o.due()
	want = map[store.SurfaceKind]store.Rank{store.SurfaceCard: plain, store.SurfaceQuestion: plain, store.SurfaceEscalation: first}
	if got := o.ranks(plainOne.ID); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("ranks after the escalation %q; want %q", got, want)
	}

	critical := o.propose(o.sayIn("101.1", alice, "please").Turn, `issue_refund {"amount":501}`)[0].Request
	o.approve(lead, critical)
	if got := o.ranks(critical)[store.SurfaceCard]; got != first {
		t.Errorf("a critical card is ranked %q", got)
	}
	for _, s := range o.surfacesOf(critical) {
		if s.To == "role:finance-director" {
			o.ok(o.Expand(o.ctx(), s.ID, []string{"U0003", "U0004"}))
		}
	}
	if got := o.ranks(critical)[store.SurfaceCard]; got != first {
		t.Errorf("a person's copy of a critical card is ranked %q", got)
	}
	o.approve(fin1, critical)
	o.approve(fin2, critical)
	e := o.request(critical).Execution
	_, _, err := o.Claim(o.ctx(), e)
	o.ok(err)
	o.ok(o.Lose(o.ctx(), e))
	if got := o.ranks(e)[store.SurfaceUnknown]; got != first {
		t.Errorf("an unknown outcome is ranked %q", got)
	}
}

// TestRankOfABundle: it goes with the most critical of its requests, wherever that stands.
func TestRankOfABundle(t *testing.T) {
	for _, c := range []struct {
		calls []string
		want  store.Rank
	}{
		{[]string{`issue_refund {"amount":1}`, `issue_refund {"amount":2}`}, store.RankPlain},
		{[]string{`issue_refund {"amount":1}`, `issue_refund {"amount":600}`}, store.RankFirst},
	} {
		o := newOffice(t)
		o.policy.Store(policy("policy-1", func(p *approvers.Policy) {
			p.Tools[3].Rules[0].Stages = nil
			p.Approvers[1].MaxRisk = approvers.Critical // so that the same people are asked
		}))
		r := o.bundled(c.calls...)[0]
		if got, ok := o.ranks(r.Turn)[store.SurfaceBundle]; got != c.want || !ok {
			t.Errorf("%q: a bundle is ranked %q; want %q", c.calls, got, c.want)
		}
	}
}

// TestManyChangesAreOneShowing: while a card waits for Slack, what changes on it changes nothing of its turn, and is shown once.
func TestManyChangesAreOneShowing(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`issue_refund {"amount":1}`)
	card := o.show(o.only(r.ID, store.SurfaceCard))
	o.question(lead, r.ID, "which one?")
	waits := o.timers(store.TimerShow)[card.ID]
	waits.Due, waits.Tries = o.clock.Now().Add(20*time.Second), 1 // Slack takes no more for now
	o.ok(o.store.Update(o.ctx(), func(tx store.Tx) error { return tx.SetTimer(waits) }))
	for range 5 {
		o.clock.pass(time.Second)
		o.question(lead, r.ID, "and which?")
	}
	if got := o.timers(store.TimerShow)[card.ID]; got != waits {
		t.Errorf("it waits as %+v; want its turn kept: %+v", got, waits)
	}
	if got := o.surface(card.ID); got.Want < card.Want+6 || o.show(got).State != store.SurfaceShown {
		t.Errorf("shown %d of %d after one showing", got.Shown, got.Want)
	}
	if _, left := o.timers(store.TimerShow)[card.ID]; left {
		t.Error("it is due to be shown again")
	}
}

// TestYielding: what was told when to try again lets its lane pass where the order does not matter, and whatever else fails does not.
func TestYielding(t *testing.T) {
	for _, c := range []struct {
		yields bool
		cause  error
		want   string
	}{{true, later(time.Minute), "b"}, {false, later(time.Minute), ""}, {true, errors.New("Slack is down"), ""}} {
		bubble(t, func(t *testing.T, w *working) {
			var l log
			w.put("a@lane", "b@lane")
			w.work(map[store.TimerKind]desk.Duty{store.TimerInbox: {Workers: 2, Yields: c.yields, Handle: func(ctx context.Context, timer store.Timer) error {
				if timer.Ref == "a" {
					return c.cause
				}
				l.add("%s", timer.Ref)
				return w.Done(ctx, timer.Ref, "")
			}}})
			w.pass(time.Second)
			if got := l.String(); got != c.want {
				t.Errorf("after %v, yielding %t: %q was handled; want %q", c.cause, c.yields, got, c.want)
			}
		})
	}
}

// TestFirstIsNotBehindTheRest: a thousand of what only tells, whose workers are all busy, hold up nothing that is ranked before it.
func TestFirstIsNotBehindTheRest(t *testing.T) {
	bubble(t, func(t *testing.T, w *working) {
		clear := func(ctx context.Context, timer store.Timer) error {
			return w.store.Update(ctx, func(tx store.Tx) error { return tx.ClearTimer(timer.Kind, timer.Ref) })
		}
		slow := func(ctx context.Context, timer store.Timer) error {
			<-time.After(time.Second)
			return clear(ctx, timer)
		}
		duties := map[store.TimerKind]desk.Duty{
			store.TimerShowFirst: {Workers: 2, Handle: clear}, store.TimerShow: {Workers: 2, Handle: clear}, store.TimerShowLast: {Workers: 2, Handle: slow},
		}
		put := func(kind store.TimerKind, n int) {
			w.ok(w.store.Update(w.ctx(), func(tx store.Tx) error {
				for i := range n {
					if err := tx.SetTimer(store.Timer{Kind: kind, Ref: fmt.Sprint(kind, i), Due: time.Now(), Lane: fmt.Sprint("lane", i%100)}); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		put(store.TimerShowLast, 1000)
		w.work(duties)
		w.pass(time.Second)
		put(store.TimerShowFirst, 3)
		put(store.TimerShow, 3)
		w.Wake()
		w.pass(time.Millisecond)
		if n := len(w.timers(store.TimerShowFirst, store.TimerShow)); n != 0 {
			t.Errorf("%d cards wait behind %d others", n, len(w.timers(store.TimerShowLast)))
		}
		w.pass(10 * time.Minute)
		if n := len(w.timers(store.ShowTimers...)); n != 0 {
			t.Errorf("%d are left", n)
		}
	})
}
