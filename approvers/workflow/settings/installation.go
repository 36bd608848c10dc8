package settings

import (
	"fmt"

	"countersign/store"
)

// Installation is the installation of a Slack app to which a store belongs.
type Installation struct {
	Team       string `json:"team"`
	Enterprise string `json:"enterprise,omitempty"` // empty: the workspace belongs to no enterprise
	App        string `json:"app,omitempty"`        // empty: Slack did not provide the app's id
}

// ReadInstallation reads the installation to which the store belongs. Before the first start, Team is empty.
func ReadInstallation(r store.Reader) (i Installation, s store.Setting, err error) {
	s, err = readJSON(r, store.SettingInstallation, &i)
	return i, s, err
}

func (i Installation) String() string {
	where := "the workspace " + i.Team
	if i.Enterprise != "" {
		where += " of the enterprise " + i.Enterprise
	}
	if i.App == "" {
		return where
	}
	return fmt.Sprintf("the app %s in %s", i.App, where)
}

// SameTeam reports whether both installations are in the same workspace or enterprise. A workspace that joins an
// enterprise keeps its id.
func (i Installation) SameTeam(other Installation) bool {
	return i.Team == other.Team || i.Enterprise != "" && i.Enterprise == other.Enterprise
}

// OtherApp reports whether the installations are of different apps.
func (i Installation) OtherApp(other Installation) bool {
	return i.App != "" && other.App != "" && i.App != other.App
}

// OtherInstallation is the error for a store that belongs to another installation than the bot.
type OtherInstallation struct{ Store, Bot Installation }

func (o *OtherInstallation) Error() string {
	text := fmt.Sprintf("the store belongs to %s, and the bot token to %s. Set SLACK_BOT_TOKEN to the token of the store's app, or COUNTERSIGN_STORE to the store of this app",
		o.Store, o.Bot)
	if o.Store.SameTeam(o.Bot) {
		text += fmt.Sprintf(". If the app %s has replaced the app %s, stop all bots that use the store, and start one of them with: countersign serve --replaces-app %s", o.Bot.App, o.Store.App, o.Store.App)
	}
	return text
}

// Check returns OtherInstallation if a bot with the installation must not use the store of i.
func (i Installation) Check(bot Installation) error {
	if i.Team == "" || i.SameTeam(bot) && !i.OtherApp(bot) {
		return nil
	}
	return &OtherInstallation{Store: i, Bot: bot}
}
