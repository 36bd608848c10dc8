package bot

import (
	"context"
	"errors"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render"
)

// absenceHandler handles the commands, the form and the button about a person's own absence.
type absenceHandler struct {
	*core
	identities *Identities
	ephemeral  *ephemeral
}

// asked answers /countersign away: it records an absence, or shows the current one.
func (b *absenceHandler) asked(ctx context.Context, c command, text string) (*render.BlockBuilder, error) {
	u, err := b.users.User(ctx, c.User, false)
	if err != nil {
		return nil, err
	}
	reads := render.Reader{Zone: render.ZoneOf(u), Locale: u.Locale}
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
		return render.Paragraph(render.AbsenceOf(a, policy, c.Command, b.Now(), reads)...), nil
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
		return render.Paragraph(render.DeniedLeave(denied)), nil
	}
	if err != nil {
		return nil, err
	}
	return render.Paragraph(render.AbsenceOf(a, policy, c.Command, b.Now(), reads)...), nil
}

// backAsked answers /countersign back, with which a person ends an absence.
func (b *absenceHandler) backAsked(ctx context.Context, c command, _ string) (*render.BlockBuilder, error) {
	who, err := b.users.Who(ctx, c.User, false)
	if err != nil {
		return nil, err
	}
	_, err = b.People.Back(ctx, c.inbox, who)
	var denied *approvers.Denied
	switch {
	case errors.As(err, &denied):
		return render.Paragraph(render.Say("You were not away, as far as I know.")), nil
	case err != nil:
		return nil, err
	}
	return render.Paragraph(render.Say("Welcome back. You are asked again from now on. What was put before others meanwhile stays with them, and you can decide it too.")), nil
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
	m.From, m.Until = at(render.FieldFrom), at(render.FieldUntil)
	policy := b.Views.Policy()
	if m.Who, err = b.identities.member(ctx, i.User.ID, policy); err != nil {
		return m, nil, err
	}
	if user := i.filled(render.FieldColleague); user != "" {
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
		faults[render.FieldColleague] = "They can't stand in. Choose another full member of this workspace, not yourself."
	default:
		faults[render.FieldUntil] = "The absence has to end after it begins, in the future, and within two years."
	}
	return m, faults, nil
}

func (b *absenceHandler) examine(ctx context.Context, i interaction) (map[string]string, error) {
	_, faults, err := b.parse(ctx, i)
	return faults, err
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
		b.ephemeral.reply(ctx, to, render.DeniedLeave(denied))
		return nil
	}
	return err
}

func (b *absenceHandler) backClicked(ctx context.Context, to ephemeralReply, click workflow.Click) error {
	_, err := b.People.Back(ctx, click.Inbox, click.Who)
	var denied *approvers.Denied
	if errors.As(err, &denied) {
		b.ephemeral.reply(ctx, to, render.Say("You were not away, as far as I know."))
		return nil
	}
	return err
}
