package directory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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
// the risk is high or critical, Clicker does not use cached answers. r is the clicked request, and may be nil.
func (d *Users) Clicker(ctx context.Context, user string, p *approvers.Policy, tool string, risk approvers.Risk, r *approvers.Request) (approvers.Identity, error) {
	return d.IdentifyActor(ctx, user, groupsThatCount(p, tool, r), isFresh(risk))
}

// Approver is like Clicker, for a person who does not act now. If Slack refuses to name the members of one of the user
// groups, Approver returns the refusal. Otherwise the caller could take the person for somebody without authority.
func (d *Users) Approver(ctx context.Context, user string, p *approvers.Policy, tool string, risk approvers.Risk, r *approvers.Request) (approvers.Identity, error) {
	return d.Identify(ctx, user, groupsThatCount(p, tool, r), isFresh(risk))
}

// ClickerOfAll is like Clicker, for a click that concerns all of the given requests.
func (d *Users) ClickerOfAll(ctx context.Context, user string, p *approvers.Policy, requests []*approvers.Request) (approvers.Identity, error) {
	var groups []string
	highest := approvers.Low
	for _, r := range requests {
		groups = append(groups, groupsThatCount(p, r.Tool, r)...)
		highest = max(highest, IdentityRisk(p, r))
	}
	slices.Sort(groups)
	return d.IdentifyActor(ctx, user, slices.Compact(groups), isFresh(highest))
}

func isFresh(risk approvers.Risk) bool { return risk >= approvers.High || !risk.Valid() }

// Identify returns the identity of a person. The identity includes each of the given user groups in which the person is
// a member. If fresh is set, Identify does not use cached answers. If Slack refuses to name the members of a group,
// Identify returns the refusal.
func (d *Users) Identify(ctx context.Context, user string, groups []string, fresh bool) (approvers.Identity, error) {
	who, err := d.Who(ctx, user, fresh)
	if err != nil || who.ID == "" {
		return who, err
	}
	who, refused, err := d.addGroups(ctx, who, user, groups, fresh)
	if err = cmp.Or(err, refused); err != nil {
		return approvers.Identity{}, err
	}
	return who, nil
}

// IdentifyActor is like Identify, for a person who acts. A user group whose members Slack refuses to name gives no
// authority, and the identity says so. This is safe because a policy uses groups only to give authority. So a person
// who has the authority without the group can act.
func (d *Users) IdentifyActor(ctx context.Context, user string, groups []string, fresh bool) (approvers.Identity, error) {
	who, err := d.Who(ctx, user, fresh)
	if err != nil || who.ID == "" {
		return who, err
	}
	return d.AddGroups(ctx, who, user, groups, fresh)
}

// AddGroups adds user groups to the identity of a person who acts: each of the given groups in which the person is a
// member. user is the id under which Slack named the person. If fresh is set, AddGroups does not use cached answers.
func (d *Users) AddGroups(ctx context.Context, who approvers.Identity, user string, groups []string, fresh bool) (approvers.Identity, error) {
	who, refused, err := d.addGroups(ctx, who, user, groups, fresh)
	if err != nil {
		return approvers.Identity{}, err
	}
	if refused != nil {
		d.log.ErrorContext(ctx, "Slack refuses to name the members of user groups, so the groups give nobody authority",
			"user", user, "groups", who.Unnamed, "cause", slackapi.Explain(refused))
	}
	return who, nil
}

// RefusesMembers reports whether an error means that Slack refuses to name the members of a user group, for example
// because the bot token lacks a scope.
func RefusesMembers(err error) bool {
	return slackapi.IsRefused(err) && !slackapi.IsTokenRefusal(slackapi.ErrorCode(err))
}

// addGroups adds user groups to an identity. The groups whose members Slack refuses to name are in Unnamed, and refused
// is Slack's refusal.
func (d *Users) addGroups(ctx context.Context, who approvers.Identity, user string, groups []string, fresh bool) (with approvers.Identity, refused, err error) {
	if len(groups) == 0 {
		return who, nil, nil
	}
	all, err := d.allGroups(ctx, fresh)
	if RefusesMembers(err) {
		who.Unnamed = slices.Concat(who.Unnamed, groups)
		return who, err, nil
	}
	if err != nil {
		return who, nil, err
	}
	for _, named := range groups {
		if slices.Contains(who.Groups, named) {
			continue
		}
		isThis := func(id string) bool { return id == user || who.HasUser(id) }
		is := slices.ContainsFunc(all[named].Members, isThis)
		if !is {
			members, err := d.membersOf(ctx, all, named, fresh)
			if RefusesMembers(err) {
				who.Unnamed, refused = append(who.Unnamed, named), err
				continue
			}
			if err != nil {
				return who, nil, err
			}
			is = slices.ContainsFunc(members, isThis)
		}
		if is {
			who.Groups = append(who.Groups, named)
		}
	}
	return who, refused, nil
}

// groupsThatCount lists the user groups that can give authority over a tool. These are the groups of roles that cover
// the tool, and the groups of stages. The stages are those of the request's plan and of the current policy.
func groupsThatCount(p *approvers.Policy, tool string, r *approvers.Request) []string {
	var groups []string
	for _, role := range p.Approvers {
		if role.Covers(tool) {
			groups = append(groups, role.Groups()...)
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

// Group is a user group.
type Group struct {
	ID      string
	Members []string
	Cut     bool // Slack may have left out some of the members
}

// mayBeCut is the number of members from which a list may be incomplete. Slack's documentation names no limit for
// usergroups.list. For the event subteam_updated, it names a limit of 500 members.
const mayBeCut = 100

// Groups reads all user groups with their members from Slack. The keys of the map are the ids and the handles. Disabled
// groups are left out. Groups does not ask for the number of members, because Slack may send this number as a string,
// which slack-go does not accept (https://github.com/slack-go/slack/issues/1604).
func Groups(ctx context.Context, api *slack.Client) (map[string]Group, error) {
	list, err := api.GetUserGroupsContext(ctx, slack.GetUserGroupsOptionIncludeUsers(true))
	if err != nil {
		return nil, fmt.Errorf("usergroups.list: %w", slackapi.WithDelay(err))
	}
	groups := map[string]Group{}
	for _, g := range list {
		if g.DateDelete == 0 {
			group := Group{g.ID, g.Users, g.Users == nil || len(g.Users) >= mayBeCut}
			groups[g.ID], groups[g.Handle] = group, group
		}
	}
	return groups, nil
}

// MembersFrom returns all members of the group. If Slack may have left out some of them, MembersFrom asks Slack for the
// members of this group.
func (g Group) MembersFrom(ctx context.Context, api *slack.Client) ([]string, error) {
	if !g.Cut {
		return g.Members, nil
	}
	users, err := api.GetUserGroupMembersContext(ctx, g.ID)
	if err != nil {
		return nil, fmt.Errorf("usergroups.users.list: %w", slackapi.WithDelay(err))
	}
	return users, nil
}

// groupPatience limits how long a click waits for the next call that asks Slack about groups. If Slack asks for a
// longer wait, the click is handled later.
const groupPatience = 10 * time.Second

// allGroups returns all user groups, by id and by handle.
func (d *Users) allGroups(ctx context.Context, fresh bool) (map[string]Group, error) {
	return d.groups.Get(ctx, "", fresh, func() (map[string]Group, error) {
		return Groups(forClicks(ctx, fresh), d.api)
	})
}

// forClicks sets the priority of calls that ask about groups after a click. The calls are not PriorityUrgent, because
// an urgent call ignores Slack's limit until Slack refuses it. The calls do not queue behind each other, because clicks
// share them.
func forClicks(ctx context.Context, fresh bool) context.Context {
	if !fresh {
		return ctx
	}
	return slackapi.WithCallPriority(ctx, slackapi.CallPriority{Priority: slackapi.PriorityFirst, Retry: true})
}

// membersOf returns the members of a group that the policy names by id or handle. A group that does not exist has no
// members.
func (d *Users) membersOf(ctx context.Context, all map[string]Group, named string, fresh bool) ([]string, error) {
	g, ok := all[named]
	if !ok {
		d.log.WarnContext(ctx, "the policy names a user group that Slack does not have, so it gives nobody authority", "group", named)
		return nil, nil
	}
	if !g.Cut {
		return g.Members, nil
	}
	return d.members.Get(ctx, g.ID, fresh, func() ([]string, error) { return g.MembersFrom(forClicks(ctx, fresh), d.api) })
}

// GroupID returns the id of a user group that the policy names by id or handle. The id is empty if Slack does not have
// the group.
func (d *Users) GroupID(ctx context.Context, named string) (string, error) {
	all, err := d.allGroups(ctx, false)
	return all[named].ID, err
}

// groupMembers returns the members of a user group that the policy names by id or handle. The answer may be cached.
func (d *Users) groupMembers(ctx context.Context, named string) ([]string, error) {
	all, err := d.allGroups(ctx, false)
	if err != nil {
		return nil, err
	}
	return d.membersOf(ctx, all, named, false)
}

// RoleUsers lists a role's members who can receive messages from the bot. In an enterprise, a person has two ids.
// RoleUsers lists each person once. Like RoleMembers, RoleUsers leaves out members whom Slack refuses to name.
func (d *Users) RoleUsers(ctx context.Context, role approvers.Role) ([]approvers.Identity, error) {
	users, err := d.RoleMembers(ctx, role)
	if err != nil {
		return nil, err
	}
	var out []approvers.Identity
	for _, u := range users {
		who, err := d.Who(ctx, u, false)
		if err != nil {
			return nil, err
		}
		if readsMessages(who) {
			out = append(out, who)
		}
	}
	return eachOnce(out), nil
}

// RoleMembers lists the user ids of a role's members. RoleMembers leaves out e-mail addresses that can't identify a
// member or that belong to nobody in Slack. RoleMembers also leaves out a group or an address if Slack refuses to name
// the people, for example because the bot token lacks a scope. If nobody is left then, the error is Slack's refusal.
func (d *Users) RoleMembers(ctx context.Context, role approvers.Role) ([]string, error) {
	var users []string
	var refused error
	leftOut := func(err error) bool {
		if !RefusesMembers(err) {
			return false
		}
		refused = err
		return true
	}
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
				d.log.WarnContext(ctx, "the policy names an e-mail address that belongs to nobody in Slack", "approver", role.Name)
			case err != nil:
				if err = fmt.Errorf("users.lookupByEmail: %w", slackapi.WithDelay(err)); !leftOut(err) {
					return nil, err
				}
			default:
				users = append(users, u.ID)
			}
		case approvers.MemberGroup:
			members, err := d.groupMembers(ctx, m.Value)
			if err != nil && !leftOut(err) {
				return nil, err
			}
			users = append(users, members...)
		}
	}
	switch {
	case refused == nil:
	case len(users) == 0:
		return nil, refused
	default:
		d.log.ErrorContext(ctx, "Slack refuses to name some members of an approver, so they get no messages", "approver", role.Name, "cause", slackapi.Explain(refused))
	}
	slices.Sort(users)
	return slices.Compact(users), nil
}

// readsMessages reports whether the bot tells a person about the requests that the person's role can decide. Guests and
// people of other organisations can't decide requests, and are not notified.
func readsMessages(who approvers.Identity) bool { return !Barred(who) }

// GroupUsers lists members of the user group that the current stage requires. Each listed member has one of the stage's
// roles, and can receive messages from the bot. GroupUsers lists each person once.
func (d *Users) GroupUsers(ctx context.Context, group string, r *approvers.Request, p *approvers.Policy) ([]approvers.Identity, error) {
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
	members, err := d.groupMembers(ctx, group)
	if err != nil {
		return nil, err
	}
	var out []approvers.Identity
	for _, user := range slices.Sorted(slices.Values(members)) {
		who, err := d.Approver(ctx, user, p, r.Tool, approvers.Low, r)
		if err != nil {
			return nil, err
		}
		holds := slices.ContainsFunc(r.Plan.Stages[i].Roles(), func(name string) bool {
			role, ok := p.Role(name)
			return ok && role.Holds(who)
		})
		if holds && readsMessages(who) {
			out = append(out, who)
		}
	}
	return eachOnce(out), nil
}

// eachOnce sorts people by their ids, and removes those who occur twice.
func eachOnce(people []approvers.Identity) []approvers.Identity {
	slices.SortFunc(people, func(a, b approvers.Identity) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return slices.CompactFunc(people, func(a, b approvers.Identity) bool { return a.ID == b.ID })
}

// Invalidate drops the cached answers that an event makes invalid. user is the person of the event, if any.
func (d *Users) Invalidate(event, user string) {
	switch event {
	case "user_change", "team_join", "user_profile_changed":
		d.users.forget(user)
	case "dnd_updated_user":
		d.quiet.forget(user)
	case "subteam_members_changed", "subteam_updated", "subteam_created":
		d.ForgetGroups()
	}
}

// ForgetGroups drops the cached answers about user groups. Later look-ups also do not use the answer to a call that is
// under way, for example a refusal that is outdated because the scopes have changed.
func (d *Users) ForgetGroups() {
	d.groups.forget("")
	d.members.forget("")
}
