package bot

import (
	"context"
	"errors"
	"fmt"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// away notes when somebody is away, or says whether they are.
func (b *Bot) away(ctx context.Context, c command, text string) (*page, error) {
	u, err := b.user(ctx, c.User, false)
	if err != nil {
		return nil, err
	}
	reads := reader{zone: zoneOf(u), locale: u.Locale}
	policy := b.Desk.Policy()
	who, err := b.member(ctx, c.User, policy)
	if err != nil {
		return nil, err
	}
	if text == "" {
		a, err := b.Desk.Absence(ctx, who.ID)
		if err != nil {
			return nil, err
		}
		return paragraph(b.whetherAway(a, policy, c, reads)...), nil
	}
	said, err := readLeave(text, b.Now().In(reads.zone))
	if err != nil {
		return nil, err
	}
	m := desk.Departure{Inbox: c.inbox, Who: who, From: said.from, Until: said.until}
	if said.delegate != "" {
		delegate, err := b.member(ctx, said.delegate, policy)
		if err != nil {
			return nil, err
		}
		m.Delegate = &delegate
	}
	a, err := b.Desk.SetAway(ctx, m)
	var denied *approvers.Denied
	if errors.As(err, &denied) {
		return paragraph(deniedLeave(denied)), nil
	}
	if err != nil {
		return nil, err
	}
	return paragraph(b.whetherAway(a, policy, c, reads)...), nil
}

// back ends somebody's absence.
func (b *Bot) back(ctx context.Context, c command, _ string) (*page, error) {
	who, err := b.who(ctx, c.User, false)
	if err != nil {
		return nil, err
	}
	_, err = b.Desk.Back(ctx, c.inbox, who)
	var denied *approvers.Denied
	switch {
	case errors.As(err, &denied):
		return paragraph(say("You were not away, as far as I know.")), nil
	case err != nil:
		return nil, err
	}
	return paragraph(say("Welcome back. You are asked again from now on. What was put before others meanwhile stays with them, and you can decide it too.")), nil
}

// offsetName names a zone of which only the distance from UTC is known, in seconds.
func offsetName(seconds int) string {
	sign := '+'
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	return fmt.Sprintf("UTC%c%02d:%02d", sign, seconds/3600, seconds/60%60)
}

// whetherAway says when somebody is away, in words, and who stands in.
func (b *Bot) whetherAway(a approvers.Absence, p *approvers.Policy, c command, reads reader) []*prose {
	now := b.Now()
	if a.Over(now) {
		return []*prose{say("You are not away. To say that you are, write ").code(c.Command + " away until monday").say(".")}
	}
	line := say("🌴 You are away ")
	if !a.During(now) {
		line = say("🌴 You will be away ").say("from ").strong(reads.spoken(a.From)).say(" ")
	}
	line.say("until ").strong(reads.spoken(a.Until)).say(". From then on you are asked again.")
	out := []*prose{line}
	if a.Delegate == "" {
		out = append(out, say("Nobody stands in for you: what waits for you goes to the others of your roles, and where nobody else is here, to the lead at once. "+
			"To name somebody, add “, delegate to @colleague”."))
	} else {
		out = append(out, new(prose).person(a.Delegate, a.DelegateName).say(" stands in for you, and is told so. They decide in their own name, by their own roles:"))
		out = append(out, coverage(p, a.Covers, "they", "theirs")...)
		if len(a.Covers) == 0 {
			out = append(out, say("You hold no role that decides anything, so nothing comes to them because of it."))
		}
	}
	return append(out, new(prose).code(c.Command+" back").say(" ends it."))
}

// deniedLeave says why an absence was not noted.
func deniedLeave(d *approvers.Denied) *prose {
	if d.Code == approvers.DeniedDates {
		return say("Nothing was changed: the time has to end after it begins, after now, and within two years.")
	}
	if d.Code == approvers.DeniedGuest {
		return say("Guests decide nothing here, so nothing waits for you.")
	}
	if d.Code != approvers.DeniedStandIn {
		return say("I can only take this from members of this workspace.")
	}
	out := say("Nothing was changed: ")
	if d.By != "" {
		out.person(d.By, "")
	} else {
		out.say("whom you named")
	}
	return out.say(" can't stand in: " + map[approvers.Code]string{
		approvers.DeniedSelf:         "that is you. Name somebody else.",
		approvers.DeniedBot:          "that is no person.",
		approvers.DeniedGuest:        "guests can't decide anything.",
		approvers.DeniedForeign:      "they are not a member of this workspace.",
		approvers.DeniedDeactivated:  "that account is deactivated.",
		approvers.DeniedUnidentified: "Slack does not know them.",
	}[approvers.Code(d.Detail)])
}
