package storecmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"countersign/approvers/audit"
	"countersign/cmd/countersign/auditcmd"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/config"
	"countersign/store"
	"countersign/store/bolt"
	"countersign/store/postgres"
)

func copyCommand() *cobra.Command {
	var from, to string
	c := Copy{Every: progressEvery}
	cmd := &cobra.Command{
		Use:   "copy --from STORE --to STORE",
		Short: "Copies everything into another store, such as a database, while no bot runs",
		Long: `Copies a store from a file into a PostgreSQL database, or back. STORE is written as in COUNTERSIGN_STORE. Everything is copied: requests, runs, timers, messages, the whole
history with its signed heads, settings and grants. The key that signs the history, and the file of signed heads, are copied to where a bot on the new store looks for them.

No bot may use either store. The new store must be empty: a file that does not exist, or a database without rows. The original is checked first. The copy is read again,
compared with the original row by row, and checked. Until then, nothing can use it as a store. If the command is stopped, killed or fails, run it again: it continues where
it was. If the original has changed since, it refuses; with --anew it deletes the incomplete copy and begins again.

The original stays as it is. Never let bots work on both: each would run what waits.`,
		Example: `  countersign store copy --from bolt:countersign.db --to postgres://countersign@db.example.com/countersign
  countersign store copy --from postgres://countersign@db.example.com/countersign --to bolt:countersign.db`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Out, c.Progress = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return c.Run(cmd.Context(), from, to)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the store to copy")
	cmd.Flags().StringVar(&to, "to", "", "the new store")
	cli.PathFlags(cmd.Flags(), "from", "to")
	cmd.Flags().BoolVar(&c.Anew, "anew", false, "delete an incomplete copy, and begin again")
	return cmd
}

// Copy copies a store.
type Copy struct {
	Anew          bool // true: Run deletes the incomplete copy of an earlier run; false: Run continues it
	Out, Progress io.Writer
	Every         int // Run prints a line of progress after this number of rows of a part

	from, to           config.Store
	fromAudit, toAudit config.Audit
	begun              bool // rows were copied
}

// Run copies everything from one store to the other. from and to are addresses in the form of COUNTERSIGN_STORE.
func (c *Copy) Run(ctx context.Context, from, to string) error {
	if err := c.parse(from, to); err != nil {
		return err
	}
	return c.run(ctx)
}

func (c *Copy) parse(from, to string) (err error) {
	if from == "" || to == "" {
		return cli.Misused("name both stores, such as --from bolt:countersign.db --to postgres://HOST/DATABASE")
	}
	var wrong error
	c.from, c.fromAudit, err = config.ReadStore("--from", from)
	c.to, c.toAudit, wrong = config.ReadStore("--to", to)
	if err := errors.Join(err, wrong); err != nil {
		return cli.Misused("a store can't be used:\n%w", err)
	}
	same := openstore.ID(c.from, c.from.Path) == openstore.ID(c.to, c.to.Path) || c.from.Backend == config.Bolt && cli.SameFile(c.from.Path, c.to.Path)
	if c.from.Backend == c.to.Backend && same {
		return cli.Misused("--from and --to name the same store")
	}
	return nil
}

func (c *Copy) run(ctx context.Context) error {
	db, err := openstore.ToRead(ctx, config.Env{Store: c.from, Audit: c.fromAudit})
	if err != nil {
		return fmt.Errorf("nothing was copied: %w", err)
	}
	var what copied
	err = c.fill(ctx, func(f store.Filling) error {
		if err := c.check(ctx, db, &what); err != nil {
			return err
		}
		if err := c.carry(); err != nil {
			return err
		}
		return c.copyRows(ctx, db, f)
	})
	if errors.Is(err, fs.ErrExist) || errors.Is(err, postgres.ErrNotEmpty) {
		err = c.isComplete(ctx, db, &what, err)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return c.failed(ctx, err)
	}
	fmt.Fprintf(c.Out, "%s is copied to %s, and compared row by row: %s\n", c.from, c.to, what.what())
	c.printPath("The key that signs the history is", c.fromAudit.Key, c.toAudit.Key)
	c.printPath("The signed heads are", c.fromAudit.Heads, c.toAudit.Heads)
	fmt.Fprintf(c.Out, "Start the bot with COUNTERSIGN_STORE set to the new store. Never start it on %s again after that: it would run what the other bot has run.\n", c.from)
	return nil
}

// fill creates the new store. No other process uses the new store during the copy.
func (c *Copy) fill(ctx context.Context, fill func(store.Filling) error) error {
	if c.to.Backend == config.Bolt {
		like := ""
		if c.from.Backend == config.Bolt {
			like = c.from.Path
		}
		return bolt.Fill(ctx, c.to.Path, like, c.Anew, fill)
	}
	db, err := openstore.Database(ctx, c.to, postgres.Options{Create: true, Fill: true}, false)
	if err != nil {
		return err
	}
	return errors.Join(db.Fill(ctx, c.Anew, fill), db.Close())
}

// isComplete compares the two stores. If an earlier run copied all rows, but ended before it could report success, the
// stores have the same rows. In this case, isComplete checks the original, and returns nil or the error of the check.
// Otherwise it returns the parameter unfillable: the error that says why the new store can't be filled.
func (c *Copy) isComplete(ctx context.Context, db store.Store, what *copied, unfillable error) error {
	to, err := openstore.ToRead(ctx, config.Env{Store: c.to, Audit: c.toAudit})
	if err != nil {
		return unfillable //nolint:nilerr // it is another store, or in use
	}
	fmt.Fprintf(c.Progress, "%s is there already; comparing it\n", c.to)
	same := store.Equal(ctx, db.(store.Contents), to.(store.Contents))
	if err := to.Close(); err != nil || same != nil {
		return cmp.Or(ctx.Err(), unfillable)
	}
	return c.check(ctx, db, what)
}

// check verifies the original, so that the command copies no fault.
func (c *Copy) check(ctx context.Context, db store.Store, what *copied) error {
	fmt.Fprintf(c.Progress, "checking %s\n", c.from)
	older, err := audit.FindOlder(ctx, c.from.String(), c.fromAudit.Heads, db)
	if err != nil {
		return err
	}
	if older != nil {
		return cli.AnswerNo("%w", older)
	}
	var keys auditcmd.TrustedKeys
	if err := keys.TrustFile(c.fromAudit.Key); err != nil {
		return err
	}
	if err := what.checkWith(ctx, db, keys); err != nil {
		return err
	}
	if what.faults != nil {
		fmt.Fprintln(c.Progress, what.report)
	}
	return what.faults
}

// progressEvery is the usual value of Copy.Every.
const progressEvery = 20000

func (c *Copy) copyRows(ctx context.Context, db store.Store, to store.Filling) error {
	c.begun = true
	if n := to.Written(); n > 0 {
		fmt.Fprintf(c.Progress, "continuing an interrupted copy: %s\n", cli.Count(n, "row")+" there already")
	}
	var last store.Copied
	told := func() {
		if last.Rows > 0 {
			fmt.Fprintf(c.Progress, "copied %d %s\n", last.Rows, last.Part)
		}
	}
	return store.CopyRows(ctx, db.(store.Contents), to, func(now store.Copied) {
		if last.Part != now.Part || last.Rows%c.Every == 0 {
			told()
		}
		last = now
	}, func() {
		told()
		fmt.Fprintln(c.Progress, "comparing the copy")
	})
}

// carry copies the key and the file of signed heads to the paths that a bot on the new store uses. The command calls
// this method before it copies rows. If the heads exist, a bot does not start on the new store while the store is
// empty.
func (c *Copy) carry() error {
	for _, file := range []struct {
		what, from, to string
		longer         bool // true if the file only grows: a shorter version at the new path may then be replaced
	}{
		{"the key that signs the history", c.fromAudit.Key, c.toAudit.Key, false},
		{"the file of signed heads", c.fromAudit.Heads, c.toAudit.Heads, true},
	} {
		if file.from == "" || file.to == "" || file.from == file.to {
			continue
		}
		text, err := os.ReadFile(file.from)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return cli.CouldNot("%s can't be read: %w", file.what, err)
		}
		there, err := os.ReadFile(file.to)
		switch {
		case err == nil && bytes.Equal(there, text):
			continue
		case err == nil && (!file.longer || !bytes.HasPrefix(text, there)):
			return cli.Misused("%s is not %s of %s, and differs from %s: move it away, and keep it", file.to, file.what, c.from, file.from)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return cli.CouldNot("%s can't be read: %w", file.what, err)
		}
		err = cli.BotsFile(file.to, file.from, func(f *os.File) error {
			_, err := f.Write(text)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// printPath prints the path of a file that belongs to the new store.
func (c *Copy) printPath(what, from, to string) {
	if from != to && to != "" {
		if _, err := os.Stat(to); err == nil {
			fmt.Fprintf(c.Out, "%s %s\n", what, to)
		}
	}
}

// The method "failed" adds an exit code to an error, and says how far the copy has come.
func (c *Copy) failed(ctx context.Context, err error) error {
	was, again := "nothing was copied", "Run it again"
	if c.begun {
		was, again = "the copy is not complete", "Run the same command again, and it continues"
	}
	if c.Anew {
		again = "Run it again; it begins again"
	}
	var coded *cli.Error
	switch {
	case ctx.Err() != nil:
		return cli.CouldNot("%s: this was stopped. %s", was, again)
	case errors.Is(err, fs.ErrExist):
		return cli.Misused("nothing was copied: %s already exists; name another file, or move it away", c.to.Path)
	case errors.Is(err, store.ErrChanged):
		return cli.Misused("%w: %s is incomplete. Run the command again with --anew: it deletes the incomplete copy, and begins again", err, c.to)
	case errors.Is(err, postgres.ErrNotEmpty), errors.Is(err, store.ErrNewer), errors.Is(err, store.ErrIncomplete):
		return cli.Misused("nothing was copied: %w", err)
	case errors.As(err, &coded):
		return fmt.Errorf("%s: %w", was, err)
	case c.begun:
		return cli.CouldNot("%s: %w. %s", was, err, again)
	}
	return cli.CouldNot("nothing was copied: %w", err)
}
