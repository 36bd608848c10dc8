package workflow_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"countersign/approvers"
	"countersign/approvers/workflow/invariants"
	"countersign/internal/testkit"
	"countersign/store"
)

func capped(hash string, most int) *approvers.Policy {
	return policy(hash, func(p *approvers.Policy) { p.Caps.Approver = most })
}

// asked makes alice ask for n refunds, each in its own conversation. asked returns the requests of these refunds.
func (h *harness) asked(n int) []approvers.Request {
	h.t.Helper()
	var out []approvers.Request
	for range n {
		turn := h.sayIn(h.id("thread"), alice, "please").Turn
		out = append(out, h.request(h.propose(turn, `issue_refund {"amount":1}`)[0].Request))
	}
	return out
}

func (h *harness) lineAt(address string) invariants.CardQueue {
	h.t.Helper()
	return readStore(h, func(r store.Reader) (invariants.CardQueue, error) { return invariants.CardQueueAt(r, address) })
}

// line returns how many cards are open for the team lead, and which of the requests wait in the team lead's card queue.
func (h *harness) line(rs []approvers.Request) string {
	h.t.Helper()
	l := h.lineAt("role:team-lead")
	_, held := l.IDs()
	var at []int
	for i, r := range rs {
		if slices.Contains(held, r.ID) {
			at = append(at, i)
		}
	}
	return fmt.Sprint(len(l.Open), " open, ", at, " wait")
}

func (h *harness) wantLine(rs []approvers.Request, want string) {
	h.t.Helper()
	if got := h.line(rs); got != want {
		h.t.Errorf("%s; want %s", got, want)
	}
}

func (h *harness) shownOnCards(rs []approvers.Request) string {
	h.t.Helper()
	var out []int
	for i, r := range rs {
		if len(h.messagesOf(r.ID)) > 0 {
			out = append(out, i)
		}
	}
	return fmt.Sprint(out)
}

// Requests above the cap wait in the queue without a card. When an open card ends for any reason, the next request in
// the queue gets its card. The approval of a request that has waited in the queue needs a typed value.
func TestLine(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(capped("policy-1", 2))
	rs := h.asked(6)
	h.wantLine(rs, "2 open, [2 3 4 5] wait")
	if got := h.shownOnCards(rs); got != "[0 1]" {
		t.Errorf("cards of %s", got)
	}
	h.approve(lead, rs[0].ID)
	h.wantLine(rs, "2 open, [3 4 5] wait")
	if got := h.shownOnCards(rs); got != "[0 1 2]" {
		t.Errorf("cards of %s", got)
	}
	c := h.clickOn(lead, approvers.Approve, rs[2].ID)
	c.Typed = false
	_, err := h.Requests.Decide(h.ctx(), c)
	wantDenied(t, err, approvers.DeniedTyped)
	if r := h.request(rs[2].ID); !strings.Contains(r.StepUp, "queued behind 2 other undecided cards") {
		t.Errorf("it asks for a typed value because %q", r.StepUp)
	}
	h.withdrawn(rs[1].ID)
	h.wantLine(rs, "2 open, [4 5] wait")
	h.reject(lead, rs[5].ID) // an approver can decide a queued request from an escalation's card
	h.withdrawn(rs[4].ID)
	h.wantLine(rs, "2 open, [] wait")
	h.clock.pass(expiresAfter)
	h.due()
	h.wantLine(rs, "0 open, [] wait")
}

// When a card queue begins to fill, people get one notice about it. The bot keeps the notice up to date. When the
// queue is empty, the bot removes the notice. When the queue fills again, people get a new notice.
func TestLineNotice(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(capped("policy-1", 1))
	rs := h.asked(5)
	notice := h.only("role:team-lead 1", store.OutboxCardQueue)
	vm, err := h.Views.Message(h.ctx(), notice.ID)
	h.ok(err)
	if vm.CardQueue == nil || vm.CardQueue.Waiting != 4 || vm.CardQueue.Open != 1 || len(vm.CardQueue.First) != 3 || vm.CardQueue.First[0].ID != rs[1].ID {
		t.Errorf("it says %+v", vm.CardQueue)
	}
	h.ok(h.Outbox.Expand(h.ctx(), notice.ID, persons("U0002")))
	copied := h.messagesOf("role:team-lead 1")[1]
	copied = h.show(copied)
	h.approve(lead, rs[0].ID)
	if now := h.message(copied.ID); now.State != store.OutboxWanted || now.Revision != 2 {
		t.Errorf("the notice is %s, version %d", now.State, now.Revision)
	}
	for _, r := range rs[1:] {
		h.reject(lead, r.ID)
	}
	vm, err = h.Views.Message(h.ctx(), copied.ID)
	h.ok(err)
	if vm.CardQueue != nil {
		t.Errorf("nobody waits, and it says %+v", vm.CardQueue)
	}
	again := h.asked(2) // before the old notice was removed
	if vm, err = h.Views.Message(h.ctx(), copied.ID); err != nil || vm.CardQueue != nil {
		t.Errorf("the old notice says %+v (%v)", vm.CardQueue, err)
	}
	h.ok(h.Outbox.Removed(h.ctx(), h.message(copied.ID)))
	h.reject(lead, again[0].ID)
	if now := h.message(copied.ID); now.State != store.OutboxRemoved {
		t.Errorf("the old notice is %s again", now.State)
	}
	h.only("role:team-lead 2", store.OutboxCardQueue)
	h.reject(lead, again[1].ID)
}

// A bundle counts as one card, and waits in the queue as one card.
func TestLineOfBundles(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(capped("policy-1", 1))
	one := h.asked(1)
	rs := h.bundled(`issue_refund {"amount":1}`, `issue_refund {"amount":2}`, `issue_refund {"amount":3}`)
	h.wantLine(rs, "1 open, [0 1 2] wait")
	if got := h.cards(rs...); got != "" {
		t.Errorf("it has cards already:\n%s", got)
	}
	h.withdrawn(rs[1].ID)
	h.wantLine(rs, "1 open, [0 2] wait")
	h.approve(lead, one[0].ID)
	h.wantLine(rs, "1 open, [] wait")
	h.only(rs[0].Turn, store.OutboxBundle)
	last := h.asked(1)
	_, err := h.Requests.Unbundle(h.ctx(), h.clickOn(lead, "", rs[0].ID)) // an open card's request is not queued again
	h.ok(err)
	h.wantLine(append(rs, last...), "2 open, [3] wait")
	h.approve(lead, rs[0].ID)
	h.wantLine(append(rs, last...), "1 open, [3] wait")
	h.approve(lead, rs[2].ID)
	h.wantLine(append(rs, last...), "1 open, [] wait")
	h.run(one[0].Execution, "ok")
	h.run(rs[0].Execution, "ok")
	h.run(rs[2].Execution, "ok")
}

// The cap on open cards also applies to leads. Escalated requests wait in the lead's card queue, and are shown one
// after the other as escalations.
func TestLineOfEscalations(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(capped("policy-1", 2))
	var rs []approvers.Request
	for range 4 {
		rs = append(rs, h.asked(1)...)
		h.clock.pass(time.Second)
	}
	h.clock.pass(escalateAfter)
	h.due()
	escalated := func() (out []int) {
		for i, r := range rs {
			if slices.ContainsFunc(h.messagesOf(r.ID), func(s store.OutboxMessage) bool { return s.Kind == store.OutboxEscalation }) {
				out = append(out, i)
			}
		}
		return out
	}
	if got := fmt.Sprint(escalated()); got != "[0 1]" {
		t.Errorf("escalations of %s", got)
	}
	h.reject(fin1, rs[0].ID)
	if got := fmt.Sprint(escalated()); got != "[0 1 2]" {
		t.Errorf("escalations of %s", got)
	}
	for _, r := range rs[1:] {
		h.reject(fin1, r.ID)
	}
	h.wantLine(rs, "0 open, [] wait")
	if l := h.lineAt("role:finance-director"); len(l.Open)+len(l.Held) > 0 {
		t.Errorf("left in the lead's queue: %+v", l)
	}
}

// Cards that were open before the policy had a cap count towards the cap. If the cap becomes higher or is removed,
// queued requests get their cards.
func TestCapChanges(t *testing.T) {
	h := newHarness(t)
	rs := h.asked(3)
	step := func(hash string, most int, want string) {
		t.Helper()
		h.policy.Store(capped(hash, most))
		h.ok(h.Requests.Reevaluate(h.ctx()))
		h.wantLine(rs, want)
		h.invariants()
	}
	step("policy-2", 2, "3 open, [] wait")
	rs = append(rs, h.asked(4)...)
	h.wantLine(rs, "3 open, [3 4 5 6] wait")
	step("policy-3", 4, "4 open, [4 5 6] wait")
	step("policy-4", 1, "4 open, [4 5 6] wait")
	h.approve(lead, rs[0].ID)
	h.wantLine(rs, "3 open, [4 5 6] wait")
	h.policy.Store(policy("policy-5", func(p *approvers.Policy) { p.Caps.Approver, p.Approvers[1].Cards = 1, "#leads" }))
	h.ok(h.Requests.Reevaluate(h.ctx()))
	h.wantLine(rs, "0 open, [] wait") // the requests wait at the new address of the cards
	if l := h.lineAt("channel:#leads"); len(l.Open) != 1 || len(l.Held) != 5 {
		t.Errorf("at the new place: %+v", l)
	}
	step("policy-6", 0, "0 open, [] wait")
	if got := h.shownOnCards(rs); got != "[0 1 2 3 4 5 6]" {
		t.Errorf("cards of %s", got)
	}
}

// In a burst of 200 requests, the number of open cards does not exceed the cap. The queued requests get their cards one
// after the other, and the approval of each needs a typed value.
func TestBurst(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Caps = approvers.Caps{Approver: 10, Requester: approvers.Limit{Count: 20, Per: time.Hour}}
	}))
	var rs []approvers.Request
	for range 4 {
		var specs []string
		for i := range 50 {
			specs = append(specs, fmt.Sprintf(`issue_refund {"amount":%d,"note":%q}`, i+1, strings.Repeat("x", 600))) // each with a card of its own
		}
		for _, c := range h.propose(h.sayIn(h.id("thread"), alice, "refund them all").Turn, specs...) {
			rs = append(rs, h.request(c.Request))
		}
	}
	posts := 0
	for _, timer := range h.timers(store.ShowTimers...) {
		if s := h.message(timer.Ref); s.Kind != store.OutboxStep {
			posts++
		}
	}
	if posts != 11 { // ten cards, and the queue's notice
		t.Errorf("%d posts to approvers", posts)
	}
	for i, r := range rs {
		switch {
		case i < 10 && r.StepUp != "":
			t.Fatalf("request %d asks for a typed value: %s", i, r.StepUp)
		case i == 20 && !strings.HasPrefix(r.StepUp, "U0100 has caused 21 requests within an hour; the policy's cap is 20"):
			t.Errorf("request 21 asks for a typed value because %q", r.StepUp)
		case i >= 10 && r.StepUp == "":
			t.Fatalf("request %d does not ask for a typed value", i)
		}
	}
	for _, r := range rs[:50] { // oldest first, so that each has its card when it is decided
		if len(h.messagesOf(r.ID)) != 1 {
			t.Fatal("it has no card when its turn has come")
		}
		h.reject(lead, r.ID)
		if l := h.lineAt("role:team-lead"); len(l.Open) != 10 {
			t.Fatalf("%d cards are open", len(l.Open))
		}
	}
}

// TestCardQueuesInAnyOrder opens and closes cards in random order under changing caps. After each step, every waiting
// request must be shown or in the queue. If requests wait at an address, the number of open cards at the address must
// be the maximum.
func TestCardQueuesInAnyOrder(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	dir, n := quickDir(t), 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		h := &harness{t: t, path: filepath.Join(dir, fmt.Sprint(n)), tools: newToolbox(), clock: &clock{now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}}
		h.policy.Store(capped("policy-0", rapid.IntRange(0, 3).Draw(rt, "cap")))
		h.open(nil)
		defer func() { h.ok(h.store.Close()) }()
		c := &chaos{harness: h, ran: map[string]int{}}
		rt.Repeat(map[string]func(*rapid.T){
			"":         c.linesAddUp,
			"ask":      c.askSome,
			"decide":   c.decide,
			"decide2":  c.decide,
			"all":      c.decideAllOf,
			"unbundle": c.unbundle,
			"withdraw": c.withdraw,
			"show":     c.show,
			"pass":     c.pass,
			"cap":      c.changeCap,
			"restart":  c.restart,
		})
		for open := c.openOnes(); len(open) > 0; open = c.openOnes() { // the queues drain
			c.clock.pass(expiresAfter)
			c.due()
			for _, r := range open {
				c.notRunOrGone(r)
			}
			c.linesAddUp(rt)
		}
		c.check(rt)
		for _, address := range []string{"role:team-lead", "role:finance-director", "channel:#support-approvals", "channel:#leads"} {
			if l := h.lineAt(address); len(l.Open)+len(l.Held) > 0 {
				rt.Fatalf("all requests have ended, but the queue at %s still contains %+v", address, l)
			}
		}
	})
}

// quickDir returns a directory in memory, if the machine has one. Tests that commit thousands of times use quickDir,
// because they do not test the disk.
func quickDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "countersign")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// notRunOrGone expires approved requests that did not start in time. In production, timers expire these requests.
func (c *chaos) notRunOrGone(r approvers.Request) {
	if now := c.request(r.ID); now.State == approvers.Approved {
		_, _, err := c.Runs.Claim(c.ctx(), now.Execution)
		c.ok(err)
	}
}

func (c *chaos) openOnes() []approvers.Request {
	return readStore(c.harness, func(r store.Reader) ([]approvers.Request, error) { return r.OpenRequests(store.RequestCursor{}, 1000) })
}

func (c *chaos) askSome(t *rapid.T) {
	specs := rapid.SliceOfN(rapid.SampledFrom([]string{
		`apply_discount {}`, `issue_refund {"amount":5}`, `issue_refund {"amount":900}`, `cancel_account {}`, `format_disk {}`, `search_orders {}`,
	}), 1, 5).Draw(t, "calls")
	c.propose(c.sayIn(c.id("thread"), alice, "please").Turn, specs...)
}

func (c *chaos) linesAddUp(t *rapid.T) {
	if err := c.store.View(c.ctx(), invariants.CardQueues); err != nil {
		t.Fatalf("the card queues do not add up:\n%v", err)
	}
	most := c.policy.Load().Caps.Approver
	for _, address := range []string{"role:team-lead", "role:finance-director", "channel:#support-approvals", "channel:#leads"} {
		if l := c.lineAt(address); len(l.Held) > 0 && (most == 0 || len(l.Open) < most) {
			t.Fatalf("%d wait at %s although only %d of %d places are taken", len(l.Held), address, len(l.Open), most)
		}
	}
}

func (c *chaos) changeCap(t *rapid.T) {
	c.changes++
	most := rapid.IntRange(0, 3).Draw(t, "cap")
	moved := rapid.IntRange(0, 3).Draw(t, "moved") == 0
	c.policy.Store(policy(fmt.Sprint("policy-", c.changes), func(p *approvers.Policy) {
		p.Caps.Approver = most
		if moved {
			p.Approvers[1].Cards = "#leads"
		}
	}))
	c.ok(c.Requests.Reevaluate(c.ctx()))
}

// someBundle draws a random bundle that has a waiting request.
func (c *chaos) someBundle(t *rapid.T) (store.OutboxMessage, bool) {
	r, ok := c.openRequest(t)
	if !ok || r.Bundle == "" {
		return store.OutboxMessage{}, false
	}
	for _, s := range c.messagesOf(r.Turn) {
		if s.Bundle == r.Bundle {
			return s, true
		}
	}
	return store.OutboxMessage{}, false
}

func (c *chaos) decideAllOf(t *rapid.T) {
	s, ok := c.someBundle(t)
	if !ok {
		return
	}
	vm, err := c.Views.Message(c.ctx(), s.ID)
	c.ok(err)
	kind := rapid.SampledFrom([]approvers.DecisionKind{approvers.Approve, approvers.Reject}).Draw(t, "kind")
	_, err = c.decideAll(c.who(t), kind, putUp(vm))
	c.fine(t, err)
}

func (c *chaos) unbundle(t *rapid.T) {
	if r, ok := c.openRequest(t); ok {
		_, err := c.Requests.Unbundle(c.ctx(), c.clickOn(c.who(t), "", r.ID))
		c.fine(t, err)
	}
}

// The cap on open cards also applies to stand-ins. A stand-in gets the requests of a bundle in one card.
func TestLineOfStandIns(t *testing.T) {
	h := newHarnessWith(t, withDeputy, func(p *approvers.Policy) { p.Caps.Approver = 2 })
	h.away(lead, 48*time.Hour, deputy)
	bundle := h.bundled(`issue_refund {"amount":1}`, `issue_refund {"amount":2}`)
	h.due()
	var rs []approvers.Request
	for range 3 {
		rs = append(rs, h.asked(1)...)
		h.due()
	}
	theirs := func(ref string) (n int) {
		for _, s := range h.messagesOf(ref) {
			if s.To == "user:U0005" {
				n++
			}
		}
		return n
	}
	if n := theirs(bundle[0].Turn); n != 1 || theirs(bundle[0].ID)+theirs(bundle[1].ID) != 0 {
		t.Errorf("the stand-in has %d copies of the bundle", n)
	}
	if l := h.lineAt("user:U0005"); len(l.Open) != 2 || len(l.Held) != 2 || theirs(rs[0].ID) != 1 || theirs(rs[1].ID) != 0 {
		t.Errorf("the stand-in's queue: %+v", l)
	}
	h.reject(deputy, bundle[0].ID)
	h.reject(deputy, bundle[1].ID)
	if theirs(rs[1].ID) != 1 || theirs(rs[2].ID) != 0 {
		t.Error("the next queued request did not get to the stand-in")
	}
	for _, r := range rs {
		h.reject(deputy, r.ID)
	}
	if l := h.lineAt("user:U0005"); len(l.Open)+len(l.Held) > 0 {
		t.Errorf("left: %+v", l)
	}
}

// People get no reminders of a request whose card waits in the queue.
func TestNoRemindersWhileQueued(t *testing.T) {
	h := newHarnessWith(t, reminding(8*time.Minute, 1), func(p *approvers.Policy) {
		p.Caps.Approver = 1
		p.Defaults.EscalateAfter = time.Hour
	})
	start := h.clock.Now()
	rs := h.asked(2)
	h.at(start.Add(9 * time.Minute))
	h.wantReminders(rs[0].ID, map[string]int{"user:U0002": 1})
	h.wantReminders(rs[1].ID, map[string]int{})
}
