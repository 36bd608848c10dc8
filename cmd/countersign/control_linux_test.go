package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/task"
	"countersign/internal/control"
	"countersign/internal/demo/workspaceclient"
	"countersign/store"
	"countersign/store/bolt"
)

const breakGlassPolicy = `version: 1
tools:
  search_orders: {risk: low}
  issue_refund: {risk: high, break_glass: true, preview: "Refund of {{money .amount .currency}} for order {{.order_id}}"}
approvers:
  team-lead: {title: Team Lead, members: [U0002], max_risk: high, can_approve: ["*"], lead: finance-director}
  finance-director: {title: Finance Director, members: [U0003, U0004], max_risk: critical, can_approve: ["*"]}
agents:
  support: {channels: ["#support"], prompt: Help., tools: ["*"]}
`

// commands runs the program in a directory, with the environment of the bot in that directory.
type commands struct {
	*testing.T
	dir      string
	env      []string
	resident *resident
}

// run runs the program until it ends.
func (c commands) run(args ...string) (code int, stdout, stderr string) {
	c.Helper()
	code, stdout, stderr, err := c.resident.do(c.dir, append(plainEnv(), c.env...), args...)
	if err != nil {
		c.Fatal(err)
	}
	return code, stdout, stderr
}

// The method "does" runs the program, and fails the test if the program fails. It matches the output with a regular
// expression, and returns the expression's first group.
func (c commands) does(pattern string, args ...string) string {
	c.Helper()
	code, stdout, stderr := c.run(args...)
	m := regexp.MustCompile("(?m)" + pattern).FindStringSubmatch(stdout)
	if code != 0 || m == nil {
		c.Fatalf("%v: exit code %d, and no match for %s in\n%s%s", args, code, pattern, stdout, stderr)
	}
	return m[1]
}

// While Slack is down, the operator decides at the command line, and the call runs. When Slack is back, the card shows
// the decision, and the bot notifies the approvers and the requester.
func TestDecideWhileSlackIsDown(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "workspace.json")
	p := openProcessHarness(t, "--data", data)
	c := commands{t, p.dir, p.env, newResident(t)}
	write(t, p.policy(), []byte(breakGlassPolicy+shopEntry))
	bot, _ := p.serve()
	sam, teo, ingrid := p.watcher("sam"), p.watcher("teo"), p.watcher("ingrid")
	root := sam.says("#support", "", "@Countersign refund 20 USD of order ORD-131, the box was damaged")
	teo.sees("countersign", "", "Refund of $20.00 for order ORD-131", "Waits for")
	if err := p.slack.end(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}

	request := c.does(`^(req_\w+) · issue_refund · high risk · waits for team-lead$`, "pending")
	digest := c.does(`^Digest     (\w+)$`, "pending", request)
	c.does(`^(Approved as operator:\w+)`, "decide", request, "approve", "--digest", digest[:shownDigest], "--reason", "Slack is down; Ingrid agreed by phone")
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		_, stdout, _ := c.run("audit", "list", "--long", "--request", request)
		if strings.Contains(stdout, " executed ") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it does not run:\n%s", stdout)
		}
	}

	again := launch(t, p.dir, nil, "workspace", "--addr", strings.TrimPrefix(p.base, "http://"), "--data", data)
	again.says(`is open at (http://\S+)`)
	teo.sees("countersign", "", "Approved at the command line by operator ", "(break glass)", "Slack is down; Ingrid agreed by phone")
	for _, who := range []watcher{teo, ingrid} {
		who.sees("countersign", "", "Approved at the command line, in place of its approvers (break glass)", "Refund of $20.00 for order ORD-131", "Slack is down; Ingrid agreed by phone")
	}
	sam.sees("#support", root, "Approved at the command line by operator ", "in place of its approvers", "Done.")
	if err := bot.end(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}

// The bot is killed during a task. The operator's command then fails, because it can't know the outcome. Other commands
// and a new bot can use the store.
func TestKilledDuringATask(t *testing.T) {
	t.Parallel()
	p := openProcessHarness(t)
	large(t, p.store())
	bot, _ := p.serve()
	path := programPath(t)
	var complaints bytes.Buffer
	cmd := exec.Command(path, "backup", "-")
	cmd.Dir, cmd.Env, cmd.Stderr = p.dir, append(plainEnv(), p.env...), &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 8192)); err != nil { // the task is running, and the rest of its output does not fit into any buffer
		t.Fatal(err)
	}
	if err := bot.end(syscall.SIGKILL); err == nil {
		t.Error("the bot was not killed")
	}
	rest, _ := io.ReadAll(out)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != cli.ExitFailed || !strings.Contains(complaints.String(), "the bot ended before it reported the outcome") {
		t.Errorf("after %d bytes more: %v: %s", len(rest), err, complaints.String())
	}
	c := commands{t, p.dir, p.env, newResident(t)}
	c.does(`(the history is whole)`, "audit", "verify") // no process has locked the store, and no process listens on the bot's socket
	again, _ := p.serve()
	again.says(`(connected to Slack)`)
	c.does(`(Nothing waits)`, "pending")
}

// The function "large" creates a store that is larger than the buffers of a socket and a pipe.
func large(t *testing.T, path string) {
	t.Helper()
	db, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(t.Context(), func(tx store.Tx) error {
		value, err := json.Marshal(strings.Repeat("x", 8<<20))
		if err != nil {
			return err
		}
		return tx.PutSetting(store.Setting{Key: "large", Value: value})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// withSocket returns a demo harness with a control socket for the bot, and a client of the socket.
func withSocket(t *testing.T) (*demoHarness, func(task string, options any, out io.Writer) error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "control.sock")
	h := openDemoHarness(t, dir, func(s *setup) {
		l, err := control.Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		s.control, s.storePath = l, filepath.Join(dir, "countersign.db")
	})
	return h, func(task string, options any, out io.Writer) error {
		raw, err := json.Marshal(options)
		if err != nil {
			t.Error(err)
		}
		return control.Client{Path: path}.Do(t.Context(), control.Call{Task: task, Options: raw, Store: filepath.Join(dir, "countersign.db"), Version: "v9", Out: out})
	}
}

// While a call waits for approval, 64 operators run commands simultaneously. All commands are served. If several
// operators decide the same call, exactly one succeeds.
func TestManyOperators(t *testing.T) {
	t.Parallel()
	h, ask := withSocket(t)
	sam := workspaceclient.Client{Base: h.base, User: "sam"}
	root, err := sam.Say(t.Context(), "#support", "", "@Countersign refund 20 USD of order ORD-131, the box was damaged")
	if err != nil {
		t.Fatal(err)
	}
	var request string
	watcher{t, sam}.wait("the request", func(context.Context) (bool, error) {
		calls, err := h.calls(root)
		if err != nil || len(calls) == 0 {
			return false, nil //nolint:nilerr // it is not there yet
		}
		request = calls[0].Request
		return request != "", nil
	})
	var wg sync.WaitGroup
	var won atomic.Int64
	for i := range 64 {
		wg.Go(func() {
			var out bytes.Buffer
			switch i % 4 {
			case 0:
				if err := ask("pending", "", &out); err != nil || !json.Valid(out.Bytes()) {
					t.Errorf("pending: %v: %s", err, out.String())
				}
			case 1:
				if err := ask("audit verify", task.None{}, &out); err != nil || !strings.Contains(out.String(), "the history is whole") {
					t.Errorf("verify: %v: %s", err, out.String())
				}
			case 2:
				if err := ask("backup", task.None{}, &out); err != nil || out.Len() < 16<<10 {
					t.Errorf("backup: %v: %d bytes", err, out.Len())
				}
			case 3:
				var failed *control.Failure
				switch err := ask("decide", operatorDecision{Request: request, Reason: fmt.Sprint("operator ", i)}, &out); {
				case err == nil:
					won.Add(1)
				case !errors.As(err, &failed) || failed.Code != cli.ExitNo || !strings.Contains(failed.Text, "it was settled before by operator:"):
					t.Errorf("decide: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d decided one call", won.Load())
	}
	err = h.store.View(t.Context(), func(r store.Reader) error {
		req, err := r.Request(request)
		if err == nil && (req.State != approvers.Rejected || len(req.Decisions) != 1) {
			t.Errorf("it is %s with %d decisions", req.State, len(req.Decisions))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// The bot refuses a command that it does not know, and a command with options that it can't parse completely. It gives
// the reason that the command is of another version of the program.
func TestOtherVersions(t *testing.T) {
	_, ask := withSocket(t)
	for task, options := range map[string]any{
		"teleport": task.None{}, "pause": 7, "decide": map[string]any{"request": "x", "reason": "y", "gently": true},
	} {
		var failed *control.Failure
		err := ask(task, options, io.Discard)
		if !errors.As(err, &failed) || failed.Code != cli.ExitFailed || !strings.Contains(failed.Text, "(v9) are of different versions: use the bot's own program, or restart the bot") {
			t.Errorf("%s: %v", task, err)
		}
	}
}

// The demo prints an environment variable at its start. If the operator sets this variable, the operator's commands
// work with the demo in the same way as with serve.
func TestDemoIsOperated(t *testing.T) {
	t.Parallel()
	c := commands{T: t, dir: t.TempDir(), resident: newResident(t)}
	demo := launch(t, c.dir, nil, "demo", "--no-browser", "--addr", "127.0.0.1:0", "--data", "kept here")
	sam := watcher{t, workspaceclient.Client{Base: demo.says(`The workspace +(http://[^/]+)`), User: "sam"}}
	c.env = []string{"COUNTERSIGN_STORE=" + demo.says(`export COUNTERSIGN_STORE='([^']+)'`)}
	sam.wait("the bot", connectedTo(sam))
	root := sam.says("#support", "", "@Countersign refund ORD-123, it arrived broken")
	sam.sees("#support", root, "Waits for Team Lead")
	request := c.does(`^(req_\w+) · issue_refund`, "pending")
	c.does(`^(Rejected as operator:)`, "decide", request, "reject", "--reason", "we look into it")
	sam.sees("#support", root, "we look into it")
	if err := demo.end(syscall.SIGINT); err != nil {
		t.Errorf("after Ctrl-C the demo ended with %v", err)
	}
}

// If another bot listens at the control socket, the exit code says that the bot could not run. The exit code does not
// say that the configuration is wrong.
func TestControlSocketIsTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control")
	log := slog.New(slog.DiscardHandler)
	l, err := openControl(path, log)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := openControl(path, log); cli.Code(err) != cli.ExitFailed {
		t.Errorf("exit code %d (%v), want %d", cli.Code(err), err, cli.ExitFailed)
	}
}
