package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/invariants"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/jobs"
)

// In TestLeaseFaults, three replicas use one store in faked time. Each replica handles the timers of its shares. The
// test takes shares away from replicas in several ways. For example, another replica takes a share over, a replica
// hangs and does not notice the loss of its shares, or a replica is killed. A tool that can't be repeated must not act
// twice or without approval. The replicas must handle each message and click, and the messages of a thread in order.
// Every turn must end.
//
// A step is an action of a person, a fault, or a piece of work of a replica. COUNTERSIGN_LEASE_STEPS sets the number of
// steps, which is 3,000 by default. With the same COUNTERSIGN_SEED, the test repeats the same actions and faults.
func TestLeaseFaults(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	const round = 1500
	left, seed := testkit.Size(t, "COUNTERSIGN_LEASE_STEPS", 2*round), testkit.Seed(t)
	began, all := time.Now(), map[string]int{}
	for n := uint64(0); left > 0; n++ {
		inFakedTime(t, func(t *testing.T, w *workingHarness) {
			s := newLeaseSimulation(t, w, testkit.Chance(seed, n))
			s.play(min(left, round))
			left -= int(s.steps.Load())
			for what, n := range s.counts {
				all[what] += n
			}
		})
		if t.Failed() {
			t.Fatalf("round %d", n)
		}
	}
	t.Logf("%v in %s", all, time.Since(began).Round(time.Second))
	for _, what := range []string{"moved", "hung", "killed", "fenced", "ran", "approved", "unknown"} {
		if all[what] == 0 {
			t.Errorf("nothing was %s: this test looks at the wrong thing", what)
		}
	}
}

type leaseSimulation struct {
	*workingHarness
	t        *testing.T
	random   *rand.Rand
	steps    atomic.Int64
	board    sync.RWMutex // guards owner and epoch; held for reading during each transaction
	owner    [store.ShareCount]*leaseReplica
	epoch    [store.ShareCount]int64
	replicas []*leaseReplica
	mu       sync.Mutex // guards what follows
	counts   map[string]int
	acted    map[string]int // by execution: how often its tool acted
	inbox    []string
	said     int
}

func newLeaseSimulation(t *testing.T, w *workingHarness, random *rand.Rand) *leaseSimulation {
	w.policy.Store(policy("short", func(p *approvers.Policy) {
		p.Defaults.ExpiresAfter, p.Defaults.EscalateAfter, p.Defaults.RunWithin = 3*time.Minute, time.Minute, time.Minute
	}))
	s := &leaseSimulation{workingHarness: w, t: t, random: random, counts: map[string]int{}, acted: map[string]int{}}
	for range 3 {
		s.start()
	}
	for share := range store.ShareCount {
		s.give(share, s.replicas[share%3])
	}
	return s
}

// start adds a replica without shares.
func (s *leaseSimulation) start() *leaseReplica {
	r := &leaseReplica{s: s, id: fmt.Sprint("replica-", s.count("started")), has: map[int]lease{}, changed: make(chan struct{}), notices: make(chan store.Notice, 1000)}
	r.workflow = workflow.New(workflow.Config{Store: fenced{s.store, r}, Policy: s.policy.Load, Tools: s.tools, Log: slog.New(slog.DiscardHandler), Replica: r})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- r.workflow.Work(ctx, map[store.TimerKind]jobs.Worker{
			store.TimerInbox: {Handle: r.hear, Concurrency: 4}, store.TimerThink: {Handle: r.think, Concurrency: 4}, store.TimerRun: {Handle: r.run, Concurrency: 4},
		})
	}()
	r.stop = func() error {
		cancel()
		return <-done
	}
	s.replicas = append(s.replicas, r)
	return r
}

func (s *leaseSimulation) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
	return s.counts[what]
}

// chance returns a random number below n. All goroutines of the simulation share one random source.
func (s *leaseSimulation) chance(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

func (s *leaseSimulation) upTo(d time.Duration) time.Duration {
	return time.Duration(s.chance(int(d)))
}

// give makes a replica the owner of a share. If the replica is nil, the share then has no owner.
func (s *leaseSimulation) give(share int, to *leaseReplica) {
	s.board.Lock()
	before := s.owner[share]
	s.owner[share] = to
	s.epoch[share]++
	s.board.Unlock()
	for _, r := range []*leaseReplica{before, to} {
		if r != nil {
			r.look()
		}
	}
}

// takeOver gives the shares of a replica to other replicas, some immediately and some later.
func (s *leaseSimulation) takeOver(from *leaseReplica) {
	for share := range store.ShareCount {
		if s.owner[share] != from {
			continue
		}
		if s.chance(2) == 0 {
			s.give(share, s.other(from))
			continue
		}
		s.give(share, nil)
		time.AfterFunc(s.upTo(10*time.Second), func() { s.give(share, s.other(from)) })
	}
}

// s.other returns a living replica that is not the given replica.
func (s *leaseSimulation) other(than *leaseReplica) *leaseReplica {
	s.mu.Lock()
	defer s.mu.Unlock()
	living := slices.DeleteFunc(slices.Clone(s.replicas), func(r *leaseReplica) bool { return r == than || r.dead.Load() })
	return living[s.random.IntN(len(living))]
}

// play performs the steps, ends all faults, and waits until no work is left. Then play verifies the final state.
func (s *leaseSimulation) play(steps int) {
	for s.steps.Load() < int64(steps) {
		s.steps.Add(1)
		switch n := s.chance(100); {
		case n < 40:
			s.say()
		case n < 88:
			s.click()
		default:
			s.fault(n)
		}
		s.pass(s.upTo(3 * time.Second))
	}
	s.pass(time.Minute) // the longest fault
	for range 60 {
		if s.isOver() {
			break
		}
		s.pass(time.Minute)
	}
	s.verify()
	for _, r := range s.replicas {
		if !r.dead.Load() {
			s.ok(r.stop())
		}
	}
}

func (s *leaseSimulation) fault(n int) {
	r := s.other(nil)
	switch {
	case n < 94:
		s.count("moved")
		for range 1 + s.chance(20) {
			s.give(s.chance(store.ShareCount), r)
		}
	case n < 97:
		s.count("hung")
		r.deaf.Store(true)
		s.takeOver(r)
		time.AfterFunc(s.upTo(40*time.Second), func() {
			r.deaf.Store(false)
			r.look()
		})
	default:
		s.count("killed")
		r.dead.Store(true)
		go func() { _ = r.stop() }() // its handlers can't write any more
		anew := s.start()
		s.takeOver(r)
		for share := s.chance(3); share < store.ShareCount; share += 3 {
			s.give(share, anew)
		}
	}
}

// leaseDelivery is a delivery from Slack in the simulation.
type leaseDelivery struct {
	Thread, Text, Request string
	Who                   approvers.Identity
	Kind                  approvers.DecisionKind
}

// deliver stores a delivery through any living replica.
func (s *leaseSimulation) deliver(kind store.InboxKind, d leaseDelivery, lane string) {
	js, err := json.Marshal(d)
	s.ok(err)
	row := store.Inbox{ID: s.id("delivery"), Kind: kind, ReceivedAt: time.Now(), Payload: js}
	_, err = s.other(nil).workflow.Intake.Receive(context.Background(), row, lane)
	s.ok(err)
	s.inbox = append(s.inbox, row.ID)
}

func (s *leaseSimulation) say() {
	s.said++
	thread := fmt.Sprint(s.chance(12), ".1")
	s.deliver(store.InboxEvent, leaseDelivery{Thread: thread, Text: fmt.Sprintf("%06d", s.said), Who: alice}, "thread:"+thread)
}

// click decides one of the oldest open requests, if there is one.
func (s *leaseSimulation) click() {
	open := readStore(s.harness, func(r store.Reader) ([]approvers.Request, error) { return r.OpenRequests(store.RequestCursor{}, 20) })
	if len(open) == 0 {
		return
	}
	who := []approvers.Identity{support, lead, fin1, fin2}[s.chance(4)]
	kind := approvers.Approve
	if s.chance(5) == 0 {
		kind = approvers.Reject
	}
	s.deliver(store.InboxInteraction, leaseDelivery{Request: open[s.chance(len(open))].ID, Who: who, Kind: kind}, "person:"+string(who.ID))
}

// isOver reports whether no work is left.
func (s *leaseSimulation) isOver() bool {
	return len(s.timers(store.TimerInbox, store.TimerThink, store.TimerRun, store.TimerExpire, store.TimerLeave)) == 0
}

// verify checks the final state of the store, after all work is done.
func (s *leaseSimulation) verify() {
	if !s.isOver() {
		s.t.Errorf("timers are left: %v", s.timers(store.TimerInbox, store.TimerThink, store.TimerRun, store.TimerExpire, store.TimerLeave))
	}
	err := s.store.View(context.Background(), func(r store.Reader) error {
		for _, id := range s.inbox {
			if row, err := r.Inbox(id); err != nil || row.HandledAt.IsZero() {
				s.t.Errorf("delivery %s was not handled (%v)", id, err)
			}
		}
		for _, id := range s.turns {
			if turn, err := r.Turn(id); err != nil || turn.State != approvers.TurnAnswered {
				s.t.Errorf("turn %s is %s (%v)", id, turn.State, err)
			}
			calls, err := r.Calls(id)
			if err != nil {
				return err
			}
			for _, c := range calls {
				if err := s.verifyCall(r, c); err != nil {
					return err
				}
			}
		}
		return errors.Join(s.inOrder(r), invariants.Faults(r, s.turns))
	})
	s.ok(err)
}

// verifyCall compares a tool's actions with the outcome of the call.
func (s *leaseSimulation) verifyCall(r store.Reader, c store.Call) error {
	if c.Execution == "" {
		return nil
	}
	e, err := r.Execution(c.Execution)
	if err != nil {
		return err
	}
	tool, _ := s.tools.Tool(e.Tool)
	acted := s.acted[e.ID]
	switch {
	case tool.Effect == approvers.Unprotected && acted > 1:
		s.t.Errorf("%s %s acted %d times", e.Tool, e.ID, acted)
	case e.State == approvers.ExecutionSucceeded && acted == 0:
		s.t.Errorf("%s %s is said to have run, and did not", e.Tool, e.ID)
	case e.State == approvers.ExecutionNone && acted > 0:
		s.t.Errorf("%s %s acted %d times, and is said not to have run", e.Tool, e.ID, acted)
	}
	if e.State == approvers.ExecutionUnknown {
		s.count("unknown")
	}
	if e.Request == "" || acted == 0 {
		return nil
	}
	q, err := r.Request(e.Request)
	if err == nil && q.State != approvers.Consumed {
		s.t.Errorf("%s acted, and its request is %s", e.Tool, q.State)
	}
	s.count("approved")
	return err
}

// inOrder checks that the messages of each thread were handled in order.
func (s *leaseSimulation) inOrder(r store.Reader) error {
	seen := map[string]bool{}
	for _, id := range s.turns {
		turn, err := r.Turn(id)
		if err != nil || seen[turn.Conversation] {
			continue
		}
		seen[turn.Conversation] = true
		messages, err := r.Messages(turn.Conversation, 0)
		if err != nil {
			return err
		}
		last := ""
		for _, m := range messages {
			if m.Author == "" {
				continue
			}
			if m.Text <= last {
				return fmt.Errorf("in conversation %s, %s was heard after %s", turn.Conversation, m.Text, last)
			}
			last = m.Text
		}
	}
	return nil
}

// lease is a share in the list of a replica. The replica believes that it owns the share.
type lease struct {
	epoch int64
	since time.Time
}

// leaseReplica is one replica of the simulation. A replica may have lost shares that it believes it owns.
type leaseReplica struct {
	s        *leaseSimulation
	id       string
	workflow *workflow.Workflow
	stop     func() error
	deaf     atomic.Bool // the replica does not notice which shares it loses or gets
	dead     atomic.Bool // the replica's actions have no effect any more
	notices  chan store.Notice
	mu       sync.Mutex // guards what follows
	has      map[int]lease
	changed  chan struct{}
	begun    []begunWork
}

type begunWork struct {
	share  int
	epoch  int64
	cancel context.CancelCauseFunc
}

// look updates the replica's list of its shares, and cancels the replica's work in shares that it has lost.
func (r *leaseReplica) look() {
	if r.deaf.Load() {
		return
	}
	r.s.board.RLock()
	defer r.s.board.RUnlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for share, owner := range r.s.owner {
		if owner != r {
			delete(r.has, share)
		} else if r.has[share].epoch != r.s.epoch[share] {
			r.has[share] = lease{r.s.epoch[share], time.Now()}
		}
	}
	for _, b := range r.begun {
		if r.has[b.share].epoch != b.epoch {
			b.cancel(store.ErrFenced)
		}
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// forget removes a share from the replica's list after the store refused a transaction, because the replica has lost
// the share.
func (r *leaseReplica) forget(share int, epoch int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.has[share].epoch == epoch {
		delete(r.has, share)
	}
}

func (r *leaseReplica) Shares() (all store.Shares) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for share := range r.has {
		all = all.With(share)
	}
	return all
}

func (r *leaseReplica) Enter(ctx context.Context, claim string) (inner context.Context, leave func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	share := shareOf(claim)
	mine, ok := r.has[share]
	if !ok || r.dead.Load() {
		return nil, nil, false
	}
	inner, cancel := context.WithCancelCause(store.WithClaims(ctx, store.Claim{Name: claim, Owner: r.id, Epoch: mine.epoch}))
	r.begun = append(r.begun, begunWork{share, mine.epoch, cancel})
	return inner, func() { cancel(nil) }, true
}

// shareOf returns the share to which a claim belongs. claim is the claim's name. Claims without a share belong to the
// first share.
func shareOf(claim string) int {
	for share := range store.ShareCount {
		if store.ShareClaim(share) == claim {
			return share
		}
	}
	return 0
}

func (r *leaseReplica) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

func (r *leaseReplica) Since(share int) (since time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	mine, ok := r.has[share]
	return mine.since, ok
}

func (r *leaseReplica) Alive() int                   { return 3 }
func (r *leaseReplica) Hears() time.Time             { return time.Time{} }
func (r *leaseReplica) Notices() <-chan store.Notice { return r.notices }

// Tell sends a notice to the other replicas. On average, one notice in four is lost.
func (r *leaseReplica) Tell(n store.Notice) {
	r.s.mu.Lock()
	others := slices.Clone(r.s.replicas)
	r.s.mu.Unlock()
	for _, other := range others {
		if other == r || other.dead.Load() || r.s.chance(4) == 0 {
			continue
		}
		select {
		case other.notices <- n:
		default:
		}
	}
}

// fenced is the store of one replica. A fenced store refuses a transaction for work in a share that the replica has
// lost.
type fenced struct {
	store.Store
	r *leaseReplica
}

var errReplicaKilled = errors.New("the replica was killed")

func (f fenced) Update(ctx context.Context, fn func(store.Tx) error) error {
	s := f.r.s
	s.board.RLock()
	defer s.board.RUnlock()
	if f.r.dead.Load() {
		return errReplicaKilled
	}
	for _, c := range store.ClaimsOf(ctx) {
		share := shareOf(c.Name)
		if owner := s.owner[share]; owner == nil || owner.id != c.Owner || s.epoch[share] != c.Epoch {
			s.count("fenced")
			f.r.forget(share, c.Epoch)
			return store.ErrFenced
		}
	}
	return f.Store.Update(store.WithClaims(ctx), fn)
}

// hear handles a delivery.
func (r *leaseReplica) hear(ctx context.Context, timer store.Timer) error {
	r.s.steps.Add(1)
	row := readStore(r.s.harness, func(rd store.Reader) (store.Inbox, error) { return rd.Inbox(timer.Ref) })
	var d leaseDelivery
	if err := json.Unmarshal(row.Payload, &d); err != nil {
		return err
	}
	r.takes(ctx, 500*time.Millisecond)
	if row.Kind == store.InboxEvent {
		heard, err := r.workflow.Intake.ReceiveMessage(ctx, workflow.IncomingMessage{
			Inbox: row.ID, At: row.ReceivedAt, Team: "T0001", Thread: d.Thread, TS: row.ID, Who: d.Who, Text: d.Text, Start: true,
			Channel: approvers.ChannelRef{Channel: "C0001", Name: "support"},
		})
		if err == nil && heard.Turn != "" {
			r.s.mu.Lock()
			defer r.s.mu.Unlock()
			if !slices.Contains(r.s.turns, heard.Turn) {
				r.s.turns = append(r.s.turns, heard.Turn)
			}
		}
		return err
	}
	q := readStore(r.s.harness, func(rd store.Reader) (approvers.Request, error) { return rd.Request(d.Request) })
	_, err := r.workflow.Requests.Decide(ctx, workflow.Click{
		Inbox: row.ID, At: row.ReceivedAt, Who: d.Who, Request: d.Request, Kind: d.Kind, Reason: "because",
		Digest: q.Digest, Whole: true, Typed: true, Rendering: "rendering", Channel: "C0002", MessageTS: "200.1",
	})
	if _, denied := errors.AsType[*approvers.Denied](err); denied {
		return nil
	}
	return err
}

// think acts as the model. think first requests some calls, and then answers.
func (r *leaseReplica) think(ctx context.Context, timer store.Timer) error {
	r.s.steps.Add(1)
	b, err := r.workflow.Turns.Begin(ctx, timer.Ref)
	if err != nil {
		return err
	}
	r.takes(ctx, 4*time.Second)
	if b.Turn.Step > 0 {
		return r.workflow.Turns.Answer(ctx, timer.Ref, b.Turn.Step, "Done.", nil, 1)
	}
	var specs []string
	for range 1 + r.s.chance(3) {
		specs = append(specs, []string{
			`search_orders {}`, `update_address {"order_id":"1"}`, `apply_discount {"order_id":"1"}`, `issue_refund {"amount":20}`, `cancel_account {"order_id":"1"}`,
		}[r.s.chance(5)])
	}
	return r.workflow.Turns.Propose(ctx, workflow.Proposal{
		Turn: timer.Ref, Step: b.Turn.Step, Text: "Let me see.", Calls: calls(specs...), Authors: []approvers.PersonID{alice.ID},
	})
}

// run runs a tool. The tool may take longer than a lease. The replica may lose the share of the run in the meantime,
// which cancels the tool's context.
func (r *leaseReplica) run(ctx context.Context, timer store.Timer) error {
	r.s.steps.Add(1)
	e, run, err := r.workflow.Runs.Claim(ctx, timer.Ref)
	if err != nil || !run {
		return err
	}
	if r.takes(ctx, 10*time.Second) != nil && r.s.chance(2) == 0 {
		return ctx.Err()
	}
	if r.dead.Load() {
		return errReplicaKilled
	}
	r.s.mu.Lock()
	r.s.acted[e.ID]++
	r.s.counts["ran"]++
	r.s.mu.Unlock()
	r.takes(ctx, 10*time.Second)
	return r.workflow.Runs.Finish(context.WithoutCancel(ctx), e.ID, true, strings.Repeat("x", r.s.chance(50)))
}

// r.takes waits for a random time to simulate a slow tool.
func (r *leaseReplica) takes(ctx context.Context, atMost time.Duration) error {
	select {
	case <-time.After(r.s.upTo(atMost)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
