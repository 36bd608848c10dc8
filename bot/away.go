package bot

import (
	"context"
	"errors"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
	"countersign/bot/render/notice"
)

// absenceHandler handles the commands, the form and the button about a person's own absence.
type absenceHandler struct {
	*core
	identities *Identities
	ephemeral  *ephemeral
}

// asked answers /countersign away: it records an absence, or shows the current one.
func (b *absenceHandler) asked(ctx context.Context, c command, text string) (*block.Builder, error) {
	u, err := b.users.User(ctx, c.User, false)
	if err != nil {
		return nil, err
	}
	reads := block.Reader{Zone: block.ZoneOf(u), Locale: u.Locale}
	policy := b.Views.Policy()
	who, err := b.identities.member(ctx, c.User, policy)
	if err != nil {
		return nil, err
	}
	if text == "" {
		a, err := b.Views.Absence(ctx, who.ID)
		if err != nil {
			return nil, err
		}
		return block.Paragraph(notice.AbsenceOf(a, policy, c.Command, b.Now(), reads)...), nil
	}
	said, err := parseAway(text, b.Now().In(reads.Zone))
	if err != nil {
		return nil, err
	}
	m := workflow.Departure{Inbox: c.inbox, Who: who, From: said.from, Until: said.until}
	if said.delegate != "" {
		delegate, err := b.identities.member(ctx, said.delegate, policy)
		if err != nil {
			return nil, err
		}
		m.Delegate = &delegate
	}
	a, err := b.People.SetAway(ctx, m)
	var denied *approvers.Denied
	if errors.As(err, &denied) {
		return block.Paragraph(form.DeniedLeaveText(denied)), nil
	}
	if err != nil {
		return nil, err
	}
	return block.Paragraph(notice.AbsenceOf(a, policy, c.Command, b.Now(), reads)...), nil
}

// backAsked answers /countersign back, with which a person ends an absence.
func (b *absenceHandler) backAsked(ctx context.Context, c command, _ string) (*block.Builder, error) {
	who, err := b.users.Who(ctx, c.User, false)
	if err != nil {
		return nil, err
	}
	_, err = b.People.Back(ctx, c.inbox, who)
	var denied *approvers.Denied
	switch {
	case errors.As(err, &denied):
		return block.Paragraph(block.Say("You were not away, as far as I know.")), nil
	case err != nil:
		return nil, err
	}
	return block.Paragraph(block.Say("Welcome back. You are asked again from now on. Requests that others got in the meantime stay with them, and you can decide them, too.")), nil
}

// parse reads the submitted form of an absence.
func (b *absenceHandler) parse(ctx context.Context, i interaction) (m workflow.Departure, faults map[string]string, err error) {
	faults = map[string]string{}
	at := func(field string) time.Time {
		seconds, err := strconv.ParseInt(i.filled(field), 10, 64)
		if err != nil {
			faults[field] = "Choose a day and a time."
		}
		return time.Unix(seconds, 0)
	}
	m.From, m.Until = at(control.FieldFrom), at(control.FieldUntil)
	policy := b.Views.Policy()
	if m.Who, err = b.identities.member(ctx, i.User.ID, policy); err != nil {
		return m, nil, err
	}
	if user := i.filled(control.FieldColleague); user != "" {
		delegate, err := b.identities.member(ctx, user, policy)
		if err != nil {
			return m, nil, err
		}
		m.Delegate = &delegate
	}
	if len(faults) > 0 {
		return m, faults, nil
	}
	_, denied := approvers.Leave(approvers.DecisionContext{Policy: policy, Now: b.Now()}, m.Who, m.From, m.Until, m.Delegate)
	switch {
	case denied == nil:
	case denied.Code == approvers.DeniedStandIn:
		faults[control.FieldColleague] = "They can't stand in. Choose another full member of this workspace, not yourself."
	default:
		faults[control.FieldUntil] = "The absence has to end after it begins, in the future, and within two years."
	}
	return m, faults, nil
}

// examine returns the errors of the form of an absence, by field. If Slack does not identify the people in time, a
// problem is reported after the submission.
func (b *absenceHandler) examine(ctx context.Context, i interaction) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, lookUpWait)
	defer cancel()
	_, faults, err := b.parse(ctx, i)
	if err != nil {
		return nil
	}
	return faults
}

// submitted records the absence that the submitted form describes.
func (b *absenceHandler) submitted(ctx context.Context, to ephemeralReply, i interaction, click workflow.Click) error {
	m, _, err := b.parse(ctx, i)
	if err != nil {
		return err
	}
	m.Inbox = click.Inbox
	_, err = b.People.SetAway(ctx, m)
	var denied *approvers.Denied
	if errors.As(err, &denied) {
		b.ephemeral.reply(ctx, to, form.DeniedLeaveText(denied))
		return nil
	}
	return err
}

func (b *absenceHandler) backClicked(ctx context.Context, to ephemeralReply, click workflow.Click) error {
	_, err := b.People.Back(ctx, click.Inbox, click.Who)
	var denied *approvers.Denied
	if errors.As(err, &denied) {
		b.ephemeral.reply(ctx, to, block.Say("You were not away, as far as I know."))
		return nil
	}
	return err
}
