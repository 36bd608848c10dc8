//go:build linux

package main

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/cmd/countersign/cli"
	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
)

// TestDatabaseRefuses starts the bot with databases that the bot can't use. The bot says what to do, and ends with the
// documented exit code. In the second part, a bot is running, and its database has three faults, one after the other.
// The database has no free connection, becomes a standby, and has a full disk. During the first two faults, the bot
// acknowledges nothing, and a second bot does not start. While the disk is full, the bot refuses deliveries that it
// can't store. During each fault, /readyz says why. When the database works again, the running bot continues by itself.
func TestDatabaseRefuses(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	server := pgserver.New(t, "fsync=off", "wal_level=replica")
	m := &moving{processHarness: openProcessHarness(t), resident: newResident(t)}
	m.ok(server.SQL("postgres", `
CREATE ROLE bot LOGIN PASSWORD 'correct horse';
CREATE ROLE nobody LOGIN PASSWORD 'correct horse';
CREATE DATABASE bot OWNER bot;
CREATE DATABASE other;
CREATE DATABASE newer OWNER bot;
CREATE DATABASE latin OWNER bot ENCODING LATIN1 LOCALE 'C' TEMPLATE template0`))
	m.ok(server.SQL("other", "CREATE SCHEMA countersign; CREATE TABLE countersign.orders (id int)"))
	at := func(database string, change ...func(*url.URL)) string {
		u, err := url.Parse(server.TCP(database))
		m.ok(err)
		u.User = url.UserPassword("bot", server.Password)
		for _, c := range change {
			c(u)
		}
		return u.String()
	}
	as := func(user, password string) func(*url.URL) {
		return func(u *url.URL) { u.User = url.UserPassword(user, password) }
	}
	host := func(name string) func(*url.URL) { return func(u *url.URL) { u.Host = name } }
	usual := m.env
	on := func(address string) { m.env = append(usual[:len(usual):len(usual)], "COUNTERSIGN_STORE="+address) }
	// refuses runs a command that must end with a given exit code and a given text. The output must not contain the
	// password.
	refuses := func(code int, words string, args ...string) {
		t.Helper()
		out := m.exits(code, args...)
		if !strings.Contains(out, words) {
			t.Errorf("countersign %s does not say %q:\n%s", strings.Join(args, " "), words, out)
		}
		if strings.Contains(out, "horse") || strings.Contains(out, "goroutine ") {
			t.Errorf("countersign %s says too much:\n%s", strings.Join(args, " "), out)
		}
	}

	for _, database := range []string{"bot", "newer"} {
		on(at(database))
		m.exits(cli.ExitDone, "store", "migrate")
	}
	m.ok(server.SQL("newer", "INSERT INTO countersign.migrations (version_id, is_applied, oldest_program) VALUES (99, true, 99)"))
	for name, c := range map[string]struct {
		address string
		code    int
		words   string
	}{
		"wrong address":    {at("bot", host("127.0.0.1:1")), cli.ExitFailed, "can't be reached: check the address, and that the server runs"},
		"no such host":     {at("bot", host("database.invalid:5432")), cli.ExitFailed, "there is no host database.invalid: check the address"},
		"wrong password":   {at("bot", as("bot", "wrong horse")), cli.ExitUsage, "refuses the user bot: check the user and the password"},
		"no such user":     {at("bot", as("somebody", "wrong horse")), cli.ExitUsage, "refuses the user somebody: check the user and the password"},
		"no such database": {at("nothing"), cli.ExitUsage, "does not exist: create it first, with createdb"},
		"missing rights":   {at("bot", as("nobody", server.Password)), cli.ExitUsage, "As the owner of the tables, run: GRANT USAGE ON SCHEMA countersign TO nobody; "},
		"may make nothing": {at("postgres", as("nobody", server.Password)), cli.ExitUsage, "the role nobody may not create or change tables in the database postgres"},
		"tables of others": {at("other"), cli.ExitUsage, "they are not Countersign's. Name another database, or another schema"},
		"newer tables":     {at("newer"), cli.ExitUsage, "have version 99, and this program knows versions up to"},
		"another encoding": {at("latin"), cli.ExitUsage, "has the encoding LATIN1: create a database with the encoding UTF8"},
	} {
		t.Log(name)
		on(c.address)
		refuses(c.code, c.words, "serve")
		if name != "may make nothing" { // this case is only about serve, which creates tables
			refuses(c.code, c.words, "pending")
		}
	}

	on(at("bot"))
	m.bot, m.admin = m.serve()
	m.ask()
	during := func(name string, words, start string, begin, end func()) {
		t.Helper()
		t.Log(name)
		begin()
		m.untilSays(words)
		m.refused()
		m.env = append(m.env, "COUNTERSIGN_CONTROL=elsewhere.sock")
		refuses(cli.ExitFailed, start, "serve")
		on(at("bot"))
		end()
		m.until(http.StatusOK)
	}
	during("no connection left", "has no connection left: raise max_connections there, or lower pool_max_conns in the address", "has no connection left",
		func() {
			m.ok(server.SQL("postgres", "ALTER ROLE bot CONNECTION LIMIT 0; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'bot'"))
		},
		func() { m.ok(server.SQL("postgres", "ALTER ROLE bot CONNECTION LIMIT -1")) })
	during("a standby", "is read-only, as a standby is; connect to the primary", "is a standby, which is read-only; connect to the primary",
		func() { m.ok(server.Demote()) },
		func() { m.ok(server.Promote()) })

	disk := testkit.MountSmallDisk(t, 48<<20)
	t.Cleanup(server.Kill) // before the disk is unmounted
	m.ok(server.Give(disk.Dir))
	m.ok(server.SQL("postgres", "CREATE TABLESPACE small LOCATION '"+disk.Dir+"'"))
	for _, kind := range []string{"TABLE", "INDEX"} {
		// A deadlock with the running bot may end the statement. Therefore the test repeats it.
		m.awaits("the database to be moved to the small disk", func() bool {
			err := server.SQL("bot", "ALTER "+kind+" ALL IN TABLESPACE pg_default SET TABLESPACE small")
			if err != nil && !strings.Contains(err.Error(), "deadlock detected") {
				m.Fatal(err)
			}
			return err == nil
		})
	}
	m.ok(server.SQL("postgres", "GRANT CREATE ON TABLESPACE small TO bot; ALTER DATABASE bot SET default_tablespace = small"))
	free := disk.Fill()
	t.Log("full disk")
	m.refusedLong()
	m.untilSays("the disk has been full since")
	on(at("bot") + "&search_path=fresh")
	refuses(cli.ExitFailed, "the disk is full. It is the disk of the server of the database bot at", "store", "migrate")
	on(at("bot"))
	free()
	m.until(http.StatusOK)

	m.teo.clicks("countersign", "", "Approve", "Refund of $20.00 for order ORD-131")
	m.sam.sees("#support", m.thread, "I refunded $20.00")
	m.exits(cli.ExitDone, "audit", "verify")
	if err := m.bot.end(syscall.SIGTERM); err != nil {
		t.Errorf("asked to stop, the bot ended with %v", err)
	}
	if strings.Contains(m.bot.text(), "horse") {
		t.Error("the log has the password")
	}
}

// The method "awaits" waits until a condition is true.
func (m *moving) awaits(what string, is func() bool) {
	m.Helper()
	for end := time.Now().Add(2 * patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			_, report := get(m.T, m.admin+"/readyz?wait=5")
			m.Fatalf("waited in vain for %s; /readyz says: %s", what, report)
		}
	}
}

// untilSays waits until /readyz answers that the bot is not ready, and the reason contains the given words.
func (m *moving) untilSays(words string) {
	m.Helper()
	m.awaits("/readyz to say "+words, func() bool {
		status, report := get(m.T, m.admin+"/readyz?wait=5")
		return status == http.StatusServiceUnavailable && strings.Contains(report, words)
	})
}

// refusedLong sends large deliveries until the bot refuses one, because the store has no free space.
func (m *moving) refusedLong() {
	m.Helper()
	m.awaits("a delivery to be refused", func() bool {
		answer, err := m.teo.Command(context.WithoutCancel(m.Context()), "#support", "/countersign", "pending "+strings.Repeat("x", 30_000))
		return err != nil || strings.HasPrefix(answer, "Nothing was done.")
	})
}
