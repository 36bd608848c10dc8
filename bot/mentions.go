package bot

import (
	"context"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render"
)

// calls returns the people and groups that a waiting card in a channel mentions: the members of the stage's roles that
// read their cards there. A message without a mention would go unnoticed. A person who is away or can't be looked up is
// skipped, because the card itself is more important.
func (b *Bot) calls(ctx context.Context, s workflow.ViewModel) []render.Mention {
	channel, shared := strings.CutPrefix(s.Message.To, "channel:")
	r, waits := render.MentioningRequest(s)
	if !shared || !waits {
		return nil
	}
	away, err := b.Workflow.Away(ctx)
	if err != nil {
		b.Log.Warn("who is away could not be read, so all are mentioned", "request", r.ID, "error", err)
	}
	var out []render.Mention
	for _, name := range r.CurrentStage().Roles() {
		role, _ := s.Policy.Role(name)
		if role.Cards != channel {
			continue
		}
		for _, m := range role.Members {
			c, err := b.call(ctx, m)
			if err != nil {
				b.Log.Warn("somebody could not be mentioned on a card", "approver", role.Name, "request", r.ID, "error", err)
			}
			asked := slices.ContainsFunc(r.Plan.Requesters, func(p approvers.PersonID) bool { return p.User() == c.User })
			_, gone := away[c.User]
			if c != (render.Mention{}) && !asked && !gone && !slices.Contains(out, c) && len(out) < render.MaxMentions {
				out = append(out, c)
			}
		}
	}
	return out
}

func (b *Bot) call(ctx context.Context, m approvers.Member) (render.Mention, error) {
	switch m.Kind {
	case approvers.MemberUser:
		return render.Mention{User: m.Value}, nil
	case approvers.MemberGroup:
		ids, err := b.users.GroupIDs(ctx, false)
		return render.Mention{Group: ids[m.Value]}, err
	}
	users, err := b.users.RoleUsers(ctx, approvers.Role{Members: []approvers.Member{m}})
	if err != nil || len(users) == 0 {
		return render.Mention{}, err
	}
	return render.Mention{User: users[0]}, nil
}
