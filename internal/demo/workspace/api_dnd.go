package workspace

import "strings"

// dndInfo is dnd.info. The snooze_* properties are for the caller's own account, which is the bot's and never snoozes.
func (s *Server) dndInfo(c *call) (object, *apiError) {
	id := c.text("user")
	if id == "" || id == s.botUser.ID {
		out := s.dndStatus(s.botUser)
		out["snooze_enabled"] = false
		return out, nil
	}
	u := s.users[id]
	if u == nil {
		return nil, refuse("user_not_found")
	}
	return s.dndStatus(u), nil
}

// dndTeamInfo is dnd.teamInfo. Ids that are nobody's are left out.
func (s *Server) dndTeamInfo(c *call) (object, *apiError) {
	ids := strings.FieldsFunc(c.text("users"), func(r rune) bool { return r == ',' || r == ' ' })
	switch {
	case len(ids) == 0:
		return nil, refuse("no_users_provided")
	case len(ids) > maxQuietPeople:
		return nil, refuse("too_many_users")
	}
	users := object{}
	for _, id := range ids {
		if u := s.users[id]; u != nil {
			users[id] = s.dndStatus(u)
		}
	}
	return object{"users": users}, nil
}
