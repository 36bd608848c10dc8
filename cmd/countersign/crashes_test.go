package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/cmd/countersign/openstore"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
	"countersign/store"
)

// TestCrashesFile checks that the next process counts only work that was in progress when a process died. Work that had
// ended, or that was in progress at an orderly stop, does not count.
func TestCrashesFile(t *testing.T) {
	t.Parallel()
	path, log := filepath.Join(t.TempDir(), "store.db.crashes"), slog.New(slog.NewTextHandler(io.Discard, nil))
	odd := "a \"b\"\n+ think \"t9\""
	for life := 1; life <= 3; life++ {
		c := openCrashes(path, log)
		c.Begin("think", "t1")
		c.Begin("think", odd)
		c.Begin("inbox", "t1")
		c.End("inbox", "t1")
		if got := c.Count("think", "t1"); got != life-1 || c.Count("think", odd) != life-1 || c.Count("inbox", "t1") != 0 || c.Count("think", "t9") != 0 {
			t.Fatalf("in life %d: %d, %d", life, got, c.Count("think", odd))
		}
	} // each process is killed
	c := openCrashes(path, log)
	c.Forget("think", odd)
	c.Begin("think", "t2")
	c.stop()
	c.Begin("think", "t3")
	c = openCrashes(path, log)
	if c.Count("think", "t1") != 3 || c.Count("think", "t2") != 0 || c.Count("think", "t3") != 0 || c.Count("think", odd) != 0 {
		t.Errorf("after a stop: %+v", c.died)
	}
	c.Begin("think", "t4")
	for i := range 7_000 { // so many records that the file is rewritten during the loop
		c.Begin("inbox", fmt.Sprint(i))
		c.End("inbox", fmt.Sprint(i))
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 2*crashesRewritten {
		t.Errorf("%v %v", info.Size(), err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(raw, "+ think \"torn"...), 0o600); err != nil {
		t.Fatal(err)
	}
	c = openCrashes(path, log)
	if c.Count("think", "t1") != 3 || c.Count("think", "t4") != 1 || len(c.died) != 2 {
		t.Errorf("after the file was rewritten: %+v", c.died)
	}
	for i := range 2 * crashesKept {
		c.Begin("think", fmt.Sprint("many", i))
	}
	if c = openCrashes(path, log); len(c.died) != crashesKept || len(c.order) != crashesKept {
		t.Errorf("%d are kept", len(c.died))
	}
	c.Forget("think", c.order[0].ref)
	for len(c.order) > 0 {
		c.Forget(c.order[0].kind, c.order[0].ref)
	}
	c.stop()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a file without content is left: %v", err)
	}
}

// TestCrashesNowhere checks a bot that can't write beside its store. The bot works, and logs once which file it can't
// write.
func TestCrashesNowhere(t *testing.T) {
	var said strings.Builder
	c := openCrashes(filepath.Join(t.TempDir(), "no", "such", "file"), slog.New(slog.NewTextHandler(&said, nil)))
	c.Begin("think", "t1")
	c.End("think", "t1")
	c.stop()
	if c.Count("think", "t1") != 0 || strings.Count(said.String(), "the crash file can't be written") != 1 {
		t.Error(said.String())
	}
}

// dies starts a bot that is killed at a given point of its work.
func (c *killHarness) dies(point string) {
	c.Helper()
	bot := c.start(c.Context(), killPoint{point, 1})
	select {
	case <-bot.gone:
	case <-time.After(patience):
		c.Errorf("the bot was not killed at %s", point)
	}
	c.killed(bot)
}

// TestTurnThatKills checks a turn during which two processes died. The bot stops the turn, and tells the people in the
// conversation. When people try the turn again, the count starts at 0.
func TestTurnThatKills(t *testing.T) {
	t.Parallel()
	c := openKillHarness(t, 2)
	c.faulty = true
	sam := watcher{t, workspaceclient.Client{Base: c.conf.Base, User: "sam"}}
	const told = "The bot's process ended twice while it worked on this"
	bot := c.start(t.Context(), killPoint{"Begin" + testkit.BehindCommit, 1})
	c.awaitUp(bot)
	root := sam.says("#support", "", "@Countersign do act #1001")
	<-bot.gone
	c.killed(bot)
	c.dies("Begin" + testkit.BehindCommit)
	bot = c.start(t.Context(), killPoint{"Propose" + testkit.BehindCommit, 1}) // during the turn that people try again
	c.awaitUp(bot)
	sam.sees("#support", root, told)
	sam.clicks("#support", root, "Try again", told)
	<-bot.gone
	c.killed(bot)
	bot = c.start(t.Context(), killPoint{})
	c.awaitUp(bot)
	sam.sees("#support", root, finished("1001"))
	if err := bot.end(syscall.SIGTERM); err != nil {
		t.Errorf("%v\n%s", err, c.tail())
	}
	if f, err := os.ReadFile(c.conf.Store + ".crashes"); err != nil || strings.Count(string(f), "! think \"turn_") != 1 || !strings.HasSuffix(string(f), "\" 1\n") {
		t.Errorf("%q %v", f, err)
	}
}

// TestClickThatKills checks a click that kills the process. The bot tries the click five times, and then sets the click
// aside and records the failure. The bot tells the person who clicked. The request stays pending.
func TestClickThatKills(t *testing.T) {
	t.Parallel()
	c := openKillHarness(t, 2)
	c.faulty = true
	person := func(name string) watcher { return watcher{t, workspaceclient.Client{Base: c.conf.Base, User: name}} }
	sam, teo := person("sam"), person("teo")
	bot := c.start(t.Context(), killPoint{"Decide" + testkit.BeforeCommit, 1})
	c.awaitUp(bot)
	root := sam.says("#support", "", "@Countersign do ask #1001")
	card := teo.sees("#support-approvals", "", "Waits for Team Lead")
	approve, _ := workspaceclient.Button(card.Blocks, "Approve")
	_ = teo.Press(t.Context(), card, approve) // the bot may be dead before it has acknowledged the click
	<-bot.gone
	c.killed(bot)
	for range 4 {
		c.dies("Decide" + testkit.BeforeCommit)
	}
	bot = c.start(t.Context(), killPoint{})
	c.awaitUp(bot)
	teo.sees("#support-approvals", "", "I crashed each time I worked on this")
	teo.clicks("#support-approvals", "", "Approve", "Waits for Team Lead")
	sam.sees("#support", root, finished("1001"))
	if err := bot.end(syscall.SIGTERM); err != nil {
		t.Errorf("%v\n%s", err, c.tail())
	}
	db, err := openstore.File(c.conf.Store)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(t.Context(), func(r store.Reader) error {
		history, err := r.Audit("installation")
		history = slices.DeleteFunc(history, func(a approvers.AuditRecord) bool { return a.Kind == approvers.AuditPolicy })
		if len(history) != 1 || history[0].Facts["code"] != "abandoned" || history[0].Facts["user"] != "U0002" || history[0].Facts["deaths"] != "5" {
			t.Errorf("the history says %+v", history)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
