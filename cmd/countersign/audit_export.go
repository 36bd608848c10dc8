package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
)

func auditExportCommand() *cobra.Command {
	formatNames := strings.Join(audit.ExportFormats(), ", ")
	var (
		flags filterFlags
		o     audit.ExportOptions
		file  string
	)
	cmd := &cobra.Command{
		Use:   "export",
		Short: "The records for another system: JSON Lines, CSV, or CEF for a SIEM",
		Long: `Writes the records in order of time. What people wrote and were shown (arguments, reasons, cards, results) is left out
unless --payloads asks for it. What is damaged is left out: then it exits 1 and names each row, and the rest is written all the same.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if !slices.Contains(audit.ExportFormats(), o.Format) {
				return cli.Misused("--format %s: the formats are %s", o.Format, formatNames)
			}
			if o.Filter, err = flags.read(time.Now()); err != nil {
				return err
			}
			var left error
			err = toFile(cmd, file, func(out io.Writer) error {
				written := &cli.Output{W: out}
				err := auditExportTask.do(cmd.Context(), o, nil, written)
				if cli.Code(err) == cli.ExitNo && (written.Written > 0 || o.Filter.Chain == "") { // all readable records
					left, err = err, nil
				}
				return err
			})
			return errors.Join(err, left)
		},
	}
	flags.add(cmd.Flags())
	cmd.Flags().StringVar(&o.Format, "format", "jsonl", "one of "+formatNames)
	cmd.Flags().BoolVar(&o.Payloads, "payloads", false, "with what people wrote and were shown")
	fileFlag(cmd, &file)
	return cmd
}

var auditExportTask = task[audit.ExportOptions]{"audit export", true, func(ctx context.Context, w taskEnv, o audit.ExportOptions) error {
	return historyError(audit.Export(ctx, w.out, w.store, o))
}}
