package directory

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/slackapi"
)

// IdentityRisk returns the risk for the look-up of a person who clicks. At a high or critical risk, the look-up uses no
// cached answer of Slack. The result is critical if the policy has changed since the request was planned.
func IdentityRisk(p *approvers.Policy, r *approvers.Request) approvers.Risk {
	if r.Plan.PolicyHash != p.Hash {
		return approvers.Critical
	}
	return r.Plan.Risk
}

// Clicker returns the identity of a person who clicked, with the user groups that can give authority over the tool. If
// the risk is high or critical, Clicker does not use cached answers. r is the clicked request. The parameter r may be
// nil.
func (d *Users) Clicker(ctx context.Context, user string, p *approvers.Policy, tool string, risk approvers.Risk, r *approvers.Request) (approvers.Identity, error) {
	fresh := risk >= approvers.High || !risk.Valid()
	who, err := d.Who(ctx, user, fresh)
	if err != nil || who.ID == "" {
		return who, err
	}
	for _, g := range groupsThatCount(p, tool, r) {
		members, err := d.GroupMembers(ctx, g, fresh)
		if err != nil {
			return approvers.Identity{}, err
		}
		if HasMember(members, who, user) {
			who.Groups = append(who.Groups, g)
		}
	}
	return who, nil
}

// HasMember reports whether a person is a member of a group, by any of the person's ids.
func HasMember(members map[string]bool, who approvers.Identity, user string) bool {
	return members[user] || members[who.ID.User()] || members[who.Local]
}

// groupsThatCount lists the user groups that can give authority over a tool. These are the groups of roles that cover
// the tool, and the groups of stages. The stages are those of the request's plan and of the current policy.
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

// GroupIDs returns the ids of the workspace's user groups. The keys of the map are the ids and the handles.
func (d *Users) GroupIDs(ctx context.Context, fresh bool) (map[string]string, error) {
	return d.ids.Get("", fresh, func() (map[string]string, error) {
		return GroupIDs(ctx, d.api)
	})
}

func GroupIDs(ctx context.Context, api *slack.Client) (map[string]string, error) {
	list, err := api.GetUserGroupsContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("usergroups.list: %w", slackapi.WithDelay(err))
	}
	ids := map[string]string{}
	for _, g := range list {
		if g.DateDelete == 0 {
			ids[g.ID], ids[g.Handle] = g.ID, g.ID
		}
	}
	return ids, nil
}

// GroupMembers returns the members of a group that the policy names by id or handle. A group that does not exist has no
// members.
func (d *Users) GroupMembers(ctx context.Context, named string, fresh bool) (map[string]bool, error) {
	ids, err := d.GroupIDs(ctx, fresh)
	if err != nil {
		return nil, err
	}
	id, ok := ids[named]
	if !ok {
		d.log.Warn("the policy names a user group that Slack does not have, so it gives nobody authority", "group", named)
		return nil, nil
	}
	return d.groups.Get(id, fresh, func() (map[string]bool, error) {
		users, err := d.api.GetUserGroupMembersContext(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("usergroups.users.list: %w", slackapi.WithDelay(err))
		}
		members := map[string]bool{}
		for _, u := range users {
			members[u] = true
		}
		return members, nil
	})
}

// RoleUsers lists the user ids of a role's members who can receive messages from the bot.
func (d *Users) RoleUsers(ctx context.Context, role approvers.Role) ([]string, error) {
	users, err := d.RoleMembers(ctx, role)
	if err != nil {
		return nil, err
	}
	out := users[:0]
	for _, u := range users {
		who, err := d.Who(ctx, u, false)
		if err != nil {
			return nil, err
		}
		if readsMessages(who) {
			out = append(out, u)
		}
	}
	return out, nil
}

// RoleMembers lists the user ids of a role's members. Members without an account in Slack are left out.
func (d *Users) RoleMembers(ctx context.Context, role approvers.Role) ([]string, error) {
	var users []string
	for _, m := range role.Members {
		switch m.Kind {
		case approvers.MemberUser:
			users = append(users, m.Value)
		case approvers.MemberEmail:
			if !d.countsEmail(m.Value) {
				continue
			}
			u, err := d.api.GetUserByEmailContext(ctx, m.Value)
			switch {
			case slackapi.ErrorCode(err) == "users_not_found":
				d.log.Warn("the policy names an e-mail address that belongs to nobody in Slack", "approver", role.Name)
			case err != nil:
				return nil, fmt.Errorf("users.lookupByEmail: %w", slackapi.WithDelay(err))
			default:
				users = append(users, u.ID)
			}
		case approvers.MemberGroup:
			members, err := d.GroupMembers(ctx, m.Value, false)
			if err != nil {
				return nil, err
			}
			for u := range members {
				users = append(users, u)
			}
		}
	}
	slices.Sort(users)
	return slices.Compact(users), nil
}

// readsMessages reports whether the bot tells a person about the requests that the person's role can decide. Guests and people of other
// organisations can't decide requests, and are not notified.
func readsMessages(who approvers.Identity) bool { return !Barred(who) }

// GroupUsers lists members of the user group that the current stage requires. Each listed member has one of the stage's
// roles, and can receive messages from the bot.
func (d *Users) GroupUsers(ctx context.Context, group string, r *approvers.Request, p *approvers.Policy) ([]string, error) {
	if r == nil {
		return nil, nil
	}
	i := slices.IndexFunc(r.Plan.Stages, func(st approvers.Stage) bool { return st.Group == group })
	if i < 0 {
		return nil, nil
	}
	if here := r.CurrentStage(); here.Group == group {
		i = r.Stage
	}
	members, err := d.GroupMembers(ctx, group, false)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, user := range slices.Sorted(maps.Keys(members)) {
		who, err := d.Clicker(ctx, user, p, r.Tool, approvers.Low, r)
		if err != nil {
			return nil, err
		}
		holds := slices.ContainsFunc(r.Plan.Stages[i].Roles(), func(name string) bool {
			role, ok := p.Role(name)
			return ok && role.Holds(who)
		})
		if holds && readsMessages(who) {
			out = append(out, user)
		}
	}
	return out, nil
}

// Invalidate drops the cached answers that an event makes invalid. user is the person of the event, if any.
func (d *Users) Invalidate(event, user string) {
	switch event {
	case "user_change", "team_join", "user_profile_changed":
		d.users.forget(user)
	case "dnd_updated_user":
		d.quiet.forget(user)
	case "subteam_members_changed", "subteam_updated", "subteam_created":
		d.groups.forget("")
		d.ids.forget("")
	}
}
