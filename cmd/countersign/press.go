package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"countersign/internal/visitor"
	"countersign/store"
)

// buttons are the labels that a scenario's words stand for.
var buttons = map[string]string{
	"approves": "Approve", "rejects": "Reject", "modifies": "Modify", "withdraws": "Withdraw", "goes on": "Withdraw and go on",
}

// target is what a click is about: a request, or the turn whose waiting is given up.
type target struct {
	id      string
	places  []store.Surface                    // everything that shows it
	version func(store.Reader) (uint64, error) // rises when the click had its effect
	before  uint64
}

// press finds the button for what a scene does, where the person can see it, clicks it, and fills in the form that opens.
func (p *player) press(ctx context.Context, who visitor.Visitor, sc scene) error {
	t, err := p.find(ctx, sc)
	if err != nil {
		return err
	}
	message, button, err := p.button(ctx, who, sc, t)
	if err != nil {
		return err
	}
	if err := who.Press(ctx, message, button); err != nil {
		return err
	}
	if strings.HasSuffix(button.Text.Text, "…") { // it opens a form
		if err := fill(ctx, who, sc); err != nil {
			return err
		}
	}
	return who.Await(ctx, "the click to count", func() (moved bool, err error) {
		err = p.store.View(ctx, func(r store.Reader) error {
			now, err := t.version(r)
			moved = now != t.before
			return err
		})
		return moved, err
	})
}

// find finds what a scene is about in the conversation.
func (p *player) find(ctx context.Context, sc scene) (t target, err error) {
	err = p.store.View(ctx, func(r store.Reader) error {
		if t, err = p.findTarget(r, sc); err != nil {
			return err
		}
		t.before, err = t.version(r)
		return err
	})
	return t, err
}

func (p *player) findTarget(r store.Reader, sc scene) (target, error) {
	if sc.does == "goes on" {
		return p.turnTarget(r, p.last.Turn)
	}
	open, err := r.OpenRequests(store.RequestCursor{}, 1000)
	if err != nil {
		return target{}, err
	}
	for _, o := range open {
		if o.Tool != sc.tool || o.Conversation != p.last.ID {
			continue
		}
		t, err := p.turnTarget(r, o.Turn)
		if err != nil {
			return t, err
		}
		cards, err := r.SurfacesOf(o.ID)
		return target{id: o.ID, places: append(cards, t.places...), version: func(r store.Reader) (uint64, error) {
			now, err := r.Request(o.ID)
			return now.Version, err
		}}, err
	}
	return target{}, fmt.Errorf("nothing in this conversation waits for %s", sc.tool)
}

func (p *player) turnTarget(r store.Reader, turn string) (target, error) {
	if turn == "" {
		return target{}, errors.New("nothing in this conversation waits")
	}
	steps, err := r.SurfacesOf(turn)
	return target{id: turn, places: steps, version: func(r store.Reader) (uint64, error) {
		now, err := r.Turn(turn)
		return now.Version, err
	}}, err
}

// button looks through what the person can see for the button that names the target.
func (p *player) button(ctx context.Context, who visitor.Visitor, sc scene, t target) (visitor.Message, visitor.Element, error) {
	for _, s := range t.places {
		if s.TS == "" {
			continue
		}
		messages, err := p.read(ctx, who, s)
		if err != nil {
			return visitor.Message{}, visitor.Element{}, err
		}
		for _, m := range messages {
			if m.TS != s.TS {
				continue
			}
			for _, e := range visitor.Elements(m.Blocks) {
				if e.Type == "button" && strings.HasPrefix(e.Text.Text, buttons[sc.does]) && strings.Contains(e.Value, t.id) {
					return m, e, nil
				}
			}
		}
	}
	return visitor.Message{}, visitor.Element{}, fmt.Errorf("%s sees no %s button for it", sc.who, buttons[sc.does])
}

// read reads where a surface is shown, as far as the person may see it.
func (p *player) read(ctx context.Context, who visitor.Visitor, s store.Surface) ([]visitor.Message, error) {
	thread := ""
	if strings.HasPrefix(s.To, "conversation:") {
		thread = p.root
	}
	messages, err := who.Messages(ctx, s.Channel, thread)
	var refused *visitor.Refusal
	if errors.As(err, &refused) {
		return nil, nil
	}
	return messages, err
}

// fill fills in the form that a click opened, and sends it.
func fill(ctx context.Context, who visitor.Visitor, sc scene) error {
	values := map[string]string{}
	var form visitor.View
	err := who.Await(ctx, "the form", func() (bool, error) {
		views, err := who.Views(ctx)
		if err != nil || len(views) == 0 || views[len(views)-1].Submit == nil {
			return false, err
		}
		form = views[len(views)-1]
		return true, nil
	})
	if err != nil {
		return err
	}
	var changes []string
	switch sc.does {
	case "approves":
		if sc.detail == "" {
			return fmt.Errorf("this approval asks for a value to be typed: \"%s: VALUE\"", sc.text)
		}
		changes = []string{"typed=" + sc.detail}
	case "rejects":
		changes = []string{"reason=" + sc.detail}
	case "modifies":
		changes = strings.Split(sc.detail, ", ")
	}
	for _, change := range changes {
		name, value, _ := strings.Cut(change, "=")
		input, ok := visitor.Input(form.Blocks, name)
		if !ok {
			return fmt.Errorf("the form has no field for %q", name)
		}
		values[input.BlockID] = value
	}
	return who.Submit(ctx, form.ID, values)
}
