package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign/agent"
	"countersign/config"
)

// A started server gets four standard environment variables and the variables that the policy names. It gets no other
// variables of this process.
func TestCleanEnvironment(t *testing.T) {
	t.Setenv("SLACK_BOT_TOKEN", "xoxb-never-for-servers")
	t.Setenv("OPENAI_API_KEY", "sk-never-for-servers")
	t.Setenv("FILES_TOKEN", "only-because-it-is-named")
	s := program(t, "sane", "sane")
	s.Env["TOKEN"] = "${FILES_TOKEN}"
	_, o := running(t, quick(), s)
	text, err := call(t, o.tool(t, "sane.environment"), `{}`)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range strings.Split(text, "\n") {
		name, _, _ := strings.Cut(one, "=")
		names = append(names, name)
		if !slices.Contains([]string{"PATH", "HOME", "LANG", "TMPDIR", "TOKEN", roleKey}, name) {
			t.Errorf("the server finds %s", name)
		}
	}
	// The client replaced the value in the answer as a secret, which proves that the server received the variable
	// TOKEN.
	if !slices.Contains(names, "PATH") || !strings.Contains(text, "TOKEN=(removed)") {
		t.Errorf("it does not find what it needs: %q", names)
	}
	if strings.Contains(text, "never-for-servers") {
		t.Error("it finds a secret of this program's own")
	}
}

// A registry accepts the tools that the client offers.
func TestOffered(t *testing.T) {
	_, o := running(t, quick(), program(t, "sane", "sane"))
	o.tool(t, "sane.echo")
	var r agent.Registry
	if errs := r.Replace("sane", o.tools["sane"]); len(errs) > 0 {
		t.Error(errs)
	}
	tool := o.tool(t, "sane.environment")
	if tool.Claims.Title != "Environment" || tool.Claims.ReadOnly == nil || !*tool.Claims.ReadOnly || tool.Presumed != 0 || tool.Effect != "unprotected" {
		t.Errorf("%+v", tool)
	}
	if text, err := call(t, o.tool(t, "sane.echo"), `{"a" : 1.0, "b":"<&>"}`); text != `{"a" : 1.0, "b":"<&>"}` || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// TestNotFound checks that a command that can't be started is reported in one sentence.
func TestNotFound(t *testing.T) {
	dir := t.TempDir()
	locked := filepath.Join(dir, "locked")
	if err := os.WriteFile(locked, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte("\x7fELF"), 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		s    config.Server
		want string
	}{
		"no such command": {config.Server{Command: []string{"no-such-command-here"}}, `the command "no-such-command-here" is not found; install it, or write its whole path`},
		"no such path":    {config.Server{Command: []string{"/no/such/path"}}, `the command "/no/such/path" is not found`},
		"not allowed":     {config.Server{Command: []string{locked}}, "permission denied"},
		"no program":      {config.Server{Command: []string{broken}}, "can't be started"},
		"no such folder":  {config.Server{Command: []string{self}, Dir: "/no/such/folder"}, "can't be started"},
		"no variable":     {config.Server{Command: []string{self}, Env: map[string]string{"A": "${NO_SUCH_VARIABLE}"}}, "servers.bad.env: NO_SUCH_VARIABLE is not set in the environment"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.s.Name = "bad"
			c, _ := running(t, quick(), tt.s)
			if err := c.Settled(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := c.Status()[0]; got.Connected || !strings.Contains(got.Problem, tt.want) {
				t.Errorf("%q does not say %q", got.Problem, tt.want)
			}
		})
	}
}

// TestNoOrphans checks that a server's child processes end with the server. A server that ignores SIGTERM is killed.
func TestNoOrphans(t *testing.T) {
	for _, role := range []string{"leaves children", "does not want to end"} {
		t.Run(role, func(t *testing.T) {
			s, _ := recorded(t, role)
			o := newOffers()
			c := open(Config{Servers: []config.Server{s}, Offer: o.take}, quick())
			ctx, stop := context.WithCancel(context.Background())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = c.Run(ctx)
			}()
			o.tool(t, "bad.act")
			live, err := c.servers[0].ready(ctx)
			if err != nil {
				t.Fatal(err)
			}
			pids := []int{live.process.cmd.Process.Pid}
			if raw, err := os.ReadFile(s.Env[recordKey] + ".child"); err == nil {
				child, err := strconv.Atoi(string(raw))
				if err != nil {
					t.Fatal(err)
				}
				pids = append(pids, child)
			} else if role == "leaves children" {
				t.Fatal(err)
			}
			stop()
			select {
			case <-ended:
			case <-time.After(patience):
				t.Fatal("the client does not end")
			}
			for _, pid := range pids {
				gone(t, pid)
			}
		})
	}
}

// gone waits until a process has disappeared. After the death of a server, a killed child process exists until its
// new parent process reaps it.
func gone(t *testing.T, pid int) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(raw), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there: %s", pid, raw)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestServerThatReadsNothing checks that the client ends a server that does not read its input. The outcome of the call
// is unknown.
func TestServerThatReadsNothing(t *testing.T) {
	l := quick()
	l.write = time.Second
	c, o := running(t, l, program(t, "bad", "reads nothing"))
	tool := o.tool(t, "bad.act")
	began := time.Now()
	_, err := call(t, tool, `{"a":"`+strings.Repeat("x", 1<<20)+`"}`)
	if outcomeOf(err) != unclear || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	deadline := time.Now().Add(patience)
	for c.Status()[0].Restarts == 0 {
		if time.Now().After(deadline) {
			t.Fatalf("it was not started again: %+v", c.Status())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestRestart checks that a server is started again after it has ended, and that a call waits for the restarted server.
func TestRestart(t *testing.T) {
	c, o := running(t, quick(), program(t, "bad", "dies after a call"))
	tool := o.tool(t, "bad.act")
	for i := range 3 {
		if text, err := call(t, tool, `{}`); err != nil || text != "done" {
			t.Fatalf("call %d: %q, %v", i, text, err)
		}
		deadline := time.Now().Add(patience)
		// Wait until the client has noticed the end of the server.
		for st := c.Status()[0]; st.Connected && st.Restarts == i; st = c.Status()[0] {
			if time.Now().After(deadline) {
				t.Fatalf("its end is not seen: %+v", st)
			}
			time.Sleep(time.Millisecond)
		}
	}
	if n := c.Status()[0].Restarts; n < 2 {
		t.Errorf("it was started again %d times", n)
	}
}

// TestUnresponsive checks that a server is restarted if it answers neither a call nor a ping.
func TestUnresponsive(t *testing.T) {
	l := quick()
	l.probe = 100 * time.Millisecond
	s, read := recorded(t, "answers no ping")
	c, o := running(t, l, s)
	tool := o.tool(t, "bad.act")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := tool.Run(ctx, agent.Invocation{Args: []byte(`{}`)})
		ended <- err
	}()
	recordedLine(t, read, `"tools/call"`)
	cancel()
	if err := <-ended; outcomeOf(err) != unclear {
		t.Errorf("%v", err)
	}
	deadline := time.Now().Add(patience)
	for c.Status()[0].Restarts == 0 {
		if time.Now().After(deadline) {
			t.Fatalf("it was not started again: %+v", c.Status())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestLogLines checks that a program's standard error is logged line by line, without secrets. The length and the
// rate of the lines are limited.
func TestLogLines(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var log lockedBuffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		logLines(r, slog.New(slog.NewTextHandler(&log, nil)))
	}()
	fmt.Fprintf(w, "starting with TOKEN=abcdefghijkl\n\n\x1b[31mred\u202e\x1b[0m\n%s\n", strings.Repeat("long ", 10_000))
	for range 1000 {
		fmt.Fprintln(w, "again")
	}
	fmt.Fprint(w, "no end of a line")
	w.Close()
	<-done
	got := log.String()
	if strings.Contains(got, "abcdefghijkl") || !strings.Contains(got, "starting with TOKEN=") {
		t.Error("a secret is in the log, or the line is not")
	}
	if strings.Contains(got, "\x1b") || strings.Contains(got, "\u202e") || strings.Contains(got, `\x1b`) {
		t.Error("an invisible character is in the log")
	}
	if n := strings.Count(got, "again"); n < 10 || n > logBurst+5 {
		t.Errorf("%d of 1000 lines", n)
	}
	for _, one := range strings.Split(got, "\n") {
		if len(one) > maxLine+200 {
			t.Errorf("a line has %d bytes", len(one))
		}
	}
}

// TestReadLine checks lines of every length near the size of the buffer, and checks that no more than the limit is
// read.
func TestReadLine(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 17, 31, 32, 33, 99, 100} {
		r := bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", n)+"\r\nnext\n"), 16)
		got, err := readLine(r, 102)
		if err != nil || len(got) != n {
			t.Errorf("%d: %d, %v", n, len(got), err)
		}
		if got, err := readLine(r, 102); err != nil || string(got) != "next" {
			t.Errorf("after %d: %q, %v", n, got, err)
		}
		if _, err := readLine(r, 102); err == nil {
			t.Error("there is no end")
		}
	}
	if _, err := readLine(bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", 103)+"\n"), 16), 102); !errors.Is(err, errTooLong) {
		t.Errorf("%v", err)
	}
}
