package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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

// step is a migration.
type step struct {
	name    string
	version int64
	oldest  int64 // the oldest program version that can use the tables after the step
	text    string
}

var needsProgram = regexp.MustCompile(`(?m)^SELECT needs_program\((\d+)\);$`)

// steps returns the program's migrations that are newer than a version of the tables, in order.
func (c *config) steps(after int64) (list []step, err error) {
	names, err := fs.Glob(c.migrations, "*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(c.migrations, name)
		if err != nil {
			return nil, err
		}
		s := step{name: name, text: string(text)}
		if s.version, err = goose.NumericComponent(name); err != nil {
			return nil, err
		}
		if said := needsProgram.FindStringSubmatch(s.text); said != nil {
			if s.oldest, err = strconv.ParseInt(said[1], 10, 64); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		if s.version > after {
			list = append(list, s)
		}
	}
	return list, nil
}

// newest returns the version that the tables have after all migrations of this program.
func (c *config) newest() (int64, error) {
	names, err := fs.Glob(c.migrations, "*.sql")
	if err != nil || len(names) == 0 {
		return 0, err
	}
	return goose.NumericComponent(names[len(names)-1])
}

// Newest returns the version that the tables have after all migrations of this program.
func Newest() (int64, error) { return (&config{migrations: migrations()}).newest() }

// Migrate applies the missing migrations, and returns their names. If dry is set, Migrate only returns the names. Only
// one process at a time migrates a database.
func Migrate(ctx context.Context, url string, dry bool) ([]string, error) {
	c, err := parse(url)
	if err != nil {
		return nil, err
	}
	return c.update(ctx, dry)
}

// update does the work of Migrate, with the migrations of c.
func (c *config) update(ctx context.Context, dry bool) ([]string, error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer hangUp(conn)
	if _, err := c.prepare(ctx, conn, Options{}); err == nil || !errors.Is(err, ErrOlder) && !errors.Is(err, ErrEmpty) {
		return nil, err
	}
	return c.migrate(ctx, conn, dry)
}

// migrateWait is how long a migration waits for a lock on a table. While a migration waits, the replicas wait for the
// migration. So the migration must give up before the replicas' leases end.
const migrateWait = 2 * time.Second

func (c *config) migrate(ctx context.Context, conn *pgx.Conn, dry bool) (names []string, err error) {
	pending, err := c.pending(ctx, conn)
	if dry {
		for _, s := range pending {
			names = append(names, s.name)
		}
	}
	if err == nil {
		err = c.mayMigrate(ctx, conn)
	}
	if dry || err != nil {
		return names, err
	}
	to := c.pool.ConnConfig.Copy()
	session := c.settings()
	delete(session, "statement_timeout") // changing a large table may take long
	session["lock_timeout"] = milliseconds(migrateWait)
	to.AfterConnect = setting(session, to.ConnectTimeout)
	db := stdlib.OpenDB(*to)
	defer func() { err = errors.Join(err, db.Close()) }()
	// The lock ensures that only one process at a time creates the schema. goose takes its own lock later.
	const makeSchema = "DO $$ BEGIN PERFORM pg_advisory_xact_lock(%d); IF to_regnamespace('%s') IS NULL THEN CREATE SCHEMA %[2]s; END IF; END $$"
	if _, err := db.ExecContext(ctx, fmt.Sprintf(makeSchema, holdClass, c.inSQL())); err != nil {
		return nil, c.notOwner(err)
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, err
	}
	provider, err := goose.NewProvider(database.DialectPostgres, db, c.migrations, goose.WithSessionLocker(locker), goose.WithTableName(versionTable))
	if err != nil {
		return nil, err
	}
	results, err := provider.Up(ctx)
	for _, r := range results {
		names = append(names, r.Source.Path)
	}
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused) && refused.Code == codeOldReplicas:
		return names, olderReplicas(refused.Message)
	case code(err) == codePrivilege:
		return names, c.notOwner(err)
	case code(err) == codeLockTimeout:
		return names, fmt.Errorf("%w: another transaction, such as a dump, uses the tables of %s for longer than %s; the step that failed is undone: try again later (%w)",
			store.ErrUnavailable, c.name(), migrateWait, err)
	case code(err) == codeDiskFull:
		return names, c.sentence(err)
	case err != nil:
		return names, fmt.Errorf("%w: the tables of %s could not be brought up to date; the step that failed is undone (%w)", store.ErrUnavailable, c.name(), err)
	}
	return names, nil
}

// ErrOldReplicas says that replicas with an older program are working on the database. The older program can't use the
// migrated tables, so nothing was migrated.
var ErrOldReplicas = errors.New("store: replicas of an older version work on the database")

func olderReplicas(names string) error {
	return fmt.Errorf(`%w: %s. They can't work on the tables of this version. Stop them, and try again (docs/postgres.md, "Upgrades")`, ErrOldReplicas, names)
}

// pending lists the migrations that must be applied. If a live replica could not use the migrated tables, the error is
// ErrOldReplicas.
func (c *config) pending(ctx context.Context, conn *pgx.Conn) ([]step, error) {
	found, err := c.look(ctx, conn)
	if err != nil {
		return nil, err
	}
	list, err := c.steps(found.version)
	if err != nil {
		return nil, err
	}
	oldest := int64(0)
	for _, s := range list {
		oldest = max(oldest, s.oldest)
	}
	var there bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", c.inSQL()+".replicas").Scan(&there); err != nil {
		return nil, c.sentence(err)
	}
	if !there {
		return list, nil
	}
	// Each migration also checks the versions of the live replicas, with the SQL function needs_program. This query
	// covers tables of version 6, which have no column schema_version.
	const older = `SELECT coalesce(string_agg(concat_ws(' ', name, nullif(version, '')), ', ' ORDER BY name), '')
FROM replicas r WHERE coalesce((to_jsonb(r) ->> 'schema_version')::bigint, 0) < $1 AND alive_until > clock_timestamp()`
	var names string
	if err := conn.QueryRow(ctx, older, oldest).Scan(&names); err != nil {
		return nil, c.sentence(err)
	}
	if names != "" {
		return list, olderReplicas(names)
	}
	return list, nil
}

// mayMigrate returns an error if the role does not own the tables. If there are no tables, mayMigrate returns an
// error if the role may not make tables. The owner of the table of migrations owns all tables.
func (c *config) mayMigrate(ctx context.Context, conn *pgx.Conn) error {
	const may = `
SELECT coalesce(
    (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r' AND relname = $2),
    has_schema_privilege(to_regnamespace($1), 'CREATE'),
    has_database_privilege(current_database(), 'CREATE'))`
	var is bool
	if err := conn.QueryRow(ctx, may, c.schema, versionTable).Scan(&is); err != nil {
		return c.sentence(err)
	}
	if !is {
		return c.errNotOwner()
	}
	return nil
}

// notOwner returns an error that tells the operator what to do if the role may not change the tables.
func (c *config) notOwner(err error) error {
	if code(err) != codePrivilege {
		return c.sentence(err)
	}
	return fmt.Errorf("%w (%w)", c.errNotOwner(), plain{err})
}

func (c *config) errNotOwner() error {
	return fmt.Errorf(`%w: the role %s may not create or change tables in %s: run countersign store migrate as their owner (docs/postgres.md, "Roles and grants")`,
		ErrAccess, identifier(c.pool.ConnConfig.User), c.name())
}
