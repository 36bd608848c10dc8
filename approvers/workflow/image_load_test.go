//go:build linux

package workflow_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
)

// TestCrashImages sets the environment variable loadEnv when it starts the test binary as the process whose disk is
// recorded. Its value has the number of decisions and the directory.
const loadEnv = "COUNTERSIGN_TEST_LOAD"

// The recorded process prints these lines. Each line states a fact, and the process prints the line as soon as the
// store has synced the fact. The process prints saidCalled after the claim of a run, which is when a real process calls
// the tool.
const (
	saidReceived = "received"
	saidDecided  = "decided"
	saidCalled   = "called"
	saidFinished = "finished"
)

// atOnceLoaded is the number of concurrent conversations, whose transactions share commits.
const atOnceLoaded = 6

// TestLoad is the process whose disk is recorded. TestCrashImages starts TestLoad in another process.
func TestLoad(t *testing.T) {
	testkit.SkipIfShort(t)
	decisions, dir, ok := strings.Cut(os.Getenv(loadEnv), " ")
	if !ok {
		t.Skip("only run by TestCrashImages")
	}
	n, err := strconv.Atoi(decisions)
	if err != nil {
		t.Fatal(err)
	}
	s, err := bolt.Open(filepath.Join(dir, "store.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	said, err := os.OpenFile(filepath.Join(dir, "said"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, store: s, tools: newToolbox(), clock: &clock{now: imageTime}}
	h.policy.Store(policy("policy-1"))
	h.Workflow = workflow.New(workflow.Config{Store: s, Policy: h.policy.Load, Tools: h.tools, Log: slog.New(slog.DiscardHandler), Now: h.clock.Now, GrantOwner: h.giver})
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for thread := range atOnceLoaded {
		wg.Go(func() {
			l := &loader{harness: h, name: fmt.Sprint(thread), said: said}
			for i := 0; left.Add(-1) >= 0 && l.err == nil; i++ {
				l.converse(i)
			}
			if l.err != nil {
				t.Error(l.err)
			}
		})
	}
	wg.Wait()
	// The process ends without closing the store.
}

var imageTime = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// loader runs one conversation after the other. Each conversation has one call, which a person approves or rejects. An
// approved call runs.
type loader struct {
	*harness
	name string
	said *os.File
	err  error
}

// l.do runs one step. If an earlier step has failed, l.do does nothing.
func (l *loader) do(step func() error) {
	if l.err == nil {
		l.err = step()
	}
}

func (l *loader) say(what, ref string) {
	l.do(func() error {
		_, err := fmt.Fprintf(l.said, "%s %s\n", what, ref)
		return err
	})
}

func (l *loader) delivered(id string) {
	l.do(func() error {
		l.clock.pass(time.Microsecond)
		_, err := l.Intake.Receive(l.ctx(), store.Inbox{ID: id, Kind: store.InboxEvent, ReceivedAt: l.clock.Now(), Payload: []byte("{}")}, "")
		return err
	})
	l.say(saidReceived, id)
}

func (l *loader) converse(i int) {
	id := l.name + "-" + strconv.Itoa(i)
	l.delivered("Ev" + id)
	var turn, request, execution, digest string
	l.do(func() error {
		h, err := l.Intake.ReceiveMessage(l.ctx(), workflow.IncomingMessage{
			Inbox: "Ev" + id, At: l.clock.Now(), Team: "T0001", Thread: id, TS: id, Who: alice, Text: strings.Repeat("please ", 1+i%200), Start: true,
			Channel: approvers.ChannelRef{Channel: "C0001", Name: "support"},
		})
		turn = h.Turn
		return err
	})
	l.do(func() error {
		if _, err := l.Turns.Begin(l.ctx(), turn); err != nil {
			return err
		}
		spec := fmt.Sprintf(`issue_refund {"amount":%d,"note":%q}`, 1+i%400, strings.Repeat("x", 40*(i%150)))
		return l.Turns.Propose(l.ctx(), workflow.Proposal{Turn: turn, Text: "Let me see.", Calls: calls(spec), Authors: []approvers.PersonID{alice.ID}})
	})
	l.do(func() error {
		return l.store.View(l.ctx(), func(r store.Reader) error {
			cs, err := r.Calls(turn)
			if err != nil || len(cs) != 1 {
				return errors.Join(err, fmt.Errorf("%d calls", len(cs)))
			}
			req, err := r.Request(cs[0].Request)
			request, execution, digest = req.ID, req.Execution, req.Digest
			return err
		})
	})
	kind := approvers.Approve
	if i%5 == 4 {
		kind = approvers.Reject
	}
	l.delivered("click" + id)
	l.do(func() error {
		_, err := l.Requests.Decide(l.ctx(), workflow.Click{
			Inbox: "click" + id, At: l.clock.Now(), Who: lead, Request: request, Kind: kind, Reason: "because", Digest: digest, Whole: true, Typed: true,
		})
		return err
	})
	l.say(saidDecided, request)
	if kind == approvers.Reject {
		return
	}
	l.do(func() error {
		_, run, err := l.Runs.Claim(l.ctx(), execution)
		if err == nil && !run {
			err = errors.New("an approved call may not run")
		}
		return err
	})
	l.say(saidCalled, execution)
	l.do(func() error { return l.Runs.Finish(l.ctx(), execution, true, "done") })
	l.say(saidFinished, execution)
}
