package main

import (
	"context"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
)

// The scripts of testdata/postgres run the program on a database. The scripts set up the database, follow a call from
// the message to the run, and check the errors of faulty set-ups.
func TestPostgres(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	bin := pgserver.Find(t)
	commands := maps.Clone(scriptCommands)
	commands["database"] = databaseCommand
	// sql DATABASE STATEMENTS
	commands["sql"] = func(ts *testscript.TestScript, _ bool, args []string) {
		ts.Check(ts.Value(databaseCommandKey{}).(*scriptDatabase).server.SQL(args[0], args[1]))
	}
	grants := documentedGrants(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/postgres", Cmds: commands, RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			server, err := pgserver.Start(bin, "fsync=off")
			if err != nil {
				return err
			}
			env.Defer(server.Remove)
			env.Values[databaseCommandKey{}] = &scriptDatabase{server: server}
			env.Setenv("DATABASE", server.TCP("postgres"))
			env.Setenv("SOCKET", server.URL("postgres"))
			env.Setenv("TWO", server.URL("two"))
			env.Setenv("DAMAGED", server.URL("damaged"))
			env.Setenv("GRANTS", grants)
			return setUp(env)
		},
	})
}

// scriptDatabase is the server of a script.
type scriptDatabase struct {
	server  *pgserver.Server
	blocker *pgx.Conn // the connection that holds the lock of "database block"
}

type databaseCommandKey struct{}

// databaseCommand runs one of these commands:
//
//	database stop|kill|start   the server
//	database block TABLE       blocks writes to the table, but not reads
//	database blocked           waits until a program waits for the blocked table
//	database unblock           ends the block, and waits until no other program is connected
//	database dump FILE         writes a dump of the database postgres
//	database make NAME         makes an empty database, and sets $NAME to its address
//	database archive           starts the server again with an archive of its WAL
//	database base              makes a base backup
//	database moment NAME       makes a restore point
//	database rewind NAME       restores the server from the base backup and the archive, to a restore point
//	database restore FILE NAME [OPTION…]
//	                           restores a dump in a database
func databaseCommand(ts *testscript.TestScript, _ bool, args []string) {
	d := ts.Value(databaseCommandKey{}).(*scriptDatabase)
	ctx := context.Background()
	connected := func() *pgx.Conn {
		conn, err := pgx.Connect(ctx, d.server.URL("postgres"))
		ts.Check(err)
		return conn
	}
	until := func(conn *pgx.Conn, condition string) {
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			var is bool
			ts.Check(conn.QueryRow(ctx, "SELECT "+condition).Scan(&is))
			if is {
				return
			}
			if time.Now().After(end) {
				ts.Fatalf("it does not become true that %s", condition)
			}
		}
	}
	switch args[0] {
	case "stop":
		d.server.Stop()
	case "kill":
		d.server.Kill()
	case "start":
		ts.Check(d.server.Run())
	case "block":
		d.blocker = connected()
		_, err := d.blocker.Exec(ctx, "BEGIN; LOCK TABLE countersign."+args[1]+" IN SHARE MODE")
		ts.Check(err)
	case "blocked":
		until(d.blocker, "EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
	case "unblock":
		_, err := d.blocker.Exec(ctx, "ROLLBACK")
		ts.Check(err)
		until(d.blocker, "NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid())")
		ts.Check(d.blocker.Close(ctx))
	case "dump":
		dump, err := d.server.Tool("pg_dump", "--format=custom", "--schema=countersign", "postgres").Output()
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(args[1]), dump, 0o600))
	case "make":
		ts.Check(d.server.Tool("createdb", "--encoding=UTF8", "--template=template0", args[1]).Run())
		ts.Setenv(args[1], d.server.TCP(args[1]))
	case "archive":
		ts.Check(d.server.Archive())
	case "base":
		ts.Check(d.server.BaseBackup())
	case "moment":
		ts.Check(d.server.SQL("postgres", "SELECT pg_create_restore_point('"+args[1]+"')"))
	case "rewind":
		ts.Check(d.server.RestoreTo(args[1]))
	case "restore":
		dump, err := os.Open(ts.MkAbs(args[1]))
		ts.Check(err)
		defer dump.Close()
		cmd := d.server.Tool("pg_restore", append([]string{"--exit-on-error", "--dbname=" + args[2]}, args[3:]...)...)
		cmd.Stdin = dump
		if said, err := cmd.CombinedOutput(); err != nil {
			ts.Fatalf("pg_restore: %v: %s", err, said)
		}
	default:
		ts.Fatalf("the database can't %s", args[0])
	}
}

// documentedGrants returns the statements of docs/postgres.md that give the bot's role its rights.
func documentedGrants(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "`grants.sql` has:")
	_, block, _ := strings.Cut(after, "```sql\n")
	block, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatal("docs/postgres.md has no grants")
	}
	return block
}
