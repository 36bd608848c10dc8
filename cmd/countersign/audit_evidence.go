package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
)

func auditEvidenceCommand() *cobra.Command {
	var file string
	var keys []string
	cmd := &cobra.Command{
		Use:   "evidence REQUEST…",
		Short: "A page for an auditor: a request's whole story, with each version of its card",
		Long: `Writes one HTML page that loads nothing and can be printed: who asked for what, what each approver was shown when they decided, what ran, and what
came of it, with what was verified for it: also that a signed head covers each of its records. "countersign audit list" has the ids of the requests.
It exits 1 when something of that does not hold; the page is written all the same, and says what.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, requests []string) error {
			trusted := verifyOptions{Keys: keys}
			if err := trusted.trust(); err != nil {
				return err
			}
			o := audit.EvidenceOptions{Requests: requests, Keys: trusted.Keys, Own: trusted.Own}
			var fault error
			err := toFile(cmd, file, func(out io.Writer) error {
				page := &cli.Output{W: out}
				err := auditEvidenceTask.do(cmd.Context(), o, nil, page)
				if page.Written > 0 && cli.Code(err) == cli.ExitNo { // the page is complete, the history is not
					fault, err = err, nil
				}
				return err
			})
			return errors.Join(err, fault)
		},
	}
	cmd.Flags().StringArrayVar(&keys, "key", nil, "the public key that you trust; without it those of the key's file are")
	fileFlag(cmd, &file)
	return cmd
}

var auditEvidenceTask = task[audit.EvidenceOptions]{"audit evidence", true, func(ctx context.Context, w taskEnv, o audit.EvidenceOptions) error {
	faults, err := audit.WriteEvidence(ctx, w.out, w.store, w.who, o)
	if err != nil {
		return historyError(err)
	}
	if faults > 0 {
		return cli.AnswerNo("the page is written, and what it tells is not what it was: %s, marked on it", cli.Count(faults, "fault"))
	}
	return nil
}}
