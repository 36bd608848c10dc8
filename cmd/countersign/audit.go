package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"countersign/approvers"
	"countersign/config"
	"countersign/store"
)

func auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "The history: who allowed what, and when",
		Long: `Reads the history from the store (COUNTERSIGN_STORE), which no running bot may hold. docs/audit.md explains the records and what
verification can find.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var request string
	list := &cobra.Command{
		Use:   "list",
		Short: "Every record, in order of time",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(func(s store.Store) error { return listAudit(cmd.Context(), cmd.OutOrStdout(), s, request) })
		},
	}
	list.Flags().StringVar(&request, "request", "", "only the records of this request (or of this execution, where nobody was asked)")
	verify := &cobra.Command{
		Use:   "verify",
		Short: "Checks every chain; exits 1 when a record was changed, removed or reordered",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(func(s store.Store) error { return verifyAudit(cmd.Context(), cmd.OutOrStdout(), s) })
		},
	}
	cmd.AddCommand(list, verify, paceCommand())
	return cmd
}

// withStore opens the store that the environment names, which must exist.
func withStore(fn func(store.Store) error) error {
	env, err := config.ReadEnv(config.Offline)
	if err != nil {
		return misused("the environment can't be used:\n%w", err)
	}
	if err := mustExist(env.Store.Path); err != nil {
		return err
	}
	db, err := openStore(env.Store.Path)
	if err != nil {
		return err
	}
	return errors.Join(fn(db), db.Close())
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

func listAudit(ctx context.Context, out io.Writer, s store.Store, chain string) error {
	var all []approvers.AuditRecord
	err := eachChain(ctx, s, func(records []approvers.AuditRecord) error {
		if chain == "" || records[0].Chain == chain {
			all = append(all, records...)
		}
		return nil
	})
	if err != nil {
		return couldNot("the history can't be read: %w", err)
	}
	if chain != "" && len(all) == 0 {
		return answerNo("the history has no request %s", chain)
	}
	slices.SortStableFunc(all, func(a, b approvers.AuditRecord) int { return a.At.Compare(b.At) })
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME (UTC)\tWHAT\tWHO\tREQUEST\tFACTS")
	for _, r := range all {
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

func verifyAudit(ctx context.Context, out io.Writer, s store.Store) error {
	chains, records, faults := 0, 0, 0
	err := eachChain(ctx, s, func(chain []approvers.AuditRecord) error {
		chains++
		records += len(chain)
		fault := approvers.VerifyChain(chain)
		if fault == nil {
			fault = verifyPayloads(ctx, s, chain)
		}
		if fault != nil {
			faults++
			fmt.Fprintln(out, fault)
		}
		return nil
	})
	if err != nil {
		return couldNot("the history can't be read: %w", err)
	}
	if faults > 0 {
		return answerNo("the history was tampered with: %s", count(faults, "broken chain"))
	}
	fmt.Fprintf(out, "%s in %s: every chain is whole\n", count(records, "record"), count(chains, "chain"))
	return nil
}

// verifyPayloads holds what people wrote and were shown against the hashes in the records. A payload that was erased is no fault.
func verifyPayloads(ctx context.Context, s store.Store, chain []approvers.AuditRecord) error {
	return s.View(ctx, func(r store.Reader) error {
		for _, a := range chain {
			p, err := r.AuditPayload(a.Chain, a.Seq)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if p.Hash() != a.PayloadHash {
				return fmt.Errorf("chain %s: what belongs to record %d was changed", a.Chain, a.Seq)
			}
		}
		return nil
	})
}
