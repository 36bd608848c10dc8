package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/bot/directory"
	"countersign/bot/installation"
	"countersign/bot/slackapi"
	"countersign/cmd/countersign/cli"
)

// slackRegister caches Slack's answers about the people of the policy.
type slackRegister struct {
	examiner *installation.Examiner
	groups   map[string]directory.Group // by id and by handle; nil: not read from Slack yet
	members  map[string][]string
	people   map[string]approvers.Identity
}

// maxGroupPeople limits how many members of a user group are looked up, because Slack allows only about a hundred
// look-ups a minute.
const maxGroupPeople = 30

// The method "people" checks whether the people that the policy names can decide.
func (d *Doctor) people(ctx context.Context, e *installation.Examiner, p *approvers.Policy) {
	d.begin("Approvers")
	g := &slackRegister{examiner: e, members: map[string][]string{}, people: map[string]approvers.Identity{}}
	needed := quorums(p)
	for _, role := range p.Approvers {
		able := map[approvers.PersonID]string{}
		more := false // some members of the role were not looked up
		var troubles []memberProblem
		for _, m := range role.Members {
			if m.Kind == approvers.MemberEmail && !p.CountsEmail(m.Value) {
				continue // the check of the policy reports this
			}
			found, some, t, err := g.lookUp(ctx, m)
			if err != nil {
				d.unanswered(err, "the bot token", "")
				return
			}
			maps.Copy(able, found)
			more = more || some
			troubles = append(troubles, t...)
		}
		d.role(role, able, more, troubles, needed[role.Name])
	}
}

// memberProblem says why a member of a role can't decide, and what to do about it.
type memberProblem struct{ what, do string }

// role reports which people of a role can decide.
func (d *Doctor) role(role approvers.Role, able map[approvers.PersonID]string, more bool, troubles []memberProblem, needed int) {
	enough := more || len(able) >= max(needed, 1)
	for _, t := range troubles {
		if enough {
			d.warn(role.Title+": "+t.what, t.do)
		} else {
			d.fail(cli.ExitNo, role.Title+": "+t.what, t.do)
		}
	}
	names := slices.Sorted(maps.Values(able))
	switch {
	case len(able) == 0 && !more:
		d.fail(cli.ExitNo, role.Title+": nobody can decide in this role", "write members into the policy who are colleagues in this workspace")
	case !enough:
		d.fail(cli.ExitNo, fmt.Sprintf("%s: %d have to agree, and only %d can decide (%s)", role.Title, needed, len(able), strings.Join(names, ", ")),
			"add members to the role, or ask for fewer of them")
	case more:
		d.ok("%s: at least %d people can decide", role.Title, len(able))
	default:
		d.ok("%s: %s can decide (%s)", role.Title, cli.Count(len(able), "member"), strings.Join(names[:min(len(names), 6)], ", "))
	}
}

// lookUp looks up a member of a role: a person or a group. The result "able" maps the id of each person who can decide
// to the person's name. The result "troubles" has the reasons why other people can't decide. The result "more" is
// true if a group has members that were not looked up.
func (g *slackRegister) lookUp(ctx context.Context, m approvers.Member) (able map[approvers.PersonID]string, more bool, troubles []memberProblem, err error) {
	able = map[approvers.PersonID]string{}
	switch m.Kind {
	case approvers.MemberUser:
		t, err := g.person(ctx, m.Value, "", able)
		return able, false, t, err
	case approvers.MemberEmail:
		who, err := g.examiner.PersonAt(ctx, m.Value)
		switch {
		case err != nil:
			return nil, false, nil, err
		case who.ID == "":
			return able, false, []memberProblem{{m.Value + " belongs to nobody in this workspace", "write another address, or the person's user id, into the policy"}}, nil
		case who.Email == "":
			return able, false, []memberProblem{{m.Value + " is not confirmed by Slack, so it does not count", "have the person confirm the address, or write the user id into the policy"}}, nil
		}
		return able, false, checkAuthority(who, m.Value, able), nil
	}
	if g.groups == nil {
		if g.groups, err = g.examiner.Groups(ctx); err != nil {
			return unnamed(m.Value, err)
		}
	}
	group, ok := g.groups[m.Value]
	if !ok {
		return able, false, []memberProblem{{"there is no user group @" + m.Value + ", or it is disabled", "make it in Slack, or write another one into the policy"}}, nil
	}
	users, asked := g.members[group.ID]
	if !asked {
		if users, err = g.examiner.Members(ctx, group); err != nil {
			return unnamed(m.Value, err)
		}
		g.members[group.ID] = users
	}
	if len(users) == 0 {
		return able, false, []memberProblem{{"the user group @" + m.Value + " has no members", "add people to it in Slack"}}, nil
	}
	for _, u := range users[:min(len(users), maxGroupPeople)] {
		t, err := g.person(ctx, u, " of @"+m.Value, able)
		if err != nil {
			return nil, false, nil, err
		}
		troubles = append(troubles, t...)
	}
	return able, len(users) > maxGroupPeople, troubles, nil
}

// unnamed returns the result of lookUp for a user group if Slack does not name the group's members. A refusal is a
// problem of this group only.
func unnamed(group string, err error) (able map[approvers.PersonID]string, more bool, troubles []memberProblem, _ error) {
	if !directory.RefusesMembers(err) {
		return nil, false, nil, err
	}
	return nil, false, []memberProblem{{
		"Slack refuses to name the members of the user group @" + group + ", so they can't decide: " + slackapi.Explain(err),
		"give the app the scope usergroups:read and install the app again, or write user ids into the policy",
	}}, nil
}

// person looks up a user. If an earlier call has looked up the same user, person uses the earlier result.
func (g *slackRegister) person(ctx context.Context, user, of string, able map[approvers.PersonID]string) ([]memberProblem, error) {
	who, asked := g.people[user]
	if !asked {
		var err error
		if who, err = g.examiner.Person(ctx, user); err != nil {
			return nil, err
		}
		g.people[user] = who
	}
	if who.ID == "" {
		return []memberProblem{{user + of + " is not a person in this workspace", "write another user id into the policy: it is in the person's profile, under Copy member ID"}}, nil
	}
	return checkAuthority(who, user+of, able), nil
}

// If a person can decide, checkAuthority adds the person to the map able. Otherwise checkAuthority returns the reason
// why the person can't decide.
func checkAuthority(who approvers.Identity, named string, able map[approvers.PersonID]string) []memberProblem {
	why := ""
	switch {
	case who.Deleted:
		why = "has a deactivated account"
	case who.Bot:
		why = "is a bot"
	case who.Foreign:
		why = "is of another organisation"
	case who.Guest:
		why = "is a guest"
	default:
		able[who.ID] = who.Name
		return nil
	}
	return []memberProblem{{fmt.Sprintf("%s (%s) %s, and can't decide", who.Name, named, why), "remove the person from the role"}}
}

// The function "quorums" returns the largest quorum of each role. Only stages with a single role count.
func quorums(p *approvers.Policy) map[string]int {
	out := map[string]int{}
	ask := func(stages []approvers.Stage) {
		for _, s := range stages {
			if len(s.Roles()) == 1 {
				out[s.Approver] = max(out[s.Approver], s.Quorum)
			}
		}
	}
	for _, t := range p.Tools {
		ask(t.Stages)
		for _, r := range t.Rules {
			ask(r.Stages)
		}
	}
	for _, a := range p.Agents {
		for _, o := range a.Overrides {
			ask(o.Stages)
		}
	}
	return out
}
