package bot

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// awayForm asks from when until when somebody is away, and who stands in. Slack shows both times in their own zone.
func awayForm(s seen) slack.ModalViewRequest {
	p := new(page)
	p.para(say("While you are away nobody waits for you: what you would be asked goes to the others of your roles, to whoever stands in, or to the lead."))
	from := slack.NewDateTimePickerBlockElement(fieldFrom)
	from.InitialDateTime = s.Now.Truncate(5 * time.Minute).Unix()
	p.blocks = append(p.blocks, inputBlock(fieldFrom, "From", "", from, false),
		inputBlock(fieldUntil, "Until", "From then on you are asked again.", slack.NewDateTimePickerBlockElement(fieldUntil), false),
		inputBlock(fieldColleague, "Who stands in?", "They are told so, and decide in their own name, as far as their own roles go.",
			slack.NewOptionsSelectBlockElement(slack.OptTypeUser, plainText("Choose a person"), fieldColleague), true))
	return submittable(modal(formTitles[actAway], p), actAway, "Save", formMark{mark: s.mark})
}

// departureIn reads what was filled in.
func (b *Bot) departureIn(ctx context.Context, i interaction) (m desk.Departure, faults map[string]string, err error) {
	faults = map[string]string{}
	at := func(field string) time.Time {
		seconds, err := strconv.ParseInt(i.filled(field), 10, 64)
		if err != nil {
			faults[field] = "Choose a day and a time."
		}
		return time.Unix(seconds, 0)
	}
	m.From, m.Until = at(fieldFrom), at(fieldUntil)
	policy := b.Desk.Policy()
	if m.Who, err = b.member(ctx, i.User.ID, policy); err != nil {
		return m, nil, err
	}
	if user := i.filled(fieldColleague); user != "" {
		delegate, err := b.member(ctx, user, policy)
		if err != nil {
			return m, nil, err
		}
		m.Delegate = &delegate
	}
	if len(faults) > 0 {
		return m, faults, nil
	}
	_, denied := approvers.Leave(approvers.Deciding{Policy: policy, Now: b.Now()}, m.Who, m.From, m.Until, m.Delegate)
	switch {
	case denied == nil:
	case denied.Code == approvers.DeniedStandIn:
		faults[fieldColleague] = "They can't stand in. Choose another full member of this workspace, not yourself."
	default:
		faults[fieldUntil] = "The time has to end after it begins, after now, and within two years."
	}
	return m, faults, nil
}

func (b *Bot) examineAway(ctx context.Context, i interaction) (map[string]string, error) {
	_, faults, err := b.departureIn(ctx, i)
	return faults, err
}

// submitAway notes the absence.
func (b *Bot) submitAway(ctx context.Context, w whisper, i interaction, c desk.Click) error {
	m, _, err := b.departureIn(ctx, i)
	if err != nil {
		return err
	}
	m.Inbox = c.Inbox
	_, err = b.Desk.SetAway(ctx, m)
	var denied *approvers.Denied
	if errors.As(err, &denied) {
		b.tell(ctx, w, deniedLeave(denied))
		return nil
	}
	return err
}

// backClicked ends an absence.
func (b *Bot) backClicked(ctx context.Context, w whisper, c desk.Click) error {
	_, err := b.Desk.Back(ctx, c.Inbox, c.Who)
	var denied *approvers.Denied
	if errors.As(err, &denied) {
		b.tell(ctx, w, say("You were not away, as far as I know."))
		return nil
	}
	return err
}
