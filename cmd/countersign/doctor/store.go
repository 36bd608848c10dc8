package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"countersign/approvers/audit"
	"countersign/approvers/workflow/settings"
	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/internal/control"
	"countersign/store"
)

// diskLow is in bytes. If the store's disk has less free space than diskLow, the doctor adds a warning.
const diskLow = 1 << 30

// Store is a store that can check itself.
type Store interface {
	store.Store
	Check(ctx context.Context) error
}

// store checks whether the store can be used, and whether its disk has free space. If a running bot has locked the
// store, the doctor does not check the store's contents, because the check would block the bot's writes.
func (d *Doctor) store(ctx context.Context, env config.Env) {
	d.begin("Store")
	path, put := named(env.Store), "put a backup in its place: countersign restore"
	if env.Store.Backend == config.Postgres {
		put = "restore a backup: docs/postgres.md"
	} else if d.diskSpace(filepath.Dir(path)); missing(path) {
		if err := writable(filepath.Dir(path)); err != nil {
			d.fail(cli.ExitUsage, fmt.Sprintf("%s does not exist and can't be created: %s", path, err), "create the directory, or name another file with COUNTERSIGN_STORE")
			return
		}
		if err := audit.MayCreate(path, env.Audit.Heads); err != nil {
			d.fail(cli.Code(err), err.Error(), "")
			return
		}
		d.ok("%s does not exist yet: serve creates it", path)
		return
	}
	db, err := d.OpenStore(ctx, env)
	if env.Store.Backend == config.Postgres && (err == nil || errors.Is(err, store.ErrLocked)) {
		what, do, err := d.Excess(ctx, env)
		d.found(what, do, err, "the database's role may do what the bot needs, and no more")
		what, do, err = d.Clock(ctx, env)
		d.found(what, do, err, "this machine's clock and the database's agree")
	}
	switch {
	case errors.Is(err, store.ErrLocked):
		d.held(ctx, env)
	case err != nil:
		d.fail(cli.Code(err), err.Error(), "")
	default:
		found, err := ReadStore(ctx, db)
		err = errors.Join(db.Check(ctx), err)
		older, unread := audit.FindOlder(ctx, path, env.Audit.Heads, db)
		key := audit.CheckKeyFile(ctx, env.Audit.Key, db)
		if err := errors.Join(err, db.Close()); err != nil {
			d.fail(cli.ExitNo, path+": "+err.Error(), put)
			return
		}
		if unread != nil {
			d.fail(cli.Code(unread), unread.Error(), "")
			return
		}
		if older != nil {
			d.fail(cli.ExitNo, older.Error(), "")
			return
		}
		d.ok("%s is not damaged, and no process holds it", path)
		if key != nil {
			d.fail(cli.ExitUsage, key.Error(), "")
		}
		d.owner(found.Owner)
		d.refused(found.Refused)
	}
}

// ReadStore reads the findings of the bot that are in the store.
func ReadStore(ctx context.Context, db store.Store) (found Running, err error) {
	err = db.View(ctx, func(r store.Reader) (err error) {
		if found.Refused, _, err = settings.ReadRefusals(r); err == nil {
			found.Owner, _, err = settings.ReadInstallation(r)
		}
		return err
	})
	return found, err
}

// The method "owner" compares the installation to which the store belongs with the installation of the bot token.
func (d *Doctor) owner(store settings.Installation) {
	if d.app.Team == "" {
		return
	}
	if err := store.Check(d.app); err != nil {
		d.fail(cli.ExitUsage, err.Error(), "")
	}
}

// found reports the result of a check: its error, or a problem with what to do, or else that all is well.
func (d *Doctor) found(what, do string, err error, well string) {
	switch {
	case err != nil:
		d.fail(cli.Code(err), err.Error(), "")
	case what != "":
		d.warn(what, do)
	default:
		d.ok("%s", well)
	}
}

// The function "named" returns the name of a store for messages.
func named(s config.Store) string {
	if s.Backend == config.Postgres {
		return s.String()
	}
	return s.Path
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// The method "held" asks the running bot about the store, if a process has locked the store.
func (d *Doctor) held(ctx context.Context, env config.Env) {
	says := fmt.Sprintf("a bot is running: it holds %s, and answers", named(env.Store))
	bot, err := d.AskBot(ctx, env)
	own := cli.ThisBuild().Version
	differs := err == nil && bot.Version != own
	if errors.Is(err, control.ErrNobody) && env.Store.Backend == config.Postgres {
		says = fmt.Sprintf("other replicas work on %s; on this machine, no bot answers at %s", named(env.Store), env.Control)
		bot, err = d.ReadBeside(ctx, env)
		differs = false
	}
	switch {
	case err == nil:
		d.ok("%s", says)
		if differs {
			d.warn(fmt.Sprintf("the running bot has the version %s, and this program has the version %s", cmp.Or(bot.Version, "unknown"), own),
				"after an upgrade, restart the bot; otherwise use the bot's own program for the commands")
		}
		d.owner(bot.Owner)
		d.refused(bot.Refused)
	case errors.Is(err, control.ErrNobody):
		d.fail(cli.ExitFailed, named(env.Store)+" is held by a program that does not answer at "+env.Control, "set COUNTERSIGN_CONTROL as serve has it, or see which program it is")
	default:
		d.fail(cli.Code(err), err.Error(), "")
	}
}

// The method "refused" reports the features that the bot does not use at present, because Slack refused them.
func (d *Doctor) refused(list []settings.Refusal) {
	for _, r := range list {
		if r.Until.After(time.Now()) {
			d.warn(fmt.Sprintf("Slack refuses %s since %s: %s", r.What, cli.Moment(r.Since), r.Cause),
				"the bot works without it until "+cli.Moment(r.Until)+", and then tries it again; ask the workspace's admins whether an app may use it")
		}
	}
}

func (d *Doctor) diskSpace(dir string) {
	free, ok := cli.FreeSpace(dir)
	switch {
	case !ok:
	case free < cli.DiskFull:
		d.fail(cli.ExitFailed, fmt.Sprintf("the disk below %s has %d MB left", dir, free>>20), "free some space: on a full disk, nothing is decided and nothing runs")
	case free < diskLow:
		d.warn(fmt.Sprintf("the disk below %s has %d MB left", dir, free>>20), "free some space soon")
	default:
		d.ok("the disk has %d GB left", free>>30)
	}
}

// The function "writable" tries to create a file in a directory.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".countersign-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
