package bot

import (
	"context"
	"errors"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// pauseAsked answers /countersign pause: it says what that would stop, with the button that does it, to those who may.
func (b *Bot) pauseAsked(ctx context.Context, c command, reason string) (*page, error) {
	policy := b.Desk.Policy()
	who, err := b.pauser(ctx, c.User, policy)
	if err != nil {
		return nil, err
	}
	if no := policy.MayPause(who); no != nil {
		return paragraph(deniedPause(no, policy)), nil
	}
	sum, p, err := b.Desk.Stoppage(ctx)
	switch {
	case err != nil:
		return nil, err
	case p.On:
		return paragraph(pausedBy(p), new(prose).code(c.Command+" resume").say(" lets everything go on.")), nil
	case reason == "":
		return nil, notClear("Say why, everybody who waits is told: %s pause we are looking into wrong refunds", c.Command)
	case width(reason) > maxPauseReason:
		return nil, notClear("Say why in at most %d characters.", maxPauseReason)
	}
	return stoppage(sum, reason), nil
}

// pauseClicked pauses everything. What was typed as the reason comes back with the button, which grants nothing.
func (b *Bot) pauseClicked(ctx context.Context, d delivered, i interaction) error {
	channel, ts := i.message()
	w := whisper{user: i.User.ID, channel: channel, responseURL: i.ResponseURL, replace: true}
	policy := b.Desk.Policy()
	who, err := b.pauser(ctx, w.user, policy)
	if err != nil {
		return b.unknownClicker(ctx, d, w, desk.Click{Channel: channel, MessageTS: ts}, seen{}, err)
	}
	c := desk.Click{Inbox: d.id, At: d.at, Who: who, Reason: clip(strings.TrimSpace(i.Actions[0].Value), maxPauseReason), Channel: channel, MessageTS: ts}
	err = b.Desk.PauseBy(ctx, c)
	if err == nil {
		b.tell(ctx, w, say("⏸️ ").strong("Everything is paused.").say(" You and all who may end it have a direct message with a Resume button."))
	}
	return b.answerPause(ctx, w, policy, err)
}

// resumeAsked answers /countersign resume.
func (b *Bot) resumeAsked(ctx context.Context, c command, reason string) (*page, error) {
	policy := b.Desk.Policy()
	who, err := b.pauser(ctx, c.User, policy)
	if err != nil {
		return nil, err
	}
	err = b.Desk.ResumeBy(ctx, desk.Click{Inbox: c.inbox, At: b.Now(), Who: who, Reason: clip(reason, maxPauseReason), Channel: c.Channel})
	var no *approvers.Denied
	switch {
	case errors.As(err, &no):
		return paragraph(deniedPause(no, policy)), nil
	case err != nil:
		return nil, err
	}
	return paragraph(say("▶️ ").strong("Everything goes on.")), nil
}

// answerPause tells a person why their click on a pause changed nothing, if so.
func (b *Bot) answerPause(ctx context.Context, w whisper, p *approvers.Policy, err error) error {
	var no *approvers.Denied
	if !errors.As(err, &no) {
		return err
	}
	b.tell(ctx, w, deniedPause(no, p))
	return nil
}

// pauser says who a person is now, with the user groups of those who may pause. Slack is asked anew.
func (b *Bot) pauser(ctx context.Context, user string, p *approvers.Policy) (approvers.Identity, error) {
	who, err := b.who(ctx, user, true)
	if err != nil || who.ID == "" {
		return who, err
	}
	for _, name := range p.PausedBy {
		role, _ := p.Role(name)
		for _, m := range role.Members {
			if m.Kind != approvers.MemberGroup || slices.Contains(who.Groups, m.Value) {
				continue
			}
			members, err := b.groupMembers(ctx, m.Value, true)
			if err != nil {
				return approvers.Identity{}, err
			}
			if in(members, who, user) {
				who.Groups = append(who.Groups, m.Value)
			}
		}
	}
	return who, nil
}

// deniedPause says to somebody why they paused or resumed nothing, and who can.
func deniedPause(d *approvers.Denied, p *approvers.Policy) *prose {
	switch {
	case d.Code == approvers.DeniedUnidentified:
		return unidentified()
	case d.Code == approvers.DeniedPaused:
		return say("Everything is paused already, by ").person(d.By, "").say(" since ").at(d.At, dayTime).say(".")
	case d.Code == approvers.DeniedNotPaused && d.By == "":
		return say("Nothing is paused.")
	case d.Code == approvers.DeniedNotPaused:
		return say("Nothing is paused any more: ").person(d.By, "").say(" let everything go on ").at(d.At, dayTime).say(".")
	case len(p.PausedBy) == 0:
		return say("Nothing was changed: the policy names nobody who may pause everything from Slack. Whoever runs me can, at the command line.")
	}
	line := say("Nothing was changed: only people of ")
	for i, role := range p.PausedBy {
		if i > 0 {
			line.say(" or ")
		}
		line.strong(name(titleOf(p, role)))
	}
	return line.say(" can pause everything and let it go on, and whoever runs me.")
}
