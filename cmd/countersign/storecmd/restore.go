package storecmd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/task"
	"countersign/config"
	"countersign/internal/visible"
	"countersign/store"
	"countersign/store/bolt"
)

// Restore returns the command restore.
func Restore() *cobra.Command {
	var o restoreOptions
	cmd := &cobra.Command{
		Use:   "restore FILE | restore --database",
		Short: "Puts a backup in the place of the store, while no bot runs",
		Long: `Checks the backup, closes everything in it that could act, and puts it where COUNTERSIGN_STORE says. What was there stays beside it.

What happened after the backup was made is unknown. Therefore requests that were open in it are voided, runs in progress get an unknown outcome, turns stop, and grants
end: a call that was decided and run since then is never decided and run again. People are told by their cards and threads when the bot starts.

The file of signed heads is also renamed and kept, because it proves what was there. If heads are sent to other places as well, the next ones continue from the backup.

A PostgreSQL database is restored with its own tools. Then countersign restore --database does the rest in it, before the bot starts: it checks the database and closes
everything that could act. With --nothing-lost nothing is closed: use it only if no bot has worked on the original since the dump was begun, as in a planned move.

If the backup or the database has faults, they are printed as by "countersign audit verify", and nothing is restored. If there is no copy without faults, --accept-faults
restores it nevertheless. "countersign audit verify" then still reports the faults.`,
		Example: `  countersign restore /var/backups/countersign-2026-03-02.db
  countersign restore --database`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.database {
				return cli.NoArgs(cmd, args)
			}
			return cli.Args(1, 1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.database:
				return restoreDatabase(cmd.Context(), cmd.OutOrStdout(), o)
			case o.nothingLost || o.reason != "":
				return cli.Misused("--nothing-lost and --reason belong to --database")
			}
			return restore(cmd.Context(), cmd.OutOrStdout(), args[0], o.acceptFaults)
		},
	}
	cmd.Flags().BoolVar(&o.database, "database", false, "the database was restored: close in it what could act")
	cmd.Flags().BoolVar(&o.nothingLost, "nothing-lost", false, "with --database: no bot has worked on the original since, so close nothing")
	cmd.Flags().StringVar(&o.reason, "reason", "", "with --nothing-lost: why, for the history")
	acceptFaults(cmd.Flags(), &o.acceptFaults)
	return cmd
}

// restoreOptions has the options of restore. All but acceptFaults belong to --database.
type restoreOptions struct {
	database, nothingLost bool
	reason                string
	acceptFaults          bool
}

// restoreDatabase closes all records in a restored database that could cause an action, such as pending requests. With
// --nothing-lost, it closes nothing.
func restoreDatabase(ctx context.Context, out io.Writer, o restoreOptions) error {
	env, err := config.ReadEnv(config.Offline)
	if err != nil {
		return cli.Misused("the environment can't be used:\n%w", err)
	}
	if env.Store.Backend != config.Postgres {
		return cli.Misused("%s is a file: restore a backup of it, with countersign restore FILE", env.Store)
	}
	if o.nothingLost {
		if err := cli.CheckReason(&o.reason); err != nil {
			return err
		}
	}
	db, err := openstore.Existing(ctx, env)
	if err != nil {
		return err
	}
	return errors.Join(restoreIn(ctx, out, env, db, o), db.Close())
}

func restoreIn(ctx context.Context, out io.Writer, env config.Env, db store.Store, o restoreOptions) error {
	older, err := audit.FindOlder(ctx, openstore.Name(env.Store), env.Audit.Heads, db)
	if err != nil {
		return err
	}
	lacks := older != nil && older.Number > 0
	switch {
	case o.nothingLost && lacks:
		return cli.AnswerNo("something is lost: %s", older.What())
	case o.nothingLost && older == nil:
		return cli.AnswerNo("the database was not restored from a dump, and has the newest of the signed heads that are kept for it: just start the bot")
	}
	var c copied
	err = c.check(ctx, db)
	if err == nil {
		err = c.accept(out, o.acceptFaults)
	}
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	wf, err := task.LocalWorkflow(ctx, env, db, nil)
	if err != nil {
		return err
	}
	x := workflow.Restoration{Who: cli.Operator(os.Geteuid()), Backup: env.Store.String(), Taken: c.last, Faults: c.faults != nil}
	if o.nothingLost {
		if err := errors.Join(wf.History.NothingLost(ctx, x, o.reason), settle(ctx, db)); err != nil {
			return cli.CouldNot("it can't be recorded; try again: %w", err)
		}
		fmt.Fprintf(out, "Recorded as %s. Nothing is closed; the bot continues with %s, which has %s\n", x.Who, env.Store, c.what())
		return nil
	}
	unseen, err := wf.Views.Unseen(ctx)
	if err == nil {
		err = wf.History.Restored(ctx, x)
	}
	if err := errors.Join(err, settle(ctx, db)); err != nil {
		return cli.CouldNot("the open requests and runs in the database can't be closed; try again: %w", err)
	}
	fmt.Fprintf(out, "%s was restored, and has %s\n", env.Store, c.what())
	if lacks {
		if err := headsAside(out, env.Audit.Heads, ""); err != nil {
			return err
		}
	}
	printUnseen(out, unseen)
	fmt.Fprintln(out, "Everything open in it is closed. When the bot starts, people are told; have them check what happened since.")
	return nil
}

// settle records that a restored database is in use at its current location.
func settle(ctx context.Context, s store.Store) error {
	if place, ok := s.(store.Relocatable); ok {
		return place.Settle(ctx)
	}
	return nil
}

func restore(ctx context.Context, out io.Writer, path string, acceptFaults bool) error {
	env, err := config.ReadEnv(config.Offline)
	if err != nil {
		return cli.Misused("the environment can't be used:\n%w", err)
	}
	if err := openstore.OnlyFile(env.Store, "restore it with pg_restore, and then run countersign restore --database"); err != nil {
		return err
	}
	if cli.SameFile(path, env.Store.Path) {
		return cli.Misused("%s is the store itself; name a backup of it. If a backup was copied there by hand, use countersign audit accept-loss", path)
	}
	if task.IsMoved(ctx, env) {
		return cli.CouldNot("nothing was restored: a bot is running that still holds the file which was at %s. Save that file first, with countersign backup FILE, and stop the bot", env.Store.Path)
	}
	switch info, err := os.Stat(path); { // this check comes before the open, because opening a pipe would block
	case errors.Is(err, fs.ErrNotExist):
		return cli.Misused("there is no backup at %s", path)
	case err == nil && !info.Mode().IsRegular():
		return cli.Misused("%s is not a file: write the backup into one first", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return cli.CouldNot("the backup can't be read: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	var c copied
	var unseen []approvers.Execution
	kept, err := bolt.Replace(env.Store.Path, io.TeeReader(f, sum), func(s *bolt.Store) error {
		if err := c.check(ctx, s); err != nil {
			return err
		}
		if err := c.accept(out, acceptFaults); err != nil {
			return err
		}
		wf, err := task.LocalWorkflow(ctx, env, s, nil)
		if err != nil {
			return err
		}
		c.hash = hex.EncodeToString(sum.Sum(nil))
		x := workflow.Restoration{
			Who: cli.Operator(os.Geteuid()), Backup: filepath.Base(path), Hash: c.hash, Taken: c.last, Faults: c.faults != nil,
		}
		if unseen, err = wf.Views.Unseen(ctx); err == nil {
			err = wf.History.Restored(ctx, x)
		}
		if err != nil {
			return cli.CouldNot("the open requests and runs in the backup can't be closed: %w", err)
		}
		return nil
	})
	if err != nil {
		return notRestored(err)
	}
	fmt.Fprintf(out, "%s is restored from %s: %s\n", env.Store.Path, path, c.what())
	if kept != "" {
		fmt.Fprintf(out, "The previous store is kept as %s\n", kept)
	}
	suffix, beside := strings.CutPrefix(kept, env.Store.Path)
	if !beside {
		suffix = ""
	}
	if err := headsAside(out, env.Audit.Heads, suffix); err != nil {
		return err
	}
	printUnseen(out, unseen)
	fmt.Fprintln(out, "Everything open in the backup is closed. When the bot starts, people are told; have them check what happened since.")
	return nil
}

// printUnseen lists the runs with an unknown outcome. People have to find out the outcomes of these runs.
func printUnseen(out io.Writer, unseen []approvers.Execution) {
	for _, e := range unseen {
		fmt.Fprintf(out, "%s · %s · its outcome is unknown; once you know: countersign report %s happened|did-not --reason …\n", e.ID, visible.Line(e.Tool), e.ID)
	}
}

// headsAside moves the file of signed heads away. The heads cover records that the restored store does not have. The
// file is kept as proof of these records.
func headsAside(out io.Writer, heads, suffix string) error {
	if heads == "" {
		return nil
	}
	if suffix == "" {
		suffix = ".replaced-" + time.Now().UTC().Format("20060102T150405Z")
	}
	to := heads + suffix
	for n := 2; ; n++ {
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		}
		to = fmt.Sprint(heads, suffix, "-", n)
	}
	err := os.Rename(heads, to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return cli.CouldNot("everything else is done; but the file of signed heads, %s, can't be moved away. Do that before the bot starts, and keep it: %w", heads, err)
	}
	fmt.Fprintf(out, "Its signed heads are %s: keep them, they prove what was there\n", to)
	return nil
}

// notRestored adds an exit code to an error of a restore.
func notRestored(err error) error {
	var coded *cli.Error
	switch {
	case errors.As(err, &coded):
		return fmt.Errorf("nothing was restored: %w", err)
	case errors.Is(err, store.ErrForeign), errors.Is(err, store.ErrNewer):
		return cli.AnswerNo("nothing was restored: %w", err)
	}
	return cli.CouldNot("nothing was restored: %w", err)
}
