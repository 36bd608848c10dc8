package openstore

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"time"

	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/store"
	"countersign/store/bolt"
	"countersign/store/postgres"
)

// Watchable is a store that reports blocked writes, and that reports when it has stopped. A store stops when the
// content of the disk is unknown, for example after a failed sync.
type Watchable interface {
	Stalled() time.Duration
	Broken() <-chan struct{}
	Failure() error
}

// Store is an open store, with the methods that commands and serve need.
type Store interface {
	store.Store
	Watchable
}

// ToRead opens the store for a command that only reads. A file stays as it is: it is neither repaired nor upgraded.
func ToRead(ctx context.Context, env config.Env) (Store, error) {
	if env.Store.Backend == config.Postgres {
		return Existing(ctx, env)
	}
	db, err := file(env.Store.Path, bolt.Options{ReadOnly: true})
	if errors.Is(err, fs.ErrNotExist) {
		err = cmp.Or(MustExist(env.Store.Path, env.Audit.Heads), err)
	}
	return Opened(db, err)
}

// Existing opens the store for a command that may write. A command never creates a store.
func Existing(ctx context.Context, env config.Env) (Store, error) {
	if env.Store.Backend == config.Postgres {
		return Opened(Database(ctx, env.Store, postgres.Options{}, false))
	}
	if err := MustExist(env.Store.Path, env.Audit.Heads); err != nil {
		return nil, err
	}
	return Opened(ToWrite(ctx, env.Store.Path, env.Audit))
}

// Opened returns an open store as an interface. After an error, Opened returns a nil interface, and not an interface
// that holds a nil pointer.
func Opened[S Store](db S, err error) (Store, error) {
	if err != nil {
		return nil, err
	}
	return db, nil
}

// ID returns an id of the store. A command and a running bot compare their ids to check that they use the same store.
func ID(s config.Store, path string) string {
	if s.Backend == config.Postgres {
		return postgres.ID(s.URL.Reveal())
	}
	return path
}

// OnlyFile returns an error for commands that work only on a store's file.
func OnlyFile(s config.Store, instead string) error {
	if s.Backend == config.Postgres {
		return cli.Misused("this works on a store in a file, and %s is a database: %s (docs/postgres.md)", s, instead)
	}
	return nil
}

// Name returns the name of a store for messages.
func Name(s config.Store) string {
	if s.Backend == config.Postgres {
		return s.String()
	}
	return s.Path
}
