package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
	"countersign/store"
)

const chaosPolicy = `version: 1
defaults: {expires_after: 5m, escalate_after: 2m}
tools:
  plain: {risk: high, confirm: true}
approvers:
  lead: {title: Lead, members: [U0002], max_risk: high, can_approve: ["*"], cards: "#support-approvals", lead: director}
  director: {title: Director, members: [U0003, U0004], max_risk: critical, can_approve: ["*"], cards: dm}
agents:
  support: {channels: ["#support"], prompt: Do as you are told., tools: ["*"]}
`

// TestChaos delivers Slack's events in many irregular ways: twice, up to six minutes late, out of order, by a retry, or
// never. At the same time, people ask, edit and delete messages, write more messages, and approve, reject and withdraw
// calls. An admin deletes cards, and the bot is removed from the channel of the cards and invited again. The whole
// product runs in faked time, with its sockets, its store on the disk and its agent. The test compares the outcome of
// every message and every request with chaosAccount, an independent model. The model uses the deliveries that arrived
// and the bot's posts, with their times.
//
// COUNTERSIGN_EVENTS sets the number of deliveries. COUNTERSIGN_SEED repeats a run as far as scheduling allows.
func TestChaos(t *testing.T) {
	t.Parallel()
	runChaos(t, testkit.Size(t, "COUNTERSIGN_EVENTS", 200), usualTransport() == "http")
}

// TestChaosOverHTTP is TestChaos with deliveries over HTTP.
func TestChaosOverHTTP(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	runChaos(t, testkit.Size(t, "COUNTERSIGN_EVENTS", 100), true)
}

func runChaos(t *testing.T, events int, overHTTP bool) {
	seed := testkit.Seed(t)
	c := &chaos{rnd: testkit.Chance(seed, 1), fates: testkit.Chance(seed, 2), texts: map[string]*chaosMessage{}, posts: map[string]map[chaosPost]int{}, placed: map[string][]chaosPlace{}, lostFor: map[string]bool{}}
	inFakedTime(t, func(b *synctestHarness) { b.http = overHTTP; c.prepare(b) }, func(b *synctestHarness) {
		c.synctestHarness, c.began = b, time.Now()
		for c.sent() < events {
			c.somebody()
			b.pass(time.Duration(c.rnd.IntN(4000)) * time.Millisecond)
		}
		c.rest()
		c.settle()
	})
}

// chaos is one run of TestChaos.
type chaos struct {
	*synctestHarness
	rnd *rand.Rand // decides what people do

	mu       sync.Mutex
	fates    *rand.Rand // decides what happens to deliveries
	attempts int        // number of attempts to deliver something
	said     mishapCounts
	lostFor  map[string]bool // events that never arrive
	arrivals []chaosArrival
	posts    map[string]map[chaosPost]int // number of posts that Slack accepted, by outbox message
	placed   map[string][]chaosPlace      // where and when an outbox message was posted, in order of time

	texts   map[string]*chaosMessage // people's messages, by ts
	order   []*chaosMessage
	began   time.Time
	n       int
	out     bool // true while the bot is not a member of the cards' channel
	clicks  sync.WaitGroup
	clicked int
}

// prepare sets the bot up.
func (c *chaos) prepare(b *synctestHarness) {
	b.usePolicy(chaosPolicy)
	b.fates = c.mishap
	b.note = c.posted
}

// sent counts all delivery attempts so far, including lost ones.
func (c *chaos) sent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.attempts
}

var (
	askers    = []string{"sam", "ada", "priya"}
	directors = []string{"ingrid", "kenji"}
)

// The method "somebody" makes a random person act.
func (c *chaos) somebody() {
	switch n := c.rnd.IntN(100); {
	case n < 34:
		c.asks()
	case n < 58:
		c.decides("teo")
	case n < 64:
		c.decides(directors[c.rnd.IntN(2)])
	case n < 67:
		c.decides("ada") // ada may not decide
	case n < 75:
		c.withdraws()
	case n < 83:
		c.rewrites()
	case n < 88:
		c.takesBack()
	case n < 93:
		c.writesOn()
	case n < 96:
		c.sweeps()
	case n < 98:
		_, err := c.as("teo").Command(c.ctx, "#general", "/countersign", "pending")
		c.may(err)
	case c.rnd.IntN(6) == 0:
		c.toggleMembership()
	}
}

// The method "may" fails the test for an error. It ignores errors that a person can get although the bot works. For
// example, the app did not respond, or the clicked message has changed.
func (c *chaos) may(err error) {
	switch code := workspaceclient.Code(err); {
	case err == nil, code == "app_did_not_respond", code == "unknown_action", code == "message_not_found", code == "thread_not_found", code == "view_not_found":
	default:
		c.Helper()
		c.Error(err)
	}
}

// The method "asks" makes a person ask the agent for a call that needs approval.
func (c *chaos) asks() {
	c.n++
	m := &chaosMessage{who: askers[c.rnd.IntN(3)], n: fmt.Sprint("a", c.n)}
	c.says(m, "", "@Countersign plain "+m.n)
}

// The method "says" posts a message as its author, and records it.
func (c *chaos) says(m *chaosMessage, thread, text string) {
	m.root = thread
	c.mu.Lock()
	c.order = append(c.order, m)
	c.mu.Unlock()
	ts, err := c.as(m.who).Say(c.ctx, "#support", thread, text)
	if err != nil {
		c.may(err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m.ts = ts
	c.texts[ts] = m
}

// recent returns one of the last twelve messages that asked for a call and were not deleted. If there are none, recent
// returns nil.
func (c *chaos) recent() *chaosMessage {
	var asked []*chaosMessage
	for i := len(c.order) - 1; i >= 0 && len(asked) < 12; i-- {
		if m := c.order[i]; m.root == "" && m.ts != "" && !m.deleted {
			asked = append(asked, m)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	return asked[c.rnd.IntN(len(asked))]
}

// The method "decides" makes a person read the last cards, and approve or reject one of them.
func (c *chaos) decides(who string) {
	var seen []workspaceclient.Message
	places := []string{"U0BOT"}
	if who == "teo" || who == "ada" {
		places = append(places, "#support-approvals")
	}
	for _, place := range places {
		messages, err := c.as(who).Latest(c.ctx, place, 15)
		c.ok(err)
		for _, m := range messages {
			if _, ok := workspaceclient.Button(m.Blocks, "Approve"); ok {
				seen = append(seen, m)
			}
		}
	}
	if len(seen) == 0 {
		return
	}
	m := seen[c.rnd.IntN(len(seen))]
	label := "Approve"
	if c.rnd.IntN(4) == 0 {
		label = "Reject"
	}
	if e, ok := workspaceclient.Button(m.Blocks, label); ok {
		c.clicks.Go(func() { c.presses(who, m, e, label == "Reject") })
	}
}

// The method "presses" clicks a button, and fills in the form that opens.
func (c *chaos) presses(who string, m workspaceclient.Message, e workspaceclient.Element, form bool) {
	c.may(c.as(who).Press(c.ctx, m, e))
	if !form {
		return
	}
	for range 8 { // a form opens immediately, or not at all
		views, err := c.as(who).Views(c.ctx)
		c.ok(err)
		if len(views) > 0 && views[len(views)-1].Submit != nil {
			c.may(c.as(who).Submit(c.ctx, views[len(views)-1].ID, map[string]string{"reason": "not now"}))
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// The method "withdraws" makes a requester withdraw a call, in their thread.
func (c *chaos) withdraws() {
	asked := c.recent()
	if asked == nil {
		return
	}
	messages, err := c.as(asked.who).Messages(c.ctx, "#support", asked.ts)
	if err != nil {
		c.may(err)
		return
	}
	for _, m := range messages {
		if e, ok := workspaceclient.Button(m.Blocks, "Withdraw"); ok {
			c.clicks.Go(func() { c.may(c.as(asked.who).Press(c.ctx, m, e)) })
			return
		}
	}
}

// The method "rewrites" makes a person edit a message that asked for a call.
func (c *chaos) rewrites() {
	m := c.recent()
	if m == nil {
		return
	}
	for range 1 + c.rnd.IntN(3) {
		m.edits++
		c.may(c.as(m.who).Edit(c.ctx, "#support", m.ts, fmt.Sprintf("@Countersign plain %s-%d", m.n, m.edits)))
	}
}

// takesBack makes a person, or an admin, delete a message that asked for a call.
func (c *chaos) takesBack() {
	m := c.recent()
	if m == nil {
		return
	}
	m.deleted = true
	c.may(c.as([]string{m.who, "ingrid"}[c.rnd.IntN(2)]).Delete(c.ctx, "#support", m.ts))
}

// writesOn makes a person write another message in their thread.
func (c *chaos) writesOn() {
	if root := c.recent(); root != nil {
		c.n++
		m := &chaosMessage{who: root.who, n: fmt.Sprint("b", c.n)}
		c.says(m, root.ts, "say "+m.n)
	}
}

// The method "sweeps" makes an admin delete one of the bot's last messages.
func (c *chaos) sweeps() {
	messages, err := c.as("ingrid").Latest(c.ctx, "#support-approvals", 6)
	c.ok(err)
	var bots []workspaceclient.Message
	for _, m := range messages {
		if m.BotID != "" && !m.Ephemeral {
			bots = append(bots, m)
		}
	}
	if len(bots) > 0 {
		m := bots[c.rnd.IntN(len(bots))]
		c.may(c.as("ingrid").Delete(c.ctx, m.Channel, m.TS))
	}
}

// toggleMembership removes the bot from the channel of the cards, or invites the bot again.
func (c *chaos) toggleMembership() {
	if c.out = !c.out; c.out {
		c.ok(c.as("teo").Remove(c.ctx, "#support-approvals", "U0BOT"))
		return
	}
	c.ok(c.as("teo").Invite(c.ctx, "#support-approvals", "U0BOT"))
}

// rest ends all faults. Then it waits until every delivery has arrived, and all due work is done.
func (c *chaos) rest() {
	c.clicks.Wait()
	if c.out {
		c.toggleMembership()
	}
	c.mu.Lock()
	c.fates = nil
	c.mu.Unlock()
	c.pass(15 * time.Minute) // longer than the delay of any delivery, and the lifetime of any request
	c.within(10*time.Minute, "everything is done and shown", c.idle)
	c.asks() // when the bot posts the card, it learns that it can use the channel, even if the event of the invitation was lost
	c.pass(10 * time.Minute)
	c.within(10*time.Minute, "everything is done and shown", c.idle)
}

// settle compares the final state with chaosAccount.
func (c *chaos) settle() {
	account := c.fold()
	wrong := 0
	fault := func(format string, args ...any) {
		if wrong++; wrong <= 20 {
			c.Errorf(format, args...)
		}
	}
	outcome := map[string]int{}
	c.view(func(r store.Reader) error { return c.compare(r, account, outcome, fault) })
	c.messages(fault)
	c.books()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Logf("events=%d lost=%d late=%d twice=%d unheard=%d never=%d messages=%d clicks=%d requests=%d (%s) wrong=%d in %s of Slack's time", c.attempts, c.said.lost, c.said.late,
		c.said.twice, c.said.deaf, c.said.never, len(c.order), c.clicked, len(account.requests), counted(outcome), wrong, time.Since(c.began).Round(time.Minute))
}
