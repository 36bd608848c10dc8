package workflow_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
)

// TestSixteenDeciders makes sixteen people act on the requests of one step at the same moment, in each of the ways in
// raceKinds. Approved calls run at the same time. Each race must have only one outcome, and people who were too late
// must be told. The audit and the outbox must contain exactly the expected records and messages. The test runs 100
// races, or as many as COUNTERSIGN_RACES says. Ten thousand races take some minutes. docs/figures.md says how often the
// test was run.
func TestSixteenDeciders(t *testing.T) {
	races := testkit.Size(t, "COUNTERSIGN_RACES", 100)
	began, acts := time.Now(), 0
	for i, kind := range raceKinds {
		t.Run(kind.name, func(t *testing.T) {
			r := &raceHarness{harness: newHarness(t), ends: map[string]int{}}
			r.policy.Store(policy("races", racing))
			n := (races + i) / len(raceKinds)
			for done := 0; done < n; done += atOnce {
				r.round(kind, min(atOnce, n-done))
			}
			t.Logf("races=%d %v", n, r.ends)
			acts += r.acts
		})
	}
	t.Logf("races=%d deciders=%d acts=%d in %s", races, len(sixteen), acts, time.Since(began).Round(time.Second))
}

// atOnce is the number of concurrent races, whose transactions share commits.
const atOnce = 10

// The variable sixteen lists the people who act in a race.
var sixteen = func() (out []approvers.Identity) {
	for i := range 16 {
		out = append(out, person(fmt.Sprintf("U03%02d", i)))
	}
	return out
}()

// The function racing changes a policy so that the sixteen people may approve the tools. Most tools have one stage, at
// which all sixteen people may approve. issue_refund has two stages, with eight people at each stage.
func racing(p *approvers.Policy) {
	role := func(name string, who []approvers.Identity) approvers.Role {
		r := approvers.Role{Name: name, Title: name, MaxRisk: approvers.Critical, CanApprove: []string{"*"}, Cards: "#" + name}
		for _, one := range who {
			r.Members = append(r.Members, users(one.ID.User())...)
		}
		return r
	}
	p.Approvers = []approvers.Role{role("all", sixteen), role("first", sixteen[:8]), role("second", sixteen[8:])}
	stages := map[string][]approvers.Stage{
		"cancel_account": {{Approver: "all", Quorum: 1}},
		"update_address": {{Approver: "all", Quorum: 1}},
		"apply_discount": {{Approver: "all", Quorum: 2}},
		"issue_refund":   {{Approver: "first", Quorum: 2}, {Approver: "second", Quorum: 2}},
	}
	for i, tool := range p.Tools {
		p.Tools[i].Rules, p.Tools[i].Stages, p.Tools[i].MaxAuto, p.Tools[i].Confirm = nil, stages[tool.Name], approvers.Limit{}, true
	}
}

// raceKind is one kind of conflict between the people's actions.
type raceKind struct {
	name    string
	calls   []string                                  // the calls of the step
	before  func(*raceHarness, *race)                 // prepares the race; nil: nothing
	act     func(*raceHarness, *race, int) error      // the person's action
	outcome func(*raceHarness, *race) (string, error) // the name of the outcome; an error if the race had no valid one
}

// raceHarness is a harness with the results of the races.
type raceHarness struct {
	*harness
	n    int
	acts int
	ends map[string]int
}

// race has the requests and the results of one race.
type race struct {
	requests []approvers.Request
	shown    []store.Shown // the requests that a card of all calls offers for decision
	others   int           // the first person waits until so many other people got an answer
	answered chan struct{} // receives once for each answer
	mu       sync.Mutex
	errs     []error // by person
	denied   int     // how many people were told that they can't do the action
	ran      int
}

// round runs some races of a kind concurrently.
func (r *raceHarness) round(kind raceKind, n int) {
	r.t.Helper()
	var races []*race
	for range n {
		r.n++
		ra := &race{errs: make([]error, len(sixteen)), others: rand.IntN(4), answered: make(chan struct{}, len(sixteen))}
		for _, c := range r.propose(r.sayIn(fmt.Sprint("race ", r.n), alice, "please").Turn, kind.calls...) {
			ra.requests = append(ra.requests, r.request(c.Request))
		}
		for _, q := range ra.requests {
			ra.shown = append(ra.shown, store.Shown{Request: q.ID, Digest: q.Digest, Whole: true})
		}
		if kind.before != nil {
			kind.before(r, ra)
		}
		races = append(races, ra)
	}
	r.gun(kind, races)
	for _, ra := range races {
		end, err := kind.outcome(r, ra)
		if err == nil {
			err = r.exact(ra)
		}
		if err != nil {
			r.t.Fatalf("%s: %v", kind.name, err)
		}
		r.ends[end]++
		r.acts += len(sixteen)
	}
}

// gun starts the actions of all people at the same moment.
func (r *raceHarness) gun(kind raceKind, races []*race) {
	var people sync.WaitGroup
	start := make(chan struct{})
	for _, ra := range races {
		for _, i := range rand.Perm(len(sixteen)) {
			people.Go(func() {
				<-start
				ra.errs[i] = kind.act(r, ra, i)
			})
		}
	}
	close(start)
	people.Wait()
}

// claim claims and runs an approved call immediately, as the executor does.
func (r *raceHarness) claim(ra *race, q approvers.Request) {
	_, run, err := r.Runs.Claim(r.ctx(), q.Execution)
	if err == nil && run {
		err = r.Runs.Finish(r.ctx(), q.Execution, true, "ok")
		ra.mu.Lock()
		ra.ran++
		ra.mu.Unlock()
	}
	if err != nil {
		r.t.Errorf("claim: %v", err)
	}
}

// decide makes a person decide one of the requests.
func (r *raceHarness) decide(ra *race, i, request int, kind approvers.DecisionKind) error {
	q := ra.requests[request]
	after, err := r.Requests.Decide(r.ctx(), workflow.Click{
		At: r.clock.Now(), Who: sixteen[i], Request: q.ID, Kind: kind, Reason: "because", Whole: true, Typed: true, Digest: q.Digest, Rendering: "alone",
	})
	if err == nil && after.State == approvers.Approved {
		r.claim(ra, q)
	}
	return ra.told(err)
}

// ra.told counts an answer that a person got.
func (ra *race) told(err error) error {
	select {
	case ra.answered <- struct{}{}:
	default: // the channel is full, because people who try again get several answers
	}
	var denied *approvers.Denied
	if errors.As(err, &denied) {
		ra.mu.Lock()
		ra.denied++
		ra.mu.Unlock()
	}
	return err
}

// ra.won returns the number of people whose actions were accepted. The denials of all other people must have one of the
// given codes. If a denial has another code, won returns an error.
func (ra *race) won(codes ...approvers.Code) (n int, err error) {
	for i, e := range ra.errs {
		var denied *approvers.Denied
		switch {
		case e == nil:
			n++
		case !errors.As(e, &denied):
			return n, e
		case !slices.Contains(append(codes, approvers.DeniedResolved), denied.Code):
			return n, fmt.Errorf("%s: %w", sixteen[i].Name, e)
		}
	}
	return n, nil
}

// r.exact compares the audit records and the outbox messages of finished requests with the people's actions. Each
// decision and each denial must have one record. An approved call must have one run and one result, and any other call
// must have one result. Each stage that was reached must have one card. Other records and messages are faults.
func (r *raceHarness) exact(ra *race) error {
	got, want := map[string]int{}, map[string]int{"denied": ra.denied, "executing": ra.ran, "executed": ra.ran}
	for _, q := range ra.requests {
		now := r.request(q.ID)
		for _, kind := range strings.Fields(r.kinds(q.ID)) {
			got[kind]++
		}
		want["proposed"]++
		want["returned"]++
		want["decided"] += len(now.Decisions)
		want["advanced"] += now.Stage
		want["approved"] += b2i(!now.RunBy.IsZero())
		want["closed"] += b2i(now.State != approvers.Consumed)
		cards := 1 + now.Stage
		if now.Bundled() {
			cards = 0
		}
		if n := len(r.messagesOf(q.ID)); n != cards {
			return fmt.Errorf("%d outbox messages of a %s request at stage %d, want %d", n, now.State, now.Stage, cards)
		}
	}
	maps.DeleteFunc(want, func(_ string, n int) bool { return n == 0 })
	if !maps.Equal(got, want) {
		return fmt.Errorf("the history has %v, want %v", got, want)
	}
	return nil
}
