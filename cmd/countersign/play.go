package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/internal/visitor"
	"countersign/store"
)

// sceneTimeout bounds how long one scene of a scenario may take until everything that it leads to is shown.
const sceneTimeout = 30 * time.Second

// player plays a scenario with a demo: it does what people do through the page's API, and reads what became of it.
type player struct {
	script  scenario
	setup   setup
	stage   stage
	clock   *clock
	cut     *cut
	out     io.Writer
	lasting context.Context // of the whole play: the bot lives longer than a scene
	bot     *running
	team    string
	people  []visitor.Person
	talks   []talk   // conversations, in order of their beginning; the last is the one that goes on
	clicked []string // channels where people clicked or typed a command
	asides  []string
	known   known
}

// talk is a conversation with the bot.
type talk struct {
	who     string // began it
	place   string // team, channel, thread
	channel string // as people name it
	root    string // ts of the thread's root; empty in a DM
}

// talkLines are what people say.
var talkLines = []line{
	{"NAME in #channel: text · NAME in a DM: text", regexp.MustCompile(`^(\w+) in (#[\w-]+|a DM): (.+)$`), func(m []string) (scene, error) {
		return said(m[1], m[2], m[3])
	}},
	{"NAME: text", regexp.MustCompile(`^(\w+): (.+)$`), func(m []string) (scene, error) { return said(m[1], "", m[2]) }},
}

func said(who, where, text string) (scene, error) {
	return scene{where: where, play: func(ctx context.Context, p *player) error {
		if strings.HasPrefix(text, "/") {
			return p.command(ctx, who, where, text)
		}
		return p.say(ctx, who, where, text)
	}}, nil
}

// play plays a scenario and prints its transcript. It reports how many lines differ from what was expected.
func (p *player) play(ctx context.Context) (differ int, err error) {
	if p.people, err = p.as("").People(ctx); err != nil {
		return 0, couldNot("the workspace does not say who is in it: %w", err)
	}
	if _, err := p.news(ctx); err != nil { // what is there already is no news
		return 0, err
	}
	for _, sc := range p.script.scene {
		fmt.Fprintln(p.out, sc.text)
		seen, err := p.act(ctx, sc)
		if err != nil {
			return differ, answerNo("%s:%d: %s: %w", p.script.name, sc.line, sc.text, err)
		}
		differ += p.compare(sc.expect, seen)
	}
	return differ, nil
}

// as is a person at the page.
func (p *player) as(name string) visitor.Visitor {
	return visitor.Visitor{Base: p.stage.base, User: strings.ToLower(name)}
}

// act plays a scene, waits until it has had its effect, and returns what is new.
func (p *player) act(ctx context.Context, sc scene) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, sceneTimeout)
	defer cancel()
	p.asides = nil
	if err := sc.play(ctx, p); err != nil {
		return nil, err
	}
	if err := p.settle(ctx); err != nil {
		return nil, err
	}
	news, err := p.news(ctx)
	return append(p.asides, news...), err
}

// aside notes something that is seen of the scene itself, and not of what follows from it.
func (p *player) aside(line string) { p.asides = append(p.asides, line) }

// compare prints what was seen, and marks what is not as expected.
func (p *player) compare(expect, seen []string) (differ int) {
	for i, line := range seen {
		if i < len(expect) && !matches(expect[i], line) {
			fmt.Fprintf(p.out, "! %s\n  expected: %s\n", line, expect[i])
			differ++
			continue
		}
		if i >= len(expect) {
			fmt.Fprintf(p.out, "! %s\n  expected nothing more\n", line)
			differ++
			continue
		}
		fmt.Fprintln(p.out, "  "+line)
	}
	for _, line := range expect[min(len(expect), len(seen)):] {
		fmt.Fprintf(p.out, "! nothing more was seen\n  expected: %s\n", line)
		differ++
	}
	return differ
}

func (p *player) say(ctx context.Context, who, where, text string) error {
	t := talk{who: who, channel: where}
	switch where {
	case "":
		t = p.talks[len(p.talks)-1]
	case "a DM":
		t.channel = "countersign"
	}
	me := p.as(who)
	ts, err := me.Say(ctx, t.channel, t.root, text)
	if err != nil || where == "" {
		return err
	}
	messages, err := me.Messages(ctx, t.channel, "")
	if err != nil {
		return err
	}
	if len(messages) == 0 {
		return fmt.Errorf("the message is not to be seen in %s", t.channel)
	}
	if where != "a DM" {
		t.root = ts
	}
	t.place = p.team + "/" + messages[0].Channel + "/" + t.root
	p.talks = append(slices.DeleteFunc(p.talks, func(o talk) bool { return o.place == t.place }), t)
	return nil
}

// command sends a slash command. Slack takes none in threads: without a place it goes to the channel of the thread.
func (p *player) command(ctx context.Context, who, where, text string) error {
	switch where {
	case "":
		where = p.talks[len(p.talks)-1].channel
	case "a DM":
		where = "countersign"
	}
	name, rest, _ := strings.Cut(text, " ")
	if !slices.Contains(p.clicked, where) {
		p.clicked = append(p.clicked, where)
	}
	_, err := p.as(who).Command(ctx, where, name, rest) // what it is answered with is among what is new
	return err
}

// settle waits until nothing more happens by itself: everything was delivered and handled, and every turn ended, or waits for people or the end of a pause.
func (p *player) settle(ctx context.Context) error {
	for {
		settled, err := p.settled(ctx)
		if p.cut.taken() {
			if err := p.away(ctx, 0); err != nil {
				return err
			}
			p.cut.mended()
			continue
		}
		if err != nil || settled {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for everything that follows from it: %w", ctx.Err())
		case <-p.bot.done:
			if p.cut.taken() {
				continue
			}
			return fmt.Errorf("the bot ended: %w", p.bot.err)
		case <-time.After(3 * time.Millisecond):
		}
	}
}

func (p *player) settled(ctx context.Context) (bool, error) {
	sent, all := p.stage.ws.Delivered()
	if !all {
		return false, nil
	}
	idle, err := p.bot.desk.Idle(ctx)
	if err != nil || !idle {
		return false, err
	}
	if now, all := p.stage.ws.Delivered(); now != sent || !all {
		return false, nil // what was handled meanwhile led to something
	}
	if pause, err := p.bot.desk.Paused(ctx); err != nil || pause.On {
		return err == nil, err // what is under way rests
	}
	resting := true
	err = p.stage.store.View(ctx, func(r store.Reader) error {
		resting = true
		for _, t := range p.talks {
			conv, err := r.ConversationAt(t.place)
			if errors.Is(err, store.ErrNotFound) || err == nil && conv.Turn == "" {
				continue // nobody answers there, or nothing is under way
			}
			if err != nil {
				return err
			}
			turn, err := r.Turn(conv.Turn)
			if err != nil {
				return err
			}
			resting = resting && (turn.Ended() || turn.State == approvers.TurnWaiting)
		}
		return nil
	})
	return resting, err
}
