package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"countersign/internal/demo/workspaceclient"
)

// guest is a person in the channel without the permission to ask or to decide.
const guest = "U0900"

type person struct {
	id, name string
	workspaceclient.Client
	busy  atomic.Bool // the person waits for the app's answer
	talks []threadOf
}

// threadOf is the channel and the thread in which a person writes.
type threadOf struct {
	channel string // the channel's name for people
	root    string // ts of the thread's root; empty: none
}

func (s *simulation) hire() {
	client := &http.Client{Transport: inProcess{s.ws.Handler()}}
	s.people = map[string]*person{}
	for _, who := range [][2]string{
		{"U0100", "sam"}, {"U0001", "ada"}, {"U0002", "teo"}, {"U0003", "ingrid"}, {"U0004", "kenji"}, {"U0101", "priya"}, {guest, "gus"},
	} {
		p := &person{id: who[0], name: who[1], Client: workspaceclient.Client{Base: simulationBase, User: who[1], HTTP: client}}
		s.people[p.id] = p
		s.order = append(s.order, p)
	}
}

// The method "somebody" makes one person act.
func (s *simulation) somebody() {
	p := s.order[s.rnd.IntN(len(s.order))]
	if p.busy.Load() {
		return
	}
	if views, err := p.Views(context.Background()); err == nil && len(views) > 0 && !s.chance(4) {
		s.fills(p, views[len(views)-1])
		return
	}
	switch n := s.rnd.IntN(100); {
	case n < 12:
		if !s.chance(4) {
			p = s.order[0] // Sam makes most of the requests
		}
		s.says(p)
	case n < 92:
		s.looks(p)
	case n < 94:
		s.corrects(p)
	case n < 98:
		s.commands(p)
	default:
		s.snoozes(p)
	}
}

// busyWith makes a person do an action that the app must acknowledge. The action runs concurrently with all other work.
func (s *simulation) busyWith(p *person, what string, do func(context.Context) error) {
	s.step("%s %s", p.name, what)
	s.clicks++
	p.busy.Store(true)
	go func() {
		_ = do(context.Background()) // an error means that the app did not get the action
		p.busy.Store(false)
	}()
}

func (s *simulation) says(p *person) {
	s.said++
	n := fmt.Sprintf("m%d", s.said)
	s.authors[n] = p.id
	t := threadOf{channel: "#support"}
	text := "@Countersign please " + n
	switch {
	case s.chance(5):
		t.channel = "countersign"
		text = n
		if s.chance(6) {
			text = "new conversation " + n
		}
	case len(s.threads) > 0 && s.chance(2):
		t = s.threads[max(0, len(s.threads)-1-s.rnd.IntN(4))]
		if s.chance(2) {
			text = "and " + n
		}
	case s.chance(12):
		t.channel = "#general"
	}
	s.step("%s says %s in %s %s", p.name, n, t.channel, t.root)
	s.messages++
	ts, err := p.Say(context.Background(), t.channel, t.root, text)
	if err != nil {
		s.note("refused: %v", err)
		return
	}
	p.talks = append(p.talks, threadOf{channel: t.channel, root: ts})
	if t.channel == "#support" && t.root == "" {
		s.threads = append(s.threads, threadOf{channel: t.channel, root: ts})
	}
}

// buttonSeen is a button that a person sees.
type buttonSeen struct {
	m workspaceclient.Message
	e workspaceclient.Element
}

// The method "looks" makes a person read one channel or thread, and click a button in a message.
func (s *simulation) looks(p *person) {
	var seen []buttonSeen
	for _, m := range s.before(p) {
		for _, e := range workspaceclient.Elements(m.Blocks) {
			if e.Type == "button" && e.ActionID != "link" {
				seen = append(seen, buttonSeen{m, e})
			}
		}
	}
	// People click buttons that decide more often than other buttons.
	weight := func(b buttonSeen) int {
		switch b.e.ActionID {
		case "approve", "approve_all", "approve_typed", "happened", "did_not":
			return 20
		case "arguments", "allow_more", "accept_grant", "decline_grant", "modify", "choose_0", "choose_1", "try_again":
			return 8
		case "reject", "reject_all", "revoke_grant", "answer":
			return 4
		}
		return 1
	}
	total := 0
	for _, b := range seen {
		total += weight(b)
	}
	if total == 0 {
		return
	}
	at := s.rnd.IntN(total)
	for _, b := range seen {
		if at -= weight(b); at >= 0 {
			continue
		}
		if !s.honest(b) {
			return
		}
		s.busyWith(p, fmt.Sprintf("clicks %s of %s", b.e.ActionID, b.e.Value), func(ctx context.Context) error { return p.Press(ctx, b.m, b.e) })
		return
	}
}

// honest reports whether the statement on a button about a run is true. People click a button only if its statement is
// true, because in the simulation people find out the facts before they report.
func (s *simulation) honest(b buttonSeen) bool {
	ref, _, _ := strings.Cut(b.e.Value, " ")
	switch b.e.ActionID {
	case "happened":
		return s.ran[ref] > 0
	case "did_not":
		return s.ran[ref] == 0
	}
	return true
}

// The method "before" returns the newest messages of one channel or thread that a person reads.
func (s *simulation) before(p *person) []workspaceclient.Message {
	places := []threadOf{{channel: "countersign"}, {channel: "countersign"}, {channel: "#support-approvals"}, {channel: "#support-approvals"}}
	if p == s.order[0] {
		places = places[:1]
	}
	for i := range 2 {
		if i < len(s.threads) {
			places = append(places, s.threads[len(s.threads)-1-s.rnd.IntN(min(len(s.threads), 6))])
		}
	}
	where := places[s.rnd.IntN(len(places))]
	messages, err := p.Messages(context.Background(), where.channel, where.root)
	if err != nil {
		return nil
	}
	return messages[max(0, len(messages)-25):]
}

// The method "fills" makes a person fill in and send the open form, or close it.
func (s *simulation) fills(p *person, v workspaceclient.View) {
	if v.Submit == nil || s.chance(10) {
		if v.Submit == nil && !s.chance(6) {
			return // the form may still be loading
		}
		s.busyWith(p, "closes a form", func(ctx context.Context) error { return p.Close(ctx, v.ID) })
		return
	}
	values := map[string]string{}
	for _, in := range inputs(v.Blocks) {
		if text, fill := s.fill(in); fill {
			values[in.block] = text
		}
	}
	s.busyWith(p, fmt.Sprintf("sends %s %v", v.CallbackID, sum([]byte(fmt.Sprint(values)))), func(ctx context.Context) error { return p.Submit(ctx, v.ID, values) })
}

// simulationInput is a field of a form.
type simulationInput struct {
	block, kind, label, initial string
	options                     []string
}

func inputs(blocks json.RawMessage) (out []simulationInput) {
	var list []struct {
		Type    string
		BlockID string `json:"block_id"`
		Label   struct{ Text string }
		Element struct {
			Type    string
			Initial string `json:"initial_value"`
			Options []struct{ Value string }
		}
	}
	if json.Unmarshal(blocks, &list) != nil {
		return nil
	}
	for _, b := range list {
		if b.Type != "input" {
			continue
		}
		in := simulationInput{block: b.BlockID, kind: b.Element.Type, label: b.Label.Text, initial: b.Element.Initial}
		for _, o := range b.Element.Options {
			in.options = append(in.options, o.Value)
		}
		out = append(out, in)
	}
	return out
}

// fill decides what a person enters into an input, mostly at random. fill returns false if the input stays empty.
func (s *simulation) fill(in simulationInput) (text string, fill bool) {
	switch {
	case in.block == "typed":
		_, want, _ := strings.Cut(in.label, ": ")
		if s.chance(6) {
			return "wrong", true
		}
		return want, true
	case in.kind == "users_select":
		return s.order[s.rnd.IntN(len(s.order))].name, true
	case len(in.options) > 0:
		return in.options[s.rnd.IntN(len(in.options))], true
	case in.block == "uses":
		return fmt.Sprint(1 + s.rnd.IntN(3)), true
	case strings.HasSuffix(in.block, "amount"):
		if s.chance(2) {
			return in.initial, true
		}
		return []string{"7", "49.99", "650"}[s.rnd.IntN(3)], true
	case in.block == "reason" || in.block == "result":
		return "because", !s.chance(10)
	}
	return "", false
}

// The method "corrects" makes a person edit or delete their message.
func (s *simulation) corrects(p *person) {
	if len(p.talks) == 0 {
		return
	}
	t := p.talks[s.rnd.IntN(len(p.talks))]
	s.taken[t.root] = true
	var err error
	if s.chance(2) {
		s.step("%s edits %s", p.name, t.root)
		err = p.Edit(context.Background(), t.channel, t.root, "something else")
	} else {
		s.step("%s deletes %s", p.name, t.root)
		err = p.Delete(context.Background(), t.channel, t.root)
	}
	if err != nil {
		s.note("refused: %v", err)
	}
}

func (s *simulation) commands(p *person) {
	text := []string{"help", "away for 10 minutes", "away for 20 minutes, delegate to @" + s.order[s.rnd.IntN(len(s.order))].name, "back", "grants", "nonsense"}[s.rnd.IntN(6)]
	s.busyWith(p, "commands "+text, func(ctx context.Context) error {
		_, err := p.Command(ctx, "countersign", "/countersign", text)
		return err
	})
}

func (s *simulation) snoozes(p *person) {
	until := time.Time{}
	if s.chance(2) {
		until = time.Now().Add(time.Duration(1+s.rnd.IntN(20)) * time.Minute)
	}
	s.step("%s pauses notifications until %s", p.name, until.Format(time.TimeOnly))
	if err := p.Snooze(context.Background(), until); err != nil {
		s.note("refused: %v", err)
	}
}

// The method "idle" reports whether no person is waiting for the app.
func (s *simulation) idle() bool {
	return !slices.ContainsFunc(s.order, func(p *person) bool { return p.busy.Load() })
}
