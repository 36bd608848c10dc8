package postgres_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
	"countersign/store/postgres"
	"countersign/store/record"
)

// tryOpen requires that Open fails. The error must contain all given words, and must not contain the password.
func tryOpen(t *testing.T, address string, want error, words ...string) {
	t.Helper()
	s, err := postgres.Open(t.Context(), address, postgres.Options{})
	if err == nil {
		s.Close()
		t.Errorf("%s was opened", address)
		return
	}
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error %q does not say %q", err, w)
		}
	}
	if strings.Contains(err.Error(), "horse") {
		t.Errorf("the error %q shows the password", err)
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	name := empty(t)
	if server.own == nil {
		t.Skip("needs a server of its own")
	}
	good, err := url.Parse(server.own.TCP(name))
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(u *url.URL)) string {
		u := *good
		change(&u)
		return u.String()
	}
	tryOpen(t, with(func(u *url.URL) { u.User = url.UserPassword("postgres", "wrong horse") }), postgres.ErrAccess, "check the user and the password", "127.0.0.1", name)
	tryOpen(t, with(func(u *url.URL) { u.Path = "/nothing" }), postgres.ErrAccess, "does not exist", "createdb")
	tryOpen(t, with(func(u *url.URL) { u.Host = "127.0.0.1:1" }), store.ErrUnavailable, "can't be reached", "127.0.0.1:1")
	for _, query := range []string{"sslmode=disable&target_session_attrs=standby", "target_session_attrs=standby"} {
		tryOpen(t, with(func(u *url.URL) { u.RawQuery = query }), store.ErrUnavailable, "the state that target_session_attrs in the address demands")
	}
	tryOpen(t, with(func(u *url.URL) { u.RawQuery = "sslmode=disable&search_path=a,b" }), postgres.ErrURL, "search_path")
	tryOpen(t, "postgres://postgres:wrong horse@[::1/x", postgres.ErrURL)
	tryOpen(t, with(func(u *url.URL) { u.RawQuery = "sslmode=disable&search_path=elsewhere" }), postgres.ErrEmpty, "elsewhere")
}

// The name of a schema may be a reserved word. PostgreSQL reserves names that begin with pg_.
func TestSchemaNames(t *testing.T) {
	t.Parallel()
	name := database(t, "template0")
	in := func(schema string) string {
		u, err := url.Parse(at(name))
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set("search_path", schema)
		u.RawQuery = q.Encode()
		return u.String()
	}
	tryOpen(t, in("pg_own"), postgres.ErrURL, "pg_")
	for range 2 { // the second time, the tables exist
		s, err := postgres.Open(t.Context(), in("user"), postgres.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Update(t.Context(), func(tx store.Tx) error { return tx.PutTurn(approvers.Turn{ID: rand.Text()}) }), s.Check(t.Context()), s.Close()); err != nil {
			t.Error(err)
		}
	}
	if list, err := postgres.Migrate(t.Context(), in("user"), true); err != nil || len(list) > 0 {
		t.Errorf("migrate: %v, %v", list, err)
	}
	rights, err := postgres.ReadRights(t.Context(), in("user"))
	if err := cmp.Or(err, rights.Missing()); err != nil {
		t.Error(err)
	}
}

// The password can be in PGPASSWORD, or in the file that PGPASSFILE names. Errors do not show the password.
func TestPasswordFromEnvironment(t *testing.T) {
	name := empty(t)
	if server.own == nil {
		t.Skip("needs a server of its own")
	}
	u, err := url.Parse(server.own.TCP(name))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("postgres")
	t.Setenv("PGPASSWORD", "")
	file := filepath.Join(t.TempDir(), "pgpass")
	for _, password := range []string{server.own.Password, "wrong horse"} {
		if err := os.WriteFile(file, fmt.Appendf(nil, "%s:%s:%s:postgres:%s\n", u.Hostname(), u.Port(), name, password), 0o600); err != nil {
			t.Fatal(err)
		}
		for variable, value := range map[string]string{"PGPASSWORD": password, "PGPASSFILE": file} {
			t.Run(variable, func(t *testing.T) {
				t.Setenv(variable, value)
				if password == server.own.Password {
					open(t, u.String())
				} else {
					tryOpen(t, u.String(), postgres.ErrAccess, "check the user and the password")
				}
			})
		}
	}
}

// The server enforces the documented time limits. If a statement or a lock takes too long, the transaction ends with
// ErrUnavailable, and is not repeated.
func TestTimeLimits(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	url := at(empty(t))
	s := open(t, url)
	limits := regexp.MustCompile(`(?m)^\| .(\w+). \| (\d+ s) \|`).FindAllStringSubmatch(string(page), -1)
	if len(limits) != 3 {
		t.Errorf("docs/postgres.md has %d time limits, want 3", len(limits))
	}
	for _, l := range limits {
		limit, err := time.ParseDuration(strings.ReplaceAll(l[2], " ", ""))
		got, err2 := s.Shown(t.Context(), l[1])
		set, err3 := time.ParseDuration(strings.TrimSuffix(got, "in")) // the server writes a minute as 1min
		if err := errors.Join(err, err2, err3); err != nil || set != limit {
			t.Errorf("%s is %s, want %s (%v)", l[1], got, limit, err)
		}
	}
	other, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(t.Context())
	if _, err := other.Exec(t.Context(), "BEGIN; LOCK TABLE countersign.turns"); err != nil {
		t.Fatal(err)
	}
	runs := 0
	slow := func(r store.Reader) error {
		runs++
		return errors.Join(postgres.RunIn(r, "SET LOCAL statement_timeout = '10ms'"), postgres.RunIn(r, "SELECT pg_sleep(3600)"))
	}
	locked := func(r store.Reader) error {
		runs++
		if err := postgres.RunIn(r, "SET LOCAL lock_timeout = '10ms'"); err != nil {
			return err
		}
		_, err := r.Turn("t")
		return err
	}
	for name, err := range map[string]error{
		"an Update with a slow statement": s.Update(t.Context(), func(tx store.Tx) error { return slow(tx) }),
		"a View with a slow statement":    s.View(t.Context(), slow),
		"an Update that waits for a lock": s.Update(t.Context(), func(tx store.Tx) error { return locked(tx) }),
		"a View that waits for a lock":    s.View(t.Context(), locked),
	} {
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "a statement took too long") {
			t.Errorf("%s: got error %v, want ErrUnavailable", name, err)
		}
	}
	if runs != 4 {
		t.Errorf("the four closures ran %d times", runs)
	}
	if _, err := other.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.PutTurn(approvers.Turn{ID: "t"}) }); err != nil {
		t.Errorf("after that: %v", err)
	}
}

// Open refuses a server that is too old. The error names the version of the server and the required version.
func TestOldServer(t *testing.T) {
	t.Parallel()
	s, err := postgres.OpenNeeding(t.Context(), at(database(t, template)), 99)
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, postgres.ErrServer) || !regexp.MustCompile(`is on PostgreSQL \d\d: version 99 or newer is needed$`).MatchString(err.Error()) {
		t.Errorf("got error %v", err)
	}
}

// If the user has too few rights, Open fails, and the error names this cause.
func TestOpenWithoutRights(t *testing.T) {
	t.Parallel()
	name := database(t, template)
	role := strings.Replace(name, "test", "role", 1)
	if err := admin("CREATE ROLE " + role + " LOGIN"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := admin("DROP ROLE " + role); err != nil {
			t.Error(err)
		}
	}()
	u, err := url.Parse(at(name))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	tryOpen(t, u.String(), postgres.ErrAccess, "GRANT USAGE ON SCHEMA countersign TO "+role+"; GRANT SELECT, INSERT, UPDATE, DELETE ON countersign.absences, ", "docs/postgres.md")
}

// A role that does not own the tables can't migrate them, and a role without the right to create a schema can't make
// them. A dry run reports this, too.
func TestMigrateWithoutRights(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	older := database(t, template)
	next, _ := nextProgram(t, "CREATE TABLE later (id int);", func(int64) int64 { return 0 })
	owned := database(t, template) // the role owns the tables, and somebody else has made a view in the schema
	err := execIn(owned, fmt.Sprintf(`DO $$ DECLARE name text; BEGIN
FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'countersign' LOOP EXECUTE 'ALTER TABLE countersign.' || name || ' OWNER TO %s'; END LOOP;
CREATE VIEW countersign.theirs AS SELECT 1; END $$`, role))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.MigrateAs(t.Context(), asBot(owned), next, true); err != nil {
		t.Errorf("a view of another role: %v", err)
	}
	for where, migrate := range map[string]func(dry bool) ([]string, error){
		"older tables": func(dry bool) ([]string, error) { return postgres.MigrateAs(t.Context(), asBot(older), next, dry) },
		"an empty database": func(dry bool) ([]string, error) {
			return postgres.Migrate(t.Context(), asBot(database(t, "template0")), dry)
		},
	} {
		for _, dry := range []bool{true, false} {
			names, err := migrate(dry)
			if want := "the role " + role + " may not create or change tables in the database"; !errors.Is(err, postgres.ErrAccess) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s (dry: %v): got %v and error %v, want ErrAccess", where, dry, names, err)
			}
		}
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	t.Run("newer tables", func(t *testing.T) {
		name := database(t, template)
		if err := execIn(name, "INSERT INTO countersign.migrations (version_id, is_applied, oldest_program) VALUES (99, true, 99)"); err != nil {
			t.Fatal(err)
		}
		tryOpen(t, at(name), store.ErrNewer, "version 99", "newer program")
		if _, err := postgres.Migrate(t.Context(), at(name), false); !errors.Is(err, store.ErrNewer) {
			t.Errorf("migrate: got error %v, want ErrNewer", err)
		}
	})
	t.Run("tables of others", func(t *testing.T) {
		name := database(t, "template0")
		if err := execIn(name, "CREATE SCHEMA countersign; CREATE TABLE countersign.orders (id int)"); err != nil {
			t.Fatal(err)
		}
		tryOpen(t, at(name), store.ErrForeign, "another database")
		if _, err := postgres.Migrate(t.Context(), at(name), false); !errors.Is(err, store.ErrForeign) {
			t.Errorf("migrate: got error %v, want ErrForeign", err)
		}
	})
	for what, columns := range map[string]string{
		"another program's table of migrations": "id serial, migration text, batch int", "another program's table of goose": "version_id bigint, is_applied boolean",
	} {
		t.Run(what, func(t *testing.T) {
			name := database(t, "template0")
			if err := execIn(name, "CREATE SCHEMA countersign; CREATE TABLE countersign.migrations ("+columns+")"); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(columns, "version_id") {
				if err := execIn(name, "INSERT INTO countersign.migrations VALUES (3, true)"); err != nil {
					t.Fatal(err)
				}
			}
			tryOpen(t, at(name), store.ErrForeign, "another database")
			if _, err := postgres.Migrate(t.Context(), at(name), false); !errors.Is(err, store.ErrForeign) {
				t.Errorf("migrate: got error %v, want ErrForeign", err)
			}
		})
	}
	t.Run("an empty database", func(t *testing.T) {
		name := database(t, "template0")
		tryOpen(t, at(name), postgres.ErrEmpty, "serve creates the tables")
		would, err := postgres.Migrate(t.Context(), at(name), true)
		if err != nil || len(would) == 0 {
			t.Fatalf("it would apply %v; error %v", would, err)
		}
		tryOpen(t, at(name), postgres.ErrEmpty)
		// Several stores are opened at the same time. One store makes the tables, and the other stores wait.
		results := make(chan error)
		for range 3 {
			go func() {
				s, err := postgres.Open(context.Background(), at(name), postgres.Options{Create: true})
				if err == nil {
					err = s.Close()
				}
				results <- err
			}()
		}
		for range 3 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if again, err := postgres.Migrate(t.Context(), at(name), false); err != nil || len(again) != 0 {
			t.Errorf("it applied %v again; error %v", again, err)
		}
	})
	t.Run("older tables", func(t *testing.T) {
		name := database(t, template)
		next, today := nextProgram(t, "CREATE TABLE later (id int);", same)
		open := func(opts postgres.Options) error {
			s, err := postgres.OpenAs(t.Context(), at(name), next, opts)
			if err == nil {
				err = s.Close()
			}
			return err
		}
		want := fmt.Sprintf("have version %d, and this program needs %d. Run countersign store migrate, or start serve with COUNTERSIGN_MIGRATE=auto", today, today+1)
		for _, opts := range []postgres.Options{{}, {Create: true}} {
			if err := open(opts); !errors.Is(err, postgres.ErrOlder) || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: got error %v, want ErrOlder", opts, err)
			}
		}
		if err := execIn(name, "SELECT FROM countersign.later"); err == nil {
			t.Error("the tables were migrated without the option")
		}
		for range 2 { // in the second run, there is nothing to migrate
			if err := open(postgres.Options{Create: true, Migrate: true}); err != nil {
				t.Error(err)
			}
		}
		if err := execIn(name, "SELECT FROM countersign.later"); err != nil {
			t.Error(err)
		}
	})
	t.Run("an encoding that can't hold every text", func(t *testing.T) {
		name := fmt.Sprintf("countersign_test_latin_%d", databases.Add(1))
		begin(t)
		if err := admin("CREATE DATABASE " + name + " TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'"); err != nil {
			t.Fatal(err)
		}
		defer admin("DROP DATABASE " + name)
		tryOpen(t, at(name), postgres.ErrServer, "UTF8")
	})
}

// The last statement of each migration names the oldest program that can use the migrated tables.
func TestStepsSayTheOldestProgram(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	says := regexp.MustCompile(`\nSELECT needs_program\((\d+)\);\n$`)
	last := int64(0)
	for _, file := range files {
		version, err := goose.NumericComponent(filepath.Base(file))
		text, err2 := os.ReadFile(file)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if version <= 6 { // these migrations are older than needs_program
			continue
		}
		said := says.FindSubmatch(text)
		if said == nil {
			t.Errorf("%s does not end with SELECT needs_program(N); see CONTRIBUTING.md", file)
			continue
		}
		oldest, err := strconv.ParseInt(string(said[1]), 10, 64)
		if err != nil || oldest > version || oldest < last {
			t.Errorf("%s needs program %s: that is newer than the step, or older than a step before needs", file, said[1])
		}
		last = oldest
	}
	if last == 0 {
		t.Error("no step says it")
	}
}

// Only one process at a time can hold a database.
func TestHold(t *testing.T) {
	t.Parallel()
	name := empty(t)
	first, second := open(t, at(name)), open(t, at(name))
	if err := first.Hold(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	err := second.Hold(t.Context(), false)
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), "held by countersign on") {
		t.Errorf("got error %v, want ErrLocked and the holder", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := second.Hold(t.Context(), false); err != nil {
		t.Errorf("after the first was closed: %v", err)
	}
}

// A command that holds the database and reads it needs two connections, however often it reads.
func TestConnectionsOfACommand(t *testing.T) {
	t.Parallel()
	name := empty(t)
	p, url := through(t, name)
	for tries := 1; ; tries++ { // on a very busy machine, the end of a read may take longer than a new connection
		before := p.Accepted.Load()
		s := open(t, url)
		if err := s.Hold(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if err := s.View(t.Context(), func(r store.Reader) error { _, err := r.Turn("t"); return store.IgnoreNotFound(err) }); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		n := p.Accepted.Load() - before
		if n == 2 {
			return
		}
		if tries == 5 {
			t.Fatalf("a command has opened %d connections, want 2", n)
		}
	}
}

// TestSize checks that the bot's role can read the size of the database.
func TestSize(t *testing.T) {
	t.Parallel()
	name := database(t, template)
	if n, err := open(t, asBot(name)).Size(t.Context()); err != nil || n < 1<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// A commit is durable when Update returns, even if the server's default is to answer a COMMIT earlier.
func TestCommitsAreDurable(t *testing.T) {
	t.Parallel()
	name := database(t, template)
	for set, want := range map[string]string{"off": "on", "local": "local", "remote_apply": "remote_apply"} {
		if err := admin("ALTER DATABASE " + name + " SET synchronous_commit = " + set); err != nil {
			t.Fatal(err)
		}
		if got, err := open(t, asBot(name)).Shown(t.Context(), "synchronous_commit"); err != nil || got != want {
			t.Errorf("the database has synchronous_commit = %s: a transaction has %s (%v), want %s", set, got, err, want)
		}
	}
}

// The server does not end idle connections of the bot, because the connection for notices is idle.
func TestIdleSessionsStay(t *testing.T) {
	t.Parallel()
	name := database(t, template)
	if err := admin("ALTER DATABASE " + name + " SET idle_session_timeout = '3s'"); err != nil {
		t.Fatal(err)
	}
	if got, err := open(t, asBot(name)).Shown(t.Context(), "idle_session_timeout"); err != nil || got != "0" {
		t.Errorf("a session has idle_session_timeout = %s (%v), want 0", got, err)
	}
}

// The check compares columns with records. The check also compares the records, the payloads and the journal of the
// audit.
func TestCheckFindsFaults(t *testing.T) {
	t.Parallel()
	name := empty(t)
	s := open(t, at(name))
	err := s.Update(t.Context(), func(tx store.Tx) error {
		a := approvers.AuditRecord{Chain: "q", Kind: approvers.AuditProposed}
		first := a.Link(approvers.AuditRecord{})
		second := a.Link(first)
		q := approvers.Request{ID: "q", State: approvers.Pending}
		q.Facts.Requesters = []approvers.PersonID{"T/U"}
		inForce := store.Policy{Load: "first", Content: approvers.SumOf([]byte("content")).String()}
		return errors.Join(tx.PutRequest(q), tx.PutMessage(store.Message{Conversation: "c", Seq: 1}), tx.PutPolicy(inForce, []byte("content")),
			tx.AppendAudit(first, nil), tx.AppendAudit(second, nil))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, damage := range []struct{ do, undo, want string }{
		{"UPDATE requests SET state = 'approved'", "UPDATE requests SET state = 'pending'", "column state"},
		{"UPDATE requests SET version = 7", "UPDATE requests SET version = 1", "version"},
		{"DELETE FROM request_people", "INSERT INTO request_people VALUES ('T/U', '0001-01-01 00:00:00Z', 'q')", "is missing"},
		{"INSERT INTO request_people VALUES ('T/V', '0001-01-01 00:00:00Z', 'q')", "DELETE FROM request_people WHERE person = 'T/V'", "not in the request"},
		{"UPDATE messages SET seq = 2", "UPDATE messages SET seq = 1", "checksum"},
		{"UPDATE audit_records SET kind = 'approved' WHERE seq = 2", "UPDATE audit_records SET kind = 'proposed' WHERE seq = 2", "record 2 of chain q: its columns say \"approved\""},
		{"UPDATE audit_records SET actor = 'T/U' WHERE seq = 2", "UPDATE audit_records SET actor = '' WHERE seq = 2", "but the record says \"proposed\" by \"\""},
		{"UPDATE audit_records SET at = at + '1 s' WHERE seq = 2", "UPDATE audit_records SET at = at - '1 s'::interval WHERE seq = 2", "record 2 of chain q"},
		{"UPDATE policies SET content = 'other'", "UPDATE policies SET content = 'content'", "policies, row policy: its content does not match its record"},
		{"UPDATE audit_records SET sum = substr(sum, 2) || '\\x00' WHERE seq = 2", "", "audit"},
	} {
		if err := execIn(name, "SET search_path = countersign; "+damage.do); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), damage.want) {
			t.Errorf("%s: the check says %v, want %q", damage.do, err, damage.want)
		}
		if damage.undo == "" {
			continue
		}
		if err := execIn(name, "SET search_path = countersign; "+damage.undo); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(t.Context()); err != nil {
			t.Errorf("after %s: %v", damage.undo, err)
		}
	}
}

// If another program has changed a record, a read of the record fails. All other records are readable. After the
// changed record is set aside, a new record can be written under its id.
func TestDamagedRecords(t *testing.T) {
	t.Parallel()
	name := empty(t)
	s := open(t, asBot(name))
	var told []store.Damage
	s.OnDamage(func(x store.Damage) { told = append(told, x) })
	history(t, s)
	begun := time.Now()
	file := store.File{Execution: "e", Index: 0}.Of([]byte("data"))
	err := s.Update(t.Context(), func(tx store.Tx) error {
		var all error
		for _, id := range []string{"a", "b", "c"} {
			q := approvers.Request{ID: id, State: approvers.Pending, Conversation: "c", Tool: "issue_refund", CreatedAt: begun}
			q.Facts.Requesters = []approvers.PersonID{"T/U"}
			all = errors.Join(all, tx.PutRequest(q), tx.PutCall(store.Call{ID: id, Turn: "t"}), tx.PutOutboxMessage(store.OutboxMessage{ID: id, Ref: "r"}),
				tx.SetTimer(store.Timer{Kind: store.TimerExpire, Ref: id, Due: begun}))
		}
		return errors.Join(all, tx.PutMessage(store.Message{Conversation: "c", Seq: 1}), tx.PutMessage(store.Message{Conversation: "c", Seq: 2}),
			tx.PutRendering(store.Rendering{OutboxMessage: "a", Post: 1}), tx.PutFile(file, []byte("data")), tx.PutSetting(store.Setting{Key: store.SettingPause}), tx.PutPolicy(store.Policy{Load: "first"}, []byte("content")))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Check(t.Context()), s.Inspect(t.Context())); err != nil || len(told) > 0 {
		t.Fatalf("%v, %v", err, told)
	}
	for _, statement := range []string{
		"UPDATE requests SET record = replace(record::text, 'issue_refund', 'send_email')::json WHERE id = 'a'",
		"UPDATE requests SET record = (SELECT record FROM requests WHERE id = 'c'), checksum = (SELECT checksum FROM requests WHERE id = 'c') WHERE id = 'b'",
		"UPDATE calls SET checksum = '' WHERE id = 'b'",
		"UPDATE outbox_messages SET record = record::jsonb::json WHERE id = 'b'",
		"UPDATE messages SET seq = 3 WHERE seq = 1",
		"UPDATE renderings SET record = '{}'",
		"UPDATE files SET data = 'other'",
		"UPDATE settings SET record = '{\"value\": 1}'",
		"UPDATE policies SET record = replace(record::text, 'first', 'other')::json, load = 'other'",
		"UPDATE audit_records SET record = replace(encode(record, 'escape'), 'proposed', 'approved')::bytea WHERE chain = 'q'",
		"UPDATE audit_payloads SET payload = 'other'",
	} {
		if err := execIn(name, "SET search_path = countersign; "+statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	torn := func(what string, err error, bucket, id string) {
		t.Helper()
		var row *store.DamagedError
		if !errors.As(err, &row) || row.Bucket != bucket || !strings.HasPrefix(row.Key, id) {
			t.Errorf("%s: got error %v, want that %s %s is damaged", what, err, bucket, id)
		}
	}
	lost := map[string]bool{}
	if err := s.EachReadable(t.Context(), func(store.Row) error { return nil }, func(x store.Damage, _ string) { lost[x.Bucket] = true }); err != nil {
		t.Errorf("the rows without damage can't be read: %v", err)
	}
	for _, bucket := range []string{"requests", "calls", "messages", "renderings", "files", "settings", "policies"} {
		if !lost[bucket] {
			t.Errorf("the damage in %s is not reported with the readable rows: %v", bucket, lost)
		}
	}
	// All these reads are in one transaction, because a damaged row does not end a transaction.
	err = s.Update(t.Context(), func(tx store.Tx) error {
		_, err := tx.Request("a")
		torn("a changed record", err, "requests", "a")
		_, err = tx.Request("b")
		torn("a moved record", err, "requests", "b")
		torn("a write", tx.PutRequest(approvers.Request{ID: "a", Version: 1}), "requests", "a")
		if q, err := tx.Request("c"); err != nil || q.ID != "c" {
			t.Errorf("an undamaged record: %v, %v", q.ID, err)
		}
		for limit := 1; limit < 4; limit++ {
			list, err := tx.OpenRequests(store.RequestCursor{}, limit)
			of, err2 := tx.RequestsOf("T/U", store.RequestCursor{}, limit)
			if err := errors.Join(err, err2); err != nil || len(list) != 1 || list[0].ID != "c" || len(of) != 1 || of[0].ID != "c" {
				t.Errorf("the list of up to %d requests: %v, %v, %v", limit, list, of, err)
			}
		}
		_, err = tx.Calls("t")
		torn("a list that must be complete", err, "calls", "b")
		if list, err := tx.OutboxMessagesOf("r"); err != nil || len(list) != 2 {
			t.Errorf("a list of independent records: %v, %v", list, err)
		}
		_, err = tx.Messages("c", 0)
		torn("a message", err, "messages", "c 3")
		_, err = tx.Rendering("a", 1)
		torn("a rendering", err, "renderings", "a 1")
		_, err = tx.FileData("e", 0)
		torn("a file", err, "files", "e 0")
		_, err = tx.Setting(store.SettingPause)
		torn("a setting", err, "settings", "")
		_, err = tx.Policy()
		torn("the policy in force", err, "policies", "policy")
		_, err = tx.AuditPayload("q", 1)
		torn("a payload", err, "audit_payloads", "q 1")
		list, err := tx.Audit("q")
		torn("a record of the history", err, "audit", "q 1")
		head, err := tx.AuditHead("q")
		if err != nil || len(list) != 0 || head.Seq != 1 {
			t.Errorf("the damaged chain: %v, head %v, %v", list, head, err)
		}
		a := approvers.AuditRecord{Chain: "q", Kind: approvers.AuditDamaged}.Link(head)
		return tx.AppendAudit(a, nil) // the chain of a damaged record can be continued
	})
	if err != nil {
		t.Error(err)
	}
	// After the damaged record is set aside, a new record can be written under its id.
	err = s.Update(t.Context(), func(tx store.Tx) error {
		of, done, err := tx.(store.SetAside).SetAside("requests", "a")
		if !done || err != nil || len(of) != 1 || of[0] != "c" {
			t.Errorf("set aside: %v, %v, %v", of, done, err)
		}
		if _, done, err := tx.(store.SetAside).SetAside("requests", "c"); done || err != nil {
			t.Errorf("an undamaged record was set aside: %v, %v", done, err)
		}
		if _, done, err := tx.(store.SetAside).SetAside("policies", "policy"); !done || err != nil {
			t.Errorf("the policy in force was not set aside: %v, %v", done, err)
		}
		return errors.Join(tx.PutRequest(approvers.Request{ID: "a", State: approvers.Voided}), tx.PutPolicy(store.Policy{Load: "again"}, []byte("content")))
	})
	for _, x := range []struct {
		before       time.Duration // the time of the parameter before, relative to now
		limit, wants int
		done         bool
	}{{-time.Hour, 10, 0, true}, {time.Hour, 1, 1, false}, {time.Hour, 10, 1, true}, {time.Hour, 10, 0, true}} {
		now := time.Now()
		err = errors.Join(err, s.Update(t.Context(), func(tx store.Tx) error {
			n, done, err := tx.(store.SetAside).EraseSetAside(now, now.Add(x.before), x.limit)
			if n != x.wants || done != x.done {
				t.Errorf("%d rows that were set aside before %s from now are erased, done: %v; want %d, %v", n, x.before, done, x.wants, x.done)
			}
			return err
		}))
	}
	if err != nil {
		t.Error(err)
	}
	found := len(told)
	if err := s.Inspect(t.Context()); err != nil {
		t.Error(err)
	}
	if len(s.Damage()) != 9 || found < 9 {
		t.Errorf("damage: %v", s.Damage())
	}
	for _, x := range s.Damage() {
		name := x.Key
		if x.Seq > 0 && x.ID == "q" {
			name = "chain q: record 1 was changed"
		}
		if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the check does not name %v: %v", x, err)
		}
	}
	other := open(t, asBot(name)) // finds all the damage with its own inspection
	if err := other.Inspect(t.Context()); err != nil || len(other.Damage()) != 9 {
		t.Errorf("an inspection finds %v, %v", other.Damage(), err)
	}
}

// An inspection finds that another program has changed the content of the policy in force. The damage is resolved when
// another policy comes into force.
func TestDamagedPolicyContent(t *testing.T) {
	t.Parallel()
	name := empty(t)
	s := open(t, asBot(name))
	put := func(version uint64, content string) {
		t.Helper()
		err := s.Update(t.Context(), func(tx store.Tx) error {
			return tx.PutPolicy(store.Policy{Load: content, Version: version, Content: approvers.SumOf([]byte(content)).String()}, []byte(content))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	inspected := func(want ...store.Damage) {
		t.Helper()
		if err := s.Inspect(t.Context()); err != nil || !slices.Equal(s.Damage(), want) {
			t.Errorf("the damage is %v, want %v (%v)", s.Damage(), want, err)
		}
	}
	put(0, "first")
	inspected()
	if err := execIn(name, "UPDATE countersign.policies SET content = 'other'"); err != nil {
		t.Fatal(err)
	}
	inspected(store.Damage{Bucket: "policies", Key: "policy", ID: "policy", Why: "its content does not match its record"})
	put(1, "second")
	if left := s.Damage(); len(left) > 0 {
		t.Errorf("another policy is in force, and the damage is still %v", left)
	}
	inspected()
}

// history appends a record to a chain q and to the chain of the installation, and puts a head that covers them. Then
// history appends another record to the chain of the installation.
func history(t *testing.T, s *postgres.Store) {
	t.Helper()
	payload := approvers.AuditPayload{Chain: "q", Seq: 1}
	a := approvers.AuditRecord{Chain: "q", Kind: approvers.AuditProposed, PayloadHash: approvers.SumOf(payload.Bytes()).String()}.Link(approvers.AuditRecord{})
	b := approvers.AuditRecord{Chain: approvers.InstallationChain, Kind: approvers.AuditPaused}.Link(approvers.AuditRecord{})
	err := s.Update(t.Context(), func(tx store.Tx) error {
		return errors.Join(tx.AppendAudit(a, &payload), tx.AppendAudit(b, nil), tx.PutHead(store.Head{Number: 1, Size: 2}), tx.AppendAudit(b.Link(b), nil))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The server refuses every statement with which the bot's role changes the audit history or the tables. A few SQL
// functions allow certain changes, and refuse all other changes.
func TestRoleCannotChangeHistory(t *testing.T) {
	t.Parallel()
	name := empty(t)
	s := open(t, asBot(name))
	if err := s.Hold(t.Context(), false); err != nil {
		t.Error(err)
	}
	history(t, s)
	conn, err := pgx.Connect(t.Context(), asBot(name))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	forbidden := []string{
		"INSERT INTO audit_heads VALUES (2, 3, '')", "INSERT INTO audit_journal (leaf, chain, seq, sum) VALUES (2, 'q', 2, '')",
		"INSERT INTO audit_journal (position, chain, seq, sum) OVERRIDING SYSTEM VALUE VALUES (-1, 'q', 2, '')", "DELETE FROM migrations", "UPDATE migrations SET version_id = 1",
		"DROP TABLE requests", "DROP SCHEMA countersign CASCADE", "CREATE TABLE audit (id int)", "DROP FUNCTION prune_chain",
		"CREATE OR REPLACE FUNCTION prune_chain(of_chain text) RETURNS bigint LANGUAGE sql AS 'SELECT 1'", "ALTER FUNCTION prune_chain SECURITY INVOKER",
	}
	for _, table := range []string{"audit_records", "audit_payloads", "audit_journal", "audit_heads"} {
		forbidden = append(forbidden, "UPDATE "+table+" SET "+map[string]string{"audit_payloads": "payload = ''", "audit_heads": "size = 9"}[table]+map[string]string{"audit_records": "sum = ''", "audit_journal": "leaf = 9"}[table],
			"DELETE FROM "+table, "TRUNCATE "+table, "DROP TABLE "+table+" CASCADE", "ALTER TABLE "+table+" ADD COLUMN x int", "ALTER TABLE "+table+" RENAME TO old",
			"CREATE TRIGGER x BEFORE INSERT ON "+table+" EXECUTE FUNCTION suppress_redundant_updates_trigger()", "CREATE RULE x AS ON INSERT TO "+table+" DO INSTEAD NOTHING")
	}
	for _, statement := range forbidden {
		var refused *pgconn.PgError
		if _, err := conn.Exec(t.Context(), "SET search_path = countersign; "+statement); !errors.As(err, &refused) || refused.Code != "42501" {
			t.Errorf("%s: got error %v, want one that says that the right is missing", statement, err)
		}
	}
	for statement, want := range map[string]string{
		"SELECT prune_chain('installation')":  "never deleted",
		"SELECT append_head(1, 3, '')":        "does not follow",
		"SELECT append_head(3, 3, '')":        "does not follow",
		"SELECT append_head(2, 2, '')":        "does not follow",
		"SELECT append_head(2, 4, '')":        "there are fewer",
		"SELECT append_head(null, null, '')":  "null",
		"SELECT append_head(2, 9000000, 'x')": "there are fewer",
	} {
		if _, err := conn.Exec(t.Context(), "SET search_path = countersign; "+statement); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one that says %q", statement, err, want)
		}
	}
	// Temporary tables that the role creates do not replace the real audit tables in the functions.
	if _, err := conn.Exec(t.Context(), "SET search_path = countersign; CREATE TEMPORARY TABLE audit_records (LIKE countersign.audit_records); SELECT prune_chain('q')"); err != nil {
		t.Error(err)
	}
	err = s.View(t.Context(), func(r store.Reader) error {
		if list, err := r.Audit("q"); err != nil || len(list) != 0 {
			t.Errorf("the chain is not deleted: %v, %v", list, err)
		}
		head, err := r.LastHead()
		if head.Size != 2 {
			t.Errorf("the last head is %v", head)
		}
		return err
	})
	if err := errors.Join(err, s.Check(t.Context())); err != nil {
		t.Error(err)
	}
}

// The store detects that a database with rows was copied, for example by a dump.
func TestRelocated(t *testing.T) {
	t.Parallel()
	name := database(t, template)
	s := open(t, at(name))
	if err := s.Hold(t.Context(), false); err != nil {
		t.Error(err)
	}
	if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.PutTurn(approvers.Turn{ID: "new"}) }); err != nil {
		t.Error(err)
	}
	if is, err := s.Relocated(t.Context()); err != nil || !is {
		t.Errorf("the database was copied from a template, and that is not noticed: %v", err)
	}
	if err := errors.Join(s.Settle(t.Context()), execIn(name, "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")); err != nil {
		t.Error(err)
	}
	if is, err := s.Relocated(t.Context()); err != nil || is {
		t.Errorf("the database is where it was, and counts as copied: %v", err)
	}
	for _, statement := range []string{
		"VACUUM FREEZE countersign.origin", "VACUUM FULL countersign.origin", "CLUSTER countersign.origin USING origin_pkey",
		"UPDATE countersign.origin SET place = place", // an older program
	} {
		if err := execIn(name, statement); err != nil {
			t.Fatal(err)
		}
		if is, err := s.Relocated(t.Context()); err != nil || is {
			t.Errorf("after %s, the database counts as copied: %v", statement, err)
		}
	}
	restore := "BEGIN; CREATE TEMP TABLE kept AS TABLE countersign.origin; TRUNCATE countersign.origin; INSERT INTO countersign.origin TABLE kept; COMMIT"
	if err := execIn(name, restore); err != nil {
		t.Fatal(err)
	}
	if is, err := s.Relocated(t.Context()); err != nil || !is {
		t.Errorf("only the rows were restored, and that is not noticed: %v", err)
	}
	if err := s.Settle(t.Context()); err != nil {
		t.Error(err)
	}
	if is, err := s.Relocated(t.Context()); err != nil || is {
		t.Errorf("the restored database counts as copied: %v", err)
	}
}

// If a role has too few rights, the error contains the statements that grant the missing rights. If a role has
// unnecessary rights, the text says how to revoke these rights.
func TestRights(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	name := database(t, template)
	rights := func() postgres.Rights {
		t.Helper()
		r, err := postgres.ReadRights(t.Context(), asBot(name))
		if err != nil && !errors.Is(err, postgres.ErrAccess) {
			t.Fatal(err)
		}
		return r
	}
	if s := open(t, asBot(name)); s.Rights().Excess() != "" {
		t.Errorf("with the documented grants: %s", s.Rights().Excess())
	}
	for revoke, want := range map[string]string{
		"USAGE ON SCHEMA countersign":                                 "GRANT USAGE ON SCHEMA countersign TO ROLE;",
		"SELECT ON countersign.migrations":                            "GRANT SELECT ON countersign.migrations TO ROLE;",
		"UPDATE, DELETE ON countersign.requests":                      "GRANT UPDATE, DELETE ON countersign.requests TO ROLE;",
		"INSERT (seq) ON countersign.audit_journal":                   "GRANT INSERT (chain, seq, sum) ON countersign.audit_journal TO ROLE;",
		"EXECUTE ON FUNCTION countersign.erase_payloads":              "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA countersign TO ROLE;",
		"SELECT, INSERT, UPDATE, DELETE ON countersign.audit_records": "GRANT SELECT, INSERT ON countersign.audit_records TO ROLE;",
	} {
		want = strings.ReplaceAll(want, "ROLE", role)
		if err := execIn(name, "REVOKE "+revoke+" FROM "+role); err != nil {
			t.Fatal(err)
		}
		tryOpen(t, asBot(name), postgres.ErrAccess, "the role "+role+" lacks rights in the database "+name, "run: "+want, "docs/postgres.md")
		if err := execIn(name, want); err != nil {
			t.Fatal(err)
		}
		if err := rights().Missing(); err != nil {
			t.Errorf("after %s: %v", want, err)
		}
	}
	for grant, want := range map[string]string{
		"DELETE, TRUNCATE, TRIGGER ON countersign.audit_records": "REVOKE DELETE, TRIGGER, TRUNCATE ON countersign.audit_records FROM ROLE;",
		"UPDATE (leaf) ON countersign.audit_journal":             "REVOKE UPDATE ON countersign.audit_journal FROM ROLE;",
		"INSERT ON countersign.audit_heads":                      "REVOKE INSERT ON countersign.audit_heads FROM ROLE;",
		"INSERT, UPDATE ON countersign.migrations":               "REVOKE INSERT, UPDATE ON countersign.migrations FROM ROLE;",
		"CREATE ON SCHEMA countersign":                           "REVOKE CREATE ON SCHEMA countersign FROM ROLE;",
	} {
		want = strings.ReplaceAll(want, "ROLE", role)
		if err := execIn(name, "GRANT "+grant+" TO "+role); err != nil {
			t.Fatal(err)
		}
		r := open(t, asBot(name)).Rights()
		if !strings.Contains(r.Excess(), "the role "+role+" may do more than it needs in the database "+name) || !strings.HasSuffix(r.Remedy(), "run: "+want) {
			t.Errorf("after GRANT %s: %s: %s; want %s", grant, r.Excess(), r.Remedy(), want)
		}
		if err := execIn(name, want); err != nil {
			t.Fatal(err)
		}
		if r := rights(); r.Excess() != "" || r.Missing() != nil {
			t.Errorf("after %s: %s, %v", want, r.Excess(), r.Missing())
		}
	}
	// A revocation of INSERT on all columns also revokes INSERT on the allowed columns. So the remedy must grant INSERT
	// on the allowed columns.
	if err := execIn(name, "GRANT INSERT ON countersign.audit_journal TO "+role); err != nil {
		t.Fatal(err)
	}
	if r := rights(); !strings.HasSuffix(r.Remedy(), "run: REVOKE INSERT ON countersign.audit_journal FROM "+role+"; GRANT INSERT (chain, seq, sum) ON countersign.audit_journal TO "+role+";") {
		t.Errorf("after GRANT INSERT: %s", r.Remedy())
	}
	if err := execIn(name, "REVOKE INSERT ON countersign.audit_journal FROM "+role); err != nil {
		t.Fatal(err)
	}
	if r := rights(); r.Missing() == nil {
		t.Error("INSERT is missing, and that is not reported")
	}
	if r := open(t, at(name)).Rights(); !strings.Contains(r.Excess(), "is a superuser") || !strings.Contains(r.Remedy(), "a role of its own") {
		t.Errorf("the administrator: %s: %s", r.Excess(), r.Remedy())
	}
	if err := execIn(name, "ALTER TABLE countersign.audit_heads OWNER TO "+role); err != nil {
		t.Fatal(err)
	}
	if r := rights(); !strings.Contains(r.Excess(), "owns the tables") {
		t.Errorf("the owner: %s", r.Excess())
	}
	// Only the owner of the tables can migrate the tables.
	if err := execIn(name, "DELETE FROM countersign.migrations WHERE version_id = (SELECT max(version_id) FROM countersign.migrations)"); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Migrate(t.Context(), asBot(name), false); !errors.Is(err, postgres.ErrAccess) || !strings.Contains(err.Error(), "store migrate as their owner") {
		t.Errorf("migrating as the bot's role: got error %v", err)
	}
}

// Earlier versions documented other rights for the role. A role with these rights works after the migration, and can't
// change the audit history.
func TestUpgradeOfRole(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	name := database(t, "template0")
	config, err := pgx.ParseConfig(at(name))
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["search_path"] = "countersign"
	db := stdlib.OpenDB(*config)
	defer db.Close()
	old, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("migrations"), goose.WithTableName("migrations"))
	if err != nil {
		t.Fatal(err)
	}
	if err := execIn(name, "CREATE SCHEMA countersign"); err != nil {
		t.Fatal(err)
	}
	if _, err := old.UpTo(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	err = execIn(name, strings.ReplaceAll(`SET search_path = countersign;
GRANT USAGE ON SCHEMA countersign TO ROLE;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA countersign TO ROLE;
REVOKE INSERT, UPDATE, DELETE ON migrations FROM ROLE;
REVOKE UPDATE ON audit_records, audit_heads FROM ROLE;
REVOKE DELETE ON audit_journal, audit_heads FROM ROLE;
REVOKE UPDATE ON audit_journal FROM ROLE;
GRANT UPDATE (leaf) ON audit_journal TO ROLE;`, "ROLE", role))
	if err != nil {
		t.Fatal(err)
	}
	for table, columns := range map[string]string{"settings": "id, version", "messages": "conversation, seq"} {
		js, err := record.Append(nil, &store.Setting{Key: "ä", Version: 1})
		if table == "messages" {
			js, err = record.Append(nil, &store.Message{Conversation: "ä", Seq: 1, Text: "\U0001f980"})
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), "INSERT INTO "+table+" ("+columns+", record) VALUES ('ä', 1, $1)", string(js)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := postgres.Migrate(t.Context(), at(name), false); err != nil {
		t.Fatal(err)
	}
	s := open(t, asBot(name))
	if err := s.Inspect(t.Context()); err != nil || len(s.Damage()) > 0 {
		t.Errorf("after the upgrade: %v, %v", s.Damage(), err)
	}
	if err := s.View(t.Context(), func(r store.Reader) error { _, err := r.Setting("ä"); return err }); err != nil {
		t.Error(err)
	}
	if excess := s.Rights().Excess(); excess != "" {
		t.Errorf("%s: %s", excess, s.Rights().Remedy())
	}
	history(t, s)
	if err := s.Update(t.Context(), func(tx store.Tx) error { _, err := tx.PruneChain("q"); return err }); err != nil {
		t.Error(err)
	}
}

// The statements in docs/postgres.md work. The test changes only the names of the roles.
func TestDocumentedStatements(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	name := database(t, template)
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 4 {
		t.Fatalf("docs/postgres.md has %d blocks of SQL", len(blocks))
	}
	roles := strings.NewReplacer("countersign_bot", role, "countersign_monitoring", role)
	for _, b := range blocks {
		if err := execIn(name, roles.Replace(b[1])); err != nil {
			t.Errorf("%v:\n%s", err, b[1])
		}
	}
}

// docs/postgres.md names all tables and views.
func TestDocumentedTables(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), at(empty(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for section, kind := range map[string]string{"The tables": "r", "What waits for whom": "v"} {
		_, text, _ := strings.Cut(string(page), "\n## "+section+"\n")
		text, _, _ = strings.Cut(text, "\n## ")
		var documented, want []string
		for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(text, -1) {
			documented = append(documented, row[1])
		}
		slices.Sort(documented)
		const query = "SELECT array_agg(relname ORDER BY relname COLLATE \"C\") FROM pg_class WHERE relnamespace = 'countersign'::regnamespace AND relkind = $1"
		if err := conn.QueryRow(t.Context(), query, kind).Scan(&want); err != nil || !slices.Equal(documented, want) {
			t.Errorf("%s: the page names\n%v, and the database has\n%v (%v)", section, documented, want, err)
		}
	}
}

// The database's views show the waiting requests and their approvers. The waiting time of a request begins with its
// current stage.
func TestViews(t *testing.T) {
	t.Parallel()
	name := empty(t)
	s := open(t, at(name))
	began := time.Now().Add(-time.Hour)
	q := approvers.Request{ID: "q", State: approvers.Pending, Tool: "issue_refund", CreatedAt: began}
	q.Facts.Asker = "T/U1"
	q.Plan.Stages = []approvers.Stage{{Approver: "team-lead"}, {Approver: "director"}}
	second := q
	second.ID, second.Stage, second.CreatedAt, second.StageAt = "second", 1, began.Add(-time.Hour), began
	second.Remarks = []approvers.Remark{{Text: "\x00 \\u0000"}} // PostgreSQL can't read the field of a record with this text
	err := s.Update(t.Context(), func(tx store.Tx) error {
		return errors.Join(tx.PutRequest(q), tx.PutRequest(second), tx.SetTimer(store.Timer{Kind: store.TimerShow, Ref: "s", Due: began}),
			tx.PutOutboxMessage(store.OutboxMessage{ID: "s", State: store.OutboxWanted, To: "role:team-lead"}),
			tx.PutExecution(approvers.Execution{ID: "e", Conversation: "c", State: approvers.ExecutionUnknown, Tool: "send_email", StartedAt: began}),
			tx.PutSetting(store.Setting{Key: store.SettingPause, Value: json.RawMessage(`{"on":true,"by":"T/U1","at":"2026-11-30T12:00:00Z","reason":"an incident"}`)}))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Join(t.Context(), postgres.ReplicaOptions{Name: "one"}); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), at(name))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for query, want := range map[string]string{
		`SELECT string_agg(concat_ws(' ', request, tool, asked_by, waits_for, since - created_at, waiting = now() - since), ', ' ORDER BY request)
FROM countersign.waiting_requests WHERE since = (SELECT created_at FROM countersign.requests WHERE id = 'q')`: "q issue_refund T/U1 team-lead 00:00:00 t, second issue_refund T/U1 director 01:00:00 t",
		"SELECT kind || ' ' || timers || ' ' || (late > interval '59 minutes') || ' ' || oldest_ref FROM countersign.overdue_work": "show 1 true s",
		`SELECT message || ' ' || "to" FROM countersign.undelivered_messages`:                                                      "s role:team-lead",
		"SELECT concat_ws(' ', execution, state, tool, running > interval '59 minutes', replica) FROM countersign.unfinished_runs": "e unknown send_email t one",
		"SELECT concat_ws(' ', paused_by, since AT TIME ZONE 'UTC', reason) FROM countersign.pause":                                "T/U1 2026-11-30 12:00:00 an incident",
	} {
		var got string
		if err := conn.QueryRow(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: got %q (%v), want %q", query, got, err, want)
		}
	}
}

// When the connection of the lock is lost, the store takes the lock over a new connection. If another process takes the
// lock first and keeps the lock, the store stops.
func TestHoldLost(t *testing.T) {
	t.Parallel()
	name := empty(t)
	p, through := through(t, name)
	first, second := open(t, through), open(t, at(name))
	if err := first.Hold(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	holder := func() (pid int) { // the server process that has the lock; 0: no process has it
		conn, err := pgx.Connect(t.Context(), at(name))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		err = conn.QueryRow(t.Context(), "SELECT coalesce(max(pid), 0) FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())").Scan(&pid)
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	before := holder()
	p.CutAll()
	for end := time.Now().Add(time.Minute); holder() == 0 || holder() == before; { // waits until another connection has the lock
		if time.Now().After(end) {
			t.Fatal("the lock was not taken again")
		}
	}
	if err := second.Hold(t.Context(), false); !errors.Is(err, store.ErrLocked) {
		t.Errorf("got error %v, want ErrLocked", err)
	}
	p.Set(pgserver.Network{Refused: true}) // the first store can't connect
	for end := time.Now().Add(time.Minute); second.Hold(t.Context(), false) != nil; {
		if time.Now().After(end) {
			t.Fatal("the lock of the lost connection stays")
		}
	}
	if err := first.Failure(); err != nil {
		t.Errorf("the first stopped before it knew of the second: %v", err)
	}
	p.Set(pgserver.Network{}) // the first store can connect
	<-first.Broken()
	if err := first.Failure(); !errors.Is(err, store.ErrLocked) {
		t.Errorf("the first stopped with %v, want ErrLocked", err)
	}
	if err := first.Update(t.Context(), func(store.Tx) error { t.Error("a closure ran"); return nil }); !errors.Is(err, store.ErrLocked) {
		t.Errorf("got error %v, want ErrLocked", err)
	}
}
