package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"countersign/agent/catalog"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/doctor"
	"countersign/config"
	"countersign/config/check"
	"countersign/store"
)

func doctorCommand() *cobra.Command {
	var asJSON bool
	var address string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Shows what is missing in this set-up, and how to correct it",
		Long: `Asks Slack, the model, the store and the policy whether everything that serve needs is there, and prints what is
missing, with the page of Slack's settings on which to mend it. It changes nothing, never prints a token, and works
while serve runs. The model is asked one small question.

Where Slack's requests come in over HTTP, --url has it ask at the bot's public address, as Slack does.

Exit codes: 0 nothing is missing · 1 something is, or is wrong · 2 the environment or the policy can't be used, or
Slack or the model refuses a token · 3 Slack, the model or the store can't be reached.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &doctor.Doctor{URL: address, Tools: offlineTools, OpenStore: openForCheck, AskBot: func(ctx context.Context, env config.Env) error {
				return doctorTask.ask(ctx, env, none{}, nil, io.Discard)
			}}
			if !asJSON {
				d.Out = cmd.OutOrStdout()
			}
			d.Examine(cmd.Context())
			if asJSON {
				if err := d.WriteJSON(cmd.OutOrStdout()); err != nil {
					return err
				}
			}
			return d.Verdict()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	cmd.Flags().StringVar(&address, "url", "", "over HTTP: the bot's public address, such as https://bot.example.com")
	return cmd
}

// offlineTools returns the tools of a policy, as far as they are known without contacting a source. It adds their
// properties to the policy.
func offlineTools(file *config.File, path string) ([]check.Tool, error) {
	tools, err := catalog.Offline(file, path)
	if err != nil {
		return nil, err
	}
	file.Policy = catalog.WithTools(file.Policy, tools)
	return catalog.Described(tools), nil
}

// openForCheck opens the store for the doctor.
func openForCheck(path string) (doctor.Store, error) {
	db, err := openStore(path)
	if err != nil {
		return nil, err
	}
	return db, nil
}

// doctorTask confirms that the running bot can read its store.
var doctorTask = task[none]{"doctor", false, func(ctx context.Context, w taskEnv, _ none) error {
	if err := w.store.View(ctx, func(store.Reader) error { return nil }); err != nil {
		return err
	}
	if w.rests {
		older, err := audit.FindOlder(ctx, w.path, w.audit.Heads, w.store)
		if err != nil {
			return err
		}
		if older != nil {
			return cli.CouldNot("the bot is held: %w", older)
		}
	}
	_, err := fmt.Fprintln(w.out, "reads")
	return err
}}
