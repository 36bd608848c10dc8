package bot

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// stakes is the risk by which it is decided how old an answer of Slack on who clicked may be: from high risk on, and where the policy that the risk
// was found by is not the one in force, Slack is asked anew.
func stakes(p *approvers.Policy, r *approvers.Request) approvers.Risk {
	if r.Plan.PolicyHash != p.Hash {
		return approvers.Critical
	}
	return r.Plan.Risk
}

// clicker says who clicked, with the user groups that could give authority over the tool. It asks anew from high risk
// on, where a minute-old answer is not good enough. r is the request that it is about; nil: none.
func (b *Bot) clicker(ctx context.Context, user string, p *approvers.Policy, tool string, risk approvers.Risk, r *approvers.Request) (approvers.Identity, error) {
	fresh := risk >= approvers.High || !risk.Valid()
	who, err := b.who(ctx, user, fresh)
	if err != nil || who.ID == "" {
		return who, err
	}
	for _, g := range groupsThatCount(p, tool, r) {
		members, err := b.groupMembers(ctx, g, fresh)
		if err != nil {
			return approvers.Identity{}, err
		}
		if in(members, who, user) {
			who.Groups = append(who.Groups, g)
		}
	}
	return who, nil
}

// in reports whether a person is among a group's members, by any of their ids.
func in(members map[string]bool, who approvers.Identity, user string) bool {
	return members[user] || members[who.ID.User()] || members[who.Local]
}

// groupsThatCount are the user groups that can give authority over a tool: those of roles that have it in their list, and those that stages ask
// for, in the request's plan and in the policy as it is now.
func groupsThatCount(p *approvers.Policy, tool string, r *approvers.Request) []string {
	var groups []string
	for _, role := range p.Approvers {
		if !role.Covers(tool) {
			continue
		}
		for _, m := range role.Members {
			if m.Kind == approvers.MemberGroup {
				groups = append(groups, m.Value)
			}
		}
	}
	var stages []approvers.Stage
	if r != nil {
		t, _ := p.Tool(tool, r.Agent)
		stages = append(slices.Clone(r.Plan.Stages), t.Stages...)
		for _, rule := range t.Rules {
			stages = append(stages, rule.Stages...)
		}
	}
	for _, s := range stages {
		if s.Group != "" {
			groups = append(groups, s.Group)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// groupIDs are the ids of the workspace's user groups, by id and by handle.
func (b *Bot) groupIDs(ctx context.Context, fresh bool) (map[string]string, error) {
	return b.people.ids.get("", fresh, func() (map[string]string, error) {
		return groupIDs(ctx, b.api)
	})
}

func groupIDs(ctx context.Context, api *slack.Client) (map[string]string, error) {
	list, err := api.GetUserGroupsContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("usergroups.list: %w", slow(err))
	}
	ids := map[string]string{}
	for _, g := range list {
		if g.DateDelete == 0 {
			ids[g.ID], ids[g.Handle] = g.ID, g.ID
		}
	}
	return ids, nil
}

// groupMembers reads the members of a group that the policy names by id or handle. A group that does not exist has none.
func (b *Bot) groupMembers(ctx context.Context, named string, fresh bool) (map[string]bool, error) {
	ids, err := b.groupIDs(ctx, fresh)
	if err != nil {
		return nil, err
	}
	id, ok := ids[named]
	if !ok {
		b.Log.Warn("the policy names a user group that Slack does not have, so it gives nobody authority", "group", named)
		return nil, nil
	}
	return b.people.groups.get(id, fresh, func() (map[string]bool, error) {
		users, err := b.api.GetUserGroupMembersContext(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("usergroups.users.list: %w", slow(err))
		}
		members := map[string]bool{}
		for _, u := range users {
			members[u] = true
		}
		return members, nil
	})
}

// roleUsers lists the user ids of a role's members who can be written to.
func (b *Bot) roleUsers(ctx context.Context, role approvers.Role) ([]string, error) {
	var users []string
	for _, m := range role.Members {
		switch m.Kind {
		case approvers.MemberUser:
			users = append(users, m.Value)
		case approvers.MemberEmail:
			if !b.Desk.Policy().CountsEmail(m.Value) {
				continue
			}
			u, err := b.api.GetUserByEmailContext(ctx, m.Value)
			switch {
			case errorCode(err) == "users_not_found":
				b.Log.Warn("the policy names an e-mail address that belongs to nobody in Slack", "approver", role.Name)
			case err != nil:
				return nil, fmt.Errorf("users.lookupByEmail: %w", slow(err))
			default:
				users = append(users, u.ID)
			}
		case approvers.MemberGroup:
			members, err := b.groupMembers(ctx, m.Value, false)
			if err != nil {
				return nil, err
			}
			for u := range members {
				users = append(users, u)
			}
		}
	}
	slices.Sort(users)
	users = slices.Compact(users)
	out := users[:0]
	for _, u := range users {
		who, err := b.who(ctx, u, false)
		if err != nil {
			return nil, err
		}
		if readsMessages(who) {
			out = append(out, u)
		}
	}
	return out, nil
}

// readsMessages reports whether somebody is sent what waits for a role. Guests and people of other organisations could not decide it, and need not know of it.
func readsMessages(who approvers.Identity) bool { return !barred(who) }

// groupUsers lists the members of a user group who can be written to and hold one of the roles of the request's stage that asks for the group.
func (b *Bot) groupUsers(ctx context.Context, group string, s desk.Sight) ([]string, error) {
	r := groupFor(s)
	if r == nil {
		return nil, nil
	}
	i := slices.IndexFunc(r.Plan.Stages, func(st approvers.Stage) bool { return st.Group == group })
	if i < 0 {
		return nil, nil
	}
	if here := r.Plan.Stages[r.Stage]; here.Group == group {
		i = r.Stage
	}
	members, err := b.groupMembers(ctx, group, false)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, user := range slices.Sorted(maps.Keys(members)) {
		who, err := b.clicker(ctx, user, s.Policy, r.Tool, approvers.Low, r)
		if err != nil {
			return nil, err
		}
		holds := slices.ContainsFunc(r.Plan.Stages[i].Roles(), func(name string) bool {
			role, ok := s.Policy.Role(name)
			return ok && role.Holds(who)
		})
		if holds && readsMessages(who) {
			out = append(out, user)
		}
	}
	return out, nil
}

// heed forgets what an event says has changed. It needs no inbox row: what is remembered lasts a minute at most.
func (p *people) heed(e event) {
	switch e.Type {
	case "user_change", "team_join", "user_profile_changed":
		p.users.forget(e.userID())
	case "dnd_updated_user":
		p.quiet.forget(e.userID())
	case "subteam_members_changed", "subteam_updated", "subteam_created":
		p.groups.forget("")
		p.ids.forget("")
	}
}

// groupFor is a request by which the people of a user group are found: the one that is shown, or the first of several.
func groupFor(s desk.Sight) *approvers.Request {
	switch {
	case s.Request != nil:
		return s.Request
	case s.Line != nil:
		return &s.Line.First[0]
	case len(s.Calls) > 0:
		return s.Calls[0].Request
	}
	return nil
}
