package approvers_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"countersign/approvers"
)

// TestEveryOrderOfEvents drives one request through random events by random people under random policies. After every
// step, the test compares the request with a model that is independent of the code under test. The model computes who
// can decide, whose decision counts, which stages must be passed, who was notified, and when each deadline passes.
// With -rapid.checks=N, the test runs 20·N cases. docs/figures.md says how often the test was run.
func TestEveryOrderOfEvents(t *testing.T) {
	ends := &census{}
	often(t, func(t *rapid.T) {
		w := newPropertyFixture(t)
		defer func() { ends.count(w) }()
		if w.over() {
			return
		}
		t.Repeat(map[string]func(*rapid.T){
			"":             w.check,
			"approve":      w.approve,
			"approve2":     w.approve, // more often than the others
			"approve3":     w.approve,
			"reveal":       w.reveal,
			"reveal2":      w.reveal,
			"reject":       w.reject,
			"modify":       w.modify,
			"withdraw":     w.withdraw,
			"revoke":       w.revoke,
			"glass":        w.breakGlass,
			"overrule":     w.overrule,
			"hand on":      w.handOn,
			"say":          w.say,
			"reply":        w.reply,
			"availability": w.resolveAvailability,
			"remind":       w.remind,
			"escalate":     w.escalate,
			"expire":       w.expire,
			"pass":         w.pass,
			"policy":       w.changePolicy,
			"void":         w.void,
			"run":          w.run,
		})
	})
	t.Log(ends)
	for _, state := range []approvers.State{
		approvers.Pending, approvers.Approved, approvers.Consumed, approvers.Rejected, approvers.Expired, approvers.Withdrawn, approvers.Revoked, approvers.Voided, approvers.Refused,
	} {
		if ends.of[string(state)] == 0 && !t.Failed() {
			t.Errorf("no request ended as %s: the random policies vary too little", state)
		}
	}
}

// The function calls rapid.Check for a property twenty times, so rapid tries twenty times as many cases. The calls use
// all processors.
func often(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	t.Run("all", func(t *testing.T) {
		for i := range 20 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, property)
			})
		}
	})
}

// census counts how the cases ended.
type census struct {
	mu sync.Mutex
	of map[string]int
}

func (c *census) count(w *propertyFixture) { c.add(string(w.r.State)) }

func (c *census) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[what]++
}

func (c *census) String() string {
	all, text := 0, ""
	for _, what := range slices.Sorted(maps.Keys(c.of)) {
		all += c.of[what]
		text += fmt.Sprintf(" %s=%d", what, c.of[what])
	}
	return fmt.Sprintf("runs=%d%s", all, text)
}

// propertyFixture holds one request, the policy and people around it, and the model of the request.
type propertyFixture struct {
	decisionOracle
	policy   *approvers.Policy
	policies int
	people   []approvers.Identity
	now      time.Time
	runBy    time.Time
	r        approvers.Request
}

// newPropertyFixture proposes a call.
func newPropertyFixture(t *rapid.T) *propertyFixture {
	w := &propertyFixture{policy: drawPolicy(t, 0), people: drawPeople(t)}
	w.now = start.Add(one(t, "begins", 0, 8*time.Hour, 25*24*time.Hour+5*time.Hour)) // Monday morning, the evening, and the Friday before clocks change
	args := drawArgs(t)
	w.call = drawCall(t, args)
	w.need, w.hash = read(w.policy, w.call), w.policy.Hash
	w.r = approvers.Request{
		ID: "req_1", Agent: w.call.Facts.Agent, Tool: w.call.Tool, Effect: w.call.Effect, ToolHash: "tool-1", Execution: "exec_1", Args: json.RawMessage(args),
		Facts: approvers.AskFacts{Asker: w.call.Requesters[0], Requesters: w.call.Requesters, Authors: w.call.Authors},
		Plan:  w.policy.Plan(w.call),
	}
	w.r.Digest = approvers.Digest(w.r.Execution, w.r.Tool, w.r.ToolHash, w.r.Args)
	if w.r.Plan.Verdict != w.need.verdict {
		t.Fatalf("planned as %s; the oracle says %s: %v", w.r.Plan.Verdict, w.need.verdict, w.r.Plan.Why)
	}
	if w.need.verdict == approvers.Observed {
		return w // nothing with effects runs, and nobody is asked
	}
	if w.need.verdict == approvers.Auto { // the call is then treated as if it exceeded its limit of automatic runs
		w.need = w.need.asking(w.policy, w.call.Tool, settings(w.policy, w.call.Tool, w.call.Facts.Agent).Stages)
		w.r.Plan = w.policy.AskFor(w.call, approvers.Limit{Count: 1, Per: time.Hour})
	}
	w.secrets = settings(w.policy, w.call.Tool, w.call.Facts.Agent).Secrets
	w.r.Secrets = w.secrets
	if oneIn(t, 6, "above a cap") {
		w.r.StepUp = "many at once"
	}
	w.r, _ = approvers.Open(w.deciding(), w.r)
	w.state, w.begun, w.handed = approvers.Pending, true, map[int][]approvers.PersonID{}
	if w.need.verdict == approvers.Refuse {
		w.state = approvers.Refused
	}
	w.check(t)
	return w
}

// The method reports whether the request is not pending.
func (w *propertyFixture) over() bool { return w.state != approvers.Pending }

func drawCall(t *rapid.T, args string) approvers.Call {
	ids := rapid.Custom(func(t *rapid.T) approvers.PersonID {
		return approvers.Who("T1", one(t, "id", append([]string{"U9", "U9"}, someUsers...)...))
	})
	call := callOf(one(t, "tool", "t1", "t1", "t2", "t2", "t2", "unknown"), args)
	call.Facts.Agent = one(t, "agent", "support", "other")
	call.Effect = one(t, "effect", approvers.Unprotected, approvers.Idempotent, approvers.ReadOnly)
	call.Requesters = rapid.SliceOfNDistinct(ids, 1, 2, rapid.ID[approvers.PersonID]).Draw(t, "requesters")
	call.Authors = append(slices.Clone(call.Requesters), rapid.SliceOfN(ids, 0, 2).Draw(t, "authors")...)
	return call
}

func (w *propertyFixture) deciding() approvers.DecisionContext { return deciding(w.policy, w.now) }

// refresh updates the request to the current policy, as the workflow does before every action.
func (w *propertyFixture) refresh(t *rapid.T) {
	if w.r.State != approvers.Pending {
		return
	}
	before := w.r
	w.policyIs(w.policy)
	refreshed, _ := w.r.Refresh(w.deciding(), w.call.Facts.Args)
	w.settle(t, refreshed)
	if waits := w.state == approvers.Pending && !w.begun; waits && (!w.r.ExpiresAt.Equal(before.ExpiresAt) || !sooner(w.r.EscalateAt, before.EscalateAt)) {
		t.Fatalf("a policy that changed moved the deadline from %s to %s, the escalation from %s to %s", before.ExpiresAt, w.r.ExpiresAt, before.EscalateAt, w.r.EscalateAt)
	}
	w.check(t)
}

// sooner reports whether the first time is not later than the second time. A zero time means that the time is not
// set. If one of the times is not set, sooner returns true.
func sooner(at, was time.Time) bool { return at.IsZero() || was.IsZero() || !at.After(was) }

// next lists the states that may follow a state.
var next = map[approvers.State][]approvers.State{
	approvers.Pending:  {approvers.Approved, approvers.Rejected, approvers.Expired, approvers.Withdrawn, approvers.Voided, approvers.Revoked},
	approvers.Approved: {approvers.Consumed, approvers.Expired, approvers.Withdrawn, approvers.Voided, approvers.Revoked, approvers.Pending},
}

// settle stores the result of a step. settle fails the test if the request's state may not change in this way.
func (w *propertyFixture) settle(t *rapid.T, after approvers.Request) {
	was := w.r
	if after.State != was.State && !slices.Contains(next[was.State], after.State) {
		t.Fatalf("%s became %s", was.State, after.State)
	}
	if !was.State.Open() && !reflect.DeepEqual(after, was) {
		t.Fatalf("a %s request changed:\n%+v\n%+v", was.State, was, after)
	}
	w.r = after
}

// check compares the request with the model.
func (w *propertyFixture) check(t *rapid.T) {
	r := w.r
	if r.State != w.state {
		t.Fatalf("%s; the oracle says %s", r.State, w.state)
	}
	if !r.State.Open() && r.State != approvers.Consumed {
		return
	}
	if r.Plan.Risk != w.need.risk || r.Plan.SelfOK != w.need.selfOK || !sameStages(r.Plan.Stages, w.need.stages) || !sameSet(r.Plan.Requesters, w.need.asked) {
		t.Fatalf("the plan is %s %v asked by %v (%t); the oracle says %s %v by %v (%t)",
			r.Plan.Risk, r.Plan.Stages, r.Plan.Requesters, r.Plan.SelfOK, w.need.risk, w.need.stages, w.need.asked, w.need.selfOK)
	}
	for i := range w.need.stages {
		if yes, no := byWhom(r.ValidApprovals(), i), byWhom(r.Against(i), i); !slices.Equal(yes, w.said(i, true)) || !slices.Equal(no, w.said(i, false)) {
			t.Fatalf("at stage %d %v approved and %v rejected; the oracle says %v and %v", i, yes, no, w.said(i, true), w.said(i, false))
		}
	}
	if r.State == approvers.Pending {
		w.checkPending(t)
		return
	}
	w.checkPassed(t)
}

// checkPending compares a waiting stage with the model.
func (w *propertyFixture) checkPending(t *rapid.T) {
	var invited []approvers.PersonID
	for _, i := range w.r.Invited {
		invited = append(invited, i.Who)
	}
	if w.r.Stage != w.stage || !slices.Equal(w.r.Joined, w.leads) || !slices.Equal(invited, w.invited) {
		t.Fatalf("at stage %d with %v and %v; the oracle says %d, %v, %v", w.r.Stage, w.r.Joined, invited, w.stage, w.leads, w.invited)
	}
	if w.begun {
		w.checkBegun(t)
		w.begun = false
	}
}

// checkPassed checks an approved request against the rules for the result. checkPassed ignores the steps that led to
// this result.
func (w *propertyFixture) checkPassed(t *rapid.T) {
	if w.broken() {
		return // an operator's approval replaces all others
	}
	places := 0
	people := map[approvers.PersonID]bool{}
	for _, word := range w.words {
		if word.yes {
			people[word.who] = true
		}
	}
	for i, s := range w.need.stages {
		places += s.Quorum
		if len(w.said(i, true)) < s.Quorum || len(w.said(i, false)) >= max(s.Rejects, 1) {
			t.Fatalf("%s with %v for stage %d, %v, and %v against it", w.r.State, w.said(i, true), i, s, w.said(i, false))
		}
	}
	if len(people) < places {
		t.Fatalf("%s by %d people, and the stages ask for %d", w.r.State, len(people), places)
	}
	for _, word := range w.words {
		if word.yes && word.stage == len(w.need.stages)-1 && word.ceiling < w.need.risk {
			t.Fatalf("%s approved a %s call above their ceiling", word.who, w.need.risk)
		}
		if word.yes && slices.Contains(w.need.barred(), word.who) {
			t.Fatalf("%s asked for it and approved it", word.who)
		}
	}
}

// byWhom lists the people who decided a stage.
func byWhom(decisions []approvers.Decision, stage int) (out []approvers.PersonID) {
	for _, d := range decisions {
		if d.Stage == stage {
			out = append(out, d.By)
		}
	}
	slices.Sort(out)
	return out
}

func sameSet(a, b []approvers.PersonID) bool {
	return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b))))
}
