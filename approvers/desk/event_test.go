package desk_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// counts has the office's events written down, one word or two each.
func (o *office) counts() *[]string {
	var out []string
	o.Count = func(e desk.Event) {
		word := e.Tool + " " + string(e.Ended) + string(e.Ran)
		if e.Decision != nil {
			word += fmt.Sprintf("%s by %s", e.Decision.Kind, e.Decision.Role)
		}
		out = append(out, word)
	}
	return &out
}

func wantEvents(t *testing.T, got *[]string, want ...string) {
	t.Helper()
	if !slices.Equal(*got, want) {
		t.Errorf("events %q\nwant   %q", *got, want)
	}
	*got = nil
}

// TestEvents: each decision, each end of a request and each end of a run is told once, although every transaction's closure runs twice here.
func TestEvents(t *testing.T) {
	o := newOffice(t)
	got := o.counts()
	r := o.ask(`issue_refund {"amount":600}`)
	wantEvents(t, got)
	o.approve(lead, r.ID)
	wantEvents(t, got, "issue_refund approve by team-lead")
	_, err := o.Say(o.ctx(), o.clickOn(fin1, "", r.ID), approvers.Comment)
	o.ok(err)
	wantEvents(t, got)
	_, err = o.Decide(o.ctx(), o.clickOn(lead, approvers.Approve, r.ID))
	wantDenied(t, err, approvers.DeniedNotMember)
	wantEvents(t, got)
	o.approve(fin1, r.ID)
	o.approve(fin2, r.ID)
	wantEvents(t, got, "issue_refund approve by finance-director", "issue_refund approve by finance-director")
	o.run(r.Execution, "ok")
	wantEvents(t, got, "issue_refund consumed", "issue_refund succeeded")

	o = newOffice(t)
	got = o.counts()
	o.reject(fin1, o.ask(`cancel_account {}`).ID)
	wantEvents(t, got, "cancel_account reject by finance-director", "cancel_account rejected")

	o = newOffice(t)
	got = o.counts()
	r = o.ask(`apply_discount {"amount":1}`)
	_, err = o.Decide(o.ctx(), o.edit(support, r.ID, `{"amount":2}`))
	o.ok(err)
	wantEvents(t, got, "apply_discount modify by support-agent")
	_, _, err = o.Claim(o.ctx(), o.request(r.ID).Execution)
	o.ok(err)
	o.ok(o.Lose(o.ctx(), o.request(r.ID).Execution))
	wantEvents(t, got, "apply_discount consumed", "apply_discount unknown")

	o = newOffice(t)
	got = o.counts()
	o.ask(`apply_discount {}`)
	o.clock.pass(expiresAfter + time.Second)
	o.due()
	wantEvents(t, got, "apply_discount expired")

	o = newOffice(t)
	got = o.counts()
	call := o.propose(o.say(alice, "please").Turn, `search_orders {}`)[0]
	o.run(call.Execution, "ok")
	wantEvents(t, got, "search_orders succeeded")
}

// uncommitted is a store that fails after the closure.
type uncommitted struct{ store.Store }

var errFull = errors.New("the disk is full")

func (s uncommitted) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.Store.Update(ctx, func(t store.Tx) error { return errors.Join(fn(t), errFull) })
}

// TestEventsAreCommitted: what was not written did not happen.
func TestEventsAreCommitted(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`apply_discount {}`)
	c := o.clickOn(support, approvers.Approve, r.ID)
	got := o.counts()
	o.Store = uncommitted{o.store}
	if _, err := o.Decide(o.ctx(), c); !errors.Is(err, errFull) {
		t.Fatalf("%v", err)
	}
	wantEvents(t, got)
	o.Store = o.store
	_, err := o.Decide(o.ctx(), c)
	o.ok(err)
	wantEvents(t, got, "apply_discount approve by support-agent")
}
