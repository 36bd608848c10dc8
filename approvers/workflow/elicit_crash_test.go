package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// dying is the store of a process that ends before or just after a commit. Afterwards, every call to the store fails.
type dying struct {
	store.Store
	mu     sync.Mutex
	left   int // how many commits are left until the process dies
	behind bool
	dead   bool
}

var errDead = errors.New("the process is dead")

func (d *dying) Update(ctx context.Context, fn func(store.Tx) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return errDead
	}
	if d.left--; d.left != 0 {
		return d.Store.Update(ctx, fn)
	}
	d.dead = true
	if d.behind {
		_ = d.Store.Update(ctx, fn)
	}
	return errDead
}

func (d *dying) died() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead
}

// runAsking runs one process until no work is due. The process runs a tool that asks a question and gets an answer. If
// the process dies, runAsking returns false.
func (h *harness) runAsking(execution string, answered map[string]bool) (finished bool) {
	if err := h.Runs.Recover(h.ctx(), store.AllShares); err != nil {
		return false
	}
	_, ran, err := h.Runs.Claim(h.ctx(), execution)
	if err != nil {
		return false
	}
	if !ran {
		return true
	}
	ctx, stop := context.WithCancel(h.ctx())
	defer stop()
	wf := h.Workflow
	type end struct {
		q   approvers.Elicitation
		err error
	}
	ended := make(chan end, 1)
	go func() {
		q, err := wf.Questions.Elicit(ctx, execution, trip, func() string { return "it was not waited for" })
		ended <- end{q, err}
	}()
	for {
		for _, q := range h.elicitations(execution) {
			if q.State != approvers.ElicitationOpen || answered[q.ID] {
				continue
			}
			answered[q.ID] = true
			h.clock.pass(time.Second)
			if err := h.respond(alice, q.ID, fmt.Sprintf(`{"city":%q}`, q.ID)); err != nil {
				stop() // the process is dead
			}
		}
		select {
		case e := <-ended:
			if e.err != nil {
				return false
			}
			if e.q.State != approvers.ElicitationAccepted || string(e.q.Values) != fmt.Sprintf(`{"city":%q}`, e.q.ID) {
				h.t.Errorf("the run was told %s %s", e.q.State, e.q.Values)
			}
			return h.Runs.Finish(h.ctx(), execution, true, "done") == nil
		case <-time.After(time.Millisecond):
		}
	}
}

// TestQuestionKilledAtEveryPoint kills the process before and after each commit while a run asks a question. A new
// process then continues. Each question must end exactly once, and the run must get the recorded answer.
func TestQuestionKilledAtEveryPoint(t *testing.T) {
	points, killed := 0, true
	for n := 1; killed; n++ {
		killed = false
		for _, behind := range []bool{false, true} {
			t.Run(fmt.Sprint(n, " ", behind), func(t *testing.T) {
				h := newHarness(t)
				call := h.propose(h.say(alice, "please").Turn, `search_orders {"q":"x"}`)[0]
				mortal := &dying{left: n, behind: behind}
				h.ok(h.store.Close())
				h.open(func(s store.Store) store.Store { mortal.Store = s; return mortal })
				answered := map[string]bool{}
				if !h.runAsking(call.Execution, answered) {
					if !mortal.died() {
						t.Fatal("the run did not finish, although its process did not die")
					}
					h.reopen()
					for range 3 {
						h.clock.pass(time.Second)
						if h.runAsking(call.Execution, answered) {
							break
						}
					}
				}
				if mortal.died() {
					killed = true
					points++
					if h.execution(call.Execution).State == approvers.ExecutionExecuting {
						h.reopen() // the process died after its last commit
						h.runAsking(call.Execution, answered)
					}
				}
				e := h.execution(call.Execution)
				if e.State != approvers.ExecutionSucceeded {
					t.Errorf("the run is %s after %d tries", e.State, e.Tries)
				}
				asked, ends := map[string]int{}, map[string]int{}
				for _, a := range readStore(h, func(r store.Reader) ([]approvers.AuditRecord, error) { return r.Audit(e.Chain()) }) {
					switch a.Kind {
					case approvers.AuditElicited:
						asked[a.Facts["elicitation"]]++
					case approvers.AuditReplied:
						ends[a.Facts["elicitation"]]++
					}
				}
				for _, q := range h.elicitations(e.ID) {
					if q.State == approvers.ElicitationOpen || asked[q.ID] != 1 || ends[q.ID] != 1 {
						t.Errorf("question %s is %s, was asked %d times and ended %d times", q.ID, q.State, asked[q.ID], ends[q.ID])
					}
				}
				if len(asked) > 2 || len(asked) == 0 {
					t.Errorf("%d questions", len(asked))
				}
			})
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("points=%d", points)
	if points < 10 {
		t.Errorf("only %d points", points)
	}
}

// Sixteen clicks answer or decline one question at the same moment. Some of the clicks are by a person who was not
// asked. The question ends only once.
func TestSixteenAtOneQuestion(t *testing.T) {
	t.Parallel()
	for round := range 30 {
		h := newHarness(t)
		execution, q, done := h.asks(trip)
		at := h.clock.Now()
		var all sync.WaitGroup
		won := make(chan string, 16)
		for i := range 16 {
			all.Go(func() {
				c := workflow.Click{At: at, Who: alice, Elicitation: q.ID}
				if i%5 == 4 {
					c.Who = bob
				}
				var err error
				if (i+round)%2 == 0 {
					err = h.Questions.Respond(h.ctx(), c, json.RawMessage(fmt.Sprintf(`{"city":"%d"}`, i)))
				} else {
					err = h.Questions.Decline(h.ctx(), c)
				}
				if err == nil {
					won <- fmt.Sprint(i)
				}
			})
		}
		all.Wait()
		h.woken(done)
		if len(won) != 1 {
			t.Fatalf("round %d: %d winners", round, len(won))
		}
		if i := <-won; h.elicitation(q.ID).State == approvers.ElicitationAccepted && string(h.elicitation(q.ID).Values) != fmt.Sprintf(`{"city":"%s"}`, i) {
			t.Errorf("round %d: %s won, and the values are %s", round, i, h.elicitation(q.ID).Values)
		}
		h.ok(h.Runs.Finish(h.ctx(), execution, true, "done"))
	}
}
