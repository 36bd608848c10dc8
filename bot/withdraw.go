package bot

import (
	"context"
	"errors"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// A step with more calls than a message can list has a form in which those that wait are taken back.
const (
	actWithdrawSome = "withdraw_some"
	fieldCalls      = "calls"
)

// withdrawForm lists what of a step waits, to take some of it back.
func withdrawForm(s seen) slack.ModalViewRequest {
	var options []*slack.OptionBlockObject
	waiting := 0
	for _, c := range s.Calls {
		if !waits(c) {
			continue
		}
		if waiting++; waiting <= maxOptions {
			what := inFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets)
			options = append(options, slack.NewOptionBlockObject(c.Request.ID, plainText(short(what, maxOptionText)), nil))
		}
	}
	if waiting == 0 {
		return refusal(actWithdrawSome, denied(&approvers.Denied{Code: approvers.DeniedNothing}, nil, s.Policy))
	}
	p := new(page)
	p.para(say("What you choose will not run, and the agent is told that you took it back."))
	if waiting > maxOptions {
		p.para(say("These are the first " + itoa(maxOptions) + " that wait. Open this again for the others."))
	}
	list := slack.NewOptionsMultiSelectBlockElement(slack.MultiOptTypeStatic, plainText("Choose calls"), fieldCalls, options...)
	p.blocks = append(p.blocks, inputBlock(fieldCalls, "Calls", "", list, false))
	return submittable(modal(formTitles[actWithdrawSome], p), actWithdrawSome, "Withdraw", formMark{mark: s.mark})
}

// withdrawSome takes the chosen calls back.
func (b *Bot) withdrawSome(ctx context.Context, w whisper, s seen, i interaction, c desk.Click) error {
	r, err := b.Desk.WithdrawSome(ctx, c, i.chosen(fieldCalls))
	var d *approvers.Denied
	if !errors.As(err, &d) {
		return err
	}
	if r.ID == "" {
		b.tell(ctx, w, denied(d, nil, s.Policy))
		return nil
	}
	b.tell(ctx, w, denied(d, &r, s.Policy))
	return nil
}

// chosen are the values that were chosen in a list.
func (i interaction) chosen(block string) (values []string) {
	for _, in := range i.View.State.Values[block] {
		for _, o := range in.Many {
			values = append(values, o.Value)
		}
	}
	return values
}
