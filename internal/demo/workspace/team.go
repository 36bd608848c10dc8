package workspace

// apiTest is api.test. apiTest returns its arguments. If the argument "error" has a code, the call fails with this
// code.
func apiTest(c *call) (object, *apiError) {
	if code := c.text("error"); code != "" {
		return nil, &apiError{code: code, extra: object{"args": c.values}}
	}
	return object{"args": c.values}, nil
}

// authTest is auth.test.
func (s *Server) authTest(c *call) (object, *apiError) {
	return object{
		"url": c.base + "/", "team": s.team.Name, "team_id": s.team.ID, "user": s.botUser.Name,
		"user_id": s.botUser.ID, "bot_id": s.app.BotID, "is_enterprise_install": false,
	}, nil
}

// teamInfo is team.info.
func (s *Server) teamInfo(c *call) (object, *apiError) {
	if id := c.text("team"); id != "" && id != s.team.ID {
		return nil, refuse("team_not_found")
	}
	return object{"team": object{
		"id": s.team.ID, "name": s.team.Name, "domain": s.team.Domain, "email_domain": "", "url": c.base + "/",
		"icon": object{"image_default": true}, "is_verified": false,
	}}, nil
}

// botsInfo is bots.info. The default bot is the caller.
func (s *Server) botsInfo(c *call) (object, *apiError) {
	id := c.text("bot")
	if id == "" {
		id = s.app.BotID
	}
	for _, uid := range s.accounts.ids {
		if u := s.accounts.byID[uid]; u.BotID != "" && u.BotID == id {
			return object{"bot": object{
				"id": u.BotID, "deleted": u.Deleted, "name": u.shown(), "updated": u.Updated, "app_id": u.AppID,
				"user_id": u.ID, "icons": object{},
			}}, nil
		}
	}
	return nil, refuse("bot_not_found")
}
