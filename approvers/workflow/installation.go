package workflow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// Install checks that the store belongs to the bot's installation of the Slack app. A store that belongs to no
// installation belongs to this one from now on. The parameter replaced is the id of the app that this app has replaced
// in the same workspace, or empty. The error for a store of another installation is *settings.OtherInstallation.
func (w *History) Install(ctx context.Context, bot settings.Installation, replaced string) error {
	err := w.record(ctx, "record the installation", func(t *tx) error {
		now, s, err := settings.ReadInstallation(t)
		if err != nil {
			return err
		}
		before := now
		if err := now.Check(bot); err != nil {
			if replaced == "" || replaced != now.App || !now.SameTeam(bot) {
				return err
			}
			facts := map[string]string{"app": bot.App, "replaced": now.App, "team": bot.Team}
			if err := t.audit(approvers.InstallationChain, approvers.AuditAdopted, "", facts, nil); err != nil {
				return err
			}
			now.App = bot.App
		}
		next := settings.Installation{Team: cmp.Or(now.Team, bot.Team), Enterprise: cmp.Or(now.Enterprise, bot.Enterprise), App: cmp.Or(now.App, bot.App)}
		if next == before {
			return nil
		}
		if s.Value, err = json.Marshal(next); err != nil {
			return err
		}
		return t.PutSetting(s)
	})
	if errors.Is(err, store.ErrDamaged) {
		return nil // the bot works with the rows that can be read, and reports the damaged one
	}
	return err
}
