package postgres_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
	"countersign/store/postgres"
	"countersign/store/storetest"
)

// The first test that needs the server starts the server. If COUNTERSIGN_TEST_POSTGRES names a server, the tests use
// that server instead.
var server struct {
	once sync.Once
	own  *pgserver.Server // nil: the tests use the server that COUNTERSIGN_TEST_POSTGRES names
	base string           // address of a database over which other databases can be created
	err  error
}

const template = "countersign_template"

// role is the name of the bot's role. The role has the rights that docs/postgres.md lists.
var role = fmt.Sprintf("countersign_bot_%d", os.Getpid())

// grants returns the statements of docs/postgres.md that give the bot's role its rights.
func grants(role string) (string, error) {
	page, err := os.ReadFile("../../docs/postgres.md")
	if err != nil {
		return "", err
	}
	_, block, _ := strings.Cut(string(page), "```sql\nGRANT ")
	block, _, found := strings.Cut("GRANT "+block, "```")
	if !found {
		return "", errors.New("docs/postgres.md has no grants")
	}
	return strings.ReplaceAll(block, "countersign_bot", role), nil
}

// asBot returns the address of a database, with the bot's role as the user.
func asBot(database string) string {
	u, err := url.Parse(at(database))
	if err != nil {
		panic(err)
	}
	u.User = url.UserPassword(role, "bot")
	return u.String()
}

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "5"); err != nil { // each check reads everything many times; the command line may ask for more checks
		panic(err)
	}
	testkit.RunAtOnce(6)
	remove := testkit.TempInMemory() // a database has about 500 files; creating them on a disk takes ten times longer
	code := m.Run()
	switch {
	case server.own != nil:
		server.own.Remove()
	case server.base != "":
		names := []string{template}
		for _, s := range spare.databases {
			names = append(names, s.name)
		}
		for _, name := range names {
			if err := admin("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)"); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
		if err := admin("DROP ROLE IF EXISTS " + role); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	remove()
	os.Exit(code)
}

// begin starts the server and makes the template database. Other databases are copies of the template.
func begin(t testing.TB) {
	t.Helper()
	other := os.Getenv("COUNTERSIGN_TEST_POSTGRES")
	bin := ""
	if other == "" {
		bin = pgserver.Find(t)
	}
	server.once.Do(func() {
		if server.base = other; other == "" {
			if server.own, server.err = pgserver.Start(bin, "fsync=off", "full_page_writes=off", "autovacuum=off", "max_wal_size=256MB"); server.err != nil {
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
		statements, err := grants(role)
		server.err = errors.Join(err, s.Close(), admin("CREATE ROLE "+role+" LOGIN PASSWORD 'bot'"), execIn(template, statements))
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

// create makes a database from a template. PostgreSQL 15 and newer copy the pages through the WAL by default. Copying
// the files needs less processor time. Older versions always copy the files.
func create(name, from string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server.base)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var strategy string
	const query = "SELECT CASE WHEN current_setting('server_version_num')::int >= 150000 THEN ' STRATEGY file_copy' ELSE '' END"
	if err := conn.QueryRow(ctx, query).Scan(&strategy); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+from+strategy)
	return err
}

// database makes a database from a template, and returns the database's name.
func database(t testing.TB, from string) string {
	t.Helper()
	begin(t)
	name := fmt.Sprintf("countersign_test_%d_%d", os.Getpid(), databases.Add(1))
	if err := create(name, from); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return name
}

// open opens a store, and closes the store at the end of the test.
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

// spare holds databases of finished tests, with empty tables, for later tests. Emptying the tables is much faster than
// making a database.
var spare struct {
	sync.Mutex
	databases []spareDatabase
}

// spareDatabase is a database with the connection that empties its tables. A new connection would need most of its time
// to read the catalogue.
type spareDatabase struct {
	name string
	conn *pgx.Conn
}

// empty returns the name of a database with empty tables.
func empty(t testing.TB) string {
	t.Helper()
	begin(t)
	spare.Lock()
	defer spare.Unlock()
	var s spareDatabase
	if n := len(spare.databases); n > 0 {
		s, spare.databases = spare.databases[n-1], spare.databases[:n-1]
	} else {
		s.name = fmt.Sprintf("countersign_spare_%d_%d", os.Getpid(), databases.Add(1))
		if err := create(s.name, template); err != nil {
			t.Fatal(err)
		}
		var err error
		if s.conn, err = pgx.Connect(context.Background(), at(s.name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := s.clear(); err != nil {
			t.Error(err)
			return
		}
		spare.Lock()
		defer spare.Unlock()
		spare.databases = append(spare.databases, s)
	})
	return s.name
}

// clear deletes all rows in the tables of the database, except the table migrations.
func (s spareDatabase) clear() error {
	_, err := s.conn.Exec(context.Background(), `DO $$ DECLARE name text; BEGIN
FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'countersign' AND tablename <> 'migrations' LOOP EXECUTE 'DELETE FROM countersign.' || name; END LOOP;
END $$`)
	return err
}

// through starts a proxy in front of a database. through returns the proxy, and an address that reaches the database
// through the proxy.
func through(t testing.TB, database string) (*pgserver.Proxy, string) {
	t.Helper()
	begin(t)
	if server.own == nil {
		t.Skip("needs a server of its own")
	}
	p := pgserver.NewProxy(t, server.own)
	return p, p.URL(database)
}

// fresh returns an Opener that opens an empty database with the bot's role.
func fresh(t *testing.T) storetest.Opener {
	name := empty(t)
	return func() (store.Store, error) {
		return postgres.Open(context.Background(), asBot(name), postgres.Options{})
	}
}

func TestConformance(t *testing.T) { storetest.Run(t, fresh) }

// TestConformanceThreeStores checks that the concurrent part of the suite passes if calls go in turn to three stores on
// the same database.
func TestConformanceThreeStores(t *testing.T) {
	storetest.RunConcurrent(t, func(t *testing.T) storetest.Opener {
		open := fresh(t)
		return func() (store.Store, error) {
			var s several
			var failed error
			for range 3 {
				one, err := open()
				s.stores, failed = append(s.stores, one), errors.Join(failed, err)
			}
			return &s, failed
		}
	})
}

// several passes calls in turn to several stores.
type several struct {
	stores []store.Store
	calls  atomic.Int64
}

func (s *several) next() store.Store { return s.stores[s.calls.Add(1)%int64(len(s.stores))] }

func (s *several) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.next().Update(ctx, fn)
}

func (s *several) View(ctx context.Context, fn func(store.Reader) error) error {
	return s.next().View(ctx, fn)
}

func (s *several) Check(ctx context.Context) error { return s.next().Check(ctx) }

func (s *several) Close() error {
	var failed error
	for _, one := range s.stores {
		failed = errors.Join(failed, one.Close())
	}
	return failed
}

// execIn runs a statement in a database.
func execIn(database, statement string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, at(database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}
