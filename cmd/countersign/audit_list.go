package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"countersign/approvers/audit"
)

func auditListCommand() *cobra.Command {
	var flags filterFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "The records, in order of time",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := flags.read(time.Now())
			if err != nil {
				return err
			}
			return auditListTask.do(cmd.Context(), filter, nil, cmd.OutOrStdout())
		},
	}
	flags.add(cmd.Flags())
	return cmd
}

var auditListTask = task[audit.Filter]{"audit list", true, func(ctx context.Context, w taskEnv, f audit.Filter) error {
	return historyError(audit.List(ctx, w.out, w.store, f))
}}
