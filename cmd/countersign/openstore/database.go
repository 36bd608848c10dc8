package openstore

import (
	"context"
	"errors"
	"time"

	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/store"
	"countersign/store/postgres"
)

// Database opens a database and takes its lock. The lock is exclusive, or shared with replicas. The errors of Database
// tell the operator what to do.
func Database(ctx context.Context, s config.Store, opts postgres.Options, shared bool) (*postgres.Store, error) {
	db, err := postgres.Open(ctx, s.URL.Reveal(), opts)
	if err != nil {
		return nil, DatabaseError(err)
	}
	if err := db.Hold(ctx, shared); err != nil {
		return nil, errors.Join(DatabaseError(err), db.Close())
	}
	return db, nil
}

// Clock returns the clock of the times that are stored in db: the database's clock, or this machine's if db is a file.
func Clock(ctx context.Context, db store.Store) (func() time.Time, error) {
	database, ok := db.(*postgres.Store)
	if !ok {
		return time.Now, nil
	}
	offset, err := database.ReadOffset(ctx)
	if err != nil {
		return nil, DatabaseError(err)
	}
	return func() time.Time { return time.Now().Add(offset) }, nil
}

// DatabaseError adds exit codes to the errors of opening a database.
func DatabaseError(err error) error {
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
