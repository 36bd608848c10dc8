//go:build linux

package main

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/cmd/countersign/cli"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
)

// The store's file, or its whole directory, is removed, renamed or replaced while the bot runs. The bot tells the
// operator, acknowledges no delivery, and runs no call. The instructions in the error message save the store. When the
// original file is back, all work continues without a restart.
func TestStoreMoved(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	for name, c := range map[string]struct {
		away, back func(*moving)
		control    func(*moving) []string // the environment with which commands reach the bot; nil: they don't reach it
		says       string
	}{
		"renamed": {
			away:    func(m *moving) { m.rename(m.store, m.store+".aside") },
			back:    func(m *moving) { m.rename(m.store+".aside", m.store) },
			control: func(m *moving) []string { return m.env },
			says:    "was removed or renamed",
		},
		"removed": {
			away:    func(m *moving) { m.ok(os.Link(m.store, m.store+".aside")); m.ok(os.Remove(m.store)) },
			back:    func(m *moving) { m.rename(m.store+".aside", m.store) },
			control: func(m *moving) []string { return m.env },
			says:    "was removed or renamed",
		},
		"replaced by an old copy": {
			away: func(m *moving) {
				m.ok(os.Link(m.store, m.store+".aside"))
				m.rename(m.old, m.store)
			},
			back:    func(m *moving) { m.rename(m.store+".aside", m.store) },
			control: func(m *moving) []string { return m.env },
			says:    "another file was put in its place",
		},
		"the directory was renamed": {
			away: func(m *moving) { m.rename(filepath.Dir(m.store), filepath.Dir(m.store)+".aside") },
			back: func(m *moving) { m.rename(filepath.Dir(m.store)+".aside", filepath.Dir(m.store)) },
			control: func(m *moving) []string {
				return append(m.env, "COUNTERSIGN_STORE=bolt:"+filepath.Dir(m.store)+".aside/bot.db")
			},
			says: "was removed or renamed",
		},
		"the directory was removed": {
			away: func(m *moving) {
				m.ok(os.Link(m.store, m.old+".kept"))
				m.rename(filepath.Dir(m.store), m.dir+"/gone")
				m.ok(os.RemoveAll(m.dir + "/gone"))
			},
			back: func(m *moving) {
				m.ok(os.MkdirAll(filepath.Dir(m.store), 0o700))
				m.rename(m.old+".kept", m.store)
			},
			says: "was removed or renamed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMoving(t)
			c.away(m)
			began := time.Now()
			report := m.until(http.StatusServiceUnavailable)
			t.Logf("/readyz says so after %s", time.Since(began).Round(time.Millisecond))
			for _, words := range []string{c.says, "countersign backup FILE", "cp /proc/"} {
				if !strings.Contains(report, words) {
					t.Errorf("/readyz does not say %q: %s", words, report)
				}
			}
			m.refused()
			rescued := filepath.Join(m.dir, "rescued.db")
			if c.control != nil {
				m.env = c.control(m)
				m.exits(cli.ExitDone, "backup", rescued)
				m.exits(cli.ExitFailed, "pause", "--reason", "try")
				m.exits(cli.ExitFailed, "restore", m.spare)
			} else {
				m.copies(report, rescued)
			}
			if n := m.said(`msg="the store's file is not at its path`); n != 1 {
				t.Errorf("the log says it %d times", n)
			}
			m.env = append(m.env, "COUNTERSIGN_STORE=bolt:"+rescued)
			if out := m.exits(cli.ExitDone, "pending"); !strings.Contains(out, "Refund of $20.00") {
				t.Errorf("the saved copy lacks the waiting request:\n%s", out)
			}
			m.exits(cli.ExitDone, "audit", "verify")
			c.back(m)
			m.until(http.StatusOK)
			m.teo.clicks("countersign", "", "Approve", "Refund of $20.00 for order ORD-131")
			m.sam.sees("#support", m.thread, "I refunded $20.00")
			if err := m.bot.end(syscall.SIGTERM); err != nil {
				t.Errorf("asked to stop, the bot ended with %v", err)
			}
		})
	}
}

// moving is a bot whose store is moved, removed or made unusable while a card waits.
type moving struct {
	*processHarness
	store, old, spare string // the store's file, and copies of it from before the card
	bot               *program
	admin             string
	sam, teo          watcher
	thread            string
	resident          *resident
}

func newMoving(t *testing.T) *moving {
	t.Helper()
	m := &moving{processHarness: openProcessHarness(t), resident: newResident(t)}
	m.store, m.old, m.spare = filepath.Join(m.dir, "data", "bot.db"), filepath.Join(m.dir, "old.db"), filepath.Join(m.dir, "spare.db")
	m.ok(os.Mkdir(filepath.Dir(m.store), 0o700))
	m.env = append(m.env, "COUNTERSIGN_STORE=bolt:"+m.store)
	m.bot, m.admin = m.serve()
	m.exits(cli.ExitDone, "backup", m.old)
	m.exits(cli.ExitDone, "backup", m.spare)
	m.ask()
	return m
}

// ask makes Sam request a call, and waits until its card is shown.
func (m *moving) ask() {
	m.Helper()
	m.sam, m.teo = m.watcher("sam"), m.watcher("teo")
	m.thread = m.sam.says("#support", "", "@Countersign refund 20 USD of order ORD-131, the box was damaged")
	m.teo.sees("countersign", "", "Refund of $20.00 for order ORD-131")
	m.until(http.StatusOK)
}

func (m *moving) ok(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *moving) rename(from, to string) { m.Helper(); m.ok(os.Rename(from, to)) }

// The method "until" waits until /readyz answers with a status, and returns the report.
func (m *moving) until(status int) (report string) {
	m.Helper()
	for end := time.Now().Add(2 * patience); ; time.Sleep(20 * time.Millisecond) {
		got, report := get(m.T, m.admin+"/readyz?wait=5")
		if got == status {
			return report
		}
		if time.Now().After(end) {
			m.Fatalf("/readyz answers %d, want %d: %s", got, status, report)
		}
	}
}

// The method "refused" makes a person click, and checks that the click is not acknowledged.
func (m *moving) refused() {
	m.Helper()
	card := m.teo.sees("countersign", "", "Refund of $20.00 for order ORD-131")
	button, ok := workspaceclient.Button(card.Blocks, "Approve")
	if !ok {
		m.Fatal("the card has no button")
	}
	if err := m.teo.Press(m.Context(), card, button); err == nil {
		m.Error("a click was acknowledged")
	}
}

// The method "exits" runs the program and checks its exit code.
func (m *moving) exits(code int, args ...string) string {
	m.Helper()
	got, out, errOut, err := m.resident.do(m.dir, append(plainEnv(), m.env...), args...)
	m.ok(err)
	if got != code {
		m.Errorf("countersign %s ended with %d, want %d:\n%s%s", strings.Join(args, " "), got, code, out, errOut)
	}
	return out + errOut
}

// The method "said" counts the lines of the log at ERROR that contain these words.
func (m *moving) said(words string) (n int) {
	for line := range strings.Lines(m.bot.text()) {
		if strings.Contains(line, "level=ERROR") && strings.Contains(line, words) {
			n++
		}
	}
	return n
}

// The method "copies" saves the store's file with the command that /readyz reports. This way of saving needs no control
// socket.
func (m *moving) copies(report, to string) {
	m.Helper()
	_, from, found := strings.Cut(report, "cp ")
	from, _, ends := strings.Cut(from, " FILE")
	if !found || !ends {
		m.Fatalf("/readyz does not say from where to copy: %s", report)
	}
	in, err := os.Open(from)
	m.ok(err)
	defer in.Close()
	out, err := os.Create(to)
	m.ok(err)
	_, err = io.Copy(out, in)
	m.ok(errors.Join(err, out.Close()))
}

// The method "sees" waits until the output of "audit list" matches a pattern, and returns the output.
func (m *moving) sees(pattern string) string {
	m.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(2 * patience); ; time.Sleep(100 * time.Millisecond) {
		out := m.exits(cli.ExitDone, "audit", "list", "--long")
		if re.MatchString(out) {
			return out
		}
		if time.Now().After(end) {
			m.Fatalf("the history has no %s:\n%s", pattern, out)
		}
	}
}

// The store's file is overwritten or truncated while the bot is idle. The bot stops by itself, with an error.
func TestStoreOverwritten(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	for name, spoil := range map[string]func(*moving){
		"an old copy over it": func(m *moving) {
			raw, err := os.ReadFile(m.old)
			m.ok(err)
			m.ok(os.WriteFile(m.store, raw, 0o600))
		},
		"cut off": func(m *moving) { m.ok(os.Truncate(m.store, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMoving(t)
			spoil(m)
			select {
			case <-m.bot.gone:
			case <-time.After(2 * patience):
				t.Fatal("it keeps running")
			}
			var ended *exec.ExitError
			if !errors.As(m.bot.err, &ended) || ended.ExitCode() != cli.ExitFailed {
				t.Errorf("the bot ended with %v", m.bot.err)
			}
			text := m.bot.text()
			if !strings.Contains(text, "countersign: the bot has stopped: ") || !strings.Contains(text, "Put a backup in its place") || strings.Contains(text, "goroutine ") {
				t.Errorf("it does not end with a sentence")
			}
		})
	}
}
