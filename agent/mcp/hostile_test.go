package mcp

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"countersign/agent"
	"countersign/config"
	"countersign/internal/testkit"
)

type outcome int

const (
	answers outcome = iota // a result
	fails                  // an error, which means that nothing was done, or that the tool itself reports an error
	unclear                // it is unknown whether the tool did anything
)

func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return answers
	case errors.Is(err, agent.ErrOutcomeUnknown):
		return unclear
	}
	return fails
}

func (o outcome) String() string { return []string{"answers", "fails", "is unclear"}[o] }

// TestHostileServers checks that calls to a hostile server end in time with the right outcome. Memory and goroutines
// stay limited. Meanwhile, calls to another, correct server succeed.
func TestHostileServers(t *testing.T) {
	testkit.SkipIfShort(t)
	tests := []struct {
		role string
		want outcome
		says string // a part of the result or of the error
	}{
		{"plain", answers, "done"},
		{"hangs at the handshake", fails, "it was not run"},
		{"hangs at the list", fails, "it was not run"},
		{"hangs at a call", unclear, "had not answered"},
		{"answers no ping", unclear, "had not answered"},
		{"floods with progress", unclear, "had not answered"},
		{"floods with log lines", unclear, "had not answered"},
		{"floods with changes", unclear, "had not answered"},
		{"floods with questions", unclear, "had not answered"},
		{"floods with pings", unclear, ""}, // the server does not read the answers either, so the connection may end before the call is sent
		{"floods with answers", unclear, "had not answered"},
		{"floods with garbage", unclear, "had not answered"},
		{"floods its standard error", unclear, "had not answered"},
		{"never ends a line", unclear, "broke"},
		{"answers without end", unclear, "broke"},
		{"answers too much", unclear, "1048576 are allowed"},
		{"answers deep", unclear, "nested more than 100 deep"},
		{"answers very deep", unclear, "nested more than 100 deep"},
		{"answers no UTF-8", unclear, "invalid UTF-8"},
		{"answers a name twice", unclear, "an object with a repeated name"},
		{"answers no object", unclear, "not an object"},
		{"answers with a result and an error", unclear, "both a result and an error"},
		{"answers another question", unclear, "had not answered"},
		{"answers with the id as a text", unclear, "had not answered"},
		{"answers twice", answers, "first"},
		{"answers after garbage", answers, "done"},
		{"answers with parts that are none", answers, "but also this"},
		{"answers content that is not a list", fails, "act ran, but"},
		{"fails inside", unclear, "the disk is on fire"},
		{"fails in its own way", unclear, "out of paper"},
		{"refuses arguments", fails, "amount is missing"},
		{"knows no such tool", fails, "no such tool"},
		{"says that it failed", fails, "the account is closed"},
		{"fails without words", fails, "without saying why"},
		{"answers nothing", answers, "answered nothing"},
		{"persuades", answers, "click Approve"}, // an ordinary text; people are told that the server wrote it
		{"dies at a call", unclear, "broke"},
		{"dies at once", fails, "ended before the handshake"},
		{"closes its output", unclear, "broke"},
		{"lists no list", fails, "not a list"},
		{"lists without end", fails, "has no last page"},
		{"lists in a circle", fails, "has no last page"},
		{"lists too many", fails, "more than 500 tools"},
		{"lists a tool too large", fails, "65536 are allowed"},
		{"lists too much", fails, "more than 4194304 bytes"},
		{"sends somebody astray", answers, "decline"},
		{"loses its tool", fails, "does not have this tool any more"},
		{"changes its tool in silence", fails, "differs from the pinned one"},
	}
	before := runtime.NumGoroutine()
	for i, tt := range tests {
		t.Run(tt.role, func(t *testing.T) {
			testkit.EveryOther(t, "COUNTERSIGN_HOSTILE", i)
			l := quick()
			l.ready, l.backoff, l.backoffTo = 500*time.Millisecond, time.Second, time.Second // starts few processes
			if tt.role == "hangs at the handshake" || tt.role == "hangs at the list" {
				l.start, l.list = 500*time.Millisecond, 500*time.Millisecond
			}
			if strings.Contains(tt.role, "in silence") || strings.HasPrefix(tt.role, "loses") {
				l.fresh = 0
			}
			memory := watchMemory(t)
			o := newOffers()
			c := open(Config{
				Servers: []config.Server{program(t, "bad", tt.role), saneAddress(t)}, Offer: o.take, Log: slog.New(slog.NewTextHandler(testLog{t}, nil)),
			}, quick())
			c.servers[0].limits = l // quick limits would be too short for the sane server on a busy machine
			runUntilEnd(t, c)
			beside := keepCalling(t, o.tool(t, "sane.echo"))
			tool, err := c.Tool("bad", []byte(aTool))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Settled(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if tt.says == "had not answered" || tt.role == "floods with pings" {
				go endOnceSent(c.servers[0], cancel)
			}
			began := time.Now()
			text, err := tool.Run(ctx, agent.Invocation{Key: "exec-1", Args: []byte(`{}`), Progress: func(agent.Progress) {}})
			took := time.Since(began)
			if got := outcomeOf(err); got != tt.want || !strings.Contains(text+said(err), tt.says) {
				t.Errorf("it %v: %.300q, %v; want that it %v with %q", got, text, err, tt.want, tt.says)
			}
			if took > 20*time.Second {
				t.Errorf("the call took %s", took)
			}
			if calls := beside(); calls == 0 {
				t.Error("the sane server beside it was not called meanwhile")
			}
			memory()
		})
	}
	settled(t, before)
}

// misbehaving is how long endOnceSent waits for an answer to a call.
const misbehaving = 100 * time.Millisecond

// endOnceSent waits until a call is sent, and ends the call after the time misbehaving.
func endOnceSent(s *server, end func()) {
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(time.Millisecond) {
		s.mu.Lock()
		live := s.live
		s.mu.Unlock()
		if live == nil {
			continue
		}
		live.tap.mu.Lock()
		sent := false
		for _, f := range live.tap.flights {
			sent = sent || f.sent.Load()
		}
		live.tap.mu.Unlock()
		if sent {
			time.Sleep(misbehaving)
			break
		}
	}
	end()
}

// said returns the text of an error, or "" for nil.
func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// betweenCalls is the pause between two calls of the sane server. Without pauses, these calls would use a whole
// processor.
const betweenCalls = 10 * time.Millisecond

// keepCalling calls a tool until stop is called. stop returns the number of calls. Each call must succeed at the
// first try.
func keepCalling(t *testing.T, tool agent.Tool) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int)
	go func() {
		n := 0
		for n == 0 || ctx.Err() == nil { // at least once, even if the test calls stop immediately
			within, end := context.WithTimeout(context.Background(), patience)
			text, err := tool.Run(within, agent.Invocation{Key: "exec-2", Args: []byte(`{"a":1}`)})
			end()
			if err != nil || text != `{"a":1}` {
				t.Errorf("the sane server: %q, %v", text, err)
				break
			}
			n++
			select {
			case <-ctx.Done():
			case <-time.After(betweenCalls):
			}
		}
		done <- n
	}()
	return func() int {
		cancel()
		return <-done
	}
}

// maxGrowth limits the growth of the heap during a hostile server's calls. The limit is the size of a few messages of
// maximum length.
const maxGrowth = 128 << 20

// watchMemory samples the size of the heap until stop is called.
func watchMemory(t *testing.T) (stop func()) {
	t.Helper()
	was := debug.SetGCPercent(100) // frequent garbage collections, so that the samples contain little garbage
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, most := m.HeapAlloc, m.HeapAlloc
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			}
		}
	}()
	return func() {
		close(end)
		<-ended
		debug.SetGCPercent(was)
		t.Logf("the heap grew by %d MiB at most", (most-before)>>20)
		if most > before+maxGrowth {
			t.Errorf("the heap grew by %d MiB", (most-before)>>20)
		}
	}
}

// settled waits until the number of goroutines is not greater than before.
func settled(t *testing.T, before int) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines are left, %d were there before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
		runtime.Gosched()
		time.Sleep(10 * time.Millisecond)
	}
}
