//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/internal/testkit"
)

// diskFault is a way in which the disk fails under an open store.
type diskFault struct {
	call, errno string
	at          string // the kind of pages that the failing call writes; empty: any
}

// A store's file has two kinds of pages. The first two pages are meta pages, and all other pages have data.
const (
	dataPages = "data"
	metaPages = "meta"
	metaEnd   = 2 * 4096
)

var diskFaults = []diskFault{
	{"fdatasync", "EIO", dataPages},
	{"fdatasync", "EIO", metaPages},
	{"pwrite64", "EIO", ""},
	{"pwrite64", "EROFS", ""}, // the kernel makes a damaged file system read-only
}

// TestFailingDisk makes the disk fail while a bot uses it. The failing call is a sync of data pages, a sync of a meta
// page, or a write. A write fails with an I/O error, or with the error of a read-only file system. After such a
// failure, the contents of the disk are unknown. Therefore the process must stop with code 3 and an error. The process
// may have acknowledged only deliveries that are durable. The store must be intact, and a new process must continue
// with it. In the end, no work may be lost and no call may have run twice.
//
// Each failure happens at least once, or at least COUNTERSIGN_FAULTS times.
func TestFailingDisk(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	times, seed := testkit.Size(t, "COUNTERSIGN_FAULTS", 1), testkit.Seed(t)
	strace := testkit.RequireProgram(t, "strace", "a failing disk", testkit.InstallStrace)
	began := time.Now()
	c := openKillHarness(t, seed)
	c.faulty = true
	random := testkit.Chance(seed, 98)
	happened, stops := map[diskFault]int{}, 0
	c.run(func(ctx context.Context) {
		for _, f := range diskFaults {
			for happened[f] < times {
				if stops++; stops > 40*times*len(diskFaults) {
					c.Fatalf("some faults never came about, only these: %v", happened)
				}
				at, came := c.diskFails(ctx, strace, f, 1+random.IntN(15))
				if !came {
					continue
				}
				// The nth call can write pages of any kind. The variable at has the kind of the pages. Therefore the
				// fault that happened may differ from f.
				for _, g := range diskFaults {
					if g.call == f.call && g.errno == f.errno && (g.at == "" || g.at == at) {
						happened[g]++
					}
				}
			}
		}
	})
	v := c.findings()
	t.Logf("stops=%d %v: %s in %s", stops, happened, v, time.Since(began).Round(time.Second))
}

// diskFails starts the bot, and makes a system call on the bot's store fail. diskFails waits until the bot has stopped
// because of the failure, and then checks the store. The result at is the kind of pages that the failed call wrote. The
// result came is false if the bot made fewer than nth such calls.
func (c *killHarness) diskFails(ctx context.Context, strace string, f diskFault, nth int) (at string, came bool) {
	c.Helper()
	record := filepath.Join(c.dir, "strace")
	// strace counts the calls of each thread separately, and the process has several threads.
	bot := c.start(ctx, killPoint{}, strace, "-f", "-qq", "-y", "-e", "signal=none", "-o", record, "-P", c.conf.Store, "-e", "trace=pwrite64,fdatasync",
		"-e", fmt.Sprintf("inject=%s:error=%s:when=%d", f.call, f.errno, nth))
	select {
	case <-bot.gone:
	case <-time.After(startTime):
		bot.in.Close() // the bot then ends, and strace ends with it
		<-bot.gone
		if at, came = failedAt(c, record); came {
			c.Fatalf("%s %s of %s pages did not stop the bot\n%s", f.call, f.errno, at, c.tail())
		}
		return "", false
	}
	var exit *exec.ExitError
	if !errors.As(bot.err, &exit) || exit.ExitCode() != cli.ExitFailed {
		c.Fatalf("after %s %s the bot ended with %v, want code %d (may this user trace processes here?)\n%s", f.call, f.errno, bot.err, cli.ExitFailed, c.tail())
	}
	opening := "store: open " + c.conf.Store + ": " // the error of a bot that failed while it opened the store
	if said := c.tail(); !strings.Contains(said, "start again, and the bot continues from the stored state") && !strings.Contains(said, opening) {
		c.Errorf("after %s %s the bot does not say what to do:\n%s", f.call, f.errno, said)
	}
	db, err := openstore.File(c.conf.Store)
	if err == nil {
		err = errors.Join(db.Check(ctx), db.Close())
	}
	if err != nil {
		c.Fatalf("after %s %s: %v", f.call, f.errno, err)
	}
	if at, came = failedAt(c, record); !came {
		text, err := os.ReadFile(record)
		c.Fatalf("strace made nothing fail (%v):\n%.4000s", err, text)
	}
	return at, true
}

// failedAt reads the record of strace, and returns the kind of pages that the failed call wrote. If a sync failed, the
// result is the kind of pages that were written last before the sync. If no call failed, failedAt returns false.
func failedAt(c *killHarness, record string) (at string, failed bool) {
	c.Helper()
	var begun []string // unfinished calls of other threads
	for line := range lines(c, record) {
		if i := strings.Index(line, "<... "); i >= 0 {
			thread, _, _ := strings.Cut(line, " ")
			first := slices.IndexFunc(begun, func(b string) bool { return strings.HasPrefix(b, thread+" ") })
			if first < 0 {
				continue
			}
			line = strings.TrimSuffix(begun[first], " <unfinished ...>") + line[strings.Index(line, "resumed>")+len("resumed>"):]
			begun = slices.Delete(begun, first, first+1)
		} else if strings.HasSuffix(line, "<unfinished ...>") {
			begun = append(begun, line)
			continue
		}
		if off, ok := writtenAt(line); ok {
			at = dataPages
			if off < metaEnd {
				at = metaPages
			}
		}
		if strings.Contains(line, "(INJECTED)") {
			return at, true
		}
	}
	return "", false
}

// writtenAt returns the offset of a recorded pwrite64.
func writtenAt(line string) (off int64, ok bool) {
	_, call, ok := strings.Cut(line, "pwrite64(")
	end := strings.LastIndex(call, ") ")
	if !ok || end < 0 {
		return 0, false
	}
	_, err := fmt.Sscan(call[strings.LastIndex(call[:end], " ")+1:end], &off)
	return off, err == nil
}
