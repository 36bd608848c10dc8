package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"countersign/internal/demo/workspaceclient"
)

// fillIn fills in the form that a click opened, and submits it. If the form can't be submitted, or remains open
// afterwards, fillIn adds the form's text to the transcript. A form that remains open is submitted once more.
func (p *player) fillIn(ctx context.Context, do click, views []workspaceclient.View) error {
	who, form := p.as(do.who), views[len(views)-1]
	if form.Submit == nil {
		p.aside(p.aloneTo(do.who, workspaceclient.Text(form.Blocks)))
		return closeAll(ctx, who)
	}
	values, err := do.values(form)
	if err != nil {
		return err
	}
	err = who.Submit(ctx, form.ID, values)
	if again, open, failed := p.stillOpen(ctx, do.who, form); failed != nil {
		return failed
	} else if err == nil && open { // the form now has a button with another label: the person presses it
		p.aside(p.aloneTo(do.who, workspaceclient.Text(again.Blocks)))
		err = who.Submit(ctx, form.ID, nil)
	}
	var refused *workspaceclient.Refusal
	if errors.As(err, &refused) && len(refused.Errors) > 0 {
		for _, field := range slices.Sorted(maps.Keys(refused.Errors)) {
			p.aside(p.aloneTo(do.who, refused.Errors[field]))
		}
		return closeAll(ctx, who)
	}
	if err != nil {
		return err
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	return closeAll(ctx, who)
}

// stillOpen returns the form after its submission, and reports whether the form is open.
func (p *player) stillOpen(ctx context.Context, who string, form workspaceclient.View) (workspaceclient.View, bool, error) {
	views, err := p.as(who).Views(ctx)
	i := slices.IndexFunc(views, func(v workspaceclient.View) bool { return v.ID == form.ID })
	if err != nil || i < 0 {
		return workspaceclient.View{}, false, err
	}
	return views[i], true, nil
}

// aloneTo returns the transcript line for a message that only one person sees.
func (p *player) aloneTo(name, text string) string {
	return "Countersign to " + name + ": " + oneLine(workspaceclient.Plain(text, p.called))
}

func closeAll(ctx context.Context, who workspaceclient.Client) error {
	views, err := who.Views(ctx)
	for _, v := range slices.Backward(views) {
		err = errors.Join(err, who.Close(ctx, v.ID))
	}
	return err
}

// The method "values" returns the values to fill into a form, by block.
func (do click) values(form workspaceclient.View) (map[string]string, error) {
	values := map[string]string{}
	if do.person != "" {
		picker, ok := inputIn(form, "users_select", "multi_users_select")
		if !ok {
			return nil, errors.New("the form asks for no person")
		}
		values[picker.BlockID] = do.person
	}
	if do.named {
		return values, do.fields(form, values)
	}
	input, ok := inputIn(form, "plain_text_input", "number_input")
	switch {
	case ok && do.text != "":
		values[input.BlockID] = do.text
	case do.text != "":
		return nil, fmt.Errorf("the form has nowhere to write %q", do.text)
	case ok && !input.Optional:
		return nil, fmt.Errorf("the form asks for %q: write it after a colon", input.Label)
	}
	return values, nil
}

// The method "fields" sets values from a text of the form "field=value, field=value".
func (do click) fields(form workspaceclient.View, values map[string]string) error {
	if do.text == "" {
		return nil
	}
	for _, change := range strings.Split(do.text, ", ") {
		name, value, _ := strings.Cut(change, "=")
		input, ok := workspaceclient.Input(form.Blocks, name)
		if !ok {
			return fmt.Errorf("the form has no field for %q", name)
		}
		values[input.BlockID] = value
	}
	return nil
}

// inputIn finds the first field of one of the types.
func inputIn(form workspaceclient.View, types ...string) (workspaceclient.Element, bool) {
	for _, e := range workspaceclient.Elements(form.Blocks) {
		if slices.Contains(types, e.Type) {
			return e, true
		}
	}
	return workspaceclient.Element{}, false
}
