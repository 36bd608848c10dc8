package main

import (
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.etcd.io/bbolt"

	"countersign/internal/scriptedmodel"
	"countersign/internal/workspace"
	"countersign/store/bolt"
)

// The scripts of testdata/script run the program with bad input of every kind: each time it ends with a sentence that says what to do,
// and with the exit code of the contract.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "workspace": startWorkspace, "model": startModel, "taken": takePort, "hold": holdStore, "newer": makeNewer,
		},
		RequireExplicitExec: true,
	})
}

// exits CODE countersign ARGS… runs the program, which must end with the code. Its outputs can be looked at as after exec.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	err = ts.Exec(args[1], args[2:]...)
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		code = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// workspace starts a workspace and points the bot at it.
func startWorkspace(ts *testscript.TestScript, _ bool, _ []string) {
	ws, err := workspace.New(workspace.Config{Seed: workspace.DemoSeed(), Log: slog.New(slog.DiscardHandler)})
	ts.Check(err)
	srv := httptest.NewServer(ws.Handler())
	ts.Defer(func() {
		ts.Check(ws.Close())
		srv.Close()
	})
	ts.Setenv("SLACK_API_URL", srv.URL+"/api/")
	ts.Setenv("SLACK_BOT_TOKEN", workspace.DemoBotToken)
	ts.Setenv("SLACK_APP_TOKEN", workspace.DemoAppToken)
}

// model KEY starts a model that wants the key, and points the bot at it.
func startModel(ts *testscript.TestScript, _ bool, args []string) {
	srv := httptest.NewServer(scriptedmodel.New(scriptedmodel.Config{APIKey: args[0]}))
	ts.Defer(srv.Close)
	ts.Setenv("OPENAI_BASE_URL", srv.URL+"/v1")
	ts.Setenv("OPENAI_API_KEY", args[0])
	ts.Setenv("OPENAI_MODEL", scriptedmodel.DefaultModel)
}

// taken NAME listens on a port and sets the variable to its address.
func takePort(ts *testscript.TestScript, _ bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv(args[0], l.Addr().String())
}

// hold FILE holds a store, as a bot that runs does.
func holdStore(ts *testscript.TestScript, _ bool, args []string) {
	db, err := bolt.Open(ts.MkAbs(args[0]), bolt.Options{})
	ts.Check(err)
	ts.Defer(func() { ts.Check(db.Close()) })
}

// newer FILE makes a store as a later version of the program would.
func makeNewer(ts *testscript.TestScript, _ bool, args []string) {
	db, err := bolt.Open(ts.MkAbs(args[0]), bolt.Options{})
	ts.Check(err)
	ts.Check(db.Close())
	raw, err := bbolt.Open(ts.MkAbs(args[0]), 0o600, nil)
	ts.Check(err)
	ts.Check(raw.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("countersign")).Put([]byte("schema"), []byte("99"))
	}))
	ts.Check(raw.Close())
}
