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
	"slices"
	"time"

	"github.com/spf13/cobra"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/auditcmd"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/task"
	"countersign/config"
	"countersign/store"
	"countersign/store/bolt"
)

// Backup returns the command backup.
func Backup() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "A copy of the store as it is at one moment, while the bot runs",
		Long: `Copies the store into FILE, which only its owner can read, while the bot works. FILE appears when it is complete and was checked like the store itself. With - the copy
is written to standard output, for example for another machine, and is not checked; restore checks every copy.

The store holds what people wrote and were shown. Keep its copies as safe as the store.`,
		Example: `  countersign backup /var/backups/countersign-$(date +%F).db
  countersign backup - | age -r age1… > countersign.db.age`,
		Args: cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return backup(cmd, args[0], force) },
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace FILE if it is there")
	return cmd
}

// copier is a store that can be copied while it is in use.
type copier interface {
	Copy(ctx context.Context, w io.Writer) (size int64, err error)
}

// slowBackup is the maximum time that a backup waits until its reader reads the next part. The limit is needed because
// the store can't reuse freed space while the backup runs.
const slowBackup = time.Minute

// backupTask writes a copy of the store.
var backupTask = task.Task[task.None]{Name: "backup", Reads: true, Long: true, WhileHeld: true, Run: func(ctx context.Context, w task.Env, _ task.None) error {
	s, ok := w.Store.(copier)
	if !ok {
		return cli.Misused("the bot does not copy this kind of store: use the tools of its database")
	}
	w.Hurry(slowBackup)
	if _, err := s.Copy(ctx, w.Out); err != nil {
		return cli.CouldNot("the store can't be copied: %w", err)
	}
	return nil
}}

func backup(cmd *cobra.Command, path string, force bool) error {
	ctx := cmd.Context()
	if env, err := config.ReadEnv(config.Offline); err == nil { // if the environment is invalid, the task below reports the error
		if err := openstore.OnlyFile(env.Store, "back it up with pg_dump"); err != nil {
			return err
		}
	}
	if path == "-" {
		return backupTask.Do(ctx, task.None{}, nil, cmd.OutOrStdout())
	}
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return cli.Misused("%s is a directory; name a file in it", path)
	case err == nil && isTheBots(path) != "":
		return cli.Misused("%s is %s; name another file", path, isTheBots(path))
	case err == nil && !force:
		return cli.Misused("%s already exists; name another file, or replace it with --force", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return cli.CouldNot("%s can't be looked at: %w", path, err)
	}
	var c copied
	err := cli.WholeFile(path, func(f *os.File) error {
		sum := sha256.New()
		if err := backupTask.Do(ctx, task.None{}, nil, io.MultiWriter(f, sum)); err != nil {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			return err
		}
		c.size, c.hash = info.Size(), hex.EncodeToString(sum.Sum(nil))
		copy, err := bolt.Open(f.Name(), bolt.Options{AsIs: true})
		if err != nil {
			return cli.CouldNot("the copy is not complete; back up once more: %w", err)
		}
		return errors.Join(c.check(ctx, copy), copy.Close())
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %s; it was checked\n%s\nSHA-256 %s\n", path, cli.Size(c.size), c.what(), c.hash)
	return nil
}

// isTheBots reports whether the environment names the file at a path as one of the bot's files. The result describes
// this file, such as "the policy", or is "" for any other file.
func isTheBots(path string) string {
	env, err := config.ReadEnv(config.Offline)
	if err != nil {
		return ""
	}
	for what, own := range map[string]string{
		"the store itself": env.Store.Path, "the key that signs the history": env.Audit.Key, "the file of signed heads": env.Audit.Heads,
		"the policy": env.Policy, "the control socket": env.Control,
	} {
		if own != "" && cli.SameFile(path, own) {
			return what
		}
	}
	return ""
}

// copied describes a copy of a store.
type copied struct {
	size    int64
	hash    string // hash of the copy's file
	records int
	last    time.Time // time of the newest record
	head    string
}

// check makes all checks of a copy for which the copy and the key file are enough, and counts the copy's records.
func (c *copied) check(ctx context.Context, s store.Store) error {
	var keys auditcmd.TrustedKeys
	if err := keys.Trust(); err != nil {
		return err
	}
	return c.checkWith(ctx, s, keys)
}

// checkWith is like check, but uses the caller's keys instead of the keys in the environment.
func (c *copied) checkWith(ctx context.Context, s store.Store, keys auditcmd.TrustedKeys) error {
	if damaged, _ := store.DamageOf(s); len(damaged) > 0 {
		return cli.AnswerNo("the store is damaged, and so is the copy: %s. docs/operate.md says what to do", openstore.FirstRows(damaged))
	}
	if err := s.Check(ctx); errors.Is(err, store.ErrNewer) {
		return openstore.FileError(err)
	} else if err != nil {
		return cli.CouldNot("the copy has faults: %w", err)
	}
	if err := auditcmd.Verify(ctx, io.Discard, s, audit.VerifyOptions{Keys: keys.Keys, Own: keys.Own}); err != nil {
		return fmt.Errorf("the copy's history: %w", err)
	}
	err := audit.EachChain(ctx, s, func(chain []approvers.AuditRecord) error {
		c.records += len(chain)
		for _, r := range chain {
			if r.At.After(c.last) {
				c.last = r.At
			}
		}
		return nil
	})
	var left audit.Unread
	err = left.Take(err)
	left.Rows = slices.DeleteFunc(left.Rows, func(x store.Damage) bool { return x.Why == store.WhyLost }) // auditcmd.Verify has already reported these
	if err := errors.Join(err, left.Err()); err != nil {
		return cli.CouldNot("the copy's history can't be read: %w", err)
	}
	return s.View(ctx, func(r store.Reader) error {
		head, err := r.LastHead()
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		c.head = fmt.Sprintf("head %d, over %s", head.Number, cli.Count(int(head.Size), "record"))
		return err
	})
}

func (c *copied) what() string {
	text := cli.Count(c.records, "audit record")
	if !c.last.IsZero() {
		text += ", the newest of " + cli.Moment(c.last)
	}
	if c.head != "" {
		text += "; " + c.head
	}
	return text
}
