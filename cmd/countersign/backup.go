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
	"time"

	"github.com/spf13/cobra"

	"countersign/approvers"
	"countersign/config"
	"countersign/store"
	"countersign/store/bolt"
)

func backupCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "A copy of the store as it is at one moment, while the bot runs",
		Long: `Copies the store into FILE, for its owner only, while the bot goes on. FILE appears when it is whole: it was opened and checked like the store itself. With - it is
written to standard output, unchecked, such as for another machine; restore checks it in any case.

The store holds what people wrote and were shown. Keep its copies as safe as the store.`,
		Example: `  countersign backup /var/backups/countersign-$(date +%F).db
  countersign backup - | age -r age1… > countersign.db.age`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return backup(cmd, args[0], force) },
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace FILE if it is there")
	return cmd
}

// copier is a store that can be copied while it is used.
type copier interface {
	Copy(ctx context.Context, w io.Writer) (size int64, err error)
}

// slowBackup is for how long whoever takes a copy may not take the next piece. The store can't use space again meanwhile.
const slowBackup = time.Minute

// backupTask writes a copy of the store.
var backupTask = task[none]{"backup", true, func(ctx context.Context, w workplace, _ none) error {
	s, ok := w.store.(copier)
	if !ok {
		return misused("this kind of store is not copied by the bot: use what comes with its database")
	}
	w.hurry(slowBackup)
	if _, err := s.Copy(ctx, w.out); err != nil {
		return couldNot("the store can't be copied: %w", err)
	}
	return nil
}}

func backup(cmd *cobra.Command, path string, force bool) error {
	ctx := cmd.Context()
	if path == "-" {
		return backupTask.do(ctx, none{}, nil, cmd.OutOrStdout())
	}
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return misused("%s is a directory; name a file in it", path)
	case err == nil && isTheBots(path) != "":
		return misused("%s is %s; name another file", path, isTheBots(path))
	case err == nil && !force:
		return misused("%s is there already; name another file, or replace it with --force", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return couldNot("%s can't be looked at: %w", path, err)
	}
	var c copied
	err := wholeFile(path, func(f *os.File) error {
		sum := sha256.New()
		if err := backupTask.do(ctx, none{}, nil, io.MultiWriter(f, sum)); err != nil {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			return err
		}
		c.size, c.hash = info.Size(), hex.EncodeToString(sum.Sum(nil))
		copy, err := bolt.Open(f.Name(), bolt.Options{})
		if err != nil {
			return couldNot("the copy is not whole; back up once more: %w", err)
		}
		return errors.Join(c.check(ctx, copy), copy.Close())
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %s; it was checked\n%s\nSHA-256 %s\n", path, sized(c.size), c.what(), c.hash)
	return nil
}

// isTheBots says which of the bot's own files one is, by the environment; empty: none.
func isTheBots(path string) string {
	env, err := config.ReadEnv(config.Offline)
	if err != nil {
		return ""
	}
	for what, own := range map[string]string{
		"the store itself": env.Store.Path, "the key that signs the history": env.Audit.Key, "the file of signed heads": env.Audit.Heads,
		"the policy": env.Policy, "the control socket": env.Control,
	} {
		if own != "" && sameFile(path, own) {
			return what
		}
	}
	return ""
}

// copied is what is known of a copy of a store.
type copied struct {
	size    int64
	hash    string // of the file
	records int
	last    time.Time // of the newest record
	head    string
}

// check verifies a copy as far as that goes without anything beside it, and counts what it holds.
func (c *copied) check(ctx context.Context, s store.Store) error {
	if err := s.Check(ctx); err != nil {
		return couldNot("the copy has faults: %w", err)
	}
	var o verifyOptions
	if err := o.trust(); err != nil {
		return err
	}
	if err := verifyAudit(ctx, io.Discard, s, o, keptHeads{}); err != nil {
		return fmt.Errorf("the copy's history: %w", err)
	}
	err := eachChain(ctx, s, func(chain []approvers.AuditRecord) error {
		c.records += len(chain)
		for _, r := range chain {
			if r.At.After(c.last) {
				c.last = r.At
			}
		}
		return nil
	})
	if err != nil {
		return couldNot("the copy's history can't be read: %w", err)
	}
	return s.View(ctx, func(r store.Reader) error {
		head, err := r.LastHead()
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		c.head = fmt.Sprintf("head %d, over %s", head.Number, count(int(head.Size), "record"))
		return err
	})
}

// what says what a copy holds.
func (c *copied) what() string {
	text := count(c.records, "audit record")
	if !c.last.IsZero() {
		text += ", the newest of " + moment(c.last)
	}
	if c.head != "" {
		text += "; " + c.head
	}
	return text
}

// sized is a size as people read it.
func sized(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for ; f >= 1024 && i < len(units)-1; i++ {
		f /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}
