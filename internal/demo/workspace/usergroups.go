package workspace

import (
	"fmt"
	"slices"
	"strings"
)

// userGroup is a user group ("@support").
type userGroup struct {
	ID       string   `json:"id"`
	Handle   string   `json:"handle"`
	Name     string   `json:"name"`
	Users    []string `json:"users"`
	Updated  int64    `json:"updated"`
	Disabled int64    `json:"disabled,omitempty"` // the time at which the group was disabled; 0: the group is enabled
}

// json returns Slack's usergroup object. As in Slack, a long list of users is cut, and user_count counts all users.
func (g *userGroup) json(team string, withUsers, withCount bool) object {
	out := object{
		"id": g.ID, "team_id": team, "is_usergroup": true, "is_subteam": true, "name": g.Name,
		"handle": g.Handle, "description": "", "is_external": false, "date_create": 0,
		"date_update": g.Updated, "date_delete": g.Disabled, "auto_type": nil, "created_by": "", "updated_by": "",
		"prefs": object{"channels": []string{}, "groups": []string{}},
	}
	if withUsers {
		out["users"] = append([]string{}, g.Users[:min(len(g.Users), maxListedUsers)]...)
	}
	if withCount {
		out["user_count"] = len(g.Users)
	}
	return out
}

// userGroups holds the user groups.
type userGroups struct {
	*core
	events *events
	list   []*userGroup
}

// usergroupsList is usergroups.list.
func (gs *userGroups) usergroupsList(c *call) (object, *apiError) {
	list := []object{}
	for _, g := range gs.list {
		if g.Disabled == 0 || c.flag("include_disabled") {
			list = append(list, g.json(gs.team.ID, c.flag("include_users"), c.flag("include_count")))
		}
	}
	return object{"usergroups": list}, nil
}

// usergroupsUsersList is usergroups.users.list.
func (gs *userGroups) usergroupsUsersList(c *call) (object, *apiError) {
	g := gs.withID(c.text("usergroup"))
	if g == nil || g.Disabled != 0 && !c.flag("include_disabled") {
		return nil, refuse("no_such_subteam")
	}
	return object{"users": append([]string{}, g.Users...)}, nil
}

func (gs *userGroups) withID(id string) *userGroup {
	for _, g := range gs.list {
		if g.ID == id {
			return g
		}
	}
	return nil
}

// The method "named" returns a user group by id or handle.
func (gs *userGroups) named(group string) (*userGroup, error) {
	for _, g := range gs.list {
		if g.ID == group || g.Handle == strings.TrimPrefix(group, "@") {
			return g, nil
		}
	}
	return nil, fmt.Errorf("there is no user group %q", group)
}

// add adds a user group and notifies the app.
func (gs *userGroups) add(g *userGroup) {
	gs.list = append(gs.list, g)
	gs.changed("subteam_created", g)
}

// disable disables a user group, or enables the group again, and notifies the app.
func (gs *userGroups) disable(g *userGroup, disabled bool) {
	g.Updated, g.Disabled = gs.cfg.Now().Unix(), 0
	if disabled {
		g.Disabled = g.Updated
	}
	gs.changed("subteam_updated", g)
}

// set sets the members of a user group and notifies the app.
func (gs *userGroups) set(g *userGroup, users []string) {
	missing := func(from, in []string) []string {
		out := []string{}
		for _, id := range from {
			if !slices.Contains(in, id) {
				out = append(out, id)
			}
		}
		return out
	}
	added, removed := missing(users, g.Users), missing(g.Users, users)
	previous := g.Updated
	g.Users, g.Updated = users, gs.cfg.Now().Unix()
	gs.events.emit("subteam_members_changed", object{
		"type": "subteam_members_changed", "subteam_id": g.ID, "team_id": gs.team.ID, "date_previous_update": previous,
		"date_update": g.Updated, "added_users": added, "added_users_count": len(added), "removed_users": removed, "removed_users_count": len(removed),
	})
	gs.changed("subteam_updated", g)
}

// The method "changed" notifies the app and the people of a changed user group.
func (gs *userGroups) changed(event string, g *userGroup) {
	gs.events.emit(event, object{"type": event, "subteam": g.json(gs.team.ID, true, true)})
	gs.feed.send(change{Type: "people"})
	gs.saver.touch()
}
