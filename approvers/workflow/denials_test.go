package workflow_test

import (
	"slices"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
)

// denialsOf lists the audit records of a person's denials. For each record, the list has the number of denials that the
// record counts.
func denialsOf(h *harness, chain string, who approvers.PersonID) (times []string) {
	for _, a := range readStore(h, func(r store.Reader) ([]approvers.AuditRecord, error) { return r.Audit(chain) }) {
		if a.Kind == approvers.AuditDenied && a.Actor == who {
			times = append(times, a.Facts["times"])
		}
	}
	return times
}

// TestClicksWithoutEnd checks a person who clicks on a decided request many times. The person gets an answer each time,
// but the clicks don't fill the store. Each of the first five clicks gets an audit record. A later click gets an audit
// record only if its number is a power of ten. The clicks of each person are counted separately, and the count
// continues in a new process.
func TestClicksWithoutEnd(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1}`)
	h.reject(lead, r.ID)
	clicks := func(who approvers.Identity, n int, code approvers.Code) {
		t.Helper()
		for range n {
			_, err := h.Requests.Decide(h.ctx(), h.clickOn(who, approvers.Approve, r.ID))
			wantDenied(t, err, code)
		}
	}
	check := func(who approvers.Identity, want ...string) {
		t.Helper()
		if got := denialsOf(h, r.ID, who.ID); !slices.Equal(got, want) {
			t.Errorf("the history has %q of %s, want %q", got, who.Name, want)
		}
	}
	clicks(lead, 99, approvers.DeniedResolved)
	check(lead, "", "", "", "", "", "10")
	clicks(lead, 1, approvers.DeniedResolved)
	check(lead, "", "", "", "", "", "10", "100")
	clicks(fin1, 1, approvers.DeniedResolved)
	check(fin1, "")
	for range 2 {
		h.reopen()
		clicks(lead, 20, approvers.DeniedResolved)
		check(lead, "", "", "", "", "", "10", "100")
		clicks(fin1, 1, approvers.DeniedResolved)
	}
	check(fin1, "", "", "")
	h.clock.pass(3 * time.Hour)
	h.ok(h.Intake.Forget(h.ctx(), time.Hour))
	for _, id := range []string{"click-2", "click-50", "click-100"} { // the inbox rows of the clicks are deleted, too
		if _, err := h.Views.Inbox(h.ctx(), id); err == nil {
			t.Errorf("%s is left", id)
		}
	}
}

// TestRefusalsWithoutEnd checks clicks that the bot refuses because they are not on a current button. Many refused
// clicks also leave only few audit records, and cause only few renderings of a card.
func TestRefusalsWithoutEnd(t *testing.T) {
	testkit.SkipIfShort(t)
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1}`)
	card := h.messagesOf(r.ID)[0]
	wants := card.Revision
	for range 30 {
		c := h.clickOn(lead, "", r.ID)
		c.User = lead.ID.User()
		h.ok(h.Requests.Refuse(h.ctx(), c, &approvers.Denied{Code: approvers.DeniedUnrecorded}, card.ID, r.ID))
	}
	if got := denialsOf(h, r.ID, lead.ID); !slices.Equal(got, []string{"", "", "", "", "", "10"}) {
		t.Errorf("%q", got)
	}
	if again := h.messagesOf(r.ID)[0]; again.Revision-wants != 6 {
		t.Errorf("it was rendered again %d times", again.Revision-wants)
	}
	var nobody approvers.Identity
	for range 7 { // Slack can't identify the person who clicked
		c := h.clickOn(nobody, "", r.ID)
		c.User = "U0999"
		h.ok(h.Requests.Refuse(h.ctx(), c, &approvers.Denied{Code: approvers.DeniedUnidentified}, "", r.ID))
	}
	if got := denialsOf(h, r.ID, ""); len(got) != 5 {
		t.Errorf("%q", got)
	}
}

// TestAwayWithoutEnd checks that a person can set only a limited number of absences per day. Ending an absence is
// always possible.
func TestAwayWithoutEnd(t *testing.T) {
	h := newHarness(t)
	away := func() error {
		_, err := h.People.SetAway(h.ctx(), workflow.Departure{Inbox: h.inbox(), Who: lead, Until: h.clock.Now().Add(48 * time.Hour), Delegate: &fin1})
		return err
	}
	for range 40 {
		h.ok(away())
	}
	wantDenied(t, away(), approvers.DeniedOften)
	_, err := h.People.Back(h.ctx(), h.inbox(), lead)
	h.ok(err)
	wantDenied(t, away(), approvers.DeniedOften)
	h.clock.pass(25 * time.Hour)
	h.ok(away())
}

// inbox stores a delivery, and returns its id.
func (h *harness) inbox() string {
	id := h.id("delivery")
	_, err := h.Intake.Receive(h.ctx(), store.Inbox{ID: id, Kind: store.InboxCommand, ReceivedAt: h.clock.Now()}, "")
	h.ok(err)
	return id
}
