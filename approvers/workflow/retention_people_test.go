package workflow_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow/retention"
	"countersign/internal/testkit"
	"countersign/store"
)

// verifies seals the history, and verifies it against the signed heads, as audit verify does.
func (h *harness) verifies(key approvers.SealKey) {
	h.t.Helper()
	for n := 1; n > 0; {
		var err error
		n, err = h.History.Seal(h.ctx(), key)
		h.ok(err)
	}
	report, err := audit.Verify(h.ctx(), h.store, audit.VerifyOptions{Keys: []string{key.Public}})
	h.ok(err)
	if report.Faults() > 0 {
		var out strings.Builder
		report.Write(&out)
		h.t.Errorf("the history does not verify:\n%s", out.String())
	}
}

// isStored reports whether the store has the record that the function read reads.
func isStored[T any](h *harness, read func(store.Reader) (T, error)) bool {
	h.t.Helper()
	return readStore(h, func(r store.Reader) (bool, error) {
		_, err := read(r)
		return err == nil, store.IgnoreNotFound(err)
	})
}

func (h *harness) hasGrant(id string) bool {
	h.t.Helper()
	return isStored(h, func(r store.Reader) (approvers.Grant, error) { return r.Grant(id) })
}

// pastEvent sets the clock to the time at which the retention time of a chain's records is over.
func (h *harness) pastEvent(chain string) {
	h.t.Helper()
	h.clock.pass(h.lastEventOf(chain).Add(h.policy.Load().Retention.Records + time.Microsecond).Sub(h.clock.Now()))
}

// An ended grant is erased with its messages and the texts of its chain. The chain stays until the records of every call
// that ran under the grant are deleted. The history verifies after each step.
func TestRetentionOfGrants(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	onEachStore(t, func(t *testing.T, h *harness) {
		key := newSealKey(t, "retention")
		h.policy.Store(policy("policy-1", granting, func(p *approvers.Policy) {
			p.Retention = approvers.Retention{Conversations: 90 * aDay, Records: 3 * 365 * aDay}
		}))
		g := h.granted(2)
		chain := "grant:" + g.ID
		var runs []string
		for range 2 {
			c := h.next(oneRefund)
			_, run, err := h.Runs.Claim(h.ctx(), c.Execution)
			h.ok(err)
			if !run {
				t.Fatal("the call does not run under the grant")
			}
			h.clock.pass(20 * time.Minute) // so that the records of the run are newer than the records of the grant
			h.ok(h.Runs.Finish(h.ctx(), c.Execution, true, "RF"))
			h.answer(c.Turn)
			runs = append(runs, c.Execution)
		}
		for _, s := range h.messagesOf(g.ID) {
			h.shownAs(s, "Teo allows five refunds of 50 USD")
		}
		if h.grant(g.ID).State != approvers.GrantUsed || len(h.rowsWith("Teo allows five refunds")) == 0 || h.payloadsOf(chain) != 1 {
			t.Fatal("there is nothing to erase")
		}
		h.clock.pass(89 * aDay)
		if done := h.retain(0, 0); done.Grants != 0 || !h.hasGrant(g.ID) {
			t.Errorf("%+v were erased", done)
		}
		h.verifies(key)
		h.clock.pass(2 * aDay)
		if done := h.retain(1, 0); done.Grants != 1 || h.hasGrant(g.ID) {
			t.Errorf("%+v were erased", done)
		}
		if found := h.rowsWith("Teo allows five refunds"); len(found) > 0 || h.payloadsOf(chain) != 0 || len(h.messagesOf(g.ID)) != 0 {
			t.Errorf("the words are still in %v; the chain has %d texts, and the grant %d messages", found, h.payloadsOf(chain), len(h.messagesOf(g.ID)))
		}
		h.wantKinds(chain, "granted granted granted erased")
		h.verifies(key)
		h.turns = nil // the turns are erased, and the invariants are checked only for existing turns
		h.ok(h.faults())

		h.pastEvent(chain)
		h.retain(0, 2) // the chains of the request and of the first call
		h.wantKinds(chain, "granted granted granted erased")
		h.wantKinds(runs[1], "proposed granted executing executed returned erased")
		h.pastEvent(runs[1])
		h.retain(0, 2)
		h.wantKinds(chain, "")
		h.verifies(key)
	})
}

// retainGrantOfRun returns a harness with a retention of 30 and 60 days, and a grant under which one call has run.
func retainGrantOfRun(t *testing.T) (*harness, approvers.Grant, store.Call) {
	t.Helper()
	h := newHarness(t)
	h.policy.Store(policy("policy-1", granting, func(p *approvers.Policy) {
		p.Retention = approvers.Retention{Conversations: 30 * aDay, Records: 60 * aDay}
	}))
	g := h.granted(1)
	c := h.next(oneRefund)
	h.run(c.Execution, "RF")
	h.clock.pass(20 * aDay) // the turn ends later than the grant
	h.answer(c.Turn)
	return h, g, c
}

// A grant stays as long as a run under the grant is stored, because messages about the run name the grant. The grant's
// chain stays with the grant.
func TestRetentionKeepsGrantsOfStoredRuns(t *testing.T) {
	h, g, c := retainGrantOfRun(t)
	h.clock.pass(11 * aDay)
	h.answer(h.say(alice, "and then?").Turn)
	if done, err := retention.Enforce(h.ctx(), h.Workflow); err != nil || done.Turns != 1 || done.Conversations+done.Grants != 0 {
		t.Fatalf("erased %+v, %v", done, err)
	}
	if !h.hasGrant(g.ID) || h.kinds("grant:"+g.ID) == "" {
		t.Error("the grant is gone")
	}
	vm, err := h.Views.Message(h.ctx(), h.only(c.Turn, store.OutboxStep).ID)
	if err != nil || len(vm.Calls) != 1 || vm.Calls[0].Grant == nil || vm.Calls[0].Grant.ID != g.ID {
		t.Errorf("the run is shown as %+v, %v", vm.Calls, err)
	}
	h.clock.pass(31 * aDay)
	if done, err := retention.Enforce(h.ctx(), h.Workflow); err != nil || done.Conversations != 1 || done.Grants != 1 {
		t.Errorf("erased %+v, %v", done, err)
	}
	h.turns = nil
}

// Earlier programs deleted the chain of a grant whose runs were still stored. Such a grant is erased, and messages about
// the runs can be shown without the grant.
func TestRetentionOfGrantWithoutChain(t *testing.T) {
	h, g, c := retainGrantOfRun(t)
	h.clock.pass(11 * aDay)
	h.answer(h.say(alice, "and then?").Turn)
	h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
		_, err := tx.PruneChain("grant:" + g.ID)
		return err
	}))
	if done := h.retain(0, 0); done.Grants != 1 || h.hasGrant(g.ID) {
		t.Errorf("erased %+v", done)
	}
	vm, err := h.Views.Message(h.ctx(), h.only(c.Turn, store.OutboxStep).ID)
	if err != nil || len(vm.Calls) != 1 || vm.Calls[0].Execution.Grant != g.ID || vm.Calls[0].Grant != nil {
		t.Errorf("the run is shown as %+v, %v", vm.Calls, err)
	}
	h.turns = nil // the turn of the grant's request is erased
}

// The chain of a grant in force stays, although its last record is old. The same is true for an absence that has not
// ended.
func TestRetentionKeepsChainsInUse(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", granting, withDeputy, func(p *approvers.Policy) {
		p.Tools[3].Grants.Within = 300 * aDay
		p.Retention = approvers.Retention{Conversations: aDay, Records: 30 * aDay}
	}))
	r := h.ask(oneRefund)
	g := h.grantMore(lead, r.ID, 2, 200*aDay)
	h.run(r.Execution, "RF-1")
	h.answer(r.Turn)
	h.away(lead, 100*aDay, deputy)
	h.due()
	h.clock.pass(31 * aDay)
	if done, err := retention.Enforce(h.ctx(), h.Workflow); err != nil || done.Grants+done.Absences+done.Conversations != 0 {
		t.Errorf("erased %+v, %v", done, err)
	}
	h.wantKinds("grant:"+g.ID, "granted")
	h.wantKinds("absence:"+string(lead.ID), "away")
	c := h.next(oneRefund)
	h.run(c.Execution, "RF")
	h.answer(c.Turn)
	h.wantKinds("grant:"+g.ID, "granted granted")
	h.turns = nil // the chain of the request is deleted, and the invariants would miss it
}

// An absence that is over is erased with its notices. Its records stay until their own time is over. A notice about an
// earlier absence is erased although the person has another absence now.
func TestRetentionOfAbsences(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	onEachStore(t, func(t *testing.T, h *harness) {
		key := newSealKey(t, "retention")
		h.policy.Store(policy("policy-1", withDeputy, func(p *approvers.Policy) {
			p.Retention = approvers.Retention{Conversations: 90 * aDay, Records: 3 * 365 * aDay}
		}))
		chain := "absence:" + string(lead.ID)
		absence := func() bool {
			return isStored(h, func(r store.Reader) (approvers.Absence, error) { return r.Absence(lead.ID) })
		}
		announce := func(d time.Duration, words string) {
			t.Helper()
			a := h.away(lead, d, deputy)
			h.due()
			for _, s := range h.messagesOf(string(lead.ID)) {
				if s.Step == int(a.Version) {
					h.shownAs(s, words)
				} else if s.State == store.OutboxWanted {
					h.show(s)
				}
			}
		}
		retain := func(absences int) {
			t.Helper()
			if done := h.retain(0, 0); done.Absences != absences {
				t.Errorf("%+v were erased; want %d absences", done, absences)
			}
		}
		announce(time.Hour, "Teo goes hiking")
		announce(100*aDay, "Teo sails around the world")
		h.clock.pass(89 * aDay)
		retain(0)
		if len(h.rowsWith("Teo goes hiking")) == 0 || len(h.rowsWith("Teo sails around")) == 0 {
			t.Error("a notice is gone too early")
		}
		h.clock.pass(2 * aDay) // the second absence is not over
		retain(0)
		if found := h.rowsWith("Teo goes hiking"); len(found) > 0 || len(h.rowsWith("Teo sails around")) == 0 || !absence() {
			t.Errorf("the notice of the earlier absence is in %v", found)
		}
		h.clock.pass((9 + 89) * aDay)
		retain(0)
		if !absence() {
			t.Error("the absence is gone too early")
		}
		h.clock.pass(2 * aDay)
		retain(1)
		if found := h.rowsWith("Teo sails around"); len(found) > 0 || absence() || len(h.messagesOf(string(lead.ID))) != 0 {
			t.Errorf("the absence is stored: %v; its words are in %v", absence(), found)
		}
		h.wantKinds(chain, "away away")
		h.verifies(key)
		announce(time.Hour, "Teo is ill") // the person can be away again
		h.wantKinds(chain, "away away away")
		h.clock.pass(91 * aDay)
		retain(1)
		h.pastEvent(chain)
		h.retain(0, 1)
		h.wantKinds(chain, "")
		h.verifies(key)
	})
}

// The time at which a person last opened the Home tab is erased. While the tab is watched, the time stays. When the
// person opens the tab again, the bot shows the tab again.
func TestRetentionOfHomeTimes(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	onEachStore(t, func(t *testing.T, h *harness) {
		keeping(h)
		home := func(user string) (s store.OutboxMessage) {
			for _, s = range h.messagesOf(store.SettingHomes + "/" + user) {
			}
			return s
		}
		show := func(user string) {
			t.Helper()
			s := home(user)
			s.TS = "V1"
			h.ok(h.Homes.Shown(h.ctx(), s, h.posted(s), "looks"))
		}
		retain := func(homes int) {
			t.Helper()
			if done := h.retain(0, 0); done.Homes != homes {
				t.Errorf("%+v were erased; want %d Home tabs", done, homes)
			}
		}
		for _, user := range []string{"U0001", "U0002", "U0003"} {
			h.ok(h.Homes.Open(h.ctx(), "", user, "", 0))
		}
		show("U0001")
		show("U0002")
		h.ok(h.Homes.Refused(h.ctx(), home("U0003"), "not_enabled"))
		h.ok(h.Homes.Idle(h.ctx(), h.timers(store.TimerHome)[home("U0001").ID]))
		show("U0001")
		h.clock.pass(89 * aDay)
		retain(0)
		h.clock.pass(2 * aDay)
		retain(2) // of U0001 and U0003; the bot still has to empty the tab of U0002
		if home("U0001").ID != "" || home("U0002").ID == "" || home("U0003").ID != "" {
			t.Errorf("the times are %+v, %+v, %+v", home("U0001").Home, home("U0002").Home, home("U0003").Home)
		}
		h.ok(h.Homes.Idle(h.ctx(), h.timers(store.TimerHome)[home("U0002").ID]))
		retain(0) // Slack has not shown the empty tab yet
		show("U0002")
		retain(1)
		h.ok(h.Homes.Open(h.ctx(), "", "U0001", "", 0))
		show("U0001")
		retain(0)
		if s := home("U0001"); s.State != store.OutboxShown || s.Posts != 1 {
			t.Errorf("the tab is %s after %d posts", s.State, s.Posts)
		}
	})
}

// If the chain of a grant has a damaged record, the grant stays, and Enforce reports the damage. Other grants are
// erased.
func TestRetentionOfGrantsPassesDamage(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", granting, func(p *approvers.Policy) {
		p.Retention = approvers.Retention{Conversations: 90 * aDay, Records: 3 * 365 * aDay}
	}))
	var ids []string
	for range 2 {
		g := h.granted(1)
		c := h.next(oneRefund)
		h.run(c.Execution, "RF")
		h.answer(c.Turn)
		ids = append(ids, g.ID)
	}
	h.clock.pass(91 * aDay)
	h.Store = &unreadChain{Store: h.store, chain: "grant:" + ids[0]}
	done, err := retention.Enforce(h.ctx(), h.Workflow)
	if done.Grants != 1 || !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "grants with damaged records stay: 1") {
		t.Errorf("erased %+v, %v", done, err)
	}
	if !h.hasGrant(ids[0]) || h.hasGrant(ids[1]) {
		t.Error("the wrong grant was erased")
	}
	h.Store = h.store
	h.retain(0, 0)
	if h.hasGrant(ids[0]) {
		t.Error("the grant is stored, although its chain can be read")
	}
	h.turns = nil
}

// unreadChain is a store in which the records of a chain can't be read.
type unreadChain struct {
	store.Store
	chain string
}

type unreadReader struct {
	store.Reader
	s *unreadChain
}

func (s *unreadChain) View(ctx context.Context, fn func(store.Reader) error) error {
	return s.Store.View(ctx, func(r store.Reader) error { return fn(unreadReader{r, s}) })
}

func (x unreadReader) Audit(chain string) ([]approvers.AuditRecord, error) {
	if chain == x.s.chain {
		return nil, &store.DamagedError{Damage: store.Damage{Bucket: "audit", Key: chain, ID: chain, Why: "a test says so"}}
	}
	return x.Reader.Audit(chain)
}
