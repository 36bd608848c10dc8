package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/agent"
	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/retention"
	"countersign/cmd/countersign/auditcmd"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/policyfile"
	"countersign/config"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
)

// Retention erases finished requests of all kinds, several times. At the same time, other requests are made, decided
// and run, the history is sealed, the store is copied, and one client writes all the time. After each retention, the
// history must verify, in the store and against the signed heads. The waits for commits are measured alternately with
// and without retention, so that other load on the machine affects both measurements.
//
// The short form uses 30 requests, twice. COUNTERSIGN_RETAINED=1000 uses 1000 requests, and also compares the waits.
// With fewer requests, there are too few waits for a 99th percentile.
func TestRetentionUnderLoad(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	requests, times := testkit.Size(t, "COUNTERSIGN_RETAINED", 30), 2
	a := openArchive(t)
	began := time.Now()
	var with, without []time.Duration
	var erased retention.Removed
	lasts := 500 * time.Millisecond // how long retention takes
	for range times {
		a.fill(requests)
		// The first retention erases the texts of old conversations, and the second retention deletes their chains.
		for _, age := range []time.Duration{2 * 24 * time.Hour, 30 * 24 * time.Hour} {
			a.later(age)
			without = append(without, a.while(func() { time.Sleep(lasts) })...)
			before := erased
			with = append(with, a.while(func() {
				start := time.Now()
				done, err := retention.Enforce(t.Context(), a.workflow)
				a.ok(err)
				lasts = min(time.Since(start), 10*time.Second)
				erased.Conversations, erased.Chains, erased.Records = erased.Conversations+done.Conversations, erased.Chains+done.Chains, erased.Records+done.Records
			})...)
			a.verifies()
			t.Logf("after %s: %+v", time.Since(began).Round(time.Second), erased)
			if erased == before {
				t.Error("nothing was erased")
			}
		}
	}
	if erased.Conversations < times*requests/2 || erased.Chains < times*requests {
		t.Errorf("only %+v were erased", erased)
	}
	a.ok(a.db.Check(t.Context()))
	p99, most := quantiles(with)
	base99, base := quantiles(without)
	longest := time.Duration(a.longest.Load())
	t.Logf("requests=%d times=%d erased=%+v commits=%d wait p99=%s max=%s; without retention commits=%d p99=%s max=%s; p99 × %.1f; longest transaction of retention=%s; in %s",
		requests, times, erased, len(with), ms(p99), ms(most), len(without), ms(base99), ms(base), float64(p99)/float64(max(base99, 1)), ms(longest), time.Since(began).Round(time.Second))
	if requests >= manyRetained && p99 > 100*time.Millisecond && p99 > 5*base99 {
		t.Errorf("commits wait up to %s for retention at p99, and %s without it; the figure to reach is 100 ms", ms(p99), ms(base99))
	}
}

const manyRetained = 1000

func ms(d time.Duration) string { return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond)) }

// The function "quantiles" returns the 99th percentile and the maximum.
func quantiles(all []time.Duration) (p99, most time.Duration) {
	slices.Sort(all)
	return all[len(all)*99/100], all[len(all)-1]
}

// archive is a workflow on a real store, with a clock that can be set forward, and with the signed heads of its
// history.
type archive struct {
	*testing.T
	db       *bolt.Store
	workflow *workflow.Workflow
	keys     []approvers.SealKey
	env      config.Audit
	ahead    atomic.Int64 // by how much the clock is ahead
	n        atomic.Int64 // counter for unique names
	longest  atomic.Int64 // time of the longest transaction of retention
}

const archivePolicy = `version: 1
retention: {conversations: 1d, records: 30d}
tools:
  refund: {risk: high, confirm: true}
  look: {risk: low}
approvers:
  lead: {title: Lead, members: [U0002], max_risk: high, can_approve: ["*"], cards: "#approvals", lead: director}
  director: {title: Director, members: [U0003], max_risk: critical, can_approve: ["*"], cards: dm}
agents:
  support: {channels: ["#support"], prompt: Do as you are told., tools: ["*"]}
`

func openArchive(t *testing.T) *archive {
	t.Helper()
	a := &archive{T: t}
	path := filepath.Join(t.TempDir(), "countersign.db")
	log := slog.New(slog.DiscardHandler)
	var err error
	a.db, err = openstore.File(path)
	a.ok(err)
	t.Cleanup(func() { a.db.Close() })
	r := &agent.Registry{}
	for name, effect := range map[string]approvers.Effect{"refund": approvers.Unprotected, "look": approvers.ReadOnly} {
		a.ok(r.Register(agent.Tool{
			Name: name, Description: "Is tried.", Effect: effect, Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]}`),
			Run: func(context.Context, agent.Invocation) (string, error) { return "", errors.New("nobody runs it here") },
		}))
	}
	policies, err := policyfile.New("archive.yaml", []byte(archivePolicy), catalogOf(r), log)
	a.ok(err)
	a.env = config.AuditBeside(path)
	sealing, err := openSealing(t.Context(), a.env, a.db, log)
	a.ok(err)
	a.keys = sealing.keys
	a.workflow = workflow.New(workflow.Config{Store: timed{a.db, a}, Policy: policies.Tools.Policy, Tools: r, Log: log, Now: a.now})
	return a
}

// timed records the time of retention's longest transaction.
type timed struct {
	*bolt.Store
	a *archive
}

func (s timed) Update(ctx context.Context, fn func(store.Tx) error) error {
	if testkit.CallingTransition() != "Update" { // only retention calls Workflow.Update
		return s.Store.Update(ctx, fn)
	}
	return s.Store.Update(ctx, func(tx store.Tx) error {
		began := time.Now()
		err := fn(tx)
		if took := int64(time.Since(began)); took > s.a.longest.Load() {
			s.a.longest.Store(took)
		}
		return err
	})
}

func (a *archive) now() time.Time { return time.Now().Add(time.Duration(a.ahead.Load())) }

func (a *archive) later(d time.Duration) { a.ahead.Add(int64(d)) }

func (a *archive) ok(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// endings lists the possible endings of a call.
var endings = []string{"ran", "failed", "rejected", "modified", "withdrawn", "unknown", "automatic", "refused", "expired"}

var (
	asker = approvers.Identity{ID: "T0001/U0100", Name: "Sam"}
	boss  = approvers.Identity{ID: "T0001/U0002", Name: "Teo"}
)

// The method "one" plays a call in a thread until its end. If the call must expire, the result waits is the id of the
// call's turn.
func (a *archive) one(ctx context.Context, thread, ending string) (waits string, err error) {
	n := fmt.Sprint(a.n.Add(1))
	heard, err := a.workflow.Intake.ReceiveMessage(ctx, workflow.IncomingMessage{
		At: a.now(), Team: "T0001", Thread: thread, TS: "ts." + n, Text: strings.Repeat("please ", 50), Start: true, Who: asker,
		Channel: approvers.ChannelRef{Channel: "C0001", Name: "support"},
	})
	if err != nil || heard.Turn == "" {
		return "", fmt.Errorf("%s was not heard: %+v %w", ending, heard, err)
	}
	tool, args := "refund", fmt.Sprintf(`{"n":%q}`, n)
	switch ending {
	case "automatic":
		tool = "look"
	case "refused":
		args = `{"m":1}`
	}
	err = a.workflow.Turns.Propose(ctx, workflow.Proposal{Turn: heard.Turn, Authors: []approvers.PersonID{asker.ID}, Calls: []workflow.ModelCall{{ID: "c" + n, Tool: tool, Args: args}}})
	if err != nil {
		return "", err
	}
	if err := a.end(ctx, heard.Turn, ending); err != nil {
		return "", fmt.Errorf("%s: %w", ending, err)
	}
	if ending == "expired" {
		return heard.Turn, nil
	}
	return "", a.workflow.Turns.Answer(ctx, heard.Turn, 1, "That is settled.", nil, 100)
}

// end decides the call of a turn, and runs the call.
func (a *archive) end(ctx context.Context, turn, ending string) error {
	var call store.Call
	var r approvers.Request
	var cards []store.OutboxMessage
	err := a.db.View(ctx, func(rd store.Reader) error {
		calls, err := rd.Calls(turn)
		if err != nil {
			return err
		}
		if call = calls[0]; call.Request == "" {
			return nil
		}
		if r, err = rd.Request(call.Request); err != nil {
			return err
		}
		cards, err = rd.OutboxMessagesOf(r.ID)
		return err
	})
	if err != nil {
		return err
	}
	for i, s := range cards {
		s.Channel, s.TS = "D1", fmt.Sprint(r.ID, i)
		card := fmt.Sprintf(`{"text":"Refund","blocks":%q}`, strings.Repeat("x", 2000))
		if err := a.workflow.Outbox.Delivered(ctx, s, workflow.SentMessage{Body: []byte(card), Shows: []store.Shown{{Request: r.ID, Digest: r.Digest, Whole: true}}}); err != nil {
			return err
		}
	}
	click := workflow.Click{At: a.now(), Who: boss, Request: r.ID, Kind: approvers.Approve, Digest: r.Digest, Whole: true, Rendering: "r", Channel: "D1", MessageTS: "1", Reason: "because"}
	switch ending {
	case "refused", "expired":
		return nil
	case "withdrawn":
		click.Who = asker
		_, err = a.workflow.Requests.Withdraw(ctx, click)
		return err
	case "rejected":
		click.Kind = approvers.Reject
		_, err = a.workflow.Requests.Decide(ctx, click)
		return err
	case "modified":
		click.Kind, click.Args = approvers.Modify, json.RawMessage(`{"n":"another"}`)
	}
	execution := call.Execution
	if ending != "automatic" {
		if r, err = a.workflow.Requests.Decide(ctx, click); err != nil {
			return err
		}
		execution = r.Execution
	}
	if _, run, err := a.workflow.Runs.Claim(ctx, execution); err != nil || !run {
		return fmt.Errorf("the call can't be run: %w", err)
	}
	if ending == "unknown" {
		return errors.Join(a.workflow.Runs.MarkUnknown(ctx, execution), a.workflow.Runs.Report(ctx, workflow.Click{At: a.now(), Who: boss, Execution: execution, Reason: "seen at the bank"}, workflow.Happened))
	}
	return a.workflow.Runs.Finish(ctx, execution, ending != "failed", strings.Repeat("done ", 100))
}

// fill makes n requests of all kinds and lets them end. Half of the requests have their own conversations. The other
// requests share one conversation.
func (a *archive) fill(n int) {
	a.Helper()
	var mu sync.Mutex
	var waiting []string
	var g errgroup.Group
	g.SetLimit(8) // the goroutines share commits
	g.Go(func() error {
		thread := fmt.Sprint("all ", a.n.Add(1))
		for i := range n / 2 {
			// The last ending, "expired", is left out: its call waits for people, and would delay the thread.
			if _, err := a.one(a.Context(), thread, endings[i%(len(endings)-1)]); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range n - n/2 {
		g.Go(func() error {
			waits, err := a.one(a.Context(), fmt.Sprint("thread ", a.n.Add(1)), endings[i%len(endings)])
			if waits != "" {
				mu.Lock()
				defer mu.Unlock()
				waiting = append(waiting, waits)
			}
			return err
		})
	}
	a.ok(g.Wait())
	a.later(time.Hour)
	for {
		var due []store.Timer
		a.ok(a.db.View(a.Context(), func(r store.Reader) (err error) {
			due, err = r.TimersIn(store.AllShares, store.TimerExpire, a.now(), 100)
			return err
		}))
		if len(due) == 0 {
			break
		}
		for _, timer := range due {
			a.ok(a.workflow.Requests.Expire(a.Context(), timer))
		}
	}
	for _, turn := range waiting {
		a.ok(a.workflow.Turns.Answer(a.Context(), turn, 1, "Nobody answered.", nil, 100))
	}
}

// The method "while" runs the function work, and all other work continues. The result has, for each write of the
// writing client, the time that the write waited for its commit.
func (a *archive) while(work func()) (waits []time.Duration) {
	a.Helper()
	ctx, stop := context.WithCancel(a.Context())
	var others sync.WaitGroup
	goes := func(do func(i int) error) {
		others.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := do(i); err != nil && !errors.Is(err, context.Canceled) {
					a.Errorf("what else happens: %v", err)
					return
				}
			}
		})
	}
	goes(func(i int) error {
		began := time.Now()
		err := a.db.Update(context.WithoutCancel(ctx), func(tx store.Tx) error {
			return tx.SetTimer(store.Timer{Kind: "probe", Ref: fmt.Sprint(i % 50), Due: began})
		})
		waits = append(waits, time.Since(began))
		time.Sleep(time.Millisecond)
		return err
	})
	goes(func(i int) error {
		_, err := a.one(context.WithoutCancel(ctx), fmt.Sprint("beside ", a.n.Add(1)), endings[i%(len(endings)-1)])
		time.Sleep(5 * time.Millisecond)
		return err
	})
	goes(func(int) error {
		time.Sleep(20 * time.Millisecond)
		_, err := a.workflow.History.Seal(context.WithoutCancel(ctx), a.keys...)
		return errors.Join(err, a.workflow.Intake.Forget(context.WithoutCancel(ctx), remembered))
	})
	goes(func(int) error {
		time.Sleep(50 * time.Millisecond)
		_, err := a.db.Copy(ctx, io.Discard)
		return err
	})
	work()
	stop()
	others.Wait()
	return waits
}

// verifies verifies the whole history against the signed heads, as audit verify does.
func (a *archive) verifies() {
	a.Helper()
	for n := 1; n > 0; {
		var err error
		n, err = a.workflow.History.Seal(a.Context(), a.keys...)
		a.ok(err)
	}
	var said strings.Builder
	var public []string
	for _, k := range a.keys {
		public = append(public, k.Public)
	}
	if err := auditcmd.Verify(a.Context(), &said, a.db, audit.VerifyOptions{Keys: public}); err != nil {
		a.Fatalf("%v\n%s", err, said.String())
	}
}
