package desk_test

import (
	"testing"

	"countersign/approvers"
	"countersign/approvers/desk"
)

func (o *office) rate(who approvers.Identity, turn string, good bool) error {
	o.t.Helper()
	c := desk.Click{Inbox: o.id("click"), At: o.clock.Now(), Who: who, Turn: turn}
	o.receive(c)
	return o.Rate(o.ctx(), c, good)
}

// Each person counts once for an answer, with what they thought last; that survives a restart. Who may not ask does not count.
func TestRatings(t *testing.T) {
	o := newOffice(t)
	turn := o.say(alice, "hello").Turn
	wantDenied(t, o.rate(alice, turn, true), approvers.DeniedNothing) // there is no answer yet
	o.answer(turn)
	want := func(good, poor int) {
		t.Helper()
		got, err := o.Ratings(o.ctx())
		if o.ok(err); got["support"] != (desk.Ratings{Good: good, Poor: poor}) {
			t.Errorf("the ratings are %+v; want %d good and %d poor", got, good, poor)
		}
	}
	o.ok(o.rate(alice, turn, true))
	o.ok(o.rate(alice, turn, true))
	o.ok(o.rate(bob, turn, true))
	want(2, 0)
	o.ok(o.rate(alice, turn, false))
	want(1, 1)
	o.reopen()
	want(1, 1)
	o.ok(o.rate(alice, turn, true))
	want(2, 0)
	for code, change := range map[approvers.Code]func(*approvers.Identity){
		approvers.DeniedForeign: func(i *approvers.Identity) { i.Foreign = true },
		approvers.DeniedGuest:   func(i *approvers.Identity) { i.Guest = true },
		approvers.DeniedBot:     func(i *approvers.Identity) { i.Bot = true },
	} {
		who := lead
		change(&who)
		wantDenied(t, o.rate(who, turn, false), code)
	}
	wantDenied(t, o.rate(alice, "turn_none", true), approvers.DeniedNotFound)
	want(2, 0)
}
