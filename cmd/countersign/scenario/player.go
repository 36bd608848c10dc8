package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"countersign/agent/client"
	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/internal/demo/workspaceclient"
	"countersign/store"
)

// actionTimeout limits the time from an action until all of its effects are shown.
const actionTimeout = 30 * time.Second

// Demo is the running demo with which a scenario is played.
type Demo interface {
	// Store is the store of the bot. The store stays the same when the bot restarts.
	Store() store.Store
	// WorkspaceURL is the address of the workspace's page.
	WorkspaceURL() string
	// Settled reports whether all messages are delivered and handled. If the result settled is true, the state does not
	// change until a timer becomes due or a person acts. The result paused is true if the bot is paused and work in
	// progress waits for the end of the pause.
	Settled(ctx context.Context) (settled, paused bool, err error)

	// Now is the time of the demo.
	Now() time.Time
	// NextDue returns the time at which the next timer falls due. If no timer is set, NextDue returns zero.
	NextDue(ctx context.Context) (time.Time, error)
	// Advance sets the clock forward to a time. The bot then does all work that becomes due.
	Advance(to time.Time)

	// Reload puts another policy file into force. If the file is refused, the result problems has the reasons.
	Reload(ctx context.Context, path string) (problems []error, err error)
	// Restart stops the bot, lets time pass, and starts another bot on the same store.
	Restart(ctx context.Context, down time.Duration) error
	// StopDuring stops the bot at the next run of a tool, before or after the tool acts.
	StopDuring(tool string, afterItActed bool)
	// Interrupted reports whether the bot has stopped for StopDuring. Resume then starts another bot.
	Interrupted() bool
	Resume(ctx context.Context) error
	// Gateway returns a client with which another agent uses the gateway.
	Gateway(client string) (*client.Client, error)
	// Ended returns a channel that is closed when the bot has ended. Err then returns the reason.
	Ended() <-chan struct{}
	Err() error
}

// player plays a scenario with a demo. player acts for people through the page's API, and reads the outcome.
type player struct {
	script  Scenario
	demo    Demo
	out     io.Writer
	team    string
	people  []workspaceclient.Person
	talks   []talk   // conversations in the order of their start; the last one is the current one
	asked   []asked  // calls of other agents
	clicked []string // channels where people clicked or typed a command
	asides  []string
	known   known
}

// talk is a conversation with the bot.
type talk struct {
	who     string // the person who began the conversation
	place   string // the conversation's team, channel and thread
	channel string // the channel's name for people
	root    string // ts of the thread's root; empty in a DM
}

// talkLines are the lines for messages of people.
var talkLines = []line{
	{"NAME in #channel: text · NAME in a DM: text", regexp.MustCompile(`^(\w+) in (#[\w-]+|a DM): (.+)$`), func(m []string) (action, error) {
		return said(m[1], m[2], m[3])
	}},
	{"NAME: text", regexp.MustCompile(`^(\w+): (.+)$`), func(m []string) (action, error) { return said(m[1], "", m[2]) }},
}

func said(who, where, text string) (action, error) {
	return action{where: where, play: func(ctx context.Context, p *player) error {
		if strings.HasPrefix(text, "/") {
			return p.command(ctx, who, where, text)
		}
		return p.say(ctx, who, where, text)
	}}, nil
}

// Play plays a scenario with a demo whose bot is connected, and prints the transcript. Play returns the number of lines
// that differ from the scenario's expected lines.
func Play(ctx context.Context, s Scenario, demo Demo, team string, out io.Writer) (differ int, err error) {
	return (&player{script: s, demo: demo, team: team, out: out}).play(ctx)
}

// play plays the actions one after the other.
func (p *player) play(ctx context.Context) (differ int, err error) {
	if p.people, err = p.as("").People(ctx); err != nil {
		return 0, cli.CouldNot("the workspace does not say who is in it: %w", err)
	}
	if _, err := p.news(ctx); err != nil { // existing content is not news
		return 0, err
	}
	for _, a := range p.script.actions {
		fmt.Fprintln(p.out, a.text)
		seen, err := p.act(ctx, a)
		if err != nil {
			return differ, cli.AnswerNo("%s:%d: %s: %w", p.script.Name, a.line, a.text, err)
		}
		differ += p.compare(a.expect, seen)
	}
	return differ, nil
}

func (p *player) as(name string) workspaceclient.Client {
	return workspaceclient.Client{Base: p.demo.WorkspaceURL(), User: strings.ToLower(name)}
}

// act plays an action, waits until all its effects are visible, and returns the new lines of the transcript.
func (p *player) act(ctx context.Context, a action) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, actionTimeout)
	defer cancel()
	p.asides = nil
	if err := a.play(ctx, p); err != nil {
		return nil, err
	}
	if err := p.settle(ctx); err != nil {
		return nil, err
	}
	news, err := p.news(ctx)
	return append(p.asides, news...), err
}

// The method "aside" adds a line about the action itself to the transcript. The line is not about the effects of the
// action.
func (p *player) aside(line string) { p.asides = append(p.asides, line) }

// compare prints the lines that were seen, and marks differences from the expected lines.
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
		return fmt.Errorf("the message does not appear in %s", t.channel)
	}
	if where != "a DM" {
		t.root = ts
	}
	t.place = p.team + "/" + messages[0].Channel + "/" + t.root
	p.talks = append(slices.DeleteFunc(p.talks, func(o talk) bool { return o.place == t.place }), t)
	return nil
}

// command sends a slash command. Slack accepts no slash commands in threads. Therefore a command without a channel goes
// to the channel of the current thread.
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
	_, err := p.as(who).Command(ctx, where, name, rest) // the answer to the command is part of the news
	return err
}

// settle waits until all messages are delivered and handled. It also waits until every turn has ended, waits for
// people, or waits for the end of a pause.
func (p *player) settle(ctx context.Context) error {
	for {
		settled, err := p.settled(ctx)
		if p.demo.Interrupted() {
			if err := p.demo.Resume(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil || settled {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the consequences did not appear in time: %w", ctx.Err())
		case <-p.demo.Ended():
			if p.demo.Interrupted() {
				continue
			}
			return fmt.Errorf("the bot ended: %w", p.demo.Err())
		case <-time.After(3 * time.Millisecond):
		}
	}
}

func (p *player) settled(ctx context.Context) (bool, error) {
	settled, paused, err := p.demo.Settled(ctx)
	if err != nil || !settled || paused {
		return settled, err
	}
	resting := true
	err = p.demo.Store().View(ctx, func(r store.Reader) error {
		resting = true
		for _, t := range p.talks {
			conv, err := r.ConversationAt(t.place)
			if errors.Is(err, store.ErrNotFound) || err == nil && conv.Turn == "" {
				continue // no agent answers there, or no turn is in progress
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
