package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.etcd.io/bbolt"

	"countersign/agent/pins"
	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/demo/shop"
	"countersign/internal/demo/workspace"
	"countersign/internal/testkit"
	"countersign/store/bolt"
)

// The scripts of testdata/script run the program with bad input of many kinds. For each bad input, the program must
// print an error with the remedy, and end with the documented exit code.
func TestScripts(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: scriptCommands, Setup: setUp, RequireExplicitExec: true})
}

// setUp makes the programs of a script write their log as text, and gives the script a resident.
func setUp(env *testscript.Env) error {
	env.Setenv("COUNTERSIGN_LOG_FORMAT", "text")
	r := &resident{}
	env.Values[scriptResidentKey{}] = r
	env.Defer(func() {
		if err := r.end(); err != nil {
			env.T().Log(err)
			env.T().FailNow()
		}
	})
	return nil
}

type scriptResidentKey struct{}

// run runs a command of the program with the script's directory and environment, and without input.
func run(ts *testscript.TestScript, args []string) (code int, out string) {
	if args[0] != "countersign" {
		ts.Fatalf("%s is not the program", args[0])
	}
	list := filepath.Join(ts.Getenv("WORK"), ".tmp", "env")
	ts.Check(ts.Exec("sh", "-c", "env -0 >'"+list+"'")) // a script's environment has no other way out
	env := strings.Split(strings.TrimSuffix(ts.ReadFile(list), "\x00"), "\x00")
	code, out, errOut, err := ts.Value(scriptResidentKey{}).(*resident).do(ts.MkAbs("."), env, args[1:]...)
	ts.Check(err)
	io.WriteString(ts.Stdout(), out)
	io.WriteString(ts.Stderr(), errOut)
	return code, out
}

// scriptCommands are the commands of scripts, in addition to running the program.
var scriptCommands = map[string]func(*testscript.TestScript, bool, []string){
	"exits": exits, "workspace": startWorkspace, "model": startModel, "taken": takePort, "hold": holdStore, "newer": makeNewer, "newstore": makeEmpty, "up": waitUp,
	"grab": grab, "eventually": eventually, "fault": fault, "ask": askWorkspace, "address": freeAddress, "shop": nameShop, "destroy": destroyPages,
}

// exits CODE countersign ARGS… runs the program, which must end with the code. Afterwards, the script can examine the
// outputs, as it can after the command exec.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if code, _ := run(ts, args[1:]); code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// shop POLICY… starts the sample shop, and adds it as a server to each policy file that names no server. The shop keeps
// its state in countersign-shop.json. The command also writes the pins of the shop's tools next to the policy file.
func nameShop(ts *testscript.TestScript, _ bool, policies []string) {
	s, err := shop.Open(ts.MkAbs("countersign-shop.json"), time.Now)
	ts.Check(err)
	web := httptest.NewServer(s.Handler())
	ts.Defer(web.Close)
	entry := strings.Replace(shopEntry, shopStart, fmt.Sprintf("url: %s/mcp\n    allow: [127.0.0.1]", web.URL), 1)
	for _, policy := range policies {
		path := ts.MkAbs(policy)
		data, err := os.ReadFile(path)
		ts.Check(err)
		if !bytes.Contains(data, []byte("\nservers:")) {
			data = append(data, entry...)
		}
		ts.Check(os.WriteFile(path, data, 0o600))
		lock, err := shopPins()
		ts.Check(err)
		ts.Check(lock.Write(pins.Beside(path)))
	}
}

// destroy FILE PAGE… overwrites pages of a store's file with zeros.
func destroyPages(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY, 0)
	ts.Check(err)
	for _, page := range args[1:] {
		n, err := strconv.ParseInt(page, 10, 64)
		ts.Check(err)
		_, err = f.WriteAt(make([]byte, os.Getpagesize()), n*int64(os.Getpagesize()))
		ts.Check(err)
	}
	ts.Check(f.Close())
}

// workspace [OPTION…] starts a workspace and points the bot to it. The options remove a scope (-SCOPE), add a scope
// (+SCOPE), set another app's id (app=ID), or set the clock ahead (clock=DURATION).
func startWorkspace(ts *testscript.TestScript, _ bool, options []string) {
	seed := workspace.DemoSeed()
	var ahead time.Duration
	for _, o := range options {
		switch name, value, _ := strings.Cut(o, "="); {
		case o[0] == '-':
			seed.App.Scopes = slices.DeleteFunc(seed.App.Scopes, func(s string) bool { return s == o[1:] })
		case o[0] == '+':
			seed.App.Scopes = append(seed.App.Scopes, o[1:])
		case name == "app":
			seed.App.ID = value
		case name == "clock":
			var err error
			ahead, err = time.ParseDuration(value)
			ts.Check(err)
		default:
			ts.Fatalf("%s is no option", o)
		}
	}
	ws, err := workspace.New(workspace.Config{Seed: seed, Log: slog.New(slog.DiscardHandler), AckTimeout: patience, TriggerTTL: patience})
	ts.Check(err)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		ws.Handler().ServeHTTP(w, r)
	}))
	ts.Defer(func() {
		ts.Check(ws.Close())
		srv.Close()
	})
	ts.Setenv("SLACK_API_URL", srv.URL+"/api/")
	ts.Setenv("SLACK_BOT_TOKEN", workspace.DemoBotToken)
	ts.Setenv("SLACK_APP_TOKEN", workspace.DemoAppToken)
}

// fault JSON… makes the workspace fail in some way, or changes a person in the workspace.
func fault(ts *testscript.TestScript, neg bool, bodies []string) {
	for _, body := range bodies {
		askWorkspace(ts, neg, []string{"/faults", body})
	}
}

// ask PATH JSON calls the workspace's API (docs/workspace.md).
func askWorkspace(ts *testscript.TestScript, _ bool, args []string) {
	resp, err := http.Post(base(ts)+args[0], "application/json", strings.NewReader(args[1]))
	ts.Check(err)
	answer, err := io.ReadAll(resp.Body)
	ts.Check(errors.Join(err, resp.Body.Close()))
	if resp.StatusCode != http.StatusOK {
		ts.Fatalf("%s %s: %s", args[0], args[1], answer)
	}
}

func base(ts *testscript.TestScript) string {
	return strings.TrimSuffix(ts.Getenv("SLACK_API_URL"), "/api/")
}

// address chooses the address at which the bot receives Slack's requests over HTTP.
func freeAddress(ts *testscript.TestScript, _ bool, _ []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv("COUNTERSIGN_HTTP_ADDR", l.Addr().String())
	ts.Check(l.Close())
}

// model KEY starts a model that requires the key, and points the bot to the model.
func startModel(ts *testscript.TestScript, _ bool, args []string) {
	srv := httptest.NewServer(scriptedmodel.New(scriptedmodel.Config{APIKey: args[0]}))
	ts.Defer(srv.Close)
	ts.Setenv("OPENAI_BASE_URL", srv.URL+"/v1")
	ts.Setenv("OPENAI_API_KEY", args[0])
	ts.Setenv("OPENAI_MODEL", scriptedmodel.DefaultModel)
}

// up FILE waits until a bot in the background answers at its control socket.
func waitUp(ts *testscript.TestScript, _ bool, args []string) {
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("unix", ts.MkAbs(args[0]))
		if err == nil {
			ts.Check(conn.Close())
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("nobody listens: %v", err)
		}
	}
}

// grab NAME PATTERN [OUTPUT] sets the variable NAME to the first group of PATTERN in the last command's output. OUTPUT
// is stdout (the default) or stderr.
func grab(ts *testscript.TestScript, _ bool, args []string) {
	m := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile(append(args, "stdout")[2]))
	if m == nil {
		ts.Fatalf("nothing matches %s", args[1])
	}
	ts.Setenv(args[0], m[1])
}

// eventually PATTERN countersign ARGS… repeats the program until its output matches. Each pause is at least three times
// as long as the program took, so that the programs leave most of the processor time to the bot.
func eventually(ts *testscript.TestScript, _ bool, args []string) {
	re := regexp.MustCompile("(?m)" + args[0])
	var took time.Duration
	for end := time.Now().Add(patience); ; time.Sleep(max(3*took, 200*time.Millisecond)) {
		began := time.Now()
		code, out := run(ts, args[1:])
		took = time.Since(began)
		if code == 0 && re.MatchString(out) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("it does not say %s (exit code %d)", args[0], code)
		}
	}
}

// taken NAME listens on a port and sets the variable NAME to the port's address.
func takePort(ts *testscript.TestScript, _ bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv(args[0], l.Addr().String())
}

// hold FILE keeps a store open and locked, as a running bot does.
func holdStore(ts *testscript.TestScript, _ bool, args []string) {
	db, err := bolt.Open(ts.MkAbs(args[0]), bolt.Options{})
	ts.Check(err)
	ts.Defer(func() { ts.Check(db.Close()) })
}

// newstore FILE creates an empty store.
func makeEmpty(ts *testscript.TestScript, _ bool, args []string) {
	db, err := bolt.Open(ts.MkAbs(args[0]), bolt.Options{})
	ts.Check(err)
	ts.Check(db.Close())
}

// newer FILE creates a store that looks like a store of a later version of the program.
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
