package bot

import (
	"context"
	"encoding/json"
	"slices"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/directory"
	"countersign/bot/slackapi"
	"countersign/store"
)

// Availability asks Slack which people can be reached, and passes the answers to the workflow. The workflow decides
// whom it invites or reminds.
type Availability struct {
	*core
	permissions *Permissions
	replicas    *Replicas
}

// Resolve finds out which people of a stage can be reached. The workflow then invites stand-ins or escalates to the
// lead.
func (b *Availability) Resolve(ctx context.Context, t store.Timer) error {
	ctx = dueFor(ctx, slackapi.PriorityNormal, t)
	stage, people, err := b.stagePeople(ctx, t.Ref)
	if err != nil {
		return err
	}
	return b.People.ResolveAvailability(ctx, t, stage, people)
}

// Remind reminds the people of a stage who have not decided.
func (b *Availability) Remind(ctx context.Context, t store.Timer) error {
	ctx = dueFor(ctx, slackapi.PriorityNormal, t)
	stage, people, err := b.stagePeople(ctx, t.Ref)
	if err != nil {
		return err
	}
	return b.People.Remind(ctx, t, stage, people)
}

// AbsenceChanged runs when a person's absence begins or ends. It makes the workflow handle all requests that wait for
// the person.
func (b *Availability) AbsenceChanged(ctx context.Context, t store.Timer) error {
	ctx = dueFor(ctx, slackapi.PriorityNormal, t)
	who, err := b.users.IdentifyActor(ctx, approvers.PersonID(t.Ref).User(), groupsOf(b.Views.Policy()), false)
	if err != nil {
		return err
	}
	return b.People.AbsenceChanged(ctx, t, who)
}

// userChange is Slack's event about a change of a person.
const userChange = "user_change"

// account is the person of an event of the type user_change.
type account struct {
	ID          string `json:"id"`
	Deactivated bool   `json:"deleted"`
	Restricted  bool   `json:"is_restricted"`
	Single      bool   `json:"is_ultra_restricted"` // a guest of a single channel
}

func (a account) guest() bool { return a.Restricted || a.Single }

// account returns the person of the event. The person has no ID if the event has another type.
func (e event) account() (a account) {
	if e.Type != userChange || json.Unmarshal(e.User, &a) != nil {
		return account{}
	}
	return a
}

// news reports whether an event may say that an account was deactivated or reactivated, or that a person became a guest
// or is no longer a guest. Slack sends the same event for other changes, such as each new status. Therefore only the
// first event about a guest counts. In addition, the policy must name the guest, or the bot must have looked up the
// guest before.
func (a account) news(users *directory.Users, p *approvers.Policy) bool {
	switch {
	case a.ID == "":
		return false
	case a.Deactivated:
		return true
	case a.guest():
		named := slices.ContainsFunc(p.Approvers, func(r approvers.Role) bool {
			return slices.Contains(r.Members, approvers.Member{Kind: approvers.MemberUser, Value: a.ID})
		})
		return !users.IsNotedGuest(a.ID) && (named || users.WasLookedUp(a.ID))
	}
	return users.WasLost(a.ID) || users.IsNotedGuest(a.ID)
}

// aboutGroup reports whether an event is about a user group: a new group, or a group with other members, another handle
// or another state. When members change, Slack also sends the event subteam_members_changed, which says nothing more.
func (e event) aboutGroup() bool {
	return (e.Type == "subteam_created" || e.Type == "subteam_updated") && e.Group.ID != ""
}

// is reports whether the policy means this group by a name. The name is an id or a handle.
func (g userGroup) is(named string) bool { return named != "" && (named == g.ID || named == g.Handle) }

// groupChanged handles a change of a user group. It makes the workflow recheck all requests that wait for people of the
// group.
func (b *Availability) groupChanged(ctx context.Context, row store.Inbox, e event) error {
	b.replicas.invalidate(e)
	var roles []string
	for _, role := range b.Views.Policy().Approvers {
		if slices.ContainsFunc(role.Groups(), e.Group.is) {
			roles = append(roles, role.Name)
		}
	}
	return b.People.GroupChanged(ctx, row.ID, roles, e.Group.is)
}

// accountChanged handles the deactivation or reactivation of an account, and the change of an account to or from a
// guest's account. It makes the workflow recheck all requests that wait for the owner of the account.
func (b *Availability) accountChanged(ctx context.Context, row store.Inbox, e event) error {
	b.replicas.invalidate(e)
	policy := b.Views.Policy()
	who, err := b.users.IdentifyActor(ctx, e.userID(), groupsOf(policy), false)
	if err != nil {
		return err
	}
	// Slack does not list a deactivated account among the members of a user group, and does not find it by its e-mail
	// address. So the person may have been a member of any role that names a group or an e-mail address. If Slack refuses
	// to name the members of a group, this also applies to guests.
	mayHold := func(m approvers.Member) bool {
		return m.Kind != approvers.MemberUser && (!who.Guest || slices.Contains(who.Unnamed, m.Value))
	}
	var roles []string
	for _, role := range policy.Approvers {
		if role.Holds(who) || slices.ContainsFunc(role.Members, mayHold) {
			roles = append(roles, role.Name)
		}
	}
	if err := b.People.AccountChanged(ctx, row.ID, who.ID, roles); err != nil {
		return err
	}
	if !directory.Barred(who) {
		b.permissions.retryUnreached(ctx)
	}
	return nil
}

// stagePeople looks up the people of a request's stage: the members of its roles, the leads who were notified, and
// invited people. The result includes people who can't decide at the moment. If a request is not pending, the function
// returns no people.
func (b *Availability) stagePeople(ctx context.Context, request string) (view.StageSnapshot, []approvers.Presence, error) {
	stage, err := b.Views.StageSnapshot(ctx, request)
	if err != nil || stage.Request.State != approvers.Pending {
		return stage, nil, err
	}
	var users []string
	for _, name := range stage.Request.Roles() {
		role, _ := stage.Policy.Role(name)
		members, err := b.users.RoleMembers(ctx, role)
		if err != nil {
			return stage, nil, err
		}
		users = append(users, members...)
	}
	for _, i := range stage.Request.Invited {
		users = append(users, i.Who.User())
	}
	slices.Sort(users)
	users = slices.Compact(users)
	people := make([]approvers.Presence, 0, len(users))
	for i, user := range users {
		p, err := b.presence(ctx, user, stage, maxStandIns, i < maxDisturbed)
		if err != nil {
			return stage, nil, err
		}
		if !slices.ContainsFunc(people, func(o approvers.Presence) bool { return o.Who.ID == p.Who.ID }) { // a person may have two ids in an enterprise
			people = append(people, p)
		}
	}
	return stage, people, nil
}

const (
	maxStandIns  = 5  // maximum length of a chain of stand-ins
	maxDisturbed = 50 // do-not-disturb is looked up for at most this many people of a request
)

// presence returns a person's availability. presence uses the person's recorded absence and Slack's answers about the
// person. The person has the identity that a click of the person would have. So if Slack refuses to name the members of a
// user group, the group gives nobody authority here either, and the other people of the stage are still reminded.
func (b *Availability) presence(ctx context.Context, user string, stage view.StageSnapshot, depth int, ask bool) (approvers.Presence, error) {
	r := stage.Request
	who, err := b.users.Clicker(ctx, user, stage.Policy, r.Tool, approvers.Low, &r)
	if err != nil {
		return approvers.Presence{}, err
	}
	out := approvers.Presence{Who: who}
	a, away := stage.Away[who.ID.User()]
	switch {
	case !away && ask && !directory.Barred(who):
		out.QuietUntil = b.users.QuietUntil(ctx, user)
	case away && (a.Delegate == "" || depth == 0):
		out.Away = true
	case away:
		out.Away = true
		next, err := b.presence(ctx, a.Delegate.User(), stage, depth-1, ask)
		if err != nil {
			return out, err
		}
		out.StandIn = &next
	}
	return out, nil
}
