package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/internal/visitor"
	"countersign/store"
)

// buttons are the labels that a scenario's words stand for.
var buttons = map[string]string{"approves": "Approve", "rejects": "Reject", "modifies": "Modify", "withdraws": "Withdraw"}

// press finds the button for what a scene does, where the person can see it, clicks it, and fills in the form that opens.
func (p *player) press(ctx context.Context, who visitor.Visitor, sc scene) error {
	req, places, err := p.find(ctx, sc)
	if err != nil {
		return err
	}
	message, button, err := p.button(ctx, who, sc, req, places)
	if err != nil {
		return err
	}
	if err := who.Press(ctx, message, button); err != nil {
		return err
	}
	if sc.does == "rejects" || sc.does == "modifies" {
		if err := fill(ctx, who, sc); err != nil {
			return err
		}
	}
	return who.Await(ctx, "the decision to count", func() (moved bool, err error) {
		err = p.store.View(ctx, func(r store.Reader) error {
			now, err := r.Request(req.ID)
			moved = now.Version != req.Version
			return err
		})
		return moved, err
	})
}

// find finds the conversation's open request for a tool, and every surface that shows it.
func (p *player) find(ctx context.Context, sc scene) (req approvers.Request, places []store.Surface, err error) {
	err = p.store.View(ctx, func(r store.Reader) error {
		open, err := r.OpenRequests(store.RequestCursor{}, 1000)
		if err != nil {
			return err
		}
		for _, o := range open {
			if o.Tool == sc.tool && o.Conversation == p.last.ID {
				req = o
			}
		}
		if req.ID == "" {
			return fmt.Errorf("nothing in this conversation waits for %s", sc.tool)
		}
		cards, err := r.SurfacesOf(req.ID)
		if err != nil {
			return err
		}
		steps, err := r.SurfacesOf(req.Turn)
		places = append(cards, steps...)
		return err
	})
	return req, places, err
}

// button looks through what the person can see for the button that names the request.
func (p *player) button(ctx context.Context, who visitor.Visitor, sc scene, req approvers.Request, places []store.Surface) (visitor.Message, visitor.Element, error) {
	for _, s := range places {
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
				if e.Type == "button" && strings.HasPrefix(e.Text.Text, buttons[sc.does]) && strings.Contains(e.Value, req.ID) {
					return m, e, nil
				}
			}
		}
	}
	return visitor.Message{}, visitor.Element{}, fmt.Errorf("%s sees no %s button for %s", sc.who, buttons[sc.does], sc.tool)
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
	changes := []string{"reason=" + sc.detail}
	if sc.does == "modifies" {
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
