package bot

import (
	"context"
	"slices"
)

// origin is the app that a delivery is for, and the workspaces and enterprises that it is from. A message in a channel
// shared by two organisations names both.
type origin struct {
	app         string
	teams       []string
	enterprises []string
}

func (e envelope) origin() origin {
	o := origin{app: e.App, teams: []string{e.Team, e.ContextTeam}, enterprises: []string{e.Enterprise, e.ContextEnterprise}}
	for _, a := range e.Authorizations {
		o.teams, o.enterprises = append(o.teams, a.Team), append(o.enterprises, a.Enterprise)
	}
	return o
}

func (i interaction) origin() origin {
	return origin{app: i.App, teams: []string{i.Team.ID}, enterprises: []string{i.Enterprise.ID}}
}

func (c command) origin() origin {
	return origin{app: c.App, teams: []string{c.Team}, enterprises: []string{c.Enterprise}}
}

// here checks that a delivery is for the bot's own app, from its own workspace or enterprise. Slack omits the workspace
// if the app is installed for a whole enterprise.
func (b *Bot) here(ctx context.Context, o origin) error {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	if o.app != "" && me.App != "" && o.app != me.App {
		return errWorkspace
	}
	if slices.Contains(o.teams, me.Team) || me.Enterprise != "" && slices.Contains(o.enterprises, me.Enterprise) {
		return nil
	}
	return errWorkspace
}
