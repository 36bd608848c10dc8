package approvers_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"countersign/approvers"
)

// TestEveryOrderOfEvents drives one request through random events by random people under random policies, and holds
// every step against an account that is kept apart from the code under test. -rapid.checks=N runs N times twenty.
func TestEveryOrderOfEvents(t *testing.T) {
	for i := range 20 {
		t.Run(fmt.Sprint(i), func(t *testing.T) { rapid.Check(t, oneOrderOfEvents) })
	}
}

func oneOrderOfEvents(t *rapid.T) {
	w := newWorld(t)
	t.Repeat(map[string]func(*rapid.T){
		"":         w.check,
		"approve":  w.approve,
		"approve2": w.approve, // more often than the others
		"approve3": w.approve,
		"reject":   w.reject,
		"modify":   w.modify,
		"withdraw": w.withdraw,
		"escalate": w.escalate,
		"expire":   w.expire,
		"pass":     w.pass,
		"policy":   w.changePolicy,
		"void":     w.void,
		"run":      w.run,
	})
}

// world is one request with its surroundings, and the account of what happened to it.
type world struct {
	policy  *approvers.Policy
	people  []approvers.Identity
	now     time.Time
	r       approvers.Request
	given   []given  // every approval that was taken, whatever became of it
	leads   []string // whom escalation added to the current stage
	edits   int
	changes int
}

// given is one approval that was taken: who, over what, at which stage, for which role, and the ceiling by which it was allowed.
type given struct {
	who     approvers.PersonID
	digest  string
	stage   int
	role    string
	ceiling approvers.Risk
}

var (
	someUsers  = []string{"U1", "U2", "U3", "U4", "U5", "U6"}
	someGroups = []string{"g1", "g2"}
	someMails  = []string{"a@example.com", "b@example.com"}
	someTools  = []string{"t1", "t2"}
	someRoles  = []string{"r1", "r2", "r3", "r4"}
)

func newWorld(t *rapid.T) *world {
	w := &world{now: start, policy: drawPolicy(t, 0), people: drawPeople(t)}
	args := drawArgs(t)
	ids := rapid.Custom(func(t *rapid.T) approvers.PersonID {
		return approvers.Who("T1", rapid.SampledFrom(append([]string{"U9"}, someUsers...)).Draw(t, "id"))
	})
	call := callOf(rapid.SampledFrom(someTools).Draw(t, "tool"), args)
	call.Requesters = rapid.SliceOfNDistinct(ids, 1, 2, rapid.ID[approvers.PersonID]).Draw(t, "requesters")
	call.Authors = append(slices.Clone(call.Requesters), rapid.SliceOfN(ids, 0, 2).Draw(t, "authors")...)
	w.r = openCall(w.policy, call, args)
	if w.r.Plan.Verdict == approvers.Auto { // as for a call over its automatic-run limit
		w.r.Plan = w.policy.AskFor(call, approvers.Limit{Count: 1, Per: time.Hour})
		w.r = approvers.Open(deciding(w.policy, start), w.r)
	}
	return w
}

func drawPolicy(t *rapid.T, n int) *approvers.Policy {
	risk := rapid.Custom(func(t *rapid.T) approvers.Risk { return approvers.Risk(rapid.IntRange(1, 4).Draw(t, "risk")) })
	stages := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) approvers.Stage {
		return approvers.Stage{Approver: rapid.SampledFrom(someRoles).Draw(t, "approver"), Quorum: rapid.IntRange(1, 2).Draw(t, "quorum")}
	}), 0, 3, func(s approvers.Stage) string { return s.Approver })
	member := rapid.Custom(func(t *rapid.T) approvers.Member {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			return approvers.Member{Kind: approvers.MemberGroup, Value: rapid.SampledFrom(someGroups).Draw(t, "group")}
		case 1:
			return approvers.Member{Kind: approvers.MemberEmail, Value: rapid.SampledFrom(someMails).Draw(t, "mail")}
		}
		return approvers.Member{Kind: approvers.MemberUser, Value: rapid.SampledFrom(someUsers).Draw(t, "user")}
	})
	p := &approvers.Policy{Hash: fmt.Sprint("policy-", n), Defaults: approvers.Defaults{
		ExpiresAfter: 30 * time.Minute, EscalateAfter: 10 * time.Minute, RunWithin: 15 * time.Minute,
		UnknownTool: approvers.ToolPolicy{Risk: approvers.Critical, Confirm: true},
	}}
	for _, name := range someRoles {
		if rapid.IntRange(0, 9).Draw(t, "gone") == 0 {
			continue
		}
		p.Approvers = append(p.Approvers, approvers.Role{
			Name: name, Title: name, MaxRisk: max(risk.Draw(t, "ceiling"), risk.Draw(t, "ceiling")),
			Members:    rapid.SliceOfN(member, 1, 4).Draw(t, "members"),
			CanApprove: rapid.SampledFrom([][]string{{"*"}, {"*"}, {"t1"}, {"t2"}, {"t1", "t2"}}).Draw(t, "tools"),
			Lead:       rapid.SampledFrom(append([]string{""}, someRoles...)).Draw(t, "lead"),
		})
	}
	for _, name := range someTools {
		tool := approvers.ToolPolicy{
			Name: name, Risk: risk.Draw(t, "risk"), Confirm: rapid.IntRange(0, 4).Draw(t, "confirm") > 0,
			SelfApproval: rapid.IntRange(0, 4).Draw(t, "self") == 0,
		}
		if rapid.Bool().Draw(t, "staged") {
			tool.Stages = stages.Draw(t, "stages")
		}
		if rapid.Bool().Draw(t, "ruled") {
			tool.Rules = []approvers.Rule{{When: amountAbove(500), Risk: risk.Draw(t, "to"), Confirm: true, Stages: stages.Draw(t, "also")}}
		}
		p.Tools = append(p.Tools, tool)
	}
	return p
}

// drawPeople makes everybody who is named anywhere, and some who only look like them.
func drawPeople(t *rapid.T) []approvers.Identity {
	var out []approvers.Identity
	for _, u := range append([]string{"U9"}, someUsers...) {
		who := approvers.Identity{ID: approvers.Who("T1", u), Name: u}
		who.Groups = rapid.SliceOfNDistinct(rapid.SampledFrom(someGroups), 0, 2, rapid.ID[string]).Draw(t, "in")
		who.Email = rapid.SampledFrom(append([]string{"", ""}, someMails...)).Draw(t, "address")
		out = append(out, who)
		switch rapid.IntRange(0, 9).Draw(t, "like") {
		case 0:
			who.Guest = true
		case 1:
			who.Bot = true
		case 2:
			who.Deleted = true
		case 3:
			who.Foreign = true
		case 4:
			who.ID = ""
		default:
			continue
		}
		out = append(out, who)
	}
	return out
}

func drawArgs(t *rapid.T) string {
	return fmt.Sprintf(`{"amount":%d}`, rapid.SampledFrom([]int{1, 500, 501, 900}).Draw(t, "amount"))
}

// may is the account's own answer to who may decide: written from DESIGN.md, not from the code.
func (w *world) may(who approvers.Identity) (ceiling approvers.Risk, ok bool) {
	if who.ID == "" || who.Guest || who.Bot || who.Deleted || who.Foreign || w.r.State != approvers.Pending {
		return 0, false
	}
	barred := slices.Clone(w.r.Facts.Requesters)
	if w.r.Plan.Risk >= approvers.High {
		barred = append(barred, w.r.Facts.Authors...)
	}
	tool, _ := w.policy.Tool(w.r.Tool, w.r.Agent)
	if slices.Contains(barred, who.ID) && (!tool.SelfApproval || !w.r.Plan.SelfOK) {
		return 0, false
	}
	stage := w.r.Plan.Stages[w.r.Stage]
	for _, role := range w.policy.Approvers {
		if role.Name != stage.Approver && !slices.Contains(w.leads, role.Name) {
			continue
		}
		member := slices.ContainsFunc(role.Members, func(m approvers.Member) bool {
			return (m.Kind == approvers.MemberUser && approvers.Who("T1", m.Value) == who.ID) ||
				(m.Kind == approvers.MemberGroup && slices.Contains(who.Groups, m.Value)) ||
				(m.Kind == approvers.MemberEmail && m.Value == who.Email)
		})
		covers := slices.Contains(role.CanApprove, "*") || slices.Contains(role.CanApprove, w.r.Tool)
		last := w.r.Stage == len(w.r.Plan.Stages)-1
		if member && covers && (!last || role.MaxRisk >= w.r.Plan.Risk) {
			ceiling, ok = max(ceiling, role.MaxRisk), true
		}
	}
	return ceiling, ok
}

// refresh does what the desk does before every decision.
func (w *world) refresh(t *rapid.T) {
	w.settle(t, w.r.Refresh(deciding(w.policy, w.now), w.values()), false)
	if len(w.r.Joined) == 0 {
		w.leads = nil // the stages began again
	}
}

func (w *world) values() map[string]any {
	values := map[string]any{}
	if err := json.Unmarshal(w.r.Args, &values); err != nil {
		panic(err)
	}
	return values
}

func (w *world) draw(t *rapid.T) (approvers.Identity, approvers.Move, bool) {
	who := rapid.SampledFrom(w.people).Draw(t, "who")
	m := moveBy(w.r, who, w.now.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "ago"))*time.Minute))
	fresh := true
	if rapid.IntRange(0, 9).Draw(t, "stale") == 0 {
		m.Digest, fresh = "of another card", false
	}
	return who, m, fresh && !m.At.After(w.r.ExpiresAt)
}

func (w *world) approve(t *rapid.T) {
	w.refresh(t)
	who, m, valid := w.draw(t)
	ceiling, ok := w.may(who)
	counted := slices.ContainsFunc(w.r.Standing(), func(d approvers.Decision) bool { return d.By == who.ID })
	after, denied := w.r.Approve(deciding(w.policy, w.now), m)
	if want := valid && ok && !counted; want != (denied == nil) {
		t.Fatalf("approve by %+v: denied %v; the account says allowed %t (authority %t, counted %t)", who, denied, want, ok, counted)
	}
	if denied == nil {
		w.given = append(w.given, given{who.ID, w.r.Digest, w.r.Stage, w.r.Plan.Stages[w.r.Stage].Approver, ceiling})
		if after.Stage > w.r.Stage+1 || (after.Stage == w.r.Stage+1 && distinct(after, w.r.Stage) < w.r.Plan.Stages[w.r.Stage].Quorum) {
			t.Fatalf("went from stage %d to %d without its quorum", w.r.Stage, after.Stage)
		}
		if after.Stage != w.r.Stage {
			w.leads = nil
		}
	}
	w.settle(t, after, denied == nil)
}

func (w *world) reject(t *rapid.T) {
	w.refresh(t)
	who, m, valid := w.draw(t)
	_, ok := w.may(who)
	after, denied := w.r.Reject(deciding(w.policy, w.now), m)
	if want := valid && ok; want != (denied == nil) {
		t.Fatalf("reject by %+v: denied %v; the account says allowed %t", who, denied, want)
	}
	w.settle(t, after, false)
}

func (w *world) modify(t *rapid.T) {
	w.refresh(t)
	who, m, valid := w.draw(t)
	_, ok := w.may(who)
	w.edits++
	e := edited(w.policy, w.r, fmt.Sprint("exec_", w.edits+1), drawArgs(t))
	before := w.r
	after, denied := before.Modify(deciding(w.policy, w.now), m, e)
	if denied == nil && (!valid || !ok) {
		t.Fatalf("modified by %+v, who may not", who)
	}
	if denied != nil {
		w.settle(t, after, false)
		return
	}
	w.leads = nil
	if after.Digest == before.Digest || after.Execution == before.Execution {
		t.Fatal("changed arguments kept their execution or digest")
	}
	standing := after.Standing()
	if len(standing) > 1 || (len(standing) == 1 && standing[0].By != who.ID) {
		t.Fatalf("approvals of the earlier arguments stand: %+v", standing)
	}
	if len(standing) == 1 {
		role, _ := w.policy.Role(standing[0].Role)
		w.given = append(w.given, given{who.ID, after.Digest, standing[0].Stage, after.Plan.Stages[standing[0].Stage].Approver, role.MaxRisk})
	}
	w.settle(t, after, true)
}

func (w *world) withdraw(t *rapid.T) {
	who := rapid.SampledFrom(w.people).Draw(t, "who")
	after, denied := w.r.Withdraw(deciding(w.policy, w.now), who, false, "")
	if denied == nil && !slices.Contains(w.r.Facts.Requesters, who.ID) {
		t.Fatalf("%s withdrew what somebody else asked for", who.ID)
	}
	w.settle(t, after, false)
}

func (w *world) escalate(t *rapid.T) {
	due := !w.r.EscalateAt.IsZero() && !w.now.Before(w.r.EscalateAt)
	after, lead, told := w.r.Escalate(deciding(w.policy, w.now))
	if told && (!due || w.r.State != approvers.Pending) {
		t.Fatalf("escalated a %s request at %s, due at %s", w.r.State, w.now, w.r.EscalateAt)
	}
	if told {
		if slices.Contains(w.leads, lead.Lead.Name) || lead.Lead.Name == w.r.Plan.Stages[w.r.Stage].Approver {
			t.Fatalf("%s was told twice", lead.Lead.Name)
		}
		w.leads = append(w.leads, lead.Lead.Name)
	}
	if after.Stage != w.r.Stage || !reflect.DeepEqual(after.Plan, w.r.Plan) || !reflect.DeepEqual(after.Decisions, w.r.Decisions) {
		t.Fatal("escalation changed the stage, the plan or the decisions")
	}
	w.settle(t, after, false)
}

func (w *world) expire(t *rapid.T) {
	deadline := w.r.ExpiresAt
	if w.r.State == approvers.Approved {
		deadline = w.r.RunBy
	}
	after, expired := w.r.Expire(deciding(w.policy, w.now))
	if want := w.r.State.Open() && !w.now.Before(deadline); expired != want {
		t.Fatalf("expired %t at %s with deadline %s in state %s", expired, w.now, deadline, w.r.State)
	}
	w.settle(t, after, false)
}

func (w *world) pass(t *rapid.T) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "minutes")) * time.Minute)
}

func (w *world) changePolicy(t *rapid.T) {
	w.changes++
	w.policy = drawPolicy(t, w.changes)
}

func (w *world) void(t *rapid.T) {
	if rapid.IntRange(0, 4).Draw(t, "rarely") > 0 {
		return
	}
	after, _ := w.r.Void(deciding(w.policy, w.now), "the definition of the tool changed")
	w.settle(t, after, false)
}

// run does what the executor does: it holds the approval against the policy of now, and uses it up.
func (w *world) run(t *rapid.T) {
	was := w.r
	now := w.policy.Plan(was.AsCall(w.values()))
	r := was.Recheck(deciding(w.policy, w.now), w.values())
	if r.State == approvers.Pending && was.State == approvers.Approved {
		w.leads = nil
	}
	w.settle(t, r, false)
	after, denied := r.Consume(deciding(w.policy, w.now))
	if denied != nil {
		return
	}
	if was.State != approvers.Approved || !w.now.Before(was.RunBy) {
		t.Fatalf("a %s request, to be run by %s, was consumed at %s", was.State, was.RunBy, w.now)
	}
	if after.Plan.Risk < now.Risk || now.Verdict == approvers.Refuse {
		t.Fatalf("ran as %s under a policy that says %s, %s", after.Plan.Risk, now.Verdict, now.Risk)
	}
	for _, s := range now.Stages {
		if now.Routed && after.Plan.Routed { // an editor's sufficient ceiling may stand for it: check looks at the ceiling
			continue
		}
		if !slices.ContainsFunc(after.Plan.Stages, func(o approvers.Stage) bool { return o.Approver == s.Approver && o.Quorum >= s.Quorum }) {
			t.Fatalf("ran without stage %+v, which the policy asks for now", s)
		}
	}
	w.settle(t, after, false)
}

// next lists the states that may follow a state.
var next = map[approvers.State][]approvers.State{
	approvers.Pending:  {approvers.Approved, approvers.Rejected, approvers.Expired, approvers.Withdrawn, approvers.Voided},
	approvers.Approved: {approvers.Consumed, approvers.Expired, approvers.Withdrawn, approvers.Voided, approvers.Pending},
}

// settle takes a step's result over, if the states allow it.
func (w *world) settle(t *rapid.T, after approvers.Request, byHand bool) {
	was := w.r
	if after.State != was.State && !slices.Contains(next[was.State], after.State) {
		t.Fatalf("%s became %s", was.State, after.State)
	}
	if !was.State.Open() && !reflect.DeepEqual(after, was) {
		t.Fatalf("a %s request changed:\n%+v\n%+v", was.State, was, after)
	}
	if after.State == approvers.Approved && was.State == approvers.Pending && !byHand {
		t.Fatal("approved, and nobody did it")
	}
	if after.Plan.Risk < was.Plan.Risk && after.Digest == was.Digest {
		t.Fatalf("the risk of the same arguments fell from %s to %s", was.Plan.Risk, after.Plan.Risk)
	}
	w.r = after
}

// check holds what must be true at all times.
func (w *world) check(t *rapid.T) {
	r := w.r
	if r.State == approvers.Pending && (len(r.Plan.Stages) == 0 || r.Stage < 0 || r.Stage >= len(r.Plan.Stages)) {
		t.Fatalf("pending at stage %d of %d: nobody can decide it", r.Stage, len(r.Plan.Stages))
	}
	if r.State == approvers.Pending && w.now.Before(r.CreatedAt) {
		t.Fatal("time ran backwards")
	}
	seen := map[approvers.PersonID]bool{}
	for _, d := range r.Standing() {
		if seen[d.By] {
			t.Fatalf("%s counts twice", d.By)
		}
		seen[d.By] = true
		if !slices.ContainsFunc(w.given, func(g given) bool {
			return g.who == d.By && g.digest == r.Digest && g.stage == d.Stage && g.role == r.Plan.Stages[d.Stage].Approver
		}) {
			t.Fatalf("an approval stands that nobody gave: %+v", d)
		}
	}
	if r.State != approvers.Approved && r.State != approvers.Consumed {
		return
	}
	for i, s := range r.Plan.Stages {
		if n := distinct(r, i); n < s.Quorum {
			t.Fatalf("%s with %d of %d people at stage %d (%s)", r.State, n, s.Quorum, i, s.Approver)
		}
	}
	last := len(r.Plan.Stages) - 1
	for _, d := range r.Standing() {
		if d.Stage != last {
			continue
		}
		if !slices.ContainsFunc(w.given, func(g given) bool {
			return g.who == d.By && g.digest == r.Digest && g.stage == last && g.ceiling >= r.Plan.Risk
		}) {
			t.Fatalf("%s approved the last stage of a %s call above their ceiling", d.By, r.Plan.Risk)
		}
	}
	for _, p := range r.Plan.Requesters {
		if seen[p] && !r.Plan.SelfOK {
			t.Fatalf("%s asked for it and approved it", p)
		}
	}
}

// distinct counts the different people whose approval stands at a stage.
func distinct(r approvers.Request, stage int) int {
	people := map[approvers.PersonID]bool{}
	for _, d := range r.Standing() {
		if d.Stage == stage {
			people[d.By] = true
		}
	}
	return len(people)
}
