package bot

import (
	"context"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// ping is somebody whom a card mentions: a person, or a user group.
type ping struct{ user, group string }

func (c ping) in(p *prose) {
	if c.group != "" {
		p.group(c.group)
		return
	}
	p.person(approvers.PersonID(c.user), "")
}

// maxCalls bounds how many a card mentions. Whoever has a larger role names a user group in the policy.
const maxCalls = 8

// calls lists whom a card that waits in a channel mentions: the members of the stage's roles that read their cards there, as the policy names
// them. Nobody notices a message in a channel that does not mention them. Who is away, or can't be found now, is left out: the card is what matters.
func (b *Bot) calls(ctx context.Context, s desk.Sight) []ping {
	channel, shared := strings.CutPrefix(s.Surface.To, "channel:")
	r, waits := calledTo(s)
	if !shared || !waits {
		return nil
	}
	away, err := b.Desk.Away(ctx)
	if err != nil {
		b.Log.Warn("who is away could not be read, so all are mentioned", "request", r.ID, "error", err)
	}
	var out []ping
	for _, name := range r.Plan.Stages[r.Stage].Roles() {
		role, _ := s.Policy.Role(name)
		if role.Cards != channel {
			continue
		}
		for _, m := range role.Members {
			c, err := b.call(ctx, m)
			if err != nil {
				b.Log.Warn("somebody could not be mentioned on a card", "approver", role.Name, "request", r.ID, "error", err)
			}
			asked := slices.ContainsFunc(r.Plan.Requesters, func(p approvers.PersonID) bool { return p.User() == c.user })
			_, gone := away[c.user]
			if c != (ping{}) && !asked && !gone && !slices.Contains(out, c) && len(out) < maxCalls {
				out = append(out, c)
			}
		}
	}
	return out
}

// calledTo is the request for which a card calls people, if it waits: of a bundle the first that is decided there.
func calledTo(s desk.Sight) (approvers.Request, bool) {
	if s.Surface.Kind == store.SurfaceCard {
		return *s.Request, s.Request.State == approvers.Pending
	}
	if s.Surface.Kind == store.SurfaceBundle {
		if open := (scene{Sight: s}).undecided(); len(open) > 0 {
			return open[0], true
		}
	}
	return approvers.Request{}, false
}

func (b *Bot) call(ctx context.Context, m approvers.Member) (ping, error) {
	switch m.Kind {
	case approvers.MemberUser:
		return ping{user: m.Value}, nil
	case approvers.MemberGroup:
		ids, err := b.groupIDs(ctx, false)
		return ping{group: ids[m.Value]}, err
	}
	users, err := b.roleUsers(ctx, approvers.Role{Members: []approvers.Member{m}})
	if err != nil || len(users) == 0 {
		return ping{}, err
	}
	return ping{user: users[0]}, nil
}
