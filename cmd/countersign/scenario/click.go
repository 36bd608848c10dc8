package scenario

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"countersign/internal/demo/workspaceclient"
	"countersign/store"
)

// click finds a button that the person can see, clicks it, and fills in the form that opens.
func (p *player) click(ctx context.Context, do click) error {
	who := p.as(do.who)
	message, button, err := p.button(ctx, do)
	if err != nil {
		return err
	}
	if button.ActionID != "" {
		err = p.press(ctx, who, message, button)
	} else {
		button, err = p.pressInDetails(ctx, do)
	}
	if err != nil {
		return err
	}
	if button.ActionID == "" {
		if do.tries {
			p.aside(do.who + " sees no such button")
			return nil
		}
		return fmt.Errorf("%s sees no %s button for it", do.who, do.label)
	}
	views, err := who.Views(ctx)
	if err != nil {
		return err
	}
	if len(views) > 0 {
		return p.fillIn(ctx, do, views)
	}
	if do.text != "" {
		return fmt.Errorf("no form asked for %q", do.text)
	}
	return nil
}

// press clicks a button, and waits until all effects of the click are visible.
func (p *player) press(ctx context.Context, who workspaceclient.Client, message workspaceclient.Message, button workspaceclient.Element) error {
	if err := who.Press(ctx, message, button); err != nil {
		return err
	}
	if !slices.Contains(p.clicked, message.Channel) {
		p.clicked = append(p.clicked, message.Channel)
	}
	return p.settle(ctx)
}

// pressInDetails clicks a button in the modal that the button "Details…" of a card opens. If the modal has no such
// button, the returned element has no action.
func (p *player) pressInDetails(ctx context.Context, do click) (workspaceclient.Element, error) {
	who, open := p.as(do.who), do
	open.label = "Details"
	message, details, err := p.button(ctx, open)
	if err != nil || details.ActionID == "" {
		return workspaceclient.Element{}, err
	}
	if err := p.press(ctx, who, message, details); err != nil {
		return workspaceclient.Element{}, err
	}
	views, err := who.Views(ctx)
	if err != nil || len(views) == 0 {
		return workspaceclient.Element{}, err
	}
	view := views[len(views)-1]
	for _, e := range workspaceclient.Elements(view.Blocks) {
		if e.Type != "button" || !do.matches(e.Text.Text) {
			continue
		}
		if err := who.PressIn(ctx, view, e); err != nil {
			return e, err
		}
		return e, p.settle(ctx)
	}
	return workspaceclient.Element{}, closeAll(ctx, who)
}

// button searches for a button in everything that a person can see: the bot's direct messages, the threads of
// conversations, and the person's channels. In each of these places, button searches the newest message first. button
// prefers a button of the current conversation. If button finds nothing, the returned element has no action.
func (p *player) button(ctx context.Context, do click) (workspaceclient.Message, workspaceclient.Element, error) {
	who := p.as(do.who)
	channels, err := who.Channels(ctx)
	if err != nil {
		return workspaceclient.Message{}, workspaceclient.Element{}, err
	}
	places := []talk{{channel: "countersign"}}
	for _, t := range slices.Backward(p.talks) {
		places = append(places, t)
	}
	for _, id := range channels {
		places = append(places, talk{channel: id})
	}
	var elsewhere foundButton
	for _, place := range places {
		messages, err := who.Messages(ctx, place.channel, place.root)
		var refused *workspaceclient.Refusal
		if errors.As(err, &refused) {
			continue
		}
		if err != nil {
			return workspaceclient.Message{}, workspaceclient.Element{}, err
		}
		for _, m := range slices.Backward(messages) {
			found, err := p.buttonOn(ctx, do, m)
			if err != nil || found.here {
				return found.message, found.button, err
			}
			if elsewhere.button.ActionID == "" {
				elsewhere = found
			}
		}
	}
	return elsewhere.message, elsewhere.button, nil
}

// foundButton is a found button. The field "here" is true if the button belongs to the current conversation.
type foundButton struct {
	message workspaceclient.Message
	button  workspaceclient.Element
	here    bool
}

func (p *player) buttonOn(ctx context.Context, do click, m workspaceclient.Message) (found foundButton, err error) {
	for _, e := range workspaceclient.Elements(m.Blocks) {
		if e.Type != "button" || !do.matches(e.Text.Text) {
			continue
		}
		about, err := p.about(ctx, e.Value)
		if err != nil {
			return found, err
		}
		if do.tool != "" && about.tool != do.tool || !strings.Contains(about.words, do.like) {
			continue
		}
		here, err := p.goesOn(ctx, about)
		if err != nil || here {
			return foundButton{m, e, here}, err
		}
		if found.button.ActionID == "" {
			found = foundButton{m, e, false}
		}
	}
	return found, nil
}

// buttonNumber matches the number that distinguishes similar buttons.
var buttonNumber = regexp.MustCompile(` \d+$`)

// matches reports whether the label matches the action. The whole label must match. The action may leave out two parts:
// the dots of a button that opens a form, and the button's number.
func (do click) matches(label string) bool {
	label = strings.TrimSuffix(label, "…")
	one := buttonNumber.ReplaceAllString(label, "")
	// On a card with several calls, a button "Open" with a number opens the details of one call.
	return label == do.label || one == do.label || one != label && one == "Open" && do.label == "Details"
}

// subject describes the call or turn to which a button belongs.
type subject struct {
	tool         string
	words        string // the call's preview and arguments
	conversation string
}

// The method "about" reads the subject of a button from the button's value. The value names a request, an execution, a
// call or a turn.
func (p *player) about(ctx context.Context, value string) (s subject, err error) {
	err = p.demo.Store().View(ctx, func(r store.Reader) error {
		for _, id := range strings.Fields(value) {
			for _, look := range []func(store.Reader, string) (subject, error){aboutRequest, aboutExecution, aboutCall, aboutGrant, aboutTurn} {
				if s, err = look(r, id); !errors.Is(err, store.ErrNotFound) {
					return err
				}
			}
		}
		s = subject{}
		return nil
	})
	return s, err
}

func aboutRequest(r store.Reader, id string) (subject, error) {
	req, err := r.Request(id)
	return subject{req.Tool, req.Preview + " " + string(req.Args), req.Conversation}, err
}

func aboutExecution(r store.Reader, id string) (subject, error) {
	e, err := r.Execution(id)
	return subject{e.Tool, string(e.Args), e.Conversation}, err
}

func aboutCall(r store.Reader, id string) (subject, error) {
	c, err := r.Call(id)
	return subject{c.Tool, c.Preview + " " + c.Args, c.Conversation}, err
}

func aboutGrant(r store.Reader, id string) (subject, error) {
	g, err := r.Grant(id)
	return subject{tool: g.Tool, conversation: g.Conversation}, err
}

func aboutTurn(r store.Reader, id string) (subject, error) {
	t, err := r.Turn(id)
	return subject{conversation: t.Conversation}, err
}

// goesOn reports whether the current conversation contains a subject.
func (p *player) goesOn(ctx context.Context, s subject) (here bool, err error) {
	if len(p.talks) == 0 {
		return false, nil
	}
	err = p.demo.Store().View(ctx, func(r store.Reader) error {
		conv, err := r.ConversationAt(p.talks[len(p.talks)-1].place)
		here = err == nil && conv.ID == s.conversation
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	})
	return here, err
}
