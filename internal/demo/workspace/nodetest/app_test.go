// Package nodetest runs an app built with Slack's official Node.js client against the local workspace. The tests check
// that the actions of people reach the app's listeners, and that people see the effects of the app's Web API calls.
package nodetest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"countersign/internal/testkit"
	"countersign/internal/testkit/npm"
)

// patience is the longest time to wait for an expected event. This time is long, because the machine may be busy.
const patience = testkit.Patience

type (
	obj = map[string]any
	arr = []any
)

// app is the running Bolt app.
type app struct {
	t     *testing.T
	stdin io.WriteCloser
	lines chan said

	mu      sync.Mutex
	waiting map[int]chan said
	orders  int
}

// said is one line of the app's output: an event, or the outcome of a command to the app (see order).
type said struct {
	Saw    string          `json:"saw"`
	What   json.RawMessage `json:"what"`
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code       string `json:"code"`
		Message    string `json:"message"`
		Data       obj    `json:"data"`
		Status     int    `json:"status"`
		RetryAfter int    `json:"retryAfter"`
	} `json:"error"`
}

// start runs the app until the test ends.
func start(t *testing.T, env ...string) *app {
	t.Helper()
	node, tool := npm.Require(t, "Slack's own client was")
	modules := npm.Installed(t, tool, ".", "nodetest")
	scripts, err := filepath.Glob("*.js")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("the app's files are not here: %v", err)
	}
	for _, script := range scripts { // reading the scripts tells go test that its cached result depends on them
		if _, err := os.Stat(script); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(node, "app.js")
	cmd.Env = append(os.Environ(), append(env, "NODE_PATH="+filepath.Join(modules, "node_modules"))...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = logWriter{t}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a := &app{t: t, stdin: stdin, lines: make(chan said, 1000), waiting: map[int]chan said{}}
	ended := make(chan error, 1)
	go func() {
		a.read(stdout)
		ended <- cmd.Wait()
	}()
	t.Cleanup(func() {
		stdin.Close()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the app ended with an error: %v", err)
			}
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			t.Error("the app did not end when its standard input was closed")
		}
	})
	return a
}

type logWriter struct{ t *testing.T }

func (w logWriter) Write(p []byte) (int, error) {
	w.t.Logf("app: %s", p)
	return len(p), nil
}

func (a *app) read(stdout io.Reader) {
	defer close(a.lines)
	scanner := bufio.NewScanner(stdout)
	scanner.Buffer(nil, 4<<20)
	for scanner.Scan() {
		var line said
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			line = said{Saw: "not JSON", What: json.RawMessage(fmt.Sprintf("%q", scanner.Text()))}
		}
		if line.ID == 0 {
			a.lines <- line
			continue
		}
		a.mu.Lock()
		outcome := a.waiting[line.ID]
		delete(a.waiting, line.ID)
		a.mu.Unlock()
		outcome <- line
	}
}

// see waits for the app's next line with this name. The function skips other lines, but fails the test if a line is an
// error.
func (a *app) see(name string) obj {
	a.t.Helper()
	return a.seeAll(name)[name]
}

// seeAll waits for several lines. The lines may come in any order, because requests over HTTP arrive in any order.
func (a *app) seeAll(names ...string) map[string]obj {
	a.t.Helper()
	limit, seen := time.After(patience), map[string]obj{}
	for len(seen) < len(names) {
		select {
		case line, open := <-a.lines:
			switch {
			case !open:
				a.t.Fatalf("the app ended while the test waited for %q", names)
			case line.Saw == "error" || line.Saw == "not JSON":
				a.t.Fatalf("the app failed while the test waited for %q: %s", names, line.What)
			case seen[line.Saw] == nil && slices.Contains(names, line.Saw):
				var what obj
				if err := json.Unmarshal(line.What, &what); err != nil {
					a.t.Fatal(err)
				}
				seen[line.Saw] = what
			}
		case <-limit:
			a.t.Fatalf("the app did not receive all of %q", names)
		}
	}
	return seen
}

// order makes the app call a method of its Web API client, and returns the outcome.
func (a *app) order(name string, args obj) said {
	a.t.Helper()
	a.mu.Lock()
	a.orders++
	id, outcome := a.orders, make(chan said, 1)
	a.waiting[id] = outcome
	a.mu.Unlock()
	raw, err := json.Marshal(obj{"id": id, "order": name, "args": args})
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := a.stdin.Write(append(raw, '\n')); err != nil {
		a.t.Fatal(err)
	}
	select {
	case line := <-outcome:
		return line
	case <-time.After(patience):
		a.t.Fatalf("the app did not carry out %s", raw)
		panic("unreachable")
	}
}

// done is like order, but fails the test if the outcome is an error. The parameter out receives the result.
func (a *app) done(out any, name string, args obj) {
	a.t.Helper()
	line := a.order(name, args)
	if line.Error != nil {
		a.t.Fatalf("%s %v: %+v", name, args, *line.Error)
	}
	if err := json.Unmarshal(line.Result, out); err != nil {
		a.t.Fatal(err)
	}
}

// call calls a method. The test fails if the method fails.
func (a *app) call(method string, args obj) obj {
	a.t.Helper()
	if args == nil {
		args = obj{}
	}
	args["method"] = method
	var out obj
	a.done(&out, "call", args)
	return out
}

// The method "refused" calls a method, and returns Slack's code and the whole answer. The test fails if the method
// succeeds.
func (a *app) refused(method string, args obj) (string, obj) {
	a.t.Helper()
	args["method"] = method
	line := a.order("call", args)
	if line.Error == nil || line.Error.Code != "slack_webapi_platform_error" {
		a.t.Fatalf("%s %v was not refused: %s %+v", method, args, line.Result, line.Error)
	}
	code, _ := line.Error.Data["error"].(string)
	return code, line.Error.Data
}
