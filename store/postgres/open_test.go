package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/approvers"
	"countersign/store"
	"countersign/store/postgres"
)

// tryOpen opens a database that can't be opened. The error has all words, and never the password.
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
	tryOpen(t, with(func(u *url.URL) { u.RawQuery = "sslmode=require" }), store.ErrUnavailable, "TLS")
	tryOpen(t, with(func(u *url.URL) { u.RawQuery = "sslmode=disable&search_path=a,b" }), postgres.ErrURL, "search_path")
	tryOpen(t, "postgres://postgres:wrong horse@[::1/x", postgres.ErrURL)
	tryOpen(t, with(func(u *url.URL) { u.RawQuery = "sslmode=disable&search_path=elsewhere" }), postgres.ErrEmpty, "elsewhere")
}

// A user with too few rights is told so when the store is opened.
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
	tryOpen(t, u.String(), postgres.ErrAccess, role, "docs/postgres.md")
}

func TestVersions(t *testing.T) {
	t.Parallel()
	t.Run("newer tables", func(t *testing.T) {
		name := database(t, template)
		if err := execIn(name, "INSERT INTO countersign.migrations (version_id, is_applied) VALUES (99, true)"); err != nil {
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
	t.Run("an empty database", func(t *testing.T) {
		name := database(t, "template0")
		tryOpen(t, at(name), postgres.ErrEmpty, "serve makes the tables")
		would, err := postgres.Migrate(t.Context(), at(name), true)
		if err != nil || len(would) == 0 {
			t.Fatalf("it would apply %v; error %v", would, err)
		}
		tryOpen(t, at(name), postgres.ErrEmpty)
		// Processes that start at the same time wait for each other.
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

// One process at a time holds a database.
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

// The check compares columns with records, and the history with itself.
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
		return errors.Join(tx.PutRequest(q), tx.PutMessage(store.Message{Conversation: "c", Seq: 1}), tx.AppendAudit(first, nil), tx.AppendAudit(second, nil))
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
		{"UPDATE messages SET seq = 2", "UPDATE messages SET seq = 1", "holds the record"},
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

// The grants of docs/postgres.md are enough for the bot, and don't let it rewrite its history.
func TestGrants(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```sql\nCREATE ROLE")
	block, _, found := strings.Cut("CREATE ROLE"+block, "```")
	if !found {
		t.Fatal("docs/postgres.md has no grants")
	}
	name := database(t, template)
	role := strings.Replace(name, "test", "bot", 1)
	if err := execIn(name, strings.ReplaceAll(block, "countersign_bot", role)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(execIn(name, "DROP OWNED BY "+role), admin("DROP ROLE "+role)); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(at(name))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	s, err := postgres.Open(t.Context(), u.String(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Hold(t.Context(), false); err != nil {
		t.Error(err)
	}
	err = s.Fill(t.Context(), func(f store.Filling) error {
		return f.Put(t.Context(), store.Row{Part: store.PartTurns, Record: []byte(`{"id":"copied","version":1}`)})
	})
	if err != nil {
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
	a := approvers.AuditRecord{Chain: "q", Kind: approvers.AuditProposed}.Link(approvers.AuditRecord{})
	for what, do := range map[string]func(store.Tx) error{
		"records": func(tx store.Tx) error {
			return errors.Join(tx.PutRequest(approvers.Request{ID: "q", Conversation: "c"}), tx.PutConversation(store.Conversation{ID: "c"}),
				tx.PutOutboxMessage(store.OutboxMessage{ID: "s"}), tx.SetTimer(store.Timer{Kind: store.TimerRun, Ref: "q"}), tx.PutGrant(approvers.Grant{ID: "g"}))
		},
		"history": func(tx store.Tx) error {
			if err := tx.AppendAudit(a, nil); err != nil {
				return err
			}
			return tx.PutHead(store.Head{Number: 1, Size: 1})
		},
	} {
		if err := s.Update(t.Context(), do); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, do := range map[string]func(store.Tx) error{
		"erasing": func(tx store.Tx) error { _, err := tx.EraseConversation("c", 100); return err },
		"pruning": func(tx store.Tx) error { _, err := tx.PruneChain("q"); return err },
	} {
		if err := s.Update(t.Context(), do); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	conn, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, forbidden := range []string{
		"UPDATE countersign.audit_records SET record = ''", "UPDATE countersign.audit_heads SET size = 0", "DELETE FROM countersign.audit_heads",
		"DELETE FROM countersign.audit_journal", "UPDATE countersign.audit_journal SET seq = 7", "DROP TABLE countersign.requests", "DELETE FROM countersign.migrations",
	} {
		if _, err := conn.Exec(t.Context(), forbidden); err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("%s: got error %v, want one that says that the right is missing", forbidden, err)
		}
	}
}

// The views answer what waits for whom.
func TestViews(t *testing.T) {
	t.Parallel()
	name := empty(t)
	s := open(t, at(name))
	q := approvers.Request{ID: "q", State: approvers.Pending, Tool: "issue_refund", CreatedAt: time.Now().Add(-time.Hour)}
	q.Facts.Asker = "T/U1"
	q.Plan.Stages = []approvers.Stage{{Approver: "team-lead"}, {Approver: "director"}}
	err := s.Update(t.Context(), func(tx store.Tx) error {
		return errors.Join(tx.PutRequest(q), tx.SetTimer(store.Timer{Kind: store.TimerShow, Ref: "s", Due: q.CreatedAt}),
			tx.PutOutboxMessage(store.OutboxMessage{ID: "s", State: store.OutboxWanted, To: "role:team-lead"}),
			tx.PutExecution(approvers.Execution{ID: "e", State: approvers.ExecutionUnknown, Tool: "send_email"}))
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), at(name))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for query, want := range map[string]string{
		"SELECT tool || ' ' || asked_by || ' ' || waits_for || ' ' || (waiting > interval '59 minutes') FROM countersign.waiting_requests": "issue_refund T/U1 team-lead true",
		"SELECT kind || ' ' || timers || ' ' || (late > interval '59 minutes') FROM countersign.overdue_work":                              "show 1 true",
		`SELECT message || ' ' || "to" FROM countersign.undelivered_messages`:                                                              "s role:team-lead",
		"SELECT execution || ' ' || state || ' ' || tool FROM countersign.unfinished_runs":                                                 "e unknown send_email",
	} {
		var got string
		if err := conn.QueryRow(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: got %q (%v), want %q", query, got, err, want)
		}
	}
}

// The hold survives the loss of its connection. If another process is there afterwards and stays, the store stops.
func TestHoldLost(t *testing.T) {
	t.Parallel()
	name := empty(t)
	p, through := through(t, name)
	first, second := open(t, through), open(t, at(name))
	if err := first.Hold(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	holder := func() (pid int) { // the server's process that has the lock; 0: none has
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
	p.cutAll()
	for end := time.Now().Add(time.Minute); holder() == 0 || holder() == before; { // until another connection has it
		if time.Now().After(end) {
			t.Fatal("the lock was not taken again")
		}
	}
	if err := second.Hold(t.Context(), false); !errors.Is(err, store.ErrLocked) {
		t.Errorf("got error %v, want ErrLocked", err)
	}
	p.listener.Close() // the first can't come back
	p.cutAll()
	for end := time.Now().Add(time.Minute); second.Hold(t.Context(), false) != nil; {
		if time.Now().After(end) {
			t.Fatal("the lock of the lost connection stays")
		}
	}
	if err := first.Failure(); err != nil {
		t.Errorf("the first stopped before it knew of the second: %v", err)
	}
	l, err := net.Listen("tcp", p.listener.Addr().String()) // the first comes back
	if err != nil {
		t.Fatal(err)
	}
	p.listen(t, l)
	<-first.Broken()
	if err := first.Failure(); !errors.Is(err, store.ErrLocked) {
		t.Errorf("the first stopped with %v, want ErrLocked", err)
	}
	if err := first.Update(t.Context(), func(store.Tx) error { t.Error("a closure ran"); return nil }); !errors.Is(err, store.ErrLocked) {
		t.Errorf("got error %v, want ErrLocked", err)
	}
}
