package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"countersign/approvers"
	"countersign/store"
)

func auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "The history: who allowed what, and when",
		Long: `Reads the history from the store (COUNTERSIGN_STORE), also while the bot runs: then the bot is asked. docs/audit.md explains the records
and what verification can find.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(auditListCommand(), auditVerifyCommand(), auditExportCommand(), auditEvidenceCommand(), auditKeyCommand(), auditEraseCommand(), paceCommand())
	return cmd
}

// eachChain calls fn with every chain's records, a page of chains at a time.
func eachChain(ctx context.Context, s store.Store, fn func([]approvers.AuditRecord) error) error {
	for after, more := "", true; more; {
		var page [][]approvers.AuditRecord
		err := s.View(ctx, func(r store.Reader) error {
			page = nil
			ids, err := r.AuditChains(after, chainPage)
			if err != nil {
				return err
			}
			more = len(ids) == chainPage
			for _, id := range ids {
				if id <= after {
					return fmt.Errorf("%w: its chains are out of order. Put a backup in its place", store.ErrDamaged)
				}
				records, err := r.Audit(id)
				if err != nil {
					return err
				}
				page = append(page, records)
				after = id
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, records := range page {
			if err := fn(records); err != nil {
				return err
			}
		}
	}
	return nil
}

// chainPage is how many chains are read in one snapshot.
const chainPage = 256
