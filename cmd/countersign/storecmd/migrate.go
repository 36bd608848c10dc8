package storecmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/config"
	"countersign/store/postgres"
)

func migrateCommand() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Creates or updates the tables in a PostgreSQL database",
		Long: `Creates the tables that this version of the program needs in an empty database, or updates older tables. Each step is a transaction; a step that fails changes nothing.
serve does this itself in an empty database, and with COUNTERSIGN_MIGRATE=auto in every database. It needs the role that owns the tables: docs/postgres.md.

Replicas of the previous version keep working on the updated tables, unless a step needs a newer program. Then the command names the replicas that are too old, changes
nothing, and ends with exit code 3. With --dry-run it says so, too.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			env, err := config.ReadEnv(config.Offline)
			if err != nil {
				return cli.Misused("the environment can't be used:\n%w", err)
			}
			if env.Store.Backend != config.Postgres {
				return cli.Misused("%s is a file, which is updated when it is opened; set COUNTERSIGN_STORE to a database, such as postgres://USER@HOST/DATABASE", env.Store)
			}
			names, err := postgres.Migrate(cmd.Context(), env.Store.URL.Reveal(), dry)
			done := "applied"
			if dry {
				done = "to apply"
			}
			for _, name := range names {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", done, name)
			}
			if err != nil {
				return openstore.DatabaseError(err)
			}
			if len(names) == 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: the tables are up to date\n", env.Store)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only list what would be done")
	return cmd
}
