package workspace

import (
	"slices"
	"strings"
)

// usersInfo is users.info.
func (s *Server) usersInfo(c *call) (object, *apiError) {
	id := c.text("user")
	if id == "" {
		return nil, refuse("invalid_arguments", "missing required field: user [json-pointer:/user]")
	}
	u := s.users[id]
	if u == nil {
		return nil, refuse("user_not_found")
	}
	return object{"user": s.withLocale(c, u)}, nil
}

// withLocale adds the locale where the call asks for it.
func (s *Server) withLocale(c *call, u *user) object {
	out := s.userForApp(u)
	if c.flag("include_locale") {
		out["locale"] = u.Locale
	}
	return out
}

// userForApp leaves out the e-mail address of apps that may not read it.
func (s *Server) userForApp(u *user) object {
	out := u.json(s.cfg.Now())
	if len(s.app.Scopes) > 0 && !slices.Contains(s.app.Scopes, "users:read.email") {
		delete(out["profile"].(object), "email")
	}
	return out
}

// usersList is users.list, with cursors.
func (s *Server) usersList(c *call) (object, *apiError) {
	ids, next, failed := cutPage(c, s.userIDs, 1000, 1000)
	if failed != nil {
		return nil, failed
	}
	members := make([]object, len(ids))
	for i, id := range ids {
		members[i] = s.withLocale(c, s.users[id])
	}
	return object{"members": members, "cache_ts": s.cfg.Now().Unix(), "response_metadata": object{"next_cursor": next}}, nil
}

// usersLookupByEmail is users.lookupByEmail; as in Slack it doesn't find deactivated
// people.
func (s *Server) usersLookupByEmail(c *call) (object, *apiError) {
	email := strings.TrimSpace(c.text("email"))
	for _, id := range s.userIDs {
		if u := s.users[id]; email != "" && strings.EqualFold(u.Email, email) && !u.Deleted && u.Team == s.team.ID {
			return object{"user": s.userForApp(u)}, nil
		}
	}
	return nil, refuse("users_not_found")
}

// usersGetPresence is users.getPresence.
func (s *Server) usersGetPresence(c *call) (object, *apiError) {
	u := s.users[c.text("user")]
	switch {
	case u == nil:
		return nil, refuse("user_not_found")
	case u.Deleted:
		return object{"presence": "away"}, nil
	}
	return object{"presence": "active"}, nil
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
