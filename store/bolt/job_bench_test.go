package bolt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/config"
	"countersign/internal/testkit"
	"countersign/store"
)

// The benchmarks do a whole job. In a job, a tool call waits, people decide on the call, the call runs, and its result
// is recorded and read. Each step runs in a new workflow, which gets only an id from the previous step. For comparison,
// a hand-written program over bbolt does the same job (ledger_test.go). Also for comparison, bbolt alone writes the
// rows that the workflow wrote (replay_test.go). The workflow, the hand-written program and bbolt alternate within one
// run, so a busy machine slows all of them alike. docs/figures.md describes each benchmark.

// peerAlone and peer64 are the rates of the best comparable system (see ADR 8) on this job, in jobs per second.
// peerAlone is the rate for one job at a time. peer64 is the rate for 64 concurrent jobs.
const (
	peerAlone = 371
	peer64    = 943
)

func BenchmarkJobAlone(b *testing.B) { benchJobs(b, jobs{workers: 1, round: 200, peer: peerAlone}) }

func BenchmarkJob64(b *testing.B) { benchJobs(b, jobs{workers: 64, round: 640, peer: peer64}) }

// BenchmarkJobReopened is like BenchmarkJobAlone, but opens the file for each step, as a newly started process does.
func BenchmarkJobReopened(b *testing.B) {
	benchJobs(b, jobs{workers: 1, round: 50, peer: peerAlone, reopen: true})
}

type jobs struct {
	workers int
	round   int // number of jobs between two readings of the clock
	peer    float64
	reopen  bool
}

func benchJobs(b *testing.B, j jobs) {
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(400)) // the command serve uses the same value
	}
	ours, byHand := newBenchFixture(b, j.reopen), newLedger(b, j.reopen)
	rows := recordJobs(b, j.round)
	var done int
	var spent, worked [3]time.Duration
	for b.Loop() {
		turns, raw := ours.asked(j.round), rows.begin(b)
		for side, job := range [3]func(n int) error{
			func(n int) error { return ours.job(turns[n]) },
			func(int) error { return byHand.job() },
			func(n int) error { return rows.job(raw, n) },
		} {
			began, cpu := time.Now(), testkit.ProcessorTime(b)
			crowd(b, j.workers, j.round, job)
			spent[side] += time.Since(began)
			worked[side] += testkit.ProcessorTime(b) - cpu
		}
		if err := raw.close(); err != nil {
			b.Fatal(err)
		}
		done += j.round
	}
	perSecond := func(side int) float64 { return float64(done) / spent[side].Seconds() }
	cpu := func(side int) float64 { return float64(worked[side].Microseconds()) / float64(done) }
	b.ReportMetric(0, "ns/op") // not reported, because one iteration does a round of each kind
	for side, name := range []string{"", "byhand-", "rows-"} {
		b.ReportMetric(perSecond(side), name+"jobs/s")
		b.ReportMetric(cpu(side), name+"cpu-µs/job")
	}
	b.ReportMetric(perSecond(0)/perSecond(1), "ratio")
	b.ReportMetric(perSecond(0)/perSecond(2), "rows-ratio")
	b.ReportMetric(perSecond(0)/j.peer, "×peer")
	if ran := ours.ran.Load(); ran != int64(done) {
		b.Errorf("%d jobs ran the tool %d times", done, ran)
	}
}

// crowd calls a function for each of n numbers, with several concurrent workers.
func crowd(b testing.TB, workers, n int, do func(i int) error) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

const jobPolicy = `version: 1
defaults: {expires_after: 30m, escalate_after: 10m, run_within: 15m}
tools:
  issue_refund:
    risk: high
    confirm: true
    preview: "Refund of {{money .amount .currency}} for order {{.order_id}}"
    rules:
      - when: args.amount > 500
        risk: critical
        stages: [team-lead, {approver: finance-director, quorum: 2}]
approvers:
  team-lead: {title: Team Lead, members: [U0002], max_risk: high, can_approve: [issue_refund], cards: "#support-approvals", lead: finance-director}
  finance-director: {title: Finance Director, members: [U0003, U0004], max_risk: critical, can_approve: ["*"]}
agents:
  support: {channels: ["#support"], prompt: You help., tools: ["*"]}
`

const jobArgs = `{"order_id":"ORD-123","amount":49.99,"currency":"USD","reason":"The parcel arrived damaged, the customer sent photographs."}`

const jobResult = `{"refund":"RF-0001","status":"done"}`

var jobTool = agent.Tool{
	Name: "issue_refund", Description: "Pays money back.", Effect: approvers.Unprotected,
	Schema: json.RawMessage(`{"type":"object","required":["order_id","amount"],"additionalProperties":false,"properties":{` +
		`"order_id":{"type":"string"},"amount":{"type":"number"},"currency":{"type":"string"},"reason":{"type":"string"}}}`),
	Run: func(context.Context, agent.Invocation) (string, error) { return jobResult, nil },
}

// benchFixture is shared by all workflows of a benchmark: the file, the policy and the tools.
type benchFixture struct {
	testing.TB
	path   string
	reopen bool
	shared *Store      // nil: each step opens the file for itself
	over   store.Store // a wrapper around the store in the field shared, for the workflows; nil: the workflows use the store without a wrapper
	policy *approvers.Policy
	tools  *agent.Registry
	told   int
	ran    atomic.Int64
}

func newBenchFixture(b testing.TB, reopen bool) *benchFixture {
	policy, err := config.ParsePolicy("countersign.yaml", []byte(jobPolicy))
	if err != nil {
		b.Fatal(err)
	}
	o := &benchFixture{TB: b, path: filepath.Join(b.TempDir(), "store.db"), reopen: reopen, policy: policy.Policy, tools: &agent.Registry{}}
	if err := o.tools.Register(jobTool); err != nil {
		b.Fatal(err)
	}
	if !reopen {
		if o.shared, err = Open(o.path, Options{}); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { o.shared.Close() })
	}
	return o
}

// with does one step of a job on the store.
func (o *benchFixture) with(do func(*Store) error) (err error) {
	s := o.shared
	if o.reopen {
		if s, err = Open(o.path, Options{}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
	}
	return do(s)
}

// part does one step of a job with a new workflow.
func (o *benchFixture) part(do func(*workflow.Workflow) error) error {
	return o.with(func(s *Store) error {
		var seen store.Store = s
		if o.over != nil {
			seen = o.over
		}
		return do(workflow.New(workflow.Config{
			Store: seen, Policy: func() *approvers.Policy { return o.policy }, Tools: o.tools, Log: slog.New(slog.DiscardHandler),
		}))
	})
}

// asked stores n messages from people, each in its own thread, and begins a turn of the model for each message. asked
// returns the ids of the turns.
func (o *benchFixture) asked(n int) []string {
	turns := make([]string, n)
	from := o.told
	o.told += n
	err := o.part(func(wf *workflow.Workflow) error {
		crowd(o.TB, 64, n, func(i int) error {
			ts := fmt.Sprintf("1780000000.%06d", from+i)
			heard, err := wf.Intake.ReceiveMessage(o.Context(), workflow.IncomingMessage{
				At: time.Now(), Team: "T0001", Thread: ts, TS: ts, Channel: approvers.ChannelRef{Channel: "C0001", Name: "support"},
				Who: approvers.Identity{ID: "T0001/U0009", Name: "Robin"}, Text: "Please refund order ORD-123, it arrived damaged.", Start: true,
			})
			if err != nil {
				return err
			}
			turns[i] = heard.Turn
			_, err = wf.Turns.Begin(o.Context(), heard.Turn)
			return err
		})
		return nil
	})
	if err != nil {
		o.Fatal(err)
	}
	return turns
}

// job does a whole job. The steps of a job share only the turn's id.
func (o *benchFixture) job(turn string) error {
	return errors.Join(
		o.part(func(wf *workflow.Workflow) error { return o.park(wf, turn) }),
		o.part(func(wf *workflow.Workflow) error { return o.decideAndRun(wf, turn) }),
		o.with(func(s *Store) error { return o.check(s, turn) }),
	)
}

func (o *benchFixture) park(wf *workflow.Workflow, turn string) error {
	return wf.Turns.Propose(o.Context(), workflow.Proposal{
		Turn: turn, Calls: []workflow.ModelCall{{ID: "call_1", Tool: "issue_refund", Args: jobArgs}},
		Authors: []approvers.PersonID{"T0001/U0009"}, Tokens: 500,
	})
}

func (o *benchFixture) decideAndRun(wf *workflow.Workflow, turn string) error {
	var r approvers.Request
	err := wf.Store.View(o.Context(), func(s store.Reader) error {
		calls, err := s.Calls(turn)
		if err != nil {
			return err
		}
		r, err = s.Request(calls[0].Request)
		return err
	})
	if err != nil {
		return err
	}
	r, err = wf.Requests.Decide(o.Context(), workflow.Click{
		At: time.Now(), Who: approvers.Identity{ID: "T0001/U0002", Name: "Sam"}, Request: r.ID, Kind: approvers.Approve,
		Digest: r.Digest, Whole: true, Rendering: r.Digest, Channel: "C0002", MessageTS: "1780000000.000100",
	})
	if err != nil {
		return err
	}
	e, run, err := wf.Runs.Claim(o.Context(), r.Execution)
	if err != nil || !run {
		return errors.Join(err, fmt.Errorf("%s: run: %t", r.Execution, run))
	}
	o.ran.Add(1)
	result, err := jobTool.Run(o.Context(), agent.Invocation{Args: e.Args})
	if err != nil {
		return err
	}
	return wf.Runs.Finish(o.Context(), e.ID, true, result)
}

func (o *benchFixture) check(s *Store, turn string) error {
	return s.View(o.Context(), func(r store.Reader) error {
		calls, err := r.Calls(turn)
		if err == nil && calls[0].Outcome != approvers.OutcomeExecuted {
			err = fmt.Errorf("%s: %q, %s", turn, calls[0].Outcome, calls[0].Result)
		}
		return err
	})
}
