package postgres_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/store"
	"countersign/store/postgres"
)

// Another program locks or changes rows, so that the server ends the store's transaction with an error. The closure runs
// a second time, and the transaction is committed. EraseRenderings changes rows immediately, so the transaction locks
// rows before its end.
func TestConflictsWithOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before string // the other program's statements before the store's transaction
		during string // the other program's statement after the transaction has locked the row a
		waits  bool   // the statement waits for the transaction's lock
	}{
		"deadlock":              {"BEGIN; SELECT FROM renderings WHERE message = 'b' FOR UPDATE", "SELECT FROM renderings WHERE message = 'a' FOR UPDATE", true},
		"lock timeout":          {"BEGIN; SELECT FROM renderings WHERE message = 'b' FOR UPDATE", "", false},
		"serialization failure": {"", "UPDATE renderings SET checksum = checksum WHERE message = 'b'", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := at(empty(t))
			s, err := postgres.OpenWith(t.Context(), url, func(c *pgx.ConnConfig) {
				c.RuntimeParams["deadlock_timeout"] = "10ms" // less than the lock timeout of such a transaction
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			err = s.Update(t.Context(), func(tx store.Tx) error {
				return errors.Join(tx.PutRendering(store.Rendering{OutboxMessage: "a", Post: 1}), tx.PutRendering(store.Rendering{OutboxMessage: "b", Post: 1}))
			})
			if err != nil {
				t.Fatal(err)
			}
			config, err := pgx.ParseConfig(url)
			if err != nil {
				t.Fatal(err)
			}
			config.RuntimeParams["search_path"] = "countersign"
			config.RuntimeParams["deadlock_timeout"] = "1h" // so the server ends the store's transaction, not this one
			other, err := pgx.ConnectConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close(t.Context())
			exec := func(sql string) error {
				_, err := other.Exec(t.Context(), sql)
				return err
			}
			if err := exec(c.before); err != nil {
				t.Fatal(err)
			}
			runs, waited := 0, make(chan error, 1)
			err = s.Update(t.Context(), func(tx store.Tx) error {
				runs++
				if runs == 2 && c.waits {
					if err := <-waited; err != nil {
						return err
					}
				}
				if runs == 2 {
					if err := exec("ROLLBACK"); err != nil {
						return err
					}
				}
				if _, err := tx.EraseRenderings("a", 0); err != nil {
					return err
				}
				switch {
				case runs > 1:
				case c.waits:
					go func() { waited <- exec(c.during) }()
					awaitLock(t, url, other.PgConn().PID())
				default:
					if err := exec(c.during); err != nil {
						return err
					}
				}
				_, err := tx.EraseRenderings("b", 0)
				return err
			})
			if err != nil || runs != 2 {
				t.Errorf("the closure ran %d times, error %v; want two runs", runs, err)
			}
			err = s.View(t.Context(), func(r store.Reader) error {
				for _, id := range []string{"a", "b"} {
					if _, err := r.Rendering(id, 1); !errors.Is(err, store.ErrNotFound) {
						t.Errorf("the rendering of %s: got error %v, want ErrNotFound", id, err)
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// awaitLock waits until a process of the server waits for a lock.
func awaitLock(t *testing.T, url string, process uint32) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	await(t, "the process waits for a lock", func() bool {
		var waits bool
		err := conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted)", process).Scan(&waits)
		return err == nil && waits
	})
}
