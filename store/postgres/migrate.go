package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"

	"countersign/store"
)

//go:embed migrations/*.sql
var embedded embed.FS

// versionTable lists the migrations that were applied.
const versionTable = "migrations"

func migrations() fs.FS {
	sub, err := fs.Sub(embedded, "migrations")
	if err != nil {
		panic(err) // the directory is embedded
	}
	return sub
}

// newest returns the version of the tables that this program needs.
func newest() (int64, error) {
	var last int64
	err := fs.WalkDir(migrations(), ".", func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		n, err := goose.NumericComponent(entry.Name())
		last = max(last, n)
		return err
	})
	return last, err
}

// Migrate brings the tables up to date, or only lists what it would do. It returns the names of the migrations. Only
// one process at a time migrates a database.
func Migrate(ctx context.Context, url string, dry bool) ([]string, error) {
	c, err := parse(url)
	if err != nil {
		return nil, err
	}
	if _, err := c.prepare(ctx, Options{}); err == nil || !errors.Is(err, ErrOlder) && !errors.Is(err, ErrEmpty) {
		return nil, err
	}
	return c.migrate(ctx, dry)
}

func (c *config) migrate(ctx context.Context, dry bool) (names []string, err error) {
	to := c.pool.ConnConfig.Copy()
	session := c.settings()
	delete(session, "statement_timeout") // changing a large table may take long
	to.AfterConnect = setting(session, to.ConnectTimeout)
	db := stdlib.OpenDB(*to)
	defer func() { err = errors.Join(err, db.Close()) }()
	if dry {
		found, err := c.look(ctx)
		if err != nil {
			return nil, err
		}
		all, err := fs.Glob(migrations(), "*.sql")
		if err != nil {
			return nil, err
		}
		for _, name := range all {
			if n, err := goose.NumericComponent(name); err == nil && n > found.version {
				names = append(names, name)
			}
		}
		return names, nil
	}
	// Only one process at a time makes the schema; goose's own lock comes later.
	const makeSchema = "DO $$ BEGIN PERFORM pg_advisory_xact_lock(%d); IF to_regnamespace('%s') IS NULL THEN CREATE SCHEMA %[2]s; END IF; END $$"
	if _, err := db.ExecContext(ctx, fmt.Sprintf(makeSchema, holdClass, c.schema)); err != nil {
		return nil, c.notOwner(err)
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, err
	}
	provider, err := goose.NewProvider(database.DialectPostgres, db, migrations(), goose.WithSessionLocker(locker), goose.WithTableName(versionTable))
	if err != nil {
		return nil, err
	}
	results, err := provider.Up(ctx)
	for _, r := range results {
		names = append(names, r.Source.Path)
	}
	if code(err) == codePrivilege {
		return names, c.notOwner(err)
	}
	if err != nil {
		return names, fmt.Errorf("%w: the tables of %s could not be brought up to date; the step that failed is undone (%w)", store.ErrUnavailable, c.name(), err)
	}
	return names, nil
}

// notOwner explains that the role may not change the tables.
func (c *config) notOwner(err error) error {
	if code(err) != codePrivilege {
		return c.sentence(err)
	}
	return fmt.Errorf(`%w: the role %s may not make or change tables in %s: run countersign store migrate as their owner (docs/postgres.md, "Roles and grants") (%w)`,
		ErrAccess, identifier(c.pool.ConnConfig.User), c.name(), plain{err})
}
