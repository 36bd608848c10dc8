package main

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
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/internal/visible"
	"countersign/store"
	"countersign/store/bolt"
)

func restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Puts a backup in the place of the store, while no bot runs",
		Long: `Checks the backup, closes everything in it that could act, and puts it where COUNTERSIGN_STORE says. What was there stays beside it.

What happened after the backup was made is unknown. Therefore requests that were open in it are voided, runs in progress get an unknown outcome, turns stop, and grants
end: a call that was decided and run since then is never decided and run again. People are told by their cards and threads when the bot starts.

The file of signed heads is also renamed and kept, because it proves what was there. If heads are sent to other places as well, the next ones continue from the backup.`,
		Example: `  countersign restore /var/backups/countersign-2026-03-02.db`,
		Args:    cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return restore(cmd.Context(), cmd.OutOrStdout(), args[0])
		},
	}
}

func restore(ctx context.Context, out io.Writer, path string) error {
	env, err := config.ReadEnv(config.Offline)
	if err != nil {
		return cli.Misused("the environment can't be used:\n%w", err)
	}
	if err := onlyFile(env.Store, "restore it with pg_restore"); err != nil {
		return err
	}
	if sameFile(path, env.Store.Path) {
		return cli.Misused("%s is the store itself; name a backup of it. If a backup was copied there by hand, use countersign audit accept-loss", path)
	}
	if isMoved(ctx, env) {
		return cli.CouldNot("nothing was restored: a bot is running that still holds the file which was at %s. Save that file first, with countersign backup FILE, and stop the bot", env.Store.Path)
	}
	switch info, err := os.Stat(path); { // before opening: opening a pipe would block
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
		wf, err := localWorkflow(ctx, env, s)
		if err != nil {
			return err
		}
		c.hash = hex.EncodeToString(sum.Sum(nil))
		x := workflow.Restoration{Who: operator(os.Geteuid()), Backup: filepath.Base(path), Hash: c.hash, Taken: c.last}
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

// printUnseen lists the runs whose outcome people have to find out.
func printUnseen(out io.Writer, unseen []approvers.Execution) {
	for _, e := range unseen {
		fmt.Fprintf(out, "%s · %s · its outcome is unknown; once you know: countersign report %s happened|did-not --reason …\n", e.ID, visible.Line(e.Tool), e.ID)
	}
}

// headsAside moves the file of signed heads away: it covers records that the store does not have, and remains as their
// proof.
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
