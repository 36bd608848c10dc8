package storecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/task"
	"countersign/config"
	"countersign/internal/visible"
	"countersign/store"
	"countersign/store/bolt"
)

// Tasks returns the tasks that a running bot accepts for the commands on a store.
func Tasks() []task.Handler {
	return []task.Handler{acceptTask, backupTask, checkTask}
}

// Command returns the command store.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "The file or the database that holds everything",
		Long:  `Works on the store that COUNTERSIGN_STORE names. docs/operate.md tells when to do what.`,
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(checkCommand(), compactCommand(), copyCommand(), migrateCommand(), salvageCommand())
	return cmd
}

func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Reads the whole store, and lists what is damaged",
		Long: `Reads everything in the store, and lists each damaged row. Everything that needs such a row fails, and everything else continues. While the bot runs, the bot
reads it, at a pace that does not slow it down. Without a bot, the command also compares the rows with each other. It repairs nothing: serve does when it starts.

Exit codes: 0 nothing is damaged · 1 something is damaged.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return checkTask.Do(cmd.Context(), task.None{}, nil, cmd.OutOrStdout())
		},
	}
}

// checkTask lists the damaged records in the store.
var checkTask = task.Task[task.None]{Name: "store check", Reads: true, Long: true, WhileHeld: true, Run: func(ctx context.Context, w task.Env, _ task.None) error {
	if in, ok := w.Store.(store.Inspected); ok {
		if err := in.Inspect(ctx); err != nil {
			return err
		}
	}
	var check error
	if w.Idle {
		check = w.Store.Check(ctx)
	}
	if ctx.Err() != nil || store.Refused(check) {
		return cmp.Or(ctx.Err(), check)
	}
	if errors.Is(check, store.ErrNewer) {
		return openstore.FileError(check)
	}
	var lines []string
	damaged, mended := store.DamageOf(w.Store)
	for _, x := range damaged {
		lines = append(lines, visible.Line(x.String()))
	}
	if check != nil {
		for line := range strings.SplitSeq(strings.TrimPrefix(check.Error(), "store: the check found faults: "), "\n") {
			if line = visible.Line(line); !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	for _, x := range mended {
		fmt.Fprintf(w.Out, "repaired: %s\n", visible.Line(x.String()))
	}
	for _, line := range lines {
		fmt.Fprintln(w.Out, line)
	}
	if len(lines) > 0 {
		return cli.AnswerNo("the store has %s: docs/operate.md says what to do", cli.Count(len(lines), "fault"))
	}
	fmt.Fprintln(w.Out, "nothing is damaged")
	return nil
}}

func compactCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "compact",
		Short: "Rewrites the store without its free space, while no bot runs",
		Long: `The store's file never shrinks by itself: erased data leaves free space in it, which later data uses. This command writes a new file beside it, compares every row, and
puts the new file in the place of the old one, with the same mode and owner. The disk needs room for both. If the command is stopped, the old or the new file is there,
complete.

A damaged store is refused, and stays as it is: serve repairs it when it starts.

serve does this by itself when it starts, where at least half of a large file is free.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			env, err := config.ReadEnv(config.Offline)
			if err != nil {
				return cli.Misused("the environment can't be used:\n%w", err)
			}
			if err := openstore.OnlyFile(env.Store, "PostgreSQL frees space by itself (autovacuum)"); err != nil {
				return err
			}
			path := env.Store.Path
			if err := openstore.MustExist(path, env.Audit.Heads); err != nil {
				return err
			}
			before, after, err := bolt.Compact(cmd.Context(), path, nil)
			if errors.Is(err, context.Canceled) {
				return cli.CouldNot("%s is unchanged: this was stopped", path)
			}
			if err != nil {
				return openstore.FileError(err)
			}
			if after == before {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s; there is nothing to gain, so it stays as it is\n", path, cli.Size(before))
				return nil
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s → %s\n", path, cli.Size(before), cli.Size(after))
			return nil
		},
	}
}
