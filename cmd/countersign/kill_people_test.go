package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/demo/workspace"
	"countersign/internal/demo/workspaceclient"
)

// oneAddress serves a model and a workspace at one address.
func oneAddress(model *scriptedmodel.Server, ws *workspace.Server) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/v1/", model)
	mux.Handle("/", ws.Handler())
	return mux
}

// ask is a message to the bot that begins a conversation.
type ask struct {
	number string
	root   string // the message's ts
	closed bool   // the message was answered, and no button is left to click
}

// deed is a click or a submitted form that the bot acknowledged to the person.
type deed struct {
	user    string
	does    string // the button's action
	ref     string // the request, or the execution
	trigger string // names the click
	view    string // identifies the submitted form; empty: a click
}

const (
	mostOpen   = 6 // maximum number of open conversations
	glance     = 40 * time.Millisecond
	formOpens  = 1500 * time.Millisecond // how long a person waits for a form to open; the bot may have been killed
	personTurn = 10 * time.Second        // time limit of one action
)

// After a click, a person looks at the button clickAgain times on average before they click it again. If they clicked
// more often, the bot could not keep up on a slow machine.
const clickAgain = 8

// clicker is a person who clicks.
type clicker struct {
	workspaceclient.Client
	random  *rand.Rand
	left    map[string]bool // unknown outcomes that this person has left open once
	clicked map[string]bool // values of the buttons whose clicks the bot acknowledged
}

// live acts as a person. live does one possible action after the other, until all requests are settled.
func (c *killHarness) live(ctx context.Context, name string, random *rand.Rand) error {
	p := &clicker{Client: workspaceclient.Client{Base: c.conf.Base, User: name}, random: random, left: map[string]bool{}, clicked: map[string]bool{}}
	for {
		settled, err := c.look(ctx, p)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if settled {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s waited in vain for everything to settle: %s", name, c.open())
		case <-time.After(glance):
		}
	}
}

// The method "look" reads the conversations in which the person works, and does one possible action. The result is true
// if nothing new begins and everything is settled.
func (c *killHarness) look(ctx context.Context, p *clicker) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, personTurn)
	defer cancel()
	live, err := c.reads(ctx, p.Client)
	if c.spares != nil {
		live = slices.DeleteFunc(live, func(t clickable) bool { return c.spares(p.User, t) })
	}
	if err != nil || len(live) > 0 {
		if len(live) > 0 {
			if t := live[p.random.IntN(len(live))]; !p.clicked[t.Value] || p.random.IntN(clickAgain) == 0 {
				c.act(ctx, p, t)
			}
		}
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	open := slices.IndexFunc(c.asks, func(a *ask) bool { return !a.closed }) >= 0
	working := slices.ContainsFunc(c.jobs, func(j *job) bool { return !j.closed })
	return c.last && !open && !working, nil
}

// clickable is a button that can be clicked.
type clickable struct {
	workspaceclient.Message
	workspaceclient.Element
}

// The method "reads" reads the conversations in which the person works, and lists their buttons. As long as fewer than
// mostOpen conversations are open, Sam also begins new conversations.
func (c *killHarness) reads(ctx context.Context, who workspaceclient.Client) ([]clickable, error) {
	if who.User != "sam" {
		messages, err := who.Messages(ctx, "#support-approvals", "")
		return clickables(messages), err
	}
	c.mu.Lock()
	asks, last := slices.Clone(c.asks), c.last
	c.mu.Unlock()
	var all []clickable
	if c.conf.Gateway != "" { // the owner of another agent is asked what happened
		messages, err := who.Messages(ctx, "countersign", "")
		if err != nil {
			return nil, err
		}
		all = clickables(messages)
	}
	open := 0
	for _, a := range asks {
		if a.closed {
			continue
		}
		messages, err := who.Messages(ctx, "#support", a.root)
		if err != nil {
			return nil, err
		}
		found := clickables(messages)
		answered := slices.ContainsFunc(messages, func(m workspaceclient.Message) bool {
			return strings.Contains(m.Text, finished(a.number)) && m.BotID != ""
		})
		if answered && len(found) == 0 {
			c.mu.Lock()
			a.closed = true
			c.mu.Unlock()
			continue
		}
		open++
		all = append(all, found...)
	}
	if open < mostOpen && !last {
		return all, c.order(ctx, who, len(asks))
	}
	return all, nil
}

// orders lists Sam's requests. A request has one or two steps. Some calls run immediately, and other calls need
// approval.
var orders = []string{"ask", "once", "act look", "ask once", "act ask then once", "look ask ask", "act then ask look", "once act"}

func (c *killHarness) order(ctx context.Context, who workspaceclient.Client, n int) error {
	number := fmt.Sprint(1000 + n) // all of one length, so that no number is a prefix of another
	root, err := who.Say(ctx, "#support", "", "@Countersign do "+orders[n%len(orders)]+" #"+number)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asks = append(c.asks, &ask{number: number, root: root})
	return nil
}

func clickables(messages []workspaceclient.Message) []clickable {
	var out []clickable
	for _, m := range messages {
		for _, e := range workspaceclient.Elements(m.Blocks) {
			if e.Type == "button" && e.Value != "" && e.ActionID != "arguments" { // Details… stays on decided cards
				out = append(out, clickable{m, e})
			}
		}
	}
	return out
}

// act performs the action of a button. If the bot does not acknowledge an action, the action does not count. A missing
// acknowledgement is not an error, because the campaign may have killed the bot.
func (c *killHarness) act(ctx context.Context, p *clicker, t clickable) {
	ref, _, _ := strings.Cut(t.Value, " ")
	switch t.ActionID {
	case "withdraw":
		if p.random.IntN(20) > 0 {
			return
		}
	case "reject":
		if p.random.IntN(2) > 0 {
			return
		}
		c.form(ctx, p, t, ref, map[string]string{"reason": "not now"})
		return
	case "reject_all":
		if p.random.IntN(4) == 0 {
			c.form(ctx, p, t, ref, map[string]string{"reason": "none of it"})
		}
		return
	case "happened", "did_not", "leave": // the person reports the true outcome, like a person who has checked the outcome
		seen, err := os.ReadFile(c.conf.Seen)
		if err != nil {
			return
		}
		happened := strings.Contains(string(seen), " "+ref+"\n")
		if t.ActionID == "leave" && p.left[ref] || t.ActionID == "happened" && !happened || t.ActionID == "did_not" && (happened || c.frozen.Load() > 0) {
			return
		}
		p.left[ref] = p.left[ref] || t.ActionID == "leave"
		if t.ActionID == "happened" {
			c.form(ctx, p, t, ref, map[string]string{"result": "it is in the file"})
			return
		}
	case "comment":
		if p.random.IntN(4) == 0 {
			c.form(ctx, p, t, ref, map[string]string{"reason": "seen"})
		}
		return
	case "approve", "approve_all", "try_again": // try_again: the turn was stopped, because two processes were killed during it
	default: // buttons that ask for more people, or change the arguments
		return
	}
	c.press(ctx, p, t, deed{user: p.User, does: t.ActionID, ref: ref})
}

// callNumber matches the number that the model gives a call: the number of the order, the step, and the call's place in
// the step.
var callNumber = regexp.MustCompile(`\b\d{4}\.\d\.\d\b`)

// press clicks the button t. If the click is acknowledged, press records the deed d.
func (c *killHarness) press(ctx context.Context, p *clicker, t clickable, d deed) bool {
	c.wake("click")
	if _, approves := trialIDs[p.User]; approves && strings.HasPrefix(t.ActionID, "approve") {
		c.mu.Lock()
		for _, number := range callNumber.FindAllString(string(t.Blocks), -1) {
			c.cards[number] = true
		}
		c.mu.Unlock()
	}
	answer, err := c.post(ctx, p.Client, "/actions", map[string]string{"channel": t.Channel, "ts": t.TS, "action_id": t.ActionID, "block_id": t.BlockID, "value": t.Value})
	if err != nil {
		return false
	}
	c.wake("acknowledged")
	p.clicked[t.Value] = true
	d.trigger = answer.Trigger
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deeds = append(c.deeds, d)
	return true
}

// form clicks a button that opens a form, fills it in and sends it.
func (c *killHarness) form(ctx context.Context, p *clicker, t clickable, ref string, values map[string]string) {
	open, err := p.Views(ctx)
	if err != nil {
		return
	}
	if len(open) > 0 { // forms that a killed bot left open
		c.post(ctx, p.Client, "/views/"+open[len(open)-1].ID+"/close", map[string]bool{"all": true})
	}
	if !c.press(ctx, p, t, deed{user: p.User, does: "open", ref: ref}) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, formOpens)
	defer cancel()
	for {
		views, err := p.Views(ctx)
		if err != nil {
			return
		}
		if len(views) > 0 && views[len(views)-1].Submit != nil {
			c.submit(ctx, p.Client, views[len(views)-1].ID, deed{user: p.User, does: t.ActionID, ref: ref}, values)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(glance / 2):
		}
	}
}

func (c *killHarness) submit(ctx context.Context, who workspaceclient.Client, view string, d deed, values map[string]string) {
	c.wake("click")
	if who.Submit(ctx, view, values) != nil {
		return
	}
	c.wake("acknowledged")
	d.view = view
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deeds = append(c.deeds, d)
}

// answer is the workspace's answer to a person.
type answer struct {
	OK      bool   `json:"ok"`
	Error   string `json:"error"`
	Trigger string `json:"trigger_id"`
}

// post sends one request of a person, and returns parts of the answer that the page ignores.
func (c *killHarness) post(ctx context.Context, who workspaceclient.Client, path string, in any) (answer, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return answer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.conf.Base+"/people/"+who.User+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	var a answer
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return a, err
	}
	if !a.OK {
		return a, fmt.Errorf("%s: %s", path, a.Error)
	}
	return a, nil
}

// isStuck returns a function that reports whether a count has stayed the same for settleTime. Therefore a slow machine
// may take any time for the whole work, as long as the count changes.
func isStuck(count func() int) func() bool {
	last, since := count(), time.Now()
	return func() bool {
		if n := count(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > settleTime
	}
}

// The method "unsettled" returns the number of conversations and jobs that are not settled.
func (c *killHarness) unsettled() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, a := range c.asks {
		if !a.closed {
			n++
		}
	}
	for _, j := range c.jobs {
		if !j.closed {
			n++
		}
	}
	return n
}

// open lists the conversations and jobs that are not settled, for a failure message.
func (c *killHarness) open() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var open []string
	for _, a := range c.asks {
		if !a.closed {
			open = append(open, a.number)
		}
	}
	var jobs []string
	for _, j := range c.jobs {
		if !j.closed {
			jobs = append(jobs, fmt.Sprintf("%s after %d lives: %s", j.number, j.lives, j.said))
		}
	}
	return fmt.Sprintf("%d conversations are open %v, and %d jobs %v", len(open), open, len(jobs), jobs)
}
