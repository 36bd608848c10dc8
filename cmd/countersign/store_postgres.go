package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/store"
	"countersign/store/postgres"
)

// openedStore is an open store, with the methods that commands and serve need.
type openedStore interface {
	store.Store
	watchable
}

// openExisting opens the store for a command. A command never creates a store.
func openExisting(ctx context.Context, env config.Env) (openedStore, error) {
	if env.Store.Backend == config.Postgres {
		return opened(openDatabase(ctx, env.Store, postgres.Options{}, false))
	}
	if err := mustExist(env.Store.Path, env.Audit.Heads); err != nil {
		return nil, err
	}
	return opened(openStore(env.Store.Path))
}

// The function opened returns an open store as an interface. After an error, opened returns a nil interface, and not an
// interface that holds a nil pointer.
func opened[S openedStore](db S, err error) (openedStore, error) {
	if err != nil {
		return nil, err
	}
	return db, nil
}

// openDatabase opens a database and takes its lock. The lock is exclusive, or shared with replicas. The errors of
// openDatabase tell the operator what to do.
func openDatabase(ctx context.Context, s config.Store, opts postgres.Options, shared bool) (*postgres.Store, error) {
	db, err := postgres.Open(ctx, s.URL.Reveal(), opts)
	if err != nil {
		return nil, databaseError(err)
	}
	if err := db.Hold(ctx, shared); err != nil {
		return nil, errors.Join(databaseError(err), db.Close())
	}
	return db, nil
}

// excessRights lists the rights that the role in the database's address has and the bot does not need. The result do
// says how to revoke these rights.
func excessRights(ctx context.Context, env config.Env) (what, do string, err error) {
	r, err := postgres.ReadRights(ctx, env.Store.URL.Reveal())
	if err := cmp.Or(err, r.Missing()); err != nil {
		return "", "", databaseError(err)
	}
	return r.Excess(), r.Remedy(), nil
}

// databaseError adds exit codes to the errors of opening a database.
func databaseError(err error) error {
	for _, configured := range []error{
		store.ErrNewer, store.ErrForeign, postgres.ErrURL, postgres.ErrAccess, postgres.ErrServer, postgres.ErrOlder, postgres.ErrEmpty,
		store.ErrIncomplete,
	} {
		if errors.Is(err, configured) {
			return cli.Misused("%w", err)
		}
	}
	return cli.CouldNot("%w", err)
}

// storeID returns an id of the store. A command and a running bot compare their ids to check that they use the same
// store.
func storeID(s config.Store, path string) string {
	if s.Backend == config.Postgres {
		return postgres.ID(s.URL.Reveal())
	}
	return path
}

// onlyFile returns an error for commands that work only on a store's file.
func onlyFile(s config.Store, instead string) error {
	if s.Backend == config.Postgres {
		return cli.Misused("this works on a store in a file, and %s is a database: %s (docs/postgres.md)", s, instead)
	}
	return nil
}

func storeMigrateCommand() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Makes or updates the tables in a PostgreSQL database",
		Long: `Makes the tables that this version of the program needs in an empty database, or updates older tables. Each step is a transaction; a step that fails changes nothing.
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
				return databaseError(err)
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
