package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/internal/testkit/pgserver"
	"countersign/store"
	"countersign/store/postgres"
	"countersign/store/storetest"
)

// server is started by the first test that needs it. COUNTERSIGN_TEST_POSTGRES names another one.
var server struct {
	once sync.Once
	own  *pgserver.Server // nil: another one
	base string           // address of a database that can make others
	err  error
}

const template = "countersign_template"

func TestMain(m *testing.M) {
	code := m.Run()
	if server.own != nil {
		server.own.Remove()
	}
	os.Exit(code)
}

// begin starts the server and makes the database that others are copied from.
func begin(t testing.TB) {
	t.Helper()
	other := os.Getenv("COUNTERSIGN_TEST_POSTGRES")
	bin := ""
	if other == "" {
		bin = pgserver.Find(t)
	}
	server.once.Do(func() {
		if server.base = other; other == "" {
			if server.own, server.err = pgserver.Start(bin, "fsync=off", "full_page_writes=off", "autovacuum=off"); server.err != nil {
				return
			}
			server.base = server.own.URL("postgres")
		}
		if server.err = admin("DROP DATABASE IF EXISTS "+template, "CREATE DATABASE "+template); server.err != nil {
			return
		}
		s, err := postgres.Open(context.Background(), at(template), postgres.Options{Create: true})
		if err != nil {
			server.err = err
			return
		}
		server.err = s.Close()
	})
	if server.err != nil {
		t.Fatal(server.err)
	}
}

// at returns the address of a database of the server.
func at(database string) string {
	u, err := url.Parse(server.base)
	if err != nil {
		panic(err)
	}
	u.Path = "/" + database
	return u.String()
}

// admin runs statements as the superuser.
func admin(statements ...string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server.base)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

var databases atomic.Int64

// database makes an empty database from a template, with the tables or without any, and returns its name.
func database(t testing.TB, from string) string {
	t.Helper()
	begin(t)
	name := fmt.Sprintf("countersign_test_%d_%d", os.Getpid(), databases.Add(1))
	if err := admin("CREATE DATABASE " + name + " TEMPLATE " + from); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return name
}

// open opens a store that is closed with the test.
func open(t testing.TB, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// fresh makes an opener of a new database.
func fresh(t *testing.T) storetest.Opener {
	name := database(t, template)
	return func() (store.Store, error) { return postgres.Open(context.Background(), at(name), postgres.Options{}) }
}

func TestConformance(t *testing.T) { storetest.Run(t, fresh) }
