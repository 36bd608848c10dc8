package workspace

import (
	"fmt"
	"slices"
	"strings"
)

// userGroup is a user group ("@support").
type userGroup struct {
	ID      string   `json:"id"`
	Handle  string   `json:"handle"`
	Name    string   `json:"name"`
	Users   []string `json:"users"`
	Updated int64    `json:"updated"`
}

func (g *userGroup) json(team string, withUsers bool) object {
	out := object{
		"id": g.ID, "team_id": team, "is_usergroup": true, "is_subteam": true, "name": g.Name,
		"handle": g.Handle, "description": "", "is_external": false, "date_create": 0,
		"date_update": g.Updated, "date_delete": 0, "auto_type": nil, "created_by": "", "updated_by": "",
		"user_count": len(g.Users), "prefs": object{"channels": []string{}, "groups": []string{}},
	}
	if withUsers {
		out["users"] = append([]string{}, g.Users...)
	}
	return out
}

// usergroupsList is usergroups.list.
func (s *Server) usergroupsList(c *call) (object, *apiError) {
	list := make([]object, len(s.groups))
	for i, g := range s.groups {
		list[i] = g.json(s.team.ID, c.flag("include_users"))
	}
	return object{"usergroups": list}, nil
}

// usergroupsUsersList is usergroups.users.list.
func (s *Server) usergroupsUsersList(c *call) (object, *apiError) {
	g := s.group(c.text("usergroup"))
	if g == nil {
		return nil, refuse("no_such_subteam")
	}
	members := []string{}
	for _, id := range g.Users {
		if u := s.users[id]; u != nil && (!u.Deleted || c.flag("include_disabled")) {
			members = append(members, id)
		}
	}
	return object{"users": members}, nil
}

func (s *Server) group(id string) *userGroup {
	for _, g := range s.groups {
		if g.ID == id {
			return g
		}
	}
	return nil
}

// SetGroupUsers sets the members of a user group (by id or handle) and notifies the app (subteam_members_changed).
func (s *Server) SetGroupUsers(group string, users []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.group(group)
	for _, other := range s.groups {
		if other.Handle == strings.TrimPrefix(group, "@") {
			g = other
		}
	}
	if g == nil {
		return fmt.Errorf("there is no user group %q", group)
	}
	for _, id := range users {
		if s.users[id] == nil {
			return fmt.Errorf("there is no person %q", id)
		}
	}
	s.setGroup(g, slices.Clone(users))
	s.feed.send(change{Type: "people"})
	s.saver.touch()
	return nil
}

func (s *Server) setGroup(g *userGroup, users []string) {
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
	g.Users, g.Updated = users, s.cfg.Now().Unix()
	s.emit("subteam_members_changed", object{
		"type": "subteam_members_changed", "subteam_id": g.ID, "team_id": s.team.ID, "date_previous_update": previous,
		"date_update": g.Updated, "added_users": added, "added_users_count": len(added), "removed_users": removed, "removed_users_count": len(removed),
	})
	s.emit("subteam_updated", object{"type": "subteam_updated", "subteam": g.json(s.team.ID, true)})
}
