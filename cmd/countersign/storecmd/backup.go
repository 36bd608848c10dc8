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
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/auditcmd"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/task"
	"countersign/config"
	"countersign/internal/visible"
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

If the store has faults, so has the copy: the command prints them as "countersign audit verify" does, keeps the copy, and exits 1. Such a copy does not replace a file.

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
	if err := task.NotOfBot(path); err != nil {
		return err
	}
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return cli.Misused("%s is a directory; name a file in it", path)
	case err == nil && !force:
		return cli.Misused("%s already exists; name another file, or replace it with --force", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return cli.CouldNot("%s can't be examined: %w", path, err)
	}
	_, err := os.Lstat(path)
	replaces := err == nil
	var c copied
	err = cli.WholeFile(path, func(f *os.File) error {
		sum := sha256.New()
		if err := backupTask.Do(ctx, task.None{}, nil, io.MultiWriter(f, sum)); err != nil {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			return err
		}
		c.size, c.hash = info.Size(), hex.EncodeToString(sum.Sum(nil))
		copy, err := bolt.Open(f.Name(), bolt.Options{ReadOnly: true}) // an upgrade would change the hash
		if err != nil {
			return cli.CouldNot("the copy is not complete; back up once more: %w", err)
		}
		err = errors.Join(c.check(ctx, copy), copy.Close())
		if err == nil && replaces && c.faults != nil {
			fmt.Fprint(cmd.OutOrStdout(), c.report)
			return cli.AnswerNo("the store has faults, so its copy does not replace %s; name another file: %w", path, c.faults)
		}
		return err
	})
	if err != nil {
		return err
	}
	checked := "it was checked"
	if c.faults != nil {
		fmt.Fprintln(cmd.OutOrStdout(), c.report)
		checked = "a complete copy of a store with faults"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %s; %s\n%s\nSHA-256 %s\n", path, cli.Size(c.size), checked, c.what(), c.hash)
	return c.faults
}

// copied describes a copy of a store.
type copied struct {
	size    int64
	hash    string // hash of the copy's file
	records int
	last    time.Time // time of the newest record
	head    string
	faults  error  // the store or its history has faults, which report describes
	report  string // the faults of the store's rows, and the text of "countersign audit verify"

	unreadable bool // the history can't be read, because pages of the file are damaged
}

// check makes all checks of a copy for which the copy and the key file are enough, and counts the copy's records.
func (c *copied) check(ctx context.Context, s store.Store) error {
	var keys auditcmd.TrustedKeys
	if err := keys.Trust(); err != nil {
		return err
	}
	return c.checkWith(ctx, s, keys)
}

// checkWith is like check, but uses the caller's keys instead of the keys in the environment. If the store or its history
// has faults, checkWith sets faults and returns no error.
func (c *copied) checkWith(ctx context.Context, s store.Store, keys auditcmd.TrustedKeys) error {
	rows := s.Check(ctx)
	switch {
	case errors.Is(rows, store.ErrNewer):
		return openstore.FileError(rows)
	case ctx.Err() != nil:
		return ctx.Err()
	case notRead(rows):
		return cli.CouldNot("the store can't be checked: %w", rows)
	}
	var report strings.Builder
	c.faults = auditcmd.Verify(ctx, &report, s, audit.VerifyOptions{Keys: keys.Keys, Own: keys.Own})
	c.report = withRows(s, rows, report.String())
	switch {
	case errors.Is(c.faults, store.ErrDamaged):
		c.faults, c.unreadable = cli.AnswerNo("the store is damaged, and its history can't be read"), true
		return nil
	case c.faults != nil && cli.Code(c.faults) != cli.ExitNo:
		return fmt.Errorf("the copy's history: %w", c.faults)
	case c.faults == nil && rows != nil:
		c.faults = cli.AnswerNo("the store has faults")
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
	left.Rows = slices.DeleteFunc(left.Rows, func(x store.Damage) bool { return x.Why == store.WhyLost || c.faults != nil }) // auditcmd.Verify has already reported these
	if err := errors.Join(err, left.Err()); err != nil {
		return cli.CouldNot("the copy's history can't be read: %w", err)
	}
	return s.View(ctx, func(r store.Reader) error {
		head, err := r.LastHead()
		if errors.Is(err, store.ErrNotFound) || c.faults != nil && errors.Is(err, store.ErrDamaged) {
			return nil
		}
		c.head = fmt.Sprintf("head %d, over %s", head.Number, cli.Count(int(head.Size), "record"))
		return err
	})
}

// notRead reports whether a check of the store failed without a result.
func notRead(check error) bool {
	var system syscall.Errno
	return !errors.Is(check, store.ErrDamaged) && (store.Refused(check) || errors.Is(check, store.ErrClosed) || errors.As(check, &system))
}

// withRows puts the known damage of a store, and the faults that a check of its rows found, before a report about its
// history. The result has each fault once.
func withRows(s store.Store, check error, report string) string {
	var found []string
	damaged, _ := store.DamageOf(s)
	for _, x := range damaged {
		found = append(found, x.String())
	}
	if check != nil {
		found = append(found, strings.Split(strings.TrimPrefix(check.Error(), "store: the check found faults: "), "\n")...)
	}
	var lines strings.Builder
	for _, line := range found {
		if line = visible.Line(line); !strings.Contains(lines.String()+report, line) {
			fmt.Fprintln(&lines, line)
		}
	}
	return lines.String() + report
}

// accept prints the faults of a copy. Unless the operator has accepted them, accept returns an error. A history that
// can't be read is never accepted.
func (c *copied) accept(out io.Writer, accepted bool) error {
	if c.faults == nil {
		return nil
	}
	fmt.Fprintln(out, c.report)
	if c.unreadable {
		return c.faults
	}
	if !accepted {
		return fmt.Errorf("%w. If there is no copy without faults, keep this one as evidence, and use --accept-faults", c.faults)
	}
	return nil
}

// acceptFaults defines the flag --accept-faults.
func acceptFaults(flags *pflag.FlagSet, accepted *bool) {
	flags.BoolVar(accepted, "accept-faults", false, "continue although the store or its history has faults, which are printed")
}

func (c *copied) what() string {
	if c.unreadable {
		return "its audit records can't be read"
	}
	text := cli.Count(c.records, "audit record")
	if !c.last.IsZero() {
		text += ", the newest of " + cli.Moment(c.last)
	}
	if c.head != "" {
		text += "; " + c.head
	}
	return text
}
