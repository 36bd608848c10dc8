package approvers_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"countersign/approvers"
)

// TestAStricterPolicyLetsNothingMoreThrough makes random policies stricter, by one to three changes. Some changes are a
// higher risk, one more rule or stage, a larger quorum, fewer rejections that end a request, and a lower ceiling. Other
// changes are a shorter list of tools, one member or role less, confirmation, no self-approval, masked values, no blind
// approvals, and no break glass. The remaining changes are never_loosen, observe mode, and a tool that differs from its
// pin. If a call runs under the stricter policy with the approvals of some people, or without approvals, it must also
// run under the earlier policy: with the approvals of the same people, in some order.
//
// There is one exception, because the ceiling applies only to the last stage. If a ceiling is lowered, routing selects
// other roles. Then the people who approved under the stricter policy may not fit into the stages of the earlier
// policy. The exception applies if the two policies have different last stages or another order of stages, or if only
// the stricter policy names stages. Under the exception, there must be one of these people for each place in the
// earlier policy's stages, and each person may take only one place. One of these people must have the authority for the
// call's risk. With -rapid.checks=N, the test runs 20·N cases.
func TestAStricterPolicyLetsNothingMoreThrough(t *testing.T) {
	seen := &census{}
	often(t, func(t *rapid.T) {
		p, people, args := drawPolicy(t, 0), drawPeople(t), drawArgs(t)
		c := trial{call: drawCall(t, args), args: args, people: rapid.Permutation(people).Draw(t, "order"), up: rapid.Bool().Draw(t, "up"), looks: !oneIn(t, 4, "blind")}
		q, what := stricter(t, p, 1)
		if rapid.Bool().Draw(t, "twice") {
			q, _ = stricter(t, q, 2)
			what = "two things"
		}
		if oneIn(t, 8, "distrust") {
			q, what = q.With(distrusted(one(t, "drifted", someTools...))), "two things"
		}
		seen.add(c.fresh(t, p, q))
		c.waiting(t, p, q)
		if what == "rejects" {
			c.against(t, p, q)
		}
	})
	t.Log(seen)
	for _, what := range []string{"by itself", "by the same people", "by people with the authority", "not let through"} {
		if seen.of[what] == 0 && !t.Failed() {
			t.Errorf("no case was let through %s: the random policies vary too little", what)
		}
	}
}

// trial is a call and the people who try to approve the call.
type trial struct {
	call   approvers.Call
	args   string
	people []approvers.Identity
	up     bool // all leads are notified before anybody decides
	looks  bool // people have masked values revealed before they approve

	// unasked is set if nobody has clicked since the policy changed. In this case, people's groups and addresses were
	// not requested from Slack.
	unasked bool
}

func (c *trial) open(p *approvers.Policy) approvers.Request {
	r := approvers.Request{
		ID: "req_1", Agent: c.call.Facts.Agent, Tool: c.call.Tool, Effect: c.call.Effect, ToolHash: "tool-1", Execution: "exec_1", Args: json.RawMessage(c.args),
		Facts: approvers.AskFacts{Asker: c.call.Requesters[0], Requesters: c.call.Requesters, Authors: c.call.Authors}, Plan: p.Plan(c.call),
	}
	r.Digest = approvers.Digest(r.Execution, r.Tool, r.ToolHash, r.Args)
	r, _ = approvers.Open(deciding(p, start), r)
	return c.told(p, r)
}

// The method escalates the request to all leads who can be notified. No time passes.
func (c *trial) told(p *approvers.Policy, r approvers.Request) approvers.Request {
	if !c.up || r.State != approvers.Pending {
		return r
	}
	for range 100 {
		if r.EscalateAt.IsZero() {
			return r
		}
		r.EscalateAt, r.ExpiresAt = start, start.Add(time.Hour)
		r, _, _ = r.Escalate(deciding(p, start))
	}
	panic("there is always somebody else to tell")
}

// approve lets a person approve, if the person may.
func (c *trial) approve(p *approvers.Policy, r approvers.Request, who approvers.Identity) (approvers.Request, bool) {
	if c.looks {
		r, _, _ = r.Reveal(deciding(p, start), actionBy(r, who, start), []string{"amount"})
	}
	after, _, denied := r.Approve(deciding(p, start), actionBy(r, who, start))
	return c.told(p, after), denied == nil
}

// allTry lets people approve until nobody else may approve.
func (c *trial) allTry(p *approvers.Policy, r approvers.Request) approvers.Request {
	for more := true; more && r.State == approvers.Pending; {
		more = false
		for _, who := range c.people {
			var ok bool
			r, ok = c.approve(p, r, who)
			more = more || ok
		}
	}
	return r
}

// The method lists the people whose approval counts.
func (c *trial) who(r approvers.Request) (out []approvers.Identity) {
	for _, d := range r.ValidApprovals() {
		i := slices.IndexFunc(c.people, func(who approvers.Identity) bool { return who.ID == d.By && full(who) })
		out = append(out, c.people[i])
	}
	return out
}

// fresh compares a new call under the stricter policy q with the same call under the policy p.
func (c *trial) fresh(t *rapid.T, p, q *approvers.Policy) string {
	if q.Plan(c.call).Verdict == approvers.Auto {
		if v := p.Plan(c.call).Verdict; v != approvers.Auto {
			t.Fatalf("runs by itself under the stricter policy, and not before: %s", v)
		}
		return "by itself"
	}
	r := c.allTry(q, c.open(q))
	if r.State != approvers.Approved {
		return "not let through"
	}
	c.enough(t, p, c.who(r))
	before := p.Plan(c.call)
	if before.Verdict == approvers.Auto || before.Routed || keepsRouted(p, c.call.Tool) || !sameLast(before, r.Plan) {
		return "by people with the authority"
	}
	if !c.someOrder(p, c.open(p), c.who(r)) {
		t.Fatalf("%v let it through under the stricter policy, with %v, and can't before, with %v (%s)", called(c.who(r)), r.Plan.Stages, before.Stages, before.Verdict)
	}
	return "by the same people"
}

// sameLast reports whether the last stages of two plans name the same roles. The last stage of the later plan may also
// name only some of these roles. In this case, each earlier stage of this plan must have a stage at its place in the
// first plan, and must name no roles that this stage does not name. Stages are counted from the last stage.
func sameLast(before, now approvers.Plan) bool {
	for back := 1; back <= len(before.Stages) && back <= len(now.Stages); back++ {
		a, b := before.Stages[len(before.Stages)-back], now.Stages[len(now.Stages)-back]
		if a.Group != b.Group || slices.ContainsFunc(rolesOf(b), func(name string) bool { return !slices.Contains(rolesOf(a), name) }) {
			return false
		}
		if back == 1 && len(rolesOf(a)) == len(rolesOf(b)) {
			return true
		}
	}
	return len(before.Stages) > 0 && len(now.Stages) <= len(before.Stages)
}

// someOrder reports whether the people's approvals complete the request in some order.
func (c *trial) someOrder(p *approvers.Policy, r approvers.Request, people []approvers.Identity) bool {
	if r.State == approvers.Approved {
		return true
	}
	for i, who := range people {
		if after, ok := c.approve(p, r, who); ok && c.someOrder(p, after, slices.Delete(slices.Clone(people), i, i+1)) {
			return true
		}
	}
	return false
}

// The method checks the people who approved a call. The method fails the test if these people are too few for a stage,
// or if one of them is a requester. The method also fails the test if none of these people has the authority for the
// call's risk. The method uses only the model, and not the code under test.
func (c *trial) enough(t *rapid.T, p *approvers.Policy, people []approvers.Identity) {
	need, waits, named := gather(p, c.call)
	if !waits {
		return
	}
	var places [][]string
	for _, s := range named {
		var could []string
		for _, who := range people {
			if (s.Group == "" || slices.Contains(who.Groups, s.Group) || c.up) && slices.ContainsFunc(c.asked(p, s), func(r approvers.Role) bool { return c.holds(r, who) }) {
				could = append(could, string(who.ID))
			}
		}
		for range s.Quorum {
			places = append(places, could)
		}
	}
	if !seated(places, map[string]bool{}) {
		t.Fatalf("%v let it through; they are not enough for %v", called(people), named)
	}
	authority := false
	for _, who := range people {
		if slices.Contains(need.barred(), who.ID) || !full(who) {
			t.Fatalf("%+v let it through, who may not, as one of %v", who, need.barred())
		}
		authority = authority || slices.ContainsFunc(p.Approvers, func(r approvers.Role) bool {
			return c.holds(r, who) && lists(r, c.call.Tool) && r.MaxRisk >= need.risk
		})
	}
	if !authority {
		t.Fatalf("%v let a %s call through, and none of them has the authority", called(people), need.risk)
	}
}

// holds reports whether a person may be in a role, according to data that is known without a call to Slack.
func (c *trial) holds(r approvers.Role, who approvers.Identity) bool {
	return holds(r, who) || c.unasked && slices.ContainsFunc(r.Members, func(m approvers.Member) bool { return m.Kind != approvers.MemberUser })
}

// The method lists the roles whose people may decide a stage other than the last one. Some of these people may
// decide the stage only after an escalation.
func (c *trial) asked(p *approvers.Policy, s approvers.Stage) (out []approvers.Role) {
	a := decisionOracle{call: c.call, need: reading{stages: []approvers.Stage{s, {}}}}
	if s.Approver == "" {
		a.need.stages[0] = groupAlone(p, c.call.Tool, s, false, 0)
	}
	for up := a.up(p); c.up && len(up) > 0; up = a.up(p) {
		a.leads = append(a.leads, up...)
	}
	for _, r := range p.Approvers {
		peer := c.unasked && r.MaxRisk >= lowest(p, a.need.stages[0]) // the approval of a person before the change counts if the request could be handed on to the person now
		if lists(r, c.call.Tool) && (slices.Contains(rolesOf(a.need.stages[0]), r.Name) || slices.Contains(a.leads, r.Name) || peer) {
			out = append(out, r)
		}
	}
	return out
}

// The method lets a call wait under the policy p until the policy becomes q. The call must then pass both
// policies.
func (c *trial) waiting(t *rapid.T, p, q *approvers.Policy) {
	if p.Plan(c.call).Verdict != approvers.Ask {
		return
	}
	r := c.open(p)
	for _, who := range c.people[:rapid.IntRange(0, len(c.people)).Draw(t, "before")] {
		r, _ = c.approve(p, r, who)
	}
	if r.State == approvers.Approved {
		r, _ = r.Recheck(deciding(q, start), c.call.Facts.Args)
	} else {
		r, _ = r.Refresh(deciding(q, start), c.call.Facts.Args)
	}
	r = c.allTry(q, c.told(q, r))
	if r.State != approvers.Approved {
		return
	}
	c.enough(t, p, c.who(r))
	c.unasked = true
	c.enough(t, q, c.who(r))
	if now := q.Plan(c.call); now.Verdict == approvers.Refuse || now.Verdict == approvers.Observed {
		t.Fatalf("let through, and the policy says %s now", now.Verdict)
	}
}

// The method lets people approve and reject in the same order under both policies. The second policy needs
// fewer rejections to end a request. The second policy must not allow more calls than the first policy.
func (c *trial) against(t *rapid.T, p, q *approvers.Policy) {
	if p.Plan(c.call).Verdict != approvers.Ask {
		return
	}
	before, now := c.open(p), c.open(q)
	for range 8 {
		who, no := one(t, "who", c.people...), oneIn(t, 3, "no")
		for _, side := range []struct {
			p *approvers.Policy
			r *approvers.Request
		}{{p, &before}, {q, &now}} {
			if no {
				*side.r, _, _ = side.r.Reject(deciding(side.p, start), actionBy(*side.r, who, start))
			} else {
				*side.r, _ = c.approve(side.p, *side.r, who)
			}
		}
	}
	if now.State == approvers.Approved && before.State != approvers.Approved {
		t.Fatalf("%s with fewer rejections to end it, and %s before", now.State, before.State)
	}
}

func called(people []approvers.Identity) (out []string) {
	for _, who := range people {
		out = append(out, who.Name)
	}
	return out
}
