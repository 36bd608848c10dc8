package bot

import (
	"context"
	"slices"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/directory"
	"countersign/bot/slackapi"
	"countersign/store"
)

// ResolveAvailability finds out which people of a stage can be reached. The workflow then invites stand-ins or
// escalates to the lead.
func (b *Bot) ResolveAvailability(ctx context.Context, t store.Timer) error {
	ctx = dueFor(ctx, slackapi.PriorityNormal, t)
	roll, people, err := b.stagePeople(ctx, t.Ref)
	if err != nil {
		return err
	}
	return b.Workflow.ResolveAvailability(ctx, t, roll, people)
}

// Remind reminds the people of a stage who have not decided.
func (b *Bot) Remind(ctx context.Context, t store.Timer) error {
	ctx = dueFor(ctx, slackapi.PriorityNormal, t)
	roll, people, err := b.stagePeople(ctx, t.Ref)
	if err != nil {
		return err
	}
	return b.Workflow.Remind(ctx, t, roll, people)
}

// Depart checks all requests that wait for a person whose absence begins.
func (b *Bot) Depart(ctx context.Context, t store.Timer) error {
	ctx = dueFor(ctx, slackapi.PriorityNormal, t)
	policy := b.Views.Policy()
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
	return b.Workflow.Depart(ctx, t, roles)
}

// member returns a person's identity, including every user group that a role of the policy names.
func (b *Bot) member(ctx context.Context, user string, p *approvers.Policy) (approvers.Identity, error) {
	who, err := b.users.Who(ctx, user, false)
	if err != nil || who.ID == "" {
		return who, err
	}
	for _, role := range p.Approvers {
		for _, m := range role.Members {
			if m.Kind != approvers.MemberGroup || slices.Contains(who.Groups, m.Value) {
				continue
			}
			members, err := b.users.GroupMembers(ctx, m.Value, false)
			if err != nil {
				return approvers.Identity{}, err
			}
			if directory.HasMember(members, who, user) {
				who.Groups = append(who.Groups, m.Value)
			}
		}
	}
	return who, nil
}

// stagePeople looks up the people of a request's stage: the members of its roles, the leads who were told, and invited
// people. It is empty for a request that does not wait.
func (b *Bot) stagePeople(ctx context.Context, request string) (view.StageSnapshot, []approvers.Presence, error) {
	roll, err := b.Views.StageSnapshot(ctx, request)
	if err != nil || roll.Request.State != approvers.Pending {
		return roll, nil, err
	}
	var users []string
	for _, name := range roll.Request.Roles() {
		role, _ := roll.Policy.Role(name)
		members, err := b.users.RoleUsers(ctx, role)
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
	maxStandIns  = 5  // maximum length of a chain of stand-ins
	maxDisturbed = 50 // maximum number of people per request whose do-not-disturb is queried
)

// presence returns a person's availability according to the person and Slack.
func (b *Bot) presence(ctx context.Context, user string, roll view.StageSnapshot, line int, ask bool) (approvers.Presence, error) {
	r := roll.Request
	who, err := b.users.Clicker(ctx, user, roll.Policy, r.Tool, approvers.Low, &r)
	if err != nil {
		return approvers.Presence{}, err
	}
	out := approvers.Presence{Who: who}
	a, away := roll.Away[user]
	switch {
	case !away && ask:
		out.QuietUntil = b.users.QuietUntil(ctx, user)
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
