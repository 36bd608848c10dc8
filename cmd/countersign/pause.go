package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"countersign/approvers/desk"
)

func pauseCommand() *cobra.Command {
	return pausing("pause", "Stops every run of a tool and every call of the model, at once", `Nothing is run and no model is called until "countersign resume", also after a restart. People can decide meanwhile, and are told. The clocks of what waits run
on: what nobody decides in time is rejected, paused or not.`, pauseTask)
}

func resumeCommand() *cobra.Command {
	return pausing("resume", "Lets everything go on after a pause", `What was approved meanwhile and is still in its time runs now; what waited for the model is taken up.`, resumeTask)
}

func pausing(name, short, long string, t task[string]) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: name + " --reason …", Short: short, Long: long + "\n\nIt is recorded as operator:LOGIN, your account on this machine.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkReason(&reason); err != nil {
				return err
			}
			return t.do(cmd.Context(), reason, nil, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; people are told")
	return cmd
}

var (
	pauseTask = task[string]{"pause", false, func(ctx context.Context, w workplace, reason string) error {
		d, err := w.bare()
		if err != nil {
			return err
		}
		if err := d.Pause(ctx, w.who, reason); err != nil {
			return notPaused(ctx, d, err, "it is paused already")
		}
		fmt.Fprintf(w.out, "Paused as %s. Nothing runs and no model is called until `countersign resume`.\n", w.who)
		return nil
	}}
	resumeTask = task[string]{"resume", false, func(ctx context.Context, w workplace, reason string) error {
		d, err := w.bare()
		if err != nil {
			return err
		}
		if err := d.Resume(ctx, w.who, reason); err != nil {
			return notPaused(ctx, d, err, "nothing is paused")
		}
		fmt.Fprintf(w.out, "Resumed as %s. Everything goes on.\n", w.who)
		return nil
	}}
)

// notPaused says why nothing was changed, and who changed it last.
func notPaused(ctx context.Context, d *desk.Desk, err error, why string) error {
	if !errors.Is(err, desk.ErrNotDue) {
		return couldNot("nothing can be changed now: %w", err)
	}
	if p, err := d.Paused(ctx); err == nil && !p.At.IsZero() {
		why += fmt.Sprintf(", by %s since %s: %s", p.By, moment(p.At), onOneLine(p.Reason))
	}
	return answerNo("%s", why)
}
