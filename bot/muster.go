package bot

import (
	"context"
	"slices"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// Muster looks who of a stage's people can be reached, and has the desk call those who stand in, or the lead.
func (b *Bot) Muster(ctx context.Context, t store.Timer) error {
	ctx = dueFor(ctx, plain, t)
	roll, people, err := b.company(ctx, t.Ref)
	if err != nil {
		return err
	}
	return b.Desk.Muster(ctx, t, roll, people)
}

// Remind has those of a stage's people told again who have not decided.
func (b *Bot) Remind(ctx context.Context, t store.Timer) error {
	ctx = dueFor(ctx, plain, t)
	roll, people, err := b.company(ctx, t.Ref)
	if err != nil {
		return err
	}
	return b.Desk.Remind(ctx, t, roll, people)
}

// Depart has everything looked at anew that waits for somebody whose absence begins.
func (b *Bot) Depart(ctx context.Context, t store.Timer) error {
	ctx = dueFor(ctx, plain, t)
	policy := b.Desk.Policy()
	who, err := b.member(ctx, approvers.PersonID(t.Ref).User(), policy)
	if err != nil {
		return err
	}
	var roles []string
	for _, role := range policy.Approvers {
		if role.Holds(who) {
			roles = append(roles, role.Name)
		}
	}
	return b.Desk.Depart(ctx, t, roles)
}

// member says who a person is, with all user groups that a role of the policy names.
func (b *Bot) member(ctx context.Context, user string, p *approvers.Policy) (approvers.Identity, error) {
	who, err := b.who(ctx, user, false)
	if err != nil || who.ID == "" {
		return who, err
	}
	for _, role := range p.Approvers {
		for _, m := range role.Members {
			if m.Kind != approvers.MemberGroup || slices.Contains(who.Groups, m.Value) {
				continue
			}
			members, err := b.groupMembers(ctx, m.Value, false)
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

// company looks up the people of a request's stage: those of its roles and of the leads who were told, and whoever was invited. It is empty
// for a request that does not wait.
func (b *Bot) company(ctx context.Context, request string) (desk.Roll, []approvers.Presence, error) {
	roll, err := b.Desk.Roll(ctx, request)
	if err != nil || roll.Request.State != approvers.Pending {
		return roll, nil, err
	}
	var users []string
	for _, name := range roll.Request.Roles() {
		role, _ := roll.Policy.Role(name)
		members, err := b.roleUsers(ctx, role)
		if err != nil {
			return roll, nil, err
		}
		users = append(users, members...)
	}
	for _, i := range roll.Request.Invited {
		users = append(users, i.Who.User())
	}
	slices.Sort(users)
	users = slices.Compact(users)
	people := make([]approvers.Presence, 0, len(users))
	for i, user := range users {
		p, err := b.presence(ctx, user, roll, maxStandIns, i < maxDisturbed)
		if err != nil {
			return roll, nil, err
		}
		people = append(people, p)
	}
	return roll, people, nil
}

const (
	maxStandIns  = 5  // how long a line of people who stand in for one another is followed
	maxDisturbed = 50 // of how many people's do-not-disturb Slack is asked for one request
)

// presence is where a person is, as far as they and Slack say.
func (b *Bot) presence(ctx context.Context, user string, roll desk.Roll, line int, ask bool) (approvers.Presence, error) {
	r := roll.Request
	who, err := b.clicker(ctx, user, roll.Policy, r.Tool, approvers.Low, &r)
	if err != nil {
		return approvers.Presence{}, err
	}
	out := approvers.Presence{Who: who}
	a, away := roll.Away[user]
	switch {
	case !away && ask:
		out.QuietUntil = b.quietUntil(ctx, user)
	case away && (a.Delegate == "" || line == 0):
		out.Away = true
	case away:
		out.Away = true
		next, err := b.presence(ctx, a.Delegate.User(), roll, line-1, ask)
		if err != nil {
			return out, err
		}
		out.StandIn = &next
	}
	return out, nil
}
