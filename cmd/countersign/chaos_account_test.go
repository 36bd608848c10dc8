package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/internal/demo/workspaceclient"
	"countersign/store"
)

type chaosMessage struct {
	who, n, ts string
	root       string // ts of the message's thread; empty: the message began a thread
	edits      int
	deleted    bool

	// chaosAccount computes the fields below.
	heard    time.Time // zero: never
	edited   string    // the last edit before the bot received the message; empty: none
	gone     bool
	asks     string // the argument of the call that the message led to
	reworded *approvers.MessageEdit
}

// chaosRequest has the times and the outcome that chaosAccount expects of one request.
type chaosRequest struct {
	message  *chaosMessage
	opened   time.Time
	closed   time.Time // zero: the request is open
	state    approvers.State
	reworded *approvers.MessageEdit
	records  map[string]int // how many records about a person's clicks the history must have, by user
	maybe    map[string]int // how many more such records the history may have, by user
}

// The method "until" returns the time at which the request expires.
func (r *chaosRequest) until() time.Time { return r.opened.Add(5 * time.Minute) }

// chaosAccount is an independent model of the expected behaviour. chaosAccount computes the expected final state from
// the deliveries that arrived, and from their times.
type chaosAccount struct {
	requests map[string]*chaosRequest // by the argument of the call
	byID     map[string]*chaosRequest
}

// fold computes the account from all deliveries that arrived, in order.
func (c *chaos) fold() chaosAccount {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := chaosAccount{requests: map[string]*chaosRequest{}, byID: map[string]*chaosRequest{}}
	ids := map[string]string{} // the argument n of each request's call, by the request's id
	c.view(func(r store.Reader) error {
		for n, id := range c.allRequests(r) {
			ids[id] = n
		}
		return nil
	})
	slices.SortStableFunc(c.arrivals, func(x, y chaosArrival) int { return x.at.Compare(y.at) })
	seen := map[string]bool{}
	for _, x := range c.arrivals {
		if x.message != "" {
			if m := c.texts[x.message]; m != nil {
				c.hear(a, m, x)
			}
			continue
		}
		if r := a.requests[ids[x.request]]; r != nil && !seen[x.click] {
			seen[x.click] = true
			c.decide(r, x)
		}
	}
	for _, r := range a.requests {
		if r.closed.IsZero() {
			r.closed, r.state = r.until(), approvers.Expired
		}
	}
	return a
}

// hear processes the arrival of an event about a message.
func (c *chaos) hear(a chaosAccount, m *chaosMessage, x chaosArrival) {
	if m.root != "" {
		root := c.texts[m.root]
		if m.heard.IsZero() && root != nil && !root.heard.IsZero() {
			m.heard = x.at
		}
		return
	}
	switch {
	case x.gone && m.heard.IsZero():
		m.gone = true
	case x.gone:
		m.gone = true
		a.reword(m, x.at, approvers.MessageEdit{Deleted: true})
	case m.gone && m.heard.IsZero():
	case m.heard.IsZero():
		words := strings.Fields(x.text)
		m.heard, m.edited, m.asks = x.at, x.edit, words[len(words)-1]
		a.requests[m.asks] = &chaosRequest{message: m, opened: x.at, state: approvers.Pending, records: map[string]int{}, maybe: map[string]int{}}
	case x.edit != "" && x.edit > m.edited:
		a.reword(m, x.at, approvers.MessageEdit{Edit: x.edit, Text: strings.TrimSpace(x.text[strings.Index(x.text, ">")+1:])})
	}
}

// reword records that a message was edited or deleted after it was read. While the request waits, its card shows the
// edit or the deletion.
func (a chaosAccount) reword(m *chaosMessage, at time.Time, w approvers.MessageEdit) {
	if m.reworded != nil && (m.reworded.Deleted || !w.Deleted && w.Edit <= m.reworded.Edit) {
		return
	}
	m.reworded = &w
	if r := a.requests[m.asks]; r.closed.IsZero() && at.Before(r.until()) {
		r.reworded = &w
	}
}

// decide processes a click.
func (c *chaos) decide(r *chaosRequest, x chaosArrival) {
	if r.closed.IsZero() && !x.at.Before(r.until()) {
		r.closed, r.state = r.until(), approvers.Expired
	}
	if x.act != "reject" && c.replaced(x) {
		r.records[x.who]++
		return
	}
	director := x.who == "U0003" || x.who == "U0004"
	if x.act == "open" {
		if x.who == "U0002" || director {
			// The bot records a denial only if the card has been replaced, or the person can't decide, when the bot
			// builds the form.
			r.maybe[x.who]++
		} else {
			r.records[x.who]++ // the person gets no form, and the bot records a denial
		}
		return
	}
	r.records[x.who]++
	if !r.closed.IsZero() {
		return
	}
	switch {
	case x.act == "withdraw" && x.who == userID(r.message.who):
		r.closed, r.state = x.at, approvers.Withdrawn
	case x.act == "withdraw", x.who != "U0002" && !director, director && x.at.Before(r.opened.Add(2*time.Minute)):
	case x.act == "approve":
		r.closed, r.state = x.at, approvers.Consumed
	case x.act == "reject":
		r.closed, r.state = x.at, approvers.Rejected
	}
}

// The method "replaced" reports whether the clicked message had been reposted before the click arrived.
func (c *chaos) replaced(x chaosArrival) bool {
	newer := false
	for _, p := range c.placed[x.outboxID] {
		newer = newer || p.ts != x.ts && p.at.Before(x.at) && p.ts > x.ts
	}
	return newer
}

func userID(name string) string {
	return map[string]string{"sam": "U0100", "ada": "U0001", "priya": "U0101"}[name]
}

// compare compares the store with chaosAccount.
func (c *chaos) compare(r store.Reader, a chaosAccount, outcome map[string]int, fault func(string, ...any)) error {
	found := map[string]int{}  // the number of requests, by the message that they quote
	stored := map[string]int{} // messages, by ts
	conversations, err := r.ConversationsBefore(time.Now().Add(time.Hour), 1_000_000)
	if err != nil {
		return err
	}
	for _, conv := range conversations {
		messages, err := r.Messages(conv.ID, 0)
		if err != nil {
			return err
		}
		for _, m := range messages {
			if m.Role == store.RoleUser {
				stored[m.TS]++
			}
			if m.State == store.MessageQueued {
				fault("message %q still waits", m.Text)
			}
		}
	}
	for _, turn := range c.allTurns(r) {
		tn, err := r.Turn(turn)
		if err != nil {
			return err
		}
		if tn.State != approvers.TurnAnswered {
			fault("a turn is %s in the end: %s", tn.State, tn.Problem)
		}
		calls, err := r.Calls(turn)
		if err != nil {
			return err
		}
		for _, call := range calls {
			var args struct{ N string }
			if err := json.Unmarshal([]byte(call.Args), &args); err != nil {
				return err
			}
			req, err := r.Request(call.Request)
			if err != nil {
				return err
			}
			found[req.Facts.MessageTS]++
			if err := c.compareRequest(r, a.requests[args.N], args.N, req, fault); err != nil {
				return err
			}
			outcome[string(req.State)]++
		}
	}
	for _, m := range c.order {
		want := 0
		if !m.heard.IsZero() {
			want = 1
		}
		if stored[m.ts] != want {
			fault("message %s of %s was taken in %d times; want %d", m.n, m.ts, stored[m.ts], want)
		}
		if m.root == "" && found[m.ts] != want {
			fault("message %s led to %d requests; want %d", m.n, found[m.ts], want)
		}
	}
	return nil
}

func (c *chaos) compareRequest(r store.Reader, want *chaosRequest, n string, req approvers.Request, fault func(string, ...any)) error {
	if want == nil {
		fault("nobody asked for %s, by the account", n)
		return nil
	}
	if req.State != want.state {
		fault("%s is %s, and should be %s since %s; it was opened at %s", n, req.State, want.state, want.closed, want.opened)
	}
	if d := req.ClosedAt.Sub(want.closed); d < -time.Second || d > time.Second {
		fault("%s (%s) ended at %s; should have at %s", n, req.State, req.ClosedAt, want.closed)
	}
	if got, w := req.Facts.MessageEdit, want.reworded; (got == nil) != (w == nil) || got != nil && (got.Deleted != w.Deleted || got.Edit != w.Edit || got.Text != w.Text) {
		fault("%s: of its words the card says %+v; should say %+v", n, got, w)
	}
	c.synctestHarness.mu.Lock()
	ran := c.runs[n]
	c.synctestHarness.mu.Unlock()
	if should := map[bool]int{true: 1}[want.state == approvers.Consumed]; ran != should {
		fault("%s ran %d times; want %d", n, ran, should)
	}
	records, err := r.Audit(req.ID)
	if err != nil {
		return err
	}
	const recorded = 5 // maximum number of recorded denials of one person for one reason; further denials are only counted
	got, found := map[string]int{}, ""
	denied, atLeast := map[[3]string]int{}, map[string]bool{}
	for _, a := range records {
		if a.Kind == approvers.AuditDenied {
			reason := [3]string{a.Actor.User(), a.Facts["kind"], a.Facts["code"]}
			denied[reason]++
			atLeast[a.Actor.User()] = atLeast[a.Actor.User()] || denied[reason] >= recorded
		}
		found += fmt.Sprintf(" %s %s %s by %s,", a.At.Format(time.TimeOnly), a.Kind, a.Facts["code"], a.Actor)
		if a.Actor != "" && (a.Kind == approvers.AuditDecided || a.Kind == approvers.AuditDenied || a.Kind == approvers.AuditClosed && req.State == approvers.Withdrawn) {
			got[a.Actor.User()]++
		}
	}
	for _, who := range []string{"U0001", "U0002", "U0003", "U0004", "U0100", "U0101"} {
		if more := got[who] - want.records[who]; more < 0 && !atLeast[who] || more > want.maybe[who] {
			fault("%s: the history has %d records of clicks by %s; %d arrived:%s of %+v", n, got[who], who, want.records[who], found, c.clicksOn(req.ID))
		}
	}
	return nil
}

// clicksOn lists the clicks on a request that arrived at the bot.
func (c *chaos) clicksOn(request string) (all []chaosArrival) {
	for _, x := range c.arrivals {
		if x.request == request {
			all = append(all, x)
		}
	}
	return all
}

// The method "messages" checks the messages that Slack shows. No message may appear twice, and nobody may see a button
// that approves, rejects or withdraws a request.
func (c *chaos) messages(fault func(string, ...any)) {
	for outboxID, posts := range c.posts {
		for post, n := range posts {
			if n != 1 {
				fault("outbox message %s, part %d: posted %d times in round %d", outboxID, post.part, n, post.round)
			}
		}
	}
	for who, places := range map[string][]string{"teo": {"#support-approvals", "U0BOT"}, "ingrid": {"U0BOT"}, "kenji": {"U0BOT"}, "sam": {"U0BOT"}, "ada": {"U0BOT"}, "priya": {"U0BOT"}} {
		for _, place := range places {
			messages, err := c.as(who).Messages(c.ctx, place, "")
			c.ok(err)
			for _, m := range messages {
				for _, label := range []string{"Approve", "Reject", "Withdraw"} {
					if e, ok := workspaceclient.Button(m.Blocks, label); ok && e.ActionID != "" {
						fault("%s still sees %s in %s: %s", who, label, place, m.Text)
						break
					}
				}
			}
		}
	}
}
