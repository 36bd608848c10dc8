package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/internal/visitor"
	"countersign/store"
)

// sceneTimeout bounds how long one scene of a scenario may take until everything that it leads to is shown.
const sceneTimeout = 30 * time.Second

// player plays a scenario against a running demo: it does what people do through the page's API, and reads what became of it.
type player struct {
	base   string
	team   string
	store  store.Store
	out    io.Writer
	place  string             // of the conversation: team, channel, thread
	root   string             // ts of the thread's root; empty in a DM
	to     string             // the channel as people name it
	told   map[string]string  // what was printed of each call
	answer map[string]bool    // surfaces of answers that were printed
	last   store.Conversation // as it was seen last
}

// play runs a scenario and prints its transcript. It reports how many lines differ from what was expected.
func (p *player) play(ctx context.Context, s scenario) (differ int, err error) {
	p.told, p.answer = map[string]string{}, map[string]bool{}
	for _, sc := range s.scene {
		fmt.Fprintln(p.out, sc.text)
		ctx, cancel := context.WithTimeout(ctx, sceneTimeout)
		seen, err := p.act(ctx, sc)
		cancel()
		if err != nil {
			return differ, answerNo("%s:%d: %s: %w", s.name, sc.line, sc.text, err)
		}
		differ += p.compare(sc.expect, seen)
	}
	return differ, nil
}

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

// act does what the scene says, waits until it has had its effect, and returns what is new.
func (p *player) act(ctx context.Context, sc scene) ([]string, error) {
	who := visitor.Visitor{Base: p.base, User: strings.ToLower(sc.who)}
	do := p.press
	if sc.does == "says" {
		do = p.say
	}
	if err := do(ctx, who, sc); err != nil {
		return nil, err
	}
	var lines []string
	err := who.Await(ctx, "everything that follows from it", func() (bool, error) {
		var settled bool
		err := p.store.View(ctx, func(r store.Reader) (err error) {
			lines, settled, err = p.look(r, sc)
			return err
		})
		return settled, err
	})
	if err != nil {
		return nil, err
	}
	return lines, p.remember(ctx)
}

func (p *player) say(ctx context.Context, who visitor.Visitor, sc scene) error {
	channel, thread := p.to, p.root
	switch sc.where {
	case "":
	case "a DM":
		channel, thread = "countersign", ""
	default:
		channel, thread = sc.where, ""
	}
	ts, err := who.Say(ctx, channel, thread, sc.detail)
	if err != nil || sc.where == "" {
		return err
	}
	p.to, p.root = channel, ts
	messages, err := who.Messages(ctx, channel, "")
	if err != nil {
		return err
	}
	if len(messages) == 0 {
		return fmt.Errorf("the message is not to be seen in %s", channel)
	}
	id := messages[0].Channel
	p.place = p.team + "/" + id + "/" + ts
	if sc.where == "a DM" {
		p.place, p.root = p.team+"/"+id+"/", ""
	}
	p.last = store.Conversation{}
	return nil
}

// look reads what is new in the conversation, and whether nothing more will happen by itself.
func (p *player) look(r store.Reader, sc scene) (lines []string, settled bool, err error) {
	conv, err := r.ConversationAt(p.place)
	if errors.Is(err, store.ErrNotFound) {
		return nil, false, nil // not heard yet
	}
	if err != nil {
		return nil, false, err
	}
	if sc.does == "says" && conv.Messages == p.last.Messages {
		return nil, false, nil
	}
	messages, err := r.Messages(conv.ID, 0)
	if err != nil {
		return nil, false, err
	}
	seen := map[string]bool{}
	for _, m := range messages {
		if m.Turn == "" || seen[m.Turn] {
			continue
		}
		seen[m.Turn] = true
		said, done, err := p.lookTurn(r, m.Turn)
		if err != nil {
			return nil, false, err
		}
		lines = append(lines, said...)
		settled = done // of the last turn
	}
	return lines, settled, nil
}

// lookTurn reads what is new in a turn: its calls, then what was answered. done says that it ended or waits for people, and that Slack shows it.
func (p *player) lookTurn(r store.Reader, id string) (lines []string, done bool, err error) {
	turn, err := r.Turn(id)
	if err != nil {
		return nil, false, err
	}
	calls, err := r.Calls(id)
	if err != nil {
		return nil, false, err
	}
	done = turn.Ended() || turn.State == approvers.TurnWaiting
	for _, c := range calls {
		line, waits, err := describe(r, c)
		if err != nil {
			return nil, false, err
		}
		if line == "" || (turn.State == approvers.TurnWaiting && c.Outcome == "" && !waits) {
			done = false
			continue
		}
		if p.told[c.ID] != line {
			lines = append(lines, line)
		}
	}
	surfaces, err := r.SurfacesOf(id)
	if err != nil {
		return nil, false, err
	}
	for _, s := range surfaces {
		if s.State == store.SurfaceWanted {
			done = false
		}
		if p.answer[s.ID] {
			continue
		}
		switch s.Kind {
		case store.SurfaceAnswer, store.SurfaceProblem:
			lines = append(lines, "Countersign: "+p.said(r, turn, s))
		case store.SurfaceQueued:
			lines = append(lines, "Countersign says that the message waits")
		}
	}
	return lines, done, nil
}

// said is what a surface of the agent's says, on one line.
func (p *player) said(r store.Reader, turn approvers.Turn, s store.Surface) string {
	text := turn.Problem
	if s.Kind == store.SurfaceAnswer {
		messages, err := r.Messages(turn.Conversation, 0)
		if err != nil {
			return err.Error()
		}
		for _, m := range messages {
			if m.Turn == turn.ID && m.Role == store.RoleAssistant && m.Step == s.Step {
				text = m.Text
			}
		}
	}
	return strings.Join(strings.Fields(text), " ")
}

// remember notes what was printed, so that the next scene shows only what is new.
func (p *player) remember(ctx context.Context) error {
	return p.store.View(ctx, func(r store.Reader) error {
		var err error
		if p.last, err = r.ConversationAt(p.place); err != nil {
			return err
		}
		messages, err := r.Messages(p.last.ID, 0)
		if err != nil {
			return err
		}
		for _, m := range messages {
			calls, err := r.Calls(m.Turn)
			if err != nil {
				return err
			}
			for _, c := range calls {
				if p.told[c.ID], _, err = describe(r, c); err != nil {
					return err
				}
			}
			surfaces, err := r.SurfacesOf(m.Turn)
			if err != nil {
				return err
			}
			for _, s := range surfaces {
				p.answer[s.ID] = true
			}
		}
		return nil
	})
}
