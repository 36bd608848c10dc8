package main

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/cmd/countersign/cli"
)

// TestSystemdIsTold starts the bot as systemd does. The bot reports to systemd that it is up, sends keep-alive
// messages, and reports that it stops. At the same time, the command countersign health requests the bot's state.
func TestSystemdIsTold(t *testing.T) {
	t.Parallel()
	p := openProcessHarness(t)
	socket := filepath.Join(p.dir, "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	said := make(chan string, 10_000) // the socket itself holds only a few messages
	go func() {
		for buf := make([]byte, 1024); ; {
			n, err := l.Read(buf)
			if err != nil {
				return // the test is over
			}
			said <- string(buf[:n])
		}
	}()
	heard := func(want string) {
		t.Helper()
		for end := time.After(patience); ; {
			select {
			case got := <-said:
				if got == want {
					return
				}
				if got != "WATCHDOG=1" {
					t.Fatalf("it says %s, want %s", got, want)
				}
			case <-end:
				t.Fatalf("waited in vain for %s", want)
			}
		}
	}
	p.env = append(p.env, "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=300000")
	bot, admin := p.serve()
	heard("READY=1")
	heard("WATCHDOG=1")
	heard("WATCHDOG=1")

	addr := strings.TrimPrefix(admin, "http://")
	ask := commands{t, p.dir, []string{"COUNTERSIGN_ADMIN_ADDR=" + addr}, newResident(t)}
	ask.does(`^(ok)$`, "health")
	ask.does(`^(store: ok)$`, "health", "--ready")
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	ask.env = []string{"COUNTERSIGN_ADMIN_ADDR=0.0.0.0:" + port}
	ask.does(`^(ok)$`, "health")

	if err := bot.end(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	heard("STOPPING=1")
	if code, _, said := ask.run("health"); code != cli.ExitFailed || !strings.Contains(said, "no process answers at http://127.0.0.1:"+port+"/healthz") {
		t.Errorf("without a bot: exit code %d, %s", code, said)
	}
}

// The bot sends keep-alive messages if WATCHDOG_USEC is a number, unless WATCHDOG_PID names another process.
func TestNotifier(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		beat time.Duration
	}{
		{nil, 0},
		{map[string]string{"WATCHDOG_USEC": "30000000"}, 10 * time.Second},
		{map[string]string{"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}, 10 * time.Second},
		{map[string]string{"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"}, 0},
		{map[string]string{"WATCHDOG_USEC": "soon"}, 0},
	} {
		if n := newNotifier(func(name string) string { return c.env[name] }, 7, slog.New(slog.DiscardHandler)); n.beat != c.beat {
			t.Errorf("%v: a sign every %s, want %s", c.env, n.beat, c.beat)
		}
	}
}

// The manual has pages for commands at each level, and no page for a hidden command.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	if _, err := runCommand(t, "man", dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"countersign.1", "countersign-serve.1", "countersign-audit-verify.1"} {
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(page), ".SH SYNOPSIS") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "countersign-man.1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a hidden command has a page: %v", err)
	}
}
