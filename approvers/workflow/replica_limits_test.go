package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
	"countersign/store/postgres"
)

// replicaPair is a harness with the workflows of two replicas. Each workflow has its own connections to one database.
// The harness itself uses the first workflow.
type replicaPair struct {
	*harness
	replicas [2]*workflow.Workflow
}

// newReplicaPair returns the workflows of two replicas on a new database. The server is that of newDatabase.
func newReplicaPair(t *testing.T, server *pgserver.Server, name string, change ...func(*approvers.Policy)) *replicaPair {
	t.Helper()
	p := &replicaPair{harness: newHarness(t)}
	p.ok(p.store.Close())
	p.ok(server.SQL("postgres", "CREATE DATABASE limit_of_"+name+" TEMPLATE postgres"))
	p.database = server.URL("limit_of_" + name)
	p.policy.Store(policy("policy-1", change...))
	p.open(nil)
	second, err := postgres.Open(t.Context(), p.database, postgres.Options{})
	p.ok(err)
	t.Cleanup(func() { second.Close() })
	p.replicas = [2]*workflow.Workflow{p.Workflow, workflow.New(workflow.Config{
		Store: second, Policy: p.policy.Load, Tools: p.tools, Log: slog.New(slog.DiscardHandler), Now: p.clock.Now,
		GrantOwner: p.giver, Team: func(context.Context) (string, error) { return "T0001", nil },
	})}
	return p
}

// atOnce calls fn n times at the same moment, alternately with the two replicas.
func (p *replicaPair) atOnce(n int, fn func(i int, w *workflow.Workflow) error) {
	p.t.Helper()
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-begin
			if err := fn(i, p.replicas[i%2]); err != nil {
				p.t.Errorf("%d: %v", i, err)
			}
		})
	}
	close(begin)
	wg.Wait()
}

// claimAtOnce makes the replicas claim runs at the same moment, and finishes the runs that may run. It returns the number
// of these runs.
func (p *replicaPair) claimAtOnce(executions []string) int {
	p.t.Helper()
	var ran atomic.Int64
	p.atOnce(len(executions), func(i int, w *workflow.Workflow) error {
		_, run, err := w.Runs.Claim(p.ctx(), executions[i])
		if err != nil || !run {
			return err
		}
		ran.Add(1)
		return p.replicas[(i+1)%2].Runs.Finish(p.ctx(), executions[i], true, "ok")
	})
	return int(ran.Load())
}

// proposeAtOnce makes the model request a call in each of n conversations at the same moment. It returns the turns.
func (p *replicaPair) proposeAtOnce(n int, spec string) (turns []string) {
	p.t.Helper()
	for i := range n {
		turns = append(turns, p.sayIn(fmt.Sprint(i, ".1"), alice, "please").Turn)
	}
	p.atOnce(n, func(i int, w *workflow.Workflow) error {
		b, err := w.Turns.Begin(p.ctx(), turns[i])
		if err != nil {
			return err
		}
		return w.Turns.Propose(p.ctx(), workflow.Proposal{Turn: turns[i], Step: b.Turn.Step, Calls: calls(spec), Authors: []approvers.PersonID{alice.ID}})
	})
	return turns
}

func executionsOf(cs []store.Call) (ids []string) {
	for _, c := range cs {
		ids = append(ids, c.Execution)
	}
	return ids
}

// TestLimitsOfReplicas checks that the limits of the policy apply to all replicas together, and at once. Two replicas
// work on one PostgreSQL database at the same moment.
func TestLimitsOfReplicas(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	server := newDatabase(t)
	for _, limit := range []struct {
		name string
		test func(t *testing.T, name string)
	}{
		{"automatic", func(t *testing.T, name string) { // automatic runs of one conversation
			p := newReplicaPair(t, server, name, func(p *approvers.Policy) { p.Tools[1].MaxAuto = approvers.Limit{Count: 5, Per: time.Hour} })
			cs := p.propose(p.say(alice, "please").Turn, slices.Repeat([]string{`update_address {}`}, 12)...)
			ran := p.claimAtOnce(executionsOf(cs))
			asked := 0
			for _, c := range cs {
				if p.call(c.ID).Request != "" {
					asked++
				}
			}
			if ran != 5 || asked != 7 {
				t.Errorf("%d calls ran, and people were asked about %d; want 5 and 7", ran, asked)
			}
		}},
		{"grant", func(t *testing.T, name string) { // a grant with one use
			p := newReplicaPair(t, server, name, granting)
			g := p.granted(1)
			ran := p.claimAtOnce(executionsOf(p.propose(p.say(alice, "more").Turn, slices.Repeat([]string{oneRefund}, 8)...)))
			if g = p.grant(g.ID); ran != 1 || g.State != approvers.GrantUsed || g.Left != 0 {
				t.Errorf("%d calls ran under the grant, which is %s with %d left", ran, g.State, g.Left)
			}
		}},
		{"budget", func(t *testing.T, name string) { // calls of one person, in several conversations
			p := newReplicaPair(t, server, name, func(p *approvers.Policy) { p.Budgets.Calls = 3 })
			runs := 0
			for _, turn := range p.proposeAtOnce(8, `search_orders {}`) {
				if p.callsOf(turn)[0].Execution != "" {
					runs++
				}
			}
			if runs != 3 {
				t.Errorf("%d calls may run, want 3", runs)
			}
		}},
		{"client", func(t *testing.T, name string) { // waiting requests of a client of the gateway
			p := newReplicaPair(t, server, name, withClients)
			var accepted, refused atomic.Int64
			p.atOnce(12, func(i int, w *workflow.Workflow) error {
				_, _, err := w.Callers.Propose(p.ctx(), callerCall(fmt.Sprint(i), fmt.Sprintf(`issue_refund {"amount": %d}`, i)))
				var problem *workflow.CallerProblem
				switch {
				case err == nil:
					accepted.Add(1)
				case errors.As(err, &problem) && problem.Code == workflow.CallerPending:
					refused.Add(1)
				default:
					return err
				}
				return nil
			})
			if accepted.Load() != int64(ci.MaxPending) || refused.Load() != 12-int64(ci.MaxPending) {
				t.Errorf("%d calls were accepted, and %d were refused; at most %d may wait", accepted.Load(), refused.Load(), ci.MaxPending)
			}
		}},
		{"cards", func(t *testing.T, name string) { // open cards of one role, from several conversations
			p := newReplicaPair(t, server, name, func(p *approvers.Policy) { p.Caps.Approver = 3 })
			p.proposeAtOnce(8, `issue_refund {"amount":1}`)
			if line := p.lineAt("role:team-lead"); len(line.Open) != 3 || len(line.Held) != 5 {
				t.Errorf("%d cards are open, and %d wait; want 3 and 5", len(line.Open), len(line.Held))
			}
		}},
		{"decision", func(t *testing.T, name string) { // of two people who click at the same moment, one decides
			p := newReplicaPair(t, server, name)
			for range 3 {
				r := p.ask(`cancel_account {}`)
				clicks := []workflow.Click{p.clickOn(fin1, approvers.Approve, r.ID), p.clickOn(fin2, approvers.Reject, r.ID)}
				var decided atomic.Int64
				p.atOnce(len(clicks), func(i int, w *workflow.Workflow) error {
					_, err := w.Requests.Decide(p.ctx(), clicks[i])
					var denied *approvers.Denied
					if errors.As(err, &denied) {
						return nil
					}
					decided.Add(1)
					return err
				})
				now := p.request(r.ID)
				if decided.Load() != 1 || len(now.Decisions) != 1 || now.State != approvers.Approved && now.State != approvers.Rejected {
					t.Errorf("%d people decided: the request is %s, with the decisions %+v", decided.Load(), now.State, now.Decisions)
				}
				if now.State == approvers.Approved {
					p.run(r.Execution, "ok")
				}
				p.answer(r.Turn)
			}
		}},
		{"pause", func(t *testing.T, name string) { // what begins after a pause in one replica does not run in the other one
			p := newReplicaPair(t, server, name)
			executions := executionsOf(p.propose(p.say(alice, "please").Turn, slices.Repeat([]string{`search_orders {}`}, 24)...))
			var paused atomic.Bool
			p.atOnce(9, func(i int, w *workflow.Workflow) error {
				if i == 8 { // the first replica pauses while both replicas claim runs
					err := w.Pauses.Pause(p.ctx(), lead.ID, "an incident")
					paused.Store(true)
					return err
				}
				for _, e := range executions[3*i : 3*i+3] {
					before := paused.Load()
					_, run, err := w.Runs.Claim(p.ctx(), e)
					switch {
					case run && before:
						return errors.New("a run began after the pause")
					case run:
						err = w.Runs.Finish(p.ctx(), e, true, "ok")
					case errors.Is(err, workflow.ErrPaused):
						err = nil
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
			var left []string
			for _, e := range executions {
				if p.execution(e).State == approvers.ExecutionNone {
					left = append(left, e)
				}
			}
			for i, e := range left {
				_, run, err := p.replicas[i%2].Runs.Claim(p.ctx(), e)
				wantPaused(t, err)
				if run {
					t.Error("a run began during the pause")
				}
			}
			p.ok(p.replicas[1].Pauses.Resume(p.ctx(), lead.ID, ""))
			if ran := p.claimAtOnce(left); ran != len(left) {
				t.Errorf("%d of %d runs began after the pause", ran, len(left))
			}
		}},
	} {
		t.Run(limit.name, func(t *testing.T) { limit.test(t, limit.name) })
	}
}
