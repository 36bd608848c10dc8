package workspace

// apiTest is api.test. apiTest returns its arguments. If the argument "error" has a code, the call fails with this
// code.
func apiTest(c *call) (object, *apiError) {
	if code := c.text("error"); code != "" {
		return nil, &apiError{code: code, extra: object{"args": c.values}}
	}
	return object{"args": c.values}, nil
}

// identity answers Slack's methods about the app, the workspace and the bots.
type identity struct {
	*core
	accounts *accounts
}

// authTest is auth.test.
func (i *identity) authTest(c *call) (object, *apiError) {
	return object{
		"url": c.base + "/", "team": i.team.Name, "team_id": i.team.ID, "user": i.botUser.Name,
		"user_id": i.botUser.ID, "bot_id": i.app.BotID, "is_enterprise_install": false,
	}, nil
}

// teamInfo is team.info.
func (i *identity) teamInfo(c *call) (object, *apiError) {
	if id := c.text("team"); id != "" && id != i.team.ID {
		return nil, refuse("team_not_found")
	}
	return object{"team": object{
		"id": i.team.ID, "name": i.team.Name, "domain": i.team.Domain, "email_domain": "", "url": c.base + "/",
		"icon": object{"image_default": true}, "is_verified": false,
	}}, nil
}

// botsInfo is bots.info. The default bot is the caller.
func (i *identity) botsInfo(c *call) (object, *apiError) {
	id := c.text("bot")
	if id == "" {
		id = i.app.BotID
	}
	for _, uid := range i.accounts.ids {
		if u := i.accounts.byID[uid]; u.BotID != "" && u.BotID == id {
			return object{"bot": object{
				"id": u.BotID, "deleted": u.Deleted, "name": u.shown(), "updated": u.Updated, "app_id": u.AppID,
				"user_id": u.ID, "icons": object{},
			}}, nil
		}
	}
	return nil, refuse("bot_not_found")
}
