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
	"countersign/approvers/desk"
	"countersign/config"
	"countersign/store"
	"countersign/store/bolt"
)

func restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Puts a backup in the place of the store, while no bot runs",
		Long: `Checks the backup, closes everything in it that could act, and puts it where COUNTERSIGN_STORE says. What was there stays beside it.

Nobody knows any more what happened after the backup was made. So requests that were open in it are voided, runs under way count as unknown, turns stop, and grants
end: what was decided and run since is never decided and run again. People are told by their cards and threads when the bot starts.

The file of signed heads goes beside, too: it proves what was there. Where heads are sent elsewhere as well, those that come now begin anew after the backup.`,
		Example: `  countersign restore /var/backups/countersign-2026-03-02.db`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return restore(cmd.Context(), cmd.OutOrStdout(), args[0])
		},
	}
}

func restore(ctx context.Context, out io.Writer, path string) error {
	env, err := config.ReadEnv(config.Offline)
	if err != nil {
		return misused("the environment can't be used:\n%w", err)
	}
	if sameFile(path, env.Store.Path) {
		return misused("%s is the store itself; name a backup of it", path)
	}
	switch info, err := os.Stat(path); { // before it is opened: a pipe would wait for somebody who writes
	case errors.Is(err, fs.ErrNotExist):
		return misused("there is no backup at %s", path)
	case err == nil && !info.Mode().IsRegular():
		return misused("%s is no file: write the backup into one first", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return couldNot("the backup can't be read: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	var c copied
	var unseen []approvers.Execution
	kept, err := bolt.Replace(env.Store.Path, io.TeeReader(f, sum), func(s *bolt.Store) error {
		if err := c.check(ctx, s); err != nil {
			return err
		}
		d, err := loneDesk(env, s)
		if err != nil {
			return err
		}
		c.hash = hex.EncodeToString(sum.Sum(nil))
		x := desk.Restoration{Who: operator(os.Geteuid()), Backup: filepath.Base(path), Hash: c.hash, Taken: c.last}
		if unseen, err = d.Unseen(ctx); err == nil {
			err = d.Restored(ctx, x)
		}
		if err != nil {
			return couldNot("what is open in the backup can't be closed: %w", err)
		}
		return nil
	})
	if err != nil {
		return notRestored(err)
	}
	fmt.Fprintf(out, "%s is restored from %s: %s\n", env.Store.Path, path, c.what())
	if kept != "" {
		fmt.Fprintf(out, "What was there is beside it, as %s\n", kept)
	}
	if err := headsAside(out, env, kept); err != nil {
		return err
	}
	for _, e := range unseen {
		fmt.Fprintf(out, "%s · %s · nobody saw its end; once you know: countersign report %s happened|did-not --reason …\n", e.ID, onOneLine(e.Tool), e.ID)
	}
	fmt.Fprintln(out, "What was open in the backup is closed. When the bot starts, people are told; have them check what happened since.")
	return nil
}

// headsAside moves the file of signed heads away: it holds heads over what the restored store does not know, and stays the proof of what was there.
func headsAside(out io.Writer, env config.Env, kept string) error {
	heads := env.Audit.Heads
	if heads == "" {
		return nil
	}
	suffix, beside := strings.CutPrefix(kept, env.Store.Path)
	if !beside {
		suffix = ".replaced-" + time.Now().UTC().Format("20060102T150405Z")
	}
	err := os.Rename(heads, heads+suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return couldNot("it is restored; but the file of signed heads, %s, can't be moved away. Do that before the bot starts, and keep it: %w", heads, err)
	}
	fmt.Fprintf(out, "Its signed heads are %s: keep them, they prove what was there\n", heads+suffix)
	return nil
}

// notRestored gives an error of a restore its exit code.
func notRestored(err error) error {
	var coded *exitError
	switch {
	case errors.As(err, &coded):
		return fmt.Errorf("nothing was restored: %w", err)
	case errors.Is(err, store.ErrForeign), errors.Is(err, store.ErrNewer):
		return answerNo("nothing was restored: %w", err)
	}
	return couldNot("nothing was restored: %w", err)
}
