//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/cmd/countersign/cli"
	"countersign/internal/testkit"
)

// An old copy replaces the store while the bot is stopped. A call was approved and has run after the copy was made.
// According to the copy, the call has not run, so it could run a second time under the same execution id. The bot runs
// nothing until an operator accepts the loss. Then the bot continues by itself, and closes the requests whose calls
// could run twice. At the next start, the bot reports no loss. The command audit verify reports no loss either.
func TestOldStoreIsHeld(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	for _, stopped := range []bool{false, true} {
		name := map[bool]string{false: "told while it is held", true: "told while it is stopped"}[stopped]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMoving(t)
			m.exits(cli.ExitDone, "pause", "--reason", "until it is copied")
			m.teo.clicks("countersign", "", "Approve", "Refund of $20.00 for order ORD-131")
			m.sees(" approved ")
			m.ok(os.Remove(m.old))
			m.exits(cli.ExitDone, "backup", m.old) // at this moment the call is approved, and has not run
			m.exits(cli.ExitDone, "resume", "--reason", "checked")
			m.sam.sees("#support", m.thread, "I refunded $20.00")
			m.ok(m.bot.end(syscall.SIGTERM))
			heads := readText(t, m.store+".heads")
			raw, err := os.ReadFile(m.old)
			m.ok(err)
			m.ok(os.WriteFile(m.store, raw, 0o600)) // writes into the existing file, as cp does

			m.bot = launch(t, m.dir, m.env, "serve")
			m.admin = "http://" + m.bot.says(`older than its signed heads.* admin=(\S+)`)
			report := m.until(http.StatusServiceUnavailable)
			if !strings.Contains(report, "countersign audit accept-loss --head ") || !strings.Contains(report, "countersign restore FILE") {
				t.Errorf("/readyz does not say what to do: %s", report)
			}
			if status, body := get(t, m.admin+"/healthz"); status != http.StatusOK {
				t.Errorf("/healthz: %d %s", status, body)
			}
			if _, body := get(t, m.admin+"/metrics"); !strings.Contains(body, "\ncountersign_held 1\n") || !strings.Contains(body, "\ncountersign_build_info{") {
				t.Errorf("/metrics does not say that the bot is held:\n%s", body)
			}
			m.exits(cli.ExitFailed, "resume", "--reason", "checked")
			m.exits(cli.ExitFailed, "decide", "req_x", "reject", "--reason", "checked")
			m.exits(cli.ExitDone, "pending")
			m.exits(cli.ExitDone, "backup", filepath.Join(m.dir, "held.db"))
			m.exits(cli.ExitNo, "audit", "verify")
			if strings.Contains(m.bot.text(), "connected to Slack") {
				t.Error("it receives deliveries from Slack")
			}
			_, number, _ := strings.Cut(report, "accept-loss --head ")
			number, _, _ = strings.Cut(number, " ")
			m.exits(cli.ExitNo, "audit", "accept-loss", "--head", "99", "--reason", "it is lost")
			m.exits(cli.ExitUsage, "audit", "accept-loss", "--head", number)
			if stopped {
				m.ok(m.bot.end(syscall.SIGTERM))
				m.exits(cli.ExitFailed, "decide", "req_x", "reject", "--reason", "checked")
				m.exits(cli.ExitDone, "store", "check")
			}
			out := m.exits(cli.ExitDone, "audit", "accept-loss", "--head", number, "--reason", "it is lost")
			if !strings.Contains(out, m.store+".heads.replaced-") {
				t.Errorf("it does not say where the heads are:\n%s", out)
			}
			if stopped {
				m.bot, m.admin = m.serve()
			} else {
				m.admin = "http://" + m.bot.says(`countersign is up.* admin=(\S+)`)
			}
			m.until(http.StatusOK)
			m.exits(cli.ExitDone, "resume", "--reason", "checked")
			list := m.sees(` restored +operator:\S+ .*head="` + number + `"`)
			if strings.Contains(list, " executing ") {
				t.Errorf("a call of the old store runs again:\n%s", list)
			}
			if !strings.Contains(list, `state="voided"`) {
				t.Errorf("the request is not closed:\n%s", list)
			}
			m.exits(cli.ExitNo, "audit", "accept-loss", "--head", number, "--reason", "it is lost")
			m.sam.sees("#support", m.thread, "put back from a backup")
			m.ok(m.bot.end(syscall.SIGTERM))
			m.exits(cli.ExitDone, "audit", "verify")
			aside, err := filepath.Glob(m.store + ".heads.replaced-*")
			if err != nil || len(aside) != 1 || readText(t, aside[0]) != heads {
				t.Errorf("the heads that cover the lost records are not kept: %q, %v", aside, err)
			}
			if out := m.exits(cli.ExitNo, "audit", "verify", "--heads", aside[0]); !strings.Contains(out, "history was replaced") && !strings.Contains(out, "not in the store") {
				t.Errorf("the proof proves nothing:\n%s", out)
			}
			m.bot, m.admin = m.serve()
			m.until(http.StatusOK)
			m.ok(m.bot.end(syscall.SIGTERM))
		})
	}
}

// While the bot is held, its gateway denies the calls of coding agents, and refuses all other requests.
func TestHeldGateway(t *testing.T) {
	for path, want := range map[string]int{"/v1/hooks/claude-code?event=PreToolUse": http.StatusOK, "/v1/requests": http.StatusServiceUnavailable, "/mcp": http.StatusServiceUnavailable} {
		w := httptest.NewRecorder()
		heldGateway(slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader("{}")))
		problem := w.Header().Get("Content-Type") == "application/problem+json" && strings.Contains(w.Body.String(), `"urn:countersign:problem:held"`)
		if denied := strings.Contains(w.Body.String(), `"permissionDecision":"deny"`); w.Code != want || denied != (want == http.StatusOK) || problem == denied || !strings.Contains(w.Body.String(), "operator") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// When the hold ends, its server may need seconds to finish a request. In this time, no connection is refused: the bot's
// server answers it.
func TestListenersStayOpenAfterHold(t *testing.T) {
	address, err := listen("a server", "", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { address.Close() })
	url := "http://" + address.Addr().String()
	old := reportsClose{keptOpen{address}, make(chan struct{})}
	begun, finish := make(chan struct{}), make(chan struct{})
	ctx, end := context.WithCancel(t.Context())
	g := errgroup.Group{}
	g.Go(func() error {
		return serveHTTP(ctx, old, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			close(begun)
			<-finish
		}))
	})
	g.Go(func() error {
		answer, err := http.Get(url)
		if err == nil {
			answer.Body.Close()
		}
		return err
	})
	<-begun
	end()
	<-old.closed
	c, err := net.Dial("tcp", address.Addr().String())
	if err != nil {
		t.Fatal("a connection is refused: ", err)
	}
	defer c.Close()
	close(finish)
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := (listeners{admin: address}).acceptAgain(); err != nil {
		t.Fatal(err)
	}
	next, stop := context.WithCancel(t.Context())
	g.Go(func() error { return serveHTTP(next, address, http.HandlerFunc(refuse)) })
	fmt.Fprint(c, "GET / HTTP/1.0\r\n\r\n")
	if answer, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.0 503") {
		t.Errorf("the connection was answered with %q, %v", answer, err)
	}
	stop()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

// reportsClose is a listener that says when it is closed.
type reportsClose struct {
	net.Listener
	closed chan struct{}
}

func (l reportsClose) Close() error {
	defer close(l.closed)
	return l.Listener.Close()
}

// A bot can be killed at any moment. The test shows that the store of a killed bot always has all records that a signed
// head covers. Therefore the next process starts. The bot is killed twice, or COUNTERSIGN_HEAD_KILLS times.
func TestKilledBotIsNotHeld(t *testing.T) {
	t.Parallel()
	p := openProcessHarness(t)
	sam := p.watcher("sam")
	kills := testkit.Size(t, "COUNTERSIGN_HEAD_KILLS", 2)
	random := testkit.Chance(testkit.Seed(t), 0)
	for range kills {
		bot, _ := p.serve()
		for range 3 {
			sam.says("#support", "", "@Countersign where is order ORD-131?")
		}
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond) // within the second in which heads are signed and shipped
		if err := bot.end(syscall.SIGKILL); err == nil {
			t.Fatal("it was not killed")
		}
	}
	bot, _ := p.serve()
	if err := bot.end(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}
