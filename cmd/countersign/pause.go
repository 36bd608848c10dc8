package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"countersign/approvers/workflow"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/task"
	"countersign/internal/visible"
)

func pauseCommand() *cobra.Command {
	return pausing("pause", "Stops all tool runs and model calls immediately", `Nothing is run and no model is called until "countersign resume", also after a restart. People are told, and can still decide. Deadlines keep
running: a request that nobody decides in time is rejected, paused or not.`, pauseTask)
}

func resumeCommand() *cobra.Command {
	return pausing("resume", "Ends a pause", `Calls that were approved meanwhile run now if their time is not over, and turns that wait for the model continue.`, resumeTask)
}

func pausing(name, short, long string, t task.Task[string]) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: name + " --reason …", Short: short, Long: long + "\n\nIt is recorded as operator:LOGIN, your account on this machine.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.CheckReason(&reason); err != nil {
				return err
			}
			return t.Do(cmd.Context(), reason, nil, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; people are told")
	return cmd
}

var (
	pauseTask = task.Task[string]{Name: "pause", Run: func(ctx context.Context, w task.Env, reason string) error {
		wf, err := w.Bare()
		if err != nil {
			return err
		}
		if err := wf.Pauses.Pause(ctx, w.Who, reason); err != nil {
			return notPaused(ctx, wf, err, "it is paused already", ", by %s since %s: %s")
		}
		fmt.Fprintf(w.Out, "Paused as %s. Nothing runs and no model is called until `countersign resume`.\n", w.Who)
		return nil
	}}
	resumeTask = task.Task[string]{Name: "resume", Run: func(ctx context.Context, w task.Env, reason string) error {
		wf, err := w.Bare()
		if err != nil {
			return err
		}
		if err := wf.Pauses.Resume(ctx, w.Who, reason); err != nil {
			return notPaused(ctx, wf, err, "nothing is paused", ": %s resumed everything at %s: %s")
		}
		fmt.Fprintf(w.Out, "Resumed as %s. Everything continues.\n", w.Who)
		return nil
	}}
)

// notPaused returns the error of a command that paused or resumed nothing. If the bot already was in the requested
// state, the error has the text in the parameter why. The parameter by is the format for the person, the time and the
// reason of the last change.
func notPaused(ctx context.Context, wf *workflow.Workflow, err error, why, by string) error {
	if !errors.Is(err, workflow.ErrNotDue) {
		return cli.CouldNot("nothing can be changed now: %w", err)
	}
	if p, err := wf.Views.Paused(ctx); err == nil && !p.At.IsZero() {
		why += fmt.Sprintf(by, p.By, cli.Moment(p.At), visible.Line(p.Reason))
	}
	return cli.AnswerNo("%s", why)
}
