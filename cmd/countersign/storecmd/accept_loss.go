package storecmd

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/task"
	"countersign/store"
)

type acceptOptions struct {
	Head         uint64 `json:"head"`
	Reason       string `json:"reason"`
	AcceptFaults bool   `json:"accept_faults,omitempty"`
}

// AcceptLoss returns the command "audit accept-loss".
func AcceptLoss() *cobra.Command {
	var o acceptOptions
	cmd := &cobra.Command{
		Use:   "accept-loss --head NUMBER --reason WHY",
		Short: "Continues with a store that is older than its signed heads",
		Long: `The bot does not start on a store that lacks the newest of its signed heads: an old copy or another store took the store's place, and calls that have run since would
run again. If there is no newer copy, this command accepts the missing part as lost. NUMBER is the number of the newest head, which the bot's log and /readyz name.

The store is checked first. If it has faults, they are printed as by "countersign audit verify", and only --accept-faults continues. Everything that could act twice is
closed, as by "countersign restore": open requests are voided, runs in progress get an unknown outcome, turns stop, and grants end. The loss is recorded with your name.
The file of signed heads is renamed and kept, and the bot starts a new one. A bot that waits for this command then continues by itself.`,
		Example: `  countersign audit accept-loss --head 5120 --reason "the disk is gone, this copy of Monday is all there is"`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Head == 0 {
				return cli.Misused("name the newest head that the store lacks, as /readyz and the log of the bot do: --head NUMBER")
			}
			if err := cli.CheckReason(&o.Reason); err != nil {
				return err
			}
			return acceptTask.Do(cmd.Context(), o, nil, cmd.OutOrStdout())
		},
	}
	cmd.Flags().Uint64Var(&o.Head, "head", 0, "the number of the newest head that the store lacks")
	cmd.Flags().StringVar(&o.Reason, "reason", "", "why, for the history")
	acceptFaults(cmd.Flags(), &o.AcceptFaults)
	return cmd
}

// AcceptLossTask is the name of the task with which an operator accepts that records are lost. If a bot's store lacks
// records, the bot is held: it does not work until this task has run.
const AcceptLossTask = "audit accept-loss"

var acceptTask = task.Task[acceptOptions]{Name: AcceptLossTask, Long: true, WhileHeld: true, Run: acceptLoss}

func acceptLoss(ctx context.Context, w task.Env, o acceptOptions) error {
	if !w.Idle {
		return cli.AnswerNo("there is no loss to accept: the bot is at work on this store")
	}
	older, err := audit.FindOlder(ctx, w.Path, w.Audit.Heads, w.Store)
	switch {
	case err != nil:
		return err
	case older == nil:
		return cli.AnswerNo("there is no loss to accept: the store has the newest of the signed heads that are kept for it")
	case older.Number == 0:
		return cli.AnswerNo("%w", older)
	case older.Number != o.Head:
		return cli.AnswerNo("%s: name that head, not %d", older.What(), o.Head)
	}
	if err := othersRest(ctx, w); err != nil {
		return err
	}
	var c copied
	err = c.check(ctx, w.Store)
	if err == nil {
		err = c.accept(w.Out, o.AcceptFaults)
	}
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	wf, err := w.Bare()
	if err != nil {
		return err
	}
	unseen, err := wf.Views.Unseen(ctx)
	if err == nil {
		err = wf.History.Restored(ctx, workflow.Restoration{Who: w.Who, Taken: c.last, Faults: c.faults != nil, Loss: &workflow.Loss{
			Head: older.Number, Records: older.Head.Size, At: older.Head.At, Hash: hex.EncodeToString(older.Hash[:]), Reason: o.Reason,
		}})
	}
	if err != nil {
		return cli.CouldNot("the open requests and runs in the store can't be closed; try again: %w", err)
	}
	if err := settle(ctx, w.Store); err != nil {
		return err
	}
	fmt.Fprintf(w.Out, "Accepted as %s: %s. The store has %s\n", w.Who, older.What(), c.what())
	if err := headsAside(w.Out, w.Audit.Heads, ""); err != nil {
		return err
	}
	printUnseen(w.Out, unseen)
	fmt.Fprintln(w.Out, "Everything open in it is closed. When the bot starts, people are told; have them check what happened since.")
	return nil
}

// othersRest returns an error if other replicas work on the database, because accept-loss would close their work.
func othersRest(ctx context.Context, w task.Env) error {
	shared, ok := w.Store.(store.Shared)
	if !ok {
		return nil
	}
	others, err := shared.Working(ctx)
	if err != nil || len(others) == 0 {
		return err
	}
	return cli.CouldNot("%w: %s. Nothing was changed, because the command would close their work. If they work on the right database, only the heads file of this machine "+
		"has another history: stop the bot here, move that file away and keep it (mv %s %s.kept), and start the bot. If they work on the wrong database, stop them all, and run the command again",
		store.ErrLocked, strings.Join(others, ", "), w.Audit.Heads, w.Audit.Heads)
}
