package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"countersign/agent/pins"
	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/store/bolt"
	"countersign/store/postgres"
)

// formats has the versions of the data formats that the program stores. docs/upgrade.md says which program reads which
// format.
type formats struct {
	Bolt     int   `json:"bolt"`     // the layout of a store's file
	Postgres int64 `json:"postgres"` // the tables of a database
	Policy   int   `json:"policy"`   // the policy file
	Lock     int   `json:"lock"`     // countersign.lock
}

func knownFormats() (formats, error) {
	tables, err := postgres.Newest()
	return formats{Bolt: bolt.Layout, Postgres: tables, Policy: config.PolicyVersion, Lock: pins.Version}, err
}

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "This program's version, and the versions of the files and tables that it writes",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := knownFormats()
			if err != nil {
				return err
			}
			if asJSON {
				out := json.NewEncoder(cmd.OutOrStdout())
				out.SetIndent("", "  ")
				return out.Encode(struct {
					cli.Build
					Formats formats `json:"formats"`
				}{cli.ThisBuild(), f})
			}
			printVersion(cmd.OutOrStdout(), cli.ThisBuild(), f)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printVersion(out io.Writer, b cli.Build, f formats) {
	commit := "unknown"
	if b.Commit != "" {
		commit = b.Commit + " of " + b.Date
	}
	if b.Changed {
		commit += ", with changes"
	}
	fmt.Fprintf(out, "countersign %s\ncommit      %s\ngo          %s %s\nformats     store file %d, PostgreSQL tables %d, policy file %d, lock file %d\n",
		b.Version, commit, b.Go, b.Platform, f.Bolt, f.Postgres, f.Policy, f.Lock)
}
