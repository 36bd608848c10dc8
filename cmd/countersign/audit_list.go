package main

import (
	"context"
	"fmt"
	"io"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"countersign/store"
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

var auditListTask = task[auditFilter]{"audit list", true, func(ctx context.Context, w workplace, f auditFilter) error {
	return listAudit(ctx, w.out, w.store, f)
}}

func listAudit(ctx context.Context, out io.Writer, s store.Store, f auditFilter) error {
	records, err := f.records(ctx, s)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME (UTC)\tWHAT\tWHO\tREQUEST\tFACTS")
	for _, r := range records {
		who := string(r.Actor)
		if who == "" {
			who = "the bot"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.At.UTC().Format(time.DateTime), r.Kind, who, r.Chain, facts(r.Facts))
	}
	return w.Flush()
}

// facts are a record's facts in order of their names.
func facts(m map[string]string) string {
	parts := make([]string, 0, len(m))
	for k, v := range m {
		if v != "" {
			parts = append(parts, fmt.Sprintf("%s=%q", k, v))
		}
	}
	sort.Strings(parts)
	return strings.Join(parts, " ")
}
