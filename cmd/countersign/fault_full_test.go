//go:build linux

package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/cmd/countersign/cli"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
)

// TestFullDisk fills the disk while a bot uses it, and then frees the space. While the disk is full, no call may run,
// deliveries that need space must be refused, and /readyz and the log must tell the operator. When the disk has space
// again, all work must continue without a restart. In the end, no work may be lost, no call may have run twice, and
// every run must be in the history. Finally the file system is made read-only. The bot must then refuse to start, and
// say why.
//
// The disk is filled once, or COUNTERSIGN_FILLS times.
func TestFullDisk(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	fills, seed := testkit.Size(t, "COUNTERSIGN_FILLS", 1), testkit.Seed(t)
	began := time.Now()
	disk := testkit.MountSmallDisk(t, 24<<20)
	c := openKillHarness(t, seed)
	c.faulty = true
	c.conf.Store = filepath.Join(disk.Dir, "store.db")
	c.run(func(ctx context.Context) {
		bot := c.start(ctx, killPoint{})
		c.awaitUp(bot)
		for range fills {
			c.await("people to work", func() bool { return c.acknowledges(3) })
			free := disk.Fill()
			c.await("the operator to be told", func() bool {
				status, report := c.ready(bot)
				return status == http.StatusServiceUnavailable && strings.Contains(report, "store: the disk has been full since")
			})
			if _, metrics := get(t, "http://"+bot.admin+"/metrics"); !strings.Contains(metrics, "countersign_disk_full 1\n") {
				t.Error("/metrics does not say that the disk is full")
			}
			refused := func() bool { return c.turnedAway(ctx) }
			c.await("somebody to find that nothing is taken in", refused) // work that was in progress has ended by then
			before := c.runsSeen()
			for range 3 {
				c.await("others to find that, too", refused)
			}
			if after := c.runsSeen(); after > before {
				t.Errorf("%d tools ran while the disk was full", after-before)
			}
			free()
			c.await("everything to continue", func() bool {
				status, _ := c.ready(bot)
				return status == http.StatusOK
			})
		}
		if err := bot.end(syscall.SIGTERM); err != nil {
			t.Errorf("the bot ended with %v, and should have run all the time\n%s", err, c.tail())
		}
		disk.ReadOnly(true)
		bot = c.start(ctx, killPoint{})
		<-bot.gone
		var exit *exec.ExitError
		if !errors.As(bot.err, &exit) || exit.ExitCode() != cli.ExitFailed || !strings.Contains(c.tail(), "on a file system that is mounted read-only: name a file elsewhere") {
			t.Errorf("on a read-only file system the bot ended with %v\n%s", bot.err, c.tail())
		}
		disk.ReadOnly(false)
	})
	v := c.findings()
	t.Logf("fills=%d %s in %s", fills, v, time.Since(began).Round(time.Second))
	for _, says := range []string{"the disk is full: nothing is decided and nothing runs until there is space again", "there is space on the disk again"} {
		if said, err := os.ReadFile(filepath.Join(c.dir, "said")); err != nil || strings.Count(string(said), says) != fills {
			t.Errorf("the log says %d times %q, want %d (%v)", strings.Count(string(said), says), says, fills, err)
		}
	}
}

func (c *killHarness) await(what string, is func() bool) {
	c.Helper()
	for end := time.Now().Add(settleTime); !is(); <-time.After(glance) {
		if time.Now().After(end) {
			c.Fatalf("waited in vain for %s\n%s", what, c.tail())
		}
	}
}

// turnedAway types a command as Teo, and reports whether the bot refuses it. The command is long, because a short
// delivery may fit into free space within the store's file. A command that the bot does not answer in time is not
// refused, because the machine may be busy.
func (c *killHarness) turnedAway(ctx context.Context) bool {
	teo := workspaceclient.Client{Base: c.conf.Base, User: "teo"}
	answer, err := teo.Command(ctx, "#support", "/countersign", "pending "+strings.Repeat("x", 30_000))
	return err == nil && strings.HasPrefix(answer, "Nothing was done.")
}

// acknowledges waits until n actions of people were acknowledged.
func (c *killHarness) acknowledges(n int) bool {
	for range n {
		select {
		case <-c.wakeups["acknowledged"]:
		case <-time.After(settleTime):
			return false
		}
	}
	return true
}

// The method "ready" asks a bot's /readyz.
func (c *killHarness) ready(bot *process) (status int, report string) {
	c.Helper()
	return get(c.T, "http://"+bot.admin+"/readyz?wait=5")
}

// runsSeen counts the tools' effects so far.
func (c *killHarness) runsSeen() (n int) {
	for range lines(c, c.conf.Seen) {
		n++
	}
	return n
}
