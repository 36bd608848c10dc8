package bot

import (
	"context"
	"errors"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// grants lists the permissions that are in force, for those whom they concern: in the channel where it is asked, and those that the person, or
// people of their roles, gave. What they may take back they get by direct message, where the button is.
func (b *Bot) grants(ctx context.Context, c command, _ string) (*page, error) {
	policy := b.Desk.Policy()
	who, err := b.member(ctx, c.User, policy)
	if err != nil {
		return nil, err
	}
	me, err := b.whoAmI(ctx)
	if err != nil {
		return nil, err
	}
	list, err := b.Desk.Grants(ctx, who.ID)
	if err != nil {
		return nil, err
	}
	view := scene{Sight: desk.Sight{Policy: policy, Now: b.Now()}, url: me.URL}
	var out []*prose
	var send []string
	more := 0
	for _, g := range list {
		_, no := g.Grant.Revoke(approvers.Deciding{Policy: policy, Now: b.Now()}, who)
		mine := no == nil
		switch {
		case !mine && g.Conversation.Channel != c.Channel:
			continue
		case len(out) == maxGrantsListed:
			more++
			continue
		case mine && g.Own == nil:
			send = append(send, g.Grant.ID)
		}
		out = append(out, view.inList(g, mine))
	}
	switch {
	case len(out) == 0:
		return paragraph(say("Nothing may run without asking by anybody's permission here, and nothing by yours or that of your roles.")), nil
	case more > 0:
		out = append(out, say("… and "+itoa(more)+" more."))
	}
	if len(send) == 0 {
		return paragraph(out...), nil
	}
	if err := b.Desk.SendGrants(ctx, c.inbox, who.ID, send); err != nil && !errors.Is(err, desk.ErrHandled) {
		return nil, err
	}
	return paragraph(append(out, say("What you can take back is in your direct messages with me, each with a Revoke button."))...), nil
}

// inList is one grant of a list.
func (s scene) inList(g desk.GrantSight, mine bool) *prose {
	s.Conversation = g.Conversation
	p := say("🎟️ ").strong(name(g.Grant.Tool))
	switch {
	case g.Grant.Conversation == "":
		p.say(" for everybody who asks the agent " + name(g.Grant.Agent))
	case g.Conversation.DM:
		p.say(" in a direct message to the bot")
	default:
		p.say(" in ").strong("#" + name(g.Conversation.Name))
	}
	p.say(": allowed by ").person(g.Grant.By, g.Grant.Name).say(" ("+s.title(g.Grant.Role)+"), ").also(left(g.Grant)).say(" Until ").at(g.Grant.Until, dayTime).say(". ").also(s.bounds(g.Grant))
	if mine && g.Own != nil {
		if link := s.permalink(g.Own.Channel, g.Own.TS, ""); link != "" {
			p.say(" ").link(link, "Take it back here")
		}
	}
	return p
}
