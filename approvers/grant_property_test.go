package approvers_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"countersign/approvers"
)

// TestGrantReachesNoFurther gives grants under random policies. Then the test changes the policy, the people, the
// tool, the time, the call and the requester. If a grant covers a call, the grant's author must be able to approve
// the call alone at that moment. With -rapid.checks=N, the test runs 60·N cases.
func TestGrantReachesNoFurther(t *testing.T) {
	given, admitted := 0, 0
	for i := range 60 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { oneGrant(t, &given, &admitted) })
		})
	}
	t.Logf("%d grants, under which %d calls would run", given, admitted)
	least := 100
	if testing.Short() { // in short mode, rapid runs a fifth of the cases
		least /= 5
	}
	if given < least || admitted < least {
		t.Errorf("that is too few to mean anything")
	}
}

func oneGrant(t *rapid.T, given, admitted *int) {
	policy, people := drawGranting(t, 0), drawPeople(t)
	call := drawAsked(t)
	args := drawRefund(t)
	r := openIn(policy, call, args)
	for range rapid.IntRange(0, 2).Draw(t, "escalations") {
		r, _, _ = r.Escalate(deciding(policy, r.EscalateAt))
	}
	a := approvers.Allowance{Uses: rapid.IntRange(1, 3).Draw(t, "uses"), Within: time.Duration(rapid.IntRange(1, 60).Draw(t, "minutes")) * time.Minute}
	var g approvers.Grant
	for _, who := range rapid.Permutation(people).Draw(t, "givers") {
		if one, denied := r.Allow(deciding(policy, start), actionBy(r, who, start), a); denied == nil {
			g = one
			break
		}
	}
	if g.By == "" {
		return
	}
	g.ID = "grant_1"
	*given++
	now, uses := start, 0
	for n := range 6 {
		switch rapid.IntRange(0, 9).Draw(t, "change") {
		case 0:
			policy = drawGranting(t, n+1)
		case 1:
			policy = tighten(t, policy, n+1)
		case 2:
			people = drawPeople(t)
		case 3:
			now = now.Add(time.Duration(rapid.IntRange(-5, 30).Draw(t, "pass")) * time.Minute)
		case 4:
			call = drawAsked(t)
		}
		args := drawRefund(t)
		if rapid.Bool().Draw(t, "again") {
			args = string(r.Args)
		}
		hash := rapid.SampledFrom([]string{"tool-1", "tool-1", "tool-1", "tool-2"}).Draw(t, "definition")
		giver := approvers.Identity{}
		if i := slices.IndexFunc(people, func(p approvers.Identity) bool { return p.ID == g.By }); i >= 0 {
			giver = people[i]
		}
		c := callWith(call, args)
		plan := policy.Plan(c)
		in := deciding(policy, now)
		if g.Admits(in, c, hash, json.RawMessage(args), plan) != "" || g.Backs(in, plan, giver) != "" {
			continue
		}
		*admitted++
		couldApproveAlone(t, policy, c, args, now, giver, g)
		withinBounds(t, policy, g, r, args)
		used, err := g.Use(now)
		if uses++; err != nil || uses > a.Uses || hash != r.ToolHash || c.Facts.Conversation.ID != r.Conversation || c.Tool != r.Tool ||
			now.Before(start) || now.Sub(start) >= a.Within {
			t.Fatalf("use %d of %d at %s of %s for %s in %s: %v", uses, a.Uses, now, g.Tool, c.Tool, c.Facts.Conversation.ID, err)
		}
		g = used
	}
}

// couldApproveAlone opens a request for the call as if there were no grant, and lets the request escalate to the end.
// couldApproveAlone fails the test if the giver's approval alone does not complete the request.
func couldApproveAlone(t *rapid.T, p *approvers.Policy, c approvers.Call, args string, now time.Time, giver approvers.Identity, g approvers.Grant) {
	r := openIn(p, c, args)
	if r.State != approvers.Pending || r.Plan.Risk >= approvers.Critical || len(r.Plan.Stages) != 1 {
		t.Fatalf("ran without asking: a call that is %s, %s risk, with stages %v", r.State, r.Plan.Risk, r.Plan.Stages)
	}
	at := now
	for !r.EscalateAt.IsZero() {
		r.ExpiresAt = r.EscalateAt.Add(time.Hour)
		at = r.EscalateAt
		r, _, _ = r.Escalate(deciding(p, at))
	}
	r.ExpiresAt = at.Add(time.Hour)
	m := actionBy(r, giver, at)
	m.Typed = false
	after, _, denied := r.Approve(deciding(p, at), m)
	if denied != nil || after.State != approvers.Approved {
		t.Fatalf("ran without asking, and %s could not have approved it: %v, %s", giver.ID, denied, after.State)
	}
	role, ok := p.Role(g.Role)
	if !ok || role.MaxRisk < r.Plan.Risk || !role.Covers(c.Tool) || !role.Holds(giver) {
		t.Fatalf("ran beyond the authority of the role %s that granted it", g.Role)
	}
	if slices.Contains(append(slices.Clone(c.Requesters), c.Authors...), giver.ID) && !r.Plan.SelfOK && r.Plan.Risk >= approvers.High {
		t.Fatal("the requester had granted it")
	}
}

// withinBounds compares the arguments with the arguments of the call for which the grant was given. withinBounds does
// not use the code under test.
func withinBounds(t *rapid.T, p *approvers.Policy, g approvers.Grant, r approvers.Request, args string) {
	var was, is struct {
		Amount   *float64
		Currency *string
		Extra    *bool
	}
	if json.Unmarshal(r.Args, &was) != nil || json.Unmarshal([]byte(args), &is) != nil {
		t.Fatal("ran with arguments that can't be read")
	}
	terms, _ := p.Tool(g.Tool, g.Agent)
	if slices.Contains(terms.Grants.AtMost, "amount") && (is.Amount == nil || *is.Amount < 0 || *is.Amount > *was.Amount) {
		t.Fatalf("ran beyond its bound: %s after %s", args, r.Args)
	}
	if slices.Contains(terms.Grants.Same, "currency") && (is.Currency == nil) != (was.Currency == nil) || is.Currency != nil && was.Currency != nil && *is.Currency != *was.Currency &&
		slices.Contains(terms.Grants.Same, "currency") {
		t.Fatalf("ran with another currency: %s after %s", args, r.Args)
	}
	if (is.Extra == nil) != (was.Extra == nil) {
		t.Fatalf("ran with other arguments: %s after %s", args, r.Args)
	}
}

// drawGranting returns a random policy that allows grants in most cases.
func drawGranting(t *rapid.T, n int) *approvers.Policy {
	p := drawPolicy(t, n)
	for i := range p.Tools {
		if rapid.IntRange(0, 4).Draw(t, "grants") == 0 {
			continue
		}
		terms := approvers.GrantTerms{Uses: rapid.IntRange(1, 4).Draw(t, "most"), Within: time.Duration(rapid.IntRange(10, 60).Draw(t, "longest")) * time.Minute}
		if rapid.Bool().Draw(t, "bounded") {
			terms.AtMost = []string{"amount"}
		}
		if rapid.Bool().Draw(t, "fixed") {
			terms.Same = []string{"currency"}
		}
		p.Tools[i].Grants = terms
	}
	return p
}

// tighten changes the settings of one tool or one role. Most of these changes make the policy stricter.
func tighten(t *rapid.T, was *approvers.Policy, n int) *approvers.Policy {
	p := *was
	p.Hash = fmt.Sprint("policy-", n, "-tighter")
	p.Tools, p.Approvers = slices.Clone(p.Tools), slices.Clone(p.Approvers)
	tool := &p.Tools[rapid.IntRange(0, len(p.Tools)-1).Draw(t, "tool")]
	switch rapid.IntRange(0, 6).Draw(t, "tighten") {
	case 0:
		tool.Risk = min(tool.Risk+1, approvers.Critical)
	case 1:
		tool.Grants.Uses--
	case 2:
		tool.Grants.Within /= 2
	case 3:
		tool.Grants.AtMost, tool.Grants.Same = []string{"amount"}, []string{"currency"}
	case 4:
		tool.Stages = []approvers.Stage{{Approver: rapid.SampledFrom(someRoles).Draw(t, "stage"), Group: rapid.SampledFrom([]string{"", "g1"}).Draw(t, "group"), Quorum: rapid.IntRange(1, 2).Draw(t, "quorum")}}
	default:
		if len(p.Approvers) > 0 {
			role := &p.Approvers[rapid.IntRange(0, len(p.Approvers)-1).Draw(t, "role")]
			role.MaxRisk = max(role.MaxRisk-1, approvers.Low)
			role.Members = role.Members[:1]
		}
	}
	return &p
}

func drawRefund(t *rapid.T) string {
	amount := rapid.SampledFrom([]string{"1", "499", "499.5", "500", "501", "-3"}).Draw(t, "amount")
	currency := rapid.SampledFrom([]string{"", `,"currency":"USD"`, `,"currency":"USD"`, `,"currency":"EUR"`}).Draw(t, "currency")
	extra := rapid.SampledFrom([]string{"", "", "", `,"extra":true`}).Draw(t, "extra")
	return `{"amount":` + amount + currency + extra + `}`
}

// drawAsked returns a random call, with its requesters and its conversation.
func drawAsked(t *rapid.T) approvers.Call {
	ids := rapid.Custom(func(t *rapid.T) approvers.PersonID {
		return approvers.Who("T1", rapid.SampledFrom(append([]string{"U9", "U9", "U9"}, someUsers...)).Draw(t, "id"))
	})
	c := callIn(rapid.SampledFrom([]string{"conv_1", "conv_1", "conv_1", "conv_2"}).Draw(t, "where"), rapid.SampledFrom(someTools).Draw(t, "tool"), `{}`)
	c.Requesters = rapid.SliceOfNDistinct(ids, 1, 2, rapid.ID[approvers.PersonID]).Draw(t, "requesters")
	c.Authors = append(slices.Clone(c.Requesters), rapid.SliceOfN(ids, 0, 1).Draw(t, "authors")...)
	return c
}

func callWith(c approvers.Call, args string) approvers.Call {
	c.Facts.Args = map[string]any{}
	if err := json.Unmarshal([]byte(args), &c.Facts.Args); err != nil {
		panic(err)
	}
	return c
}

func openIn(p *approvers.Policy, c approvers.Call, args string) approvers.Request {
	r := openCall(p, callWith(c, args), args)
	r.Conversation = c.Facts.Conversation.ID
	return r
}
