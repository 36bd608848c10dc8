package postgres_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/store"
	"countersign/store/bolt"
	"countersign/store/postgres"
	"countersign/store/storetest"
)

// fillEmpty returns a Filler that fills an empty database.
func fillEmpty(t *testing.T) storetest.Filler {
	name := empty(t)
	return func(ctx context.Context, anew bool, fill func(store.Filling) error) (storetest.Opener, error) {
		s, err := postgres.Open(ctx, at(name), postgres.Options{Fill: true}) // as the owner of the tables: the bot's role can't write entries with leaves
		if err != nil {
			return nil, err
		}
		open := func() (store.Store, error) {
			return postgres.Open(context.Background(), asBot(name), postgres.Options{})
		}
		return open, errors.Join(s.Fill(ctx, anew, fill), s.Close())
	}
}

var (
	inDatabase = storetest.Backend{Fresh: fresh, New: fillEmpty}
	inFile     = storetest.Backend{
		Fresh: func(t *testing.T) storetest.Opener { return openFile(filepath.Join(t.TempDir(), "store.db")) },
		New: func(t *testing.T) storetest.Filler {
			path := filepath.Join(t.TempDir(), "store.db")
			return func(ctx context.Context, anew bool, fill func(store.Filling) error) (storetest.Opener, error) {
				return openThere(path), bolt.Fill(ctx, path, "", anew, fill)
			}
		},
	}
)

func openFile(path string) storetest.Opener {
	return func() (store.Store, error) { return bolt.Open(path, bolt.Options{}) }
}

// openThere opens a store that must exist.
func openThere(path string) storetest.Opener {
	return func() (store.Store, error) {
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
		return bolt.Open(path, bolt.Options{})
	}
}

func TestCopyFromFile(t *testing.T) { storetest.RunCopies(t, inFile, inDatabase) }

func TestCopyToFile(t *testing.T) { storetest.RunCopies(t, inDatabase, inFile) }

// Every table is copied, except the tables whose rows a copy does not need.
func TestEveryTableIsCopied(t *testing.T) {
	t.Parallel()
	known := append(postgres.CopiedTables(), "migrations", "connections", "replicas", "claims", "origin", "set_aside")
	conn, err := pgx.Connect(t.Context(), at(empty(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // an error of Close has no effect
	found, err := conn.Query(t.Context(), "SELECT tablename FROM pg_tables WHERE schemaname = 'countersign' ORDER BY 1")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(known)
	if !slices.Equal(tables, known) {
		t.Errorf("the database has the tables\n\t%s\nand these are known:\n\t%s\nAdd a new table to parts (contents.go), or to this test", tables, known)
	}
}

// Fill refuses a database with a row.
func TestFillOfADatabaseWithRows(t *testing.T) {
	t.Parallel()
	name := empty(t)
	s := open(t, at(name))
	if err := execIn(name, "INSERT INTO countersign.counters (key, at, id, n) VALUES ('k', now(), 'i', 1)"); err != nil {
		t.Fatal(err)
	}
	err := s.Fill(t.Context(), false, func(store.Filling) error { t.Error("it is filled"); return nil })
	if !errors.Is(err, postgres.ErrNotEmpty) {
		t.Errorf("got the error %v", err)
	}
}
