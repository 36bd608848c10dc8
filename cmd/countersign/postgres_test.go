package main

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"countersign/internal/testkit/pgserver"
)

// The scripts of testdata/postgres run the program on a database: setting it up, a call from the message to the run,
// and the errors when something is wrong.
func TestPostgres(t *testing.T) {
	t.Parallel()
	bin := pgserver.Find(t)
	server := func(ts *testscript.TestScript) *pgserver.Server { return ts.Value("server").(*pgserver.Server) }
	commands := maps.Clone(scriptCommands)
	// database stop|kill|start
	commands["database"] = func(ts *testscript.TestScript, _ bool, args []string) {
		switch args[0] {
		case "stop":
			server(ts).Stop()
		case "kill":
			server(ts).Kill()
		case "start":
			ts.Check(server(ts).Run())
		default:
			ts.Fatalf("the database can't %s", args[0])
		}
	}
	// sql DATABASE STATEMENTS
	commands["sql"] = func(ts *testscript.TestScript, _ bool, args []string) { ts.Check(server(ts).SQL(args[0], args[1])) }
	grants := documentedGrants(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/postgres", Cmds: commands, RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error { // each script has a server of its own
			server, err := pgserver.Start(bin, "fsync=off")
			if err != nil {
				return err
			}
			env.Defer(server.Remove)
			env.Values["server"] = server
			env.Setenv("DATABASE", server.TCP("postgres"))
			env.Setenv("SOCKET", server.URL("postgres"))
			env.Setenv("TWO", server.URL("two"))
			env.Setenv("DAMAGED", server.URL("damaged"))
			env.Setenv("GRANTS", grants)
			return nil
		},
	})
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
