package approvers_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
)

// granting returns the example's policy, changed to allow grants for refunds and discounts.
func granting(change ...func(*approvers.Policy)) *approvers.Policy {
	p := example()
	p.Approvers[1].Members = users("U0002", "U0007")
	for i := range p.Tools {
		switch p.Tools[i].Name {
		case "issue_refund":
			p.Tools[i].Grants = approvers.GrantTerms{Uses: 5, Within: time.Hour, AtMost: []string{"amount"}, Same: []string{"currency"}}
			p.Tools[i].TrustAfter = 3
		case "apply_discount":
			p.Tools[i].Grants = approvers.GrantTerms{Uses: 2, Within: time.Hour}
		}
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// tool changes the policy of one tool.
func tool(name string, change func(*approvers.ToolPolicy)) func(*approvers.Policy) {
	return func(p *approvers.Policy) {
		for i := range p.Tools {
			if p.Tools[i].Name == name {
				change(&p.Tools[i])
			}
		}
	}
}

// role changes one role.
func role(name string, change func(*approvers.Role)) func(*approvers.Policy) {
	return func(p *approvers.Policy) {
		for i := range p.Approvers {
			if p.Approvers[i].Name == name {
				change(&p.Approvers[i])
			}
		}
	}
}

const refund = `{"order_id":"ORD-1","amount":49.99,"currency":"USD"}`

// The function opens a request in conversation conv_1.
func asked(p *approvers.Policy, tool, args string) approvers.Request {
	c := callIn("conv_1", tool, args)
	r := openCall(p, c, args)
	r.Conversation, r.Facts.Conversation = "conv_1", c.Facts.Conversation
	return r
}

func callIn(conversation, tool, args string) approvers.Call {
	c := callOf(tool, args)
	c.Facts.Conversation.ID = conversation
	return c
}

var threeMore = approvers.Allowance{Uses: 3, Within: 30 * time.Minute}

// allowed returns the grant with which a person allows more calls like the given call.
func allowed(t testing.TB, p *approvers.Policy, tool, args string, who approvers.Identity, a approvers.Allowance) approvers.Grant {
	t.Helper()
	r := asked(p, tool, args)
	g, denied := r.Allow(deciding(p, start), actionBy(r, who, start), a)
	if denied != nil {
		t.Fatalf("%s could not allow it: %v", who.Name, denied)
	}
	g.ID = "grant_1"
	return g
}

// admits returns the reason why a call may not run under a grant. admits makes the same checks as the executor.
func admits(g approvers.Grant, in approvers.DecisionContext, c approvers.Call, hash, args string, giver approvers.Identity) string {
	plan := in.Policy.Plan(c)
	if why := g.Admits(in, c, hash, json.RawMessage(args), plan); why != "" {
		return why
	}
	return g.Backs(in, plan, giver)
}

func TestGrantBounds(t *testing.T) {
	p := granting()
	g := allowed(t, p, "issue_refund", refund, onLead, threeMore)
	for name, c := range map[string]struct{ args, why string }{
		"the same":             {refund, ""},
		"another order":        {`{"order_id":"ORD-2","amount":49.99,"currency":"USD"}`, ""},
		"less":                 {`{"order_id":"ORD-2","amount":0,"currency":"USD"}`, ""},
		"other order of names": {`{"currency":"USD","amount":12,"order_id":"ORD-2"}`, ""},
		"escaped":              {`{"order_id":"ORD-2","\u0061mount":12,"currency":"\u0055SD"}`, ""},
		"a cent more":          {`{"order_id":"ORD-1","amount":50.00,"currency":"USD"}`, "amount is beyond it"},
		"a hair more":          {`{"order_id":"ORD-1","amount":49.99000000000000000001,"currency":"USD"}`, "amount is beyond it"},
		"negative":             {`{"order_id":"ORD-1","amount":-1,"currency":"USD"}`, "amount is beyond it"},
		"text":                 {`{"order_id":"ORD-1","amount":"1","currency":"USD"}`, "amount is beyond it"},
		"with an exponent":     {`{"order_id":"ORD-1","amount":1e1,"currency":"USD"}`, "amount is beyond it"},
		"a list":               {`{"order_id":"ORD-1","amount":[1],"currency":"USD"}`, "amount is beyond it"},
		"another currency":     {`{"order_id":"ORD-1","amount":1,"currency":"EUR"}`, "currency is beyond it"},
		"currency in lower":    {`{"order_id":"ORD-1","amount":1,"currency":"usd"}`, "currency is beyond it"},
		"without the amount":   {`{"order_id":"ORD-1","currency":"USD"}`, "other arguments"},
		"without the currency": {`{"order_id":"ORD-1","amount":1}`, "other arguments"},
		"one more argument":    {`{"order_id":"ORD-1","amount":1,"currency":"USD","to_account":"X"}`, "other arguments"},
		"named twice":          {`{"order_id":"ORD-1","amount":900,"amount":1,"currency":"USD"}`, "can't be read"},
		"named in upper too":   {`{"order_id":"ORD-1","Amount":900,"amount":1,"currency":"USD"}`, "can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := p.Plan(callIn("conv_1", "issue_refund", refund)) // the policy's own rules are not tested here
			why := g.Admits(deciding(p, start), callIn("conv_1", "issue_refund", refund), "tool-1", json.RawMessage(c.args), plan)
			if (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
				t.Errorf("%s: %q; want %q", c.args, why, c.why)
			}
		})
	}
}

// Before a call runs under a grant, the grant is compared with the current policy, people and tools.
func TestGrantIsHeldAgainstTheMoment(t *testing.T) {
	p := granting()
	g := allowed(t, p, "issue_refund", refund, onLead, threeMore)
	like := callIn("conv_1", "issue_refund", refund)
	at := func(p *approvers.Policy, d time.Duration) approvers.DecisionContext { return deciding(p, start.Add(d)) }
	by := func(ids ...approvers.PersonID) approvers.Call {
		c := like
		c.Requesters = ids
		return c
	}
	changed := func(change func(*approvers.Call)) approvers.Call { c := like; change(&c); return c }
	used := g
	used.Left = 1
	gone, guest, renamed := onLead, onLead, onFin1
	gone.Deleted, guest.Guest = true, true
	group := approvers.Identity{ID: approvers.Who("T0001", "U0007"), Name: "U0007", Groups: []string{"leads"}}
	byGroup := g
	byGroup.By = group.ID
	inGroup := granting(role("team-lead", func(r *approvers.Role) { r.Members = []approvers.Member{{Kind: approvers.MemberGroup, Value: "leads"}} }))
	left := group
	left.Groups = nil
	onlyGroup := granting(tool("issue_refund", func(t *approvers.ToolPolicy) {
		t.Stages = []approvers.Stage{{Approver: "team-lead", Group: "on-duty", Quorum: 1}}
	}))
	noRules := granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.Rules = nil })) // without the rule, because the rule may be newer than the grant
	onDuty := onLead
	onDuty.Groups = []string{"on-duty"}
	for name, c := range map[string]struct {
		g     approvers.Grant
		in    approvers.DecisionContext
		call  approvers.Call
		hash  string
		giver approvers.Identity
		why   string
	}{
		"as it was":             {g, at(p, 0), like, "tool-1", onLead, ""},
		"at the last moment":    {g, at(p, 30*time.Minute-1), like, "tool-1", onLead, ""},
		"too late":              {g, at(p, 30*time.Minute), like, "tool-1", onLead, "it is over"},
		"the clock is set back": {g, at(p, -time.Second), like, "tool-1", onLead, "it is over"},
		"another conversation":  {g, at(p, 0), callIn("conv_2", "issue_refund", refund), "tool-1", onLead, "other calls"},
		"no conversation":       {g, at(p, 0), callIn("", "issue_refund", refund), "tool-1", onLead, "other calls"},
		"another agent":         {g, at(p, 0), changed(func(c *approvers.Call) { c.Facts.Agent = "sales" }), "tool-1", onLead, "other calls"},
		"another tool":          {g, at(p, 0), callIn("conv_1", "send_email", refund), "tool-1", onLead, "other calls"},
		"another definition":    {g, at(p, 0), like, "tool-2", onLead, "definition of the tool"},
		"above the rule's limit": {allowed(t, noRules, "issue_refund", refund, onLead, approvers.Allowance{Uses: 3, Within: time.Hour, AtMost: atMost("900")}), at(p, 0),
			callIn("conv_1", "issue_refund", `{"order_id":"ORD-1","amount":501,"currency":"USD"}`), "tool-1", onLead, "more than one person"},
		"the giver asks":           {g, at(p, 0), by(onLead.ID), "tool-1", onLead, "among the people who ask"},
		"the giver asks too":       {g, at(p, 0), by(asker.ID, onLead.ID), "tool-1", onLead, "among the people who ask"},
		"the giver wrote before":   {g, at(p, 0), changed(func(c *approvers.Call) { c.Authors = []approvers.PersonID{onLead.ID} }), "tool-1", onLead, "among the people who ask"},
		"somebody else asks":       {g, at(p, 0), by(bystander.ID), "tool-1", onLead, ""},
		"the role is gone":         {g, at(granting(func(p *approvers.Policy) { p.Approvers = append(p.Approvers[:1:1], p.Approvers[2]) }), 0), like, "tool-1", onLead, "may not allow this tool"},
		"the ceiling is lowered":   {g, at(granting(role("team-lead", func(r *approvers.Role) { r.MaxRisk = approvers.Medium })), 0), like, "tool-1", onLead, "may not allow this tool"},
		"the tool is taken away":   {g, at(granting(role("team-lead", func(r *approvers.Role) { r.CanApprove = []string{"send_email"} })), 0), like, "tool-1", onLead, "may not allow this tool"},
		"the giver is taken out":   {g, at(granting(role("team-lead", func(r *approvers.Role) { r.Members = users("U0005") })), 0), like, "tool-1", onLead, "not in that role"},
		"the giver's group":        {byGroup, at(inGroup, 0), like, "tool-1", group, ""},
		"the giver left the group": {byGroup, at(inGroup, 0), like, "tool-1", left, "not in that role"},
		"a group is asked":         {g, at(onlyGroup, 0), like, "tool-1", onLead, "not in the user group"},
		"the giver is in it":       {g, at(onlyGroup, 0), like, "tool-1", onDuty, ""},
		"the account is closed":    {g, at(p, 0), like, "tool-1", gone, "Slack does not confirm"},
		"the giver is a guest now": {g, at(p, 0), like, "tool-1", guest, "Slack does not confirm"},
		"somebody else's account":  {g, at(p, 0), like, "tool-1", renamed, "Slack does not confirm"},
		"Slack could not say":      {g, at(p, 0), like, "tool-1", approvers.Identity{}, "Slack does not confirm"},
		"no grants any more":       {g, at(granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.Grants = approvers.GrantTerms{} })), 0), like, "tool-1", onLead, "no grants for this tool"},
		"fewer uses, all of them":  {used, at(granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.Grants.Uses = 2 })), 0), like, "tool-1", onLead, "as often as the policy allows now"},
		"fewer uses, one is left":  {used, at(granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.Grants.Uses = 3 })), 0), like, "tool-1", onLead, ""},
		"a shorter time":           {g, at(granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.Grants.Within = 10 * time.Minute })), 10*time.Minute), like, "tool-1", onLead, "as long as the policy allows now"},
		"one more bound":           {g, at(granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.Grants.AtMost = append(t.Grants.AtMost, "fee") })), 0), like, "tool-1", onLead, "does not bound fee"},
		"one more fixed value":     {g, at(granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.Grants.Same = append(t.Grants.Same, "order_id") })), 0), like, "tool-1", onLead, "does not fix order_id"},
		"one bound fewer":          {g, at(granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.Grants.Same = nil })), 0), like, "tool-1", onLead, ""},
		"critical now":             {g, at(granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.Risk = approvers.Critical })), 0), like, "tool-1", onLead, "no grants for this tool"},
		"a quorum now":             {g, at(granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 2}} })), 0), like, "tool-1", onLead, "more than one person"},
		"two stages now": {g, at(granting(tool("issue_refund", func(t *approvers.ToolPolicy) {
			t.Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 1}}
		})), 0), like, "tool-1", onLead, "more than one person"},
		"others are asked now":        {g, at(granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.Stages = []approvers.Stage{{Approver: "finance-director", Quorum: 1}} })), 0), like, "tool-1", onLead, "wait for others"},
		"only observed now":           {g, at(granting(func(p *approvers.Policy) { p.Mode = approvers.Observe }), 0), like, "tool-1", onLead, "nobody would be asked"},
		"not named by the policy":     {g, at(granting(func(p *approvers.Policy) { p.Tools = p.Tools[:5] }), 0), like, "tool-1", onLead, "no grants for this tool"},
		"it would run without asking": {g, at(granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.Confirm = false })), 0), like, "tool-1", onLead, "nobody would be asked"},
	} {
		t.Run(name, func(t *testing.T) {
			why := admits(c.g, c.in, c.call, c.hash, refund, c.giver)
			if name == "above the rule's limit" {
				why = admits(c.g, c.in, c.call, c.hash, `{"order_id":"ORD-1","amount":501,"currency":"USD"}`, c.giver)
			}
			if (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
				t.Errorf("%q; want %q", why, c.why)
			}
		})
	}
}

func atMost(amount string) map[string]json.RawMessage {
	return map[string]json.RawMessage{"amount": json.RawMessage(amount)}
}

// A lead from an escalation may also give a grant. The grant admits calls if escalation can reach that lead's role.
func TestGrantOfALead(t *testing.T) {
	p := granting()
	r := asked(p, "apply_discount", `{"percent":10}`)
	r, _, told := r.Escalate(deciding(p, r.EscalateAt))
	if !told {
		t.Fatal("not escalated")
	}
	at := start.Add(15 * time.Minute)
	g, denied := r.Allow(deciding(p, at), actionBy(r, onLead, at), approvers.Allowance{Uses: 2, Within: time.Hour})
	if denied != nil || g.Role != "team-lead" {
		t.Fatalf("%v, as %s", denied, g.Role)
	}
	like := callIn("conv_1", "apply_discount", `{"percent":90}`)
	if why := admits(g, deciding(p, at), like, "tool-1", `{"percent":90}`, onLead); why != "" {
		t.Errorf("the lead's grant: %s", why)
	}
	apart := granting(role("support-agent", func(r *approvers.Role) { r.Lead = "" }))
	if why := admits(g, deciding(apart, at), like, "tool-1", `{"percent":90}`, onLead); !strings.Contains(why, "wait for others") {
		t.Errorf("without a lead: %q", why)
	}
}

// At a stage of two roles, a grant from the role with the lower ceiling does not cover calls above this ceiling.
func TestGrantKeepsToItsCeiling(t *testing.T) {
	p := granting(tool("apply_discount", func(t *approvers.ToolPolicy) {
		t.Stages = []approvers.Stage{{Approver: "support-agent", Or: []string{"team-lead"}, Quorum: 1}}
		t.Rules = []approvers.Rule{{When: amountAbove(500), Risk: approvers.High}}
	}))
	args, more := `{"amount":10}`, `{"amount":600}`
	g := allowed(t, p, "apply_discount", args, onSupport, approvers.Allowance{Uses: 2, Within: time.Hour})
	if why := admits(g, deciding(p, start), callIn("conv_1", "apply_discount", args), "tool-1", args, onSupport); why != "" || g.Role != "support-agent" {
		t.Errorf("%q, as %s", why, g.Role)
	}
	if why := admits(g, deciding(p, start), callIn("conv_1", "apply_discount", more), "tool-1", more, onSupport); !strings.Contains(why, "above what the role") {
		t.Errorf("%q", why)
	}
}

func TestAllowIsDenied(t *testing.T) {
	p := granting()
	ask := func(tool, args string, change ...func(*approvers.Request)) approvers.Request {
		r := asked(p, tool, args)
		for _, c := range change {
			c(&r)
		}
		return r
	}
	stale := actionBy(ask("issue_refund", refund), onLead, start)
	stale.Digest = "of another card"
	for name, c := range map[string]struct {
		r    approvers.Request
		m    approvers.Action
		a    approvers.Allowance
		code approvers.Code
	}{
		"by the asker":         {r: ask("issue_refund", refund), m: approvers.Action{Who: asker}, code: approvers.DeniedSelf},
		"by a bystander":       {r: ask("issue_refund", refund), m: approvers.Action{Who: bystander}, code: approvers.DeniedNotMember},
		"by nobody":            {r: ask("issue_refund", refund), code: approvers.DeniedUnidentified},
		"over other arguments": {r: ask("issue_refund", refund), m: stale, code: approvers.DeniedStale},
		"after the end":        {r: ask("issue_refund", refund, func(r *approvers.Request) { r.State = approvers.Approved }), code: approvers.DeniedResolved},
		"no grants":            {r: ask("send_email", `{}`), code: approvers.DeniedNoGrants},
		"critical":             {r: ask("issue_refund", `{"amount":501,"currency":"USD"}`), code: approvers.DeniedNoGrants},
		"to be typed":          {r: ask("issue_refund", refund, func(r *approvers.Request) { r.StepUp = "the 30th today" }), code: approvers.DeniedNoGrants},
		"in no conversation":   {r: ask("issue_refund", refund, func(r *approvers.Request) { r.Conversation = "" }), code: approvers.DeniedNoGrants},
		"no amount":            {r: ask("issue_refund", `{"currency":"USD"}`), code: approvers.DeniedNoGrants},
		"a negative amount":    {r: ask("issue_refund", `{"amount":-5,"currency":"USD"}`), code: approvers.DeniedNoGrants},
		"too often":            {r: ask("issue_refund", refund), a: approvers.Allowance{Uses: 6, Within: time.Hour}, code: approvers.DeniedNoGrants},
		"not once":             {r: ask("issue_refund", refund), a: approvers.Allowance{Uses: 0, Within: time.Hour}, code: approvers.DeniedNoGrants},
		"too long":             {r: ask("issue_refund", refund), a: approvers.Allowance{Uses: 1, Within: time.Hour + 1}, code: approvers.DeniedNoGrants},
		"no time":              {r: ask("issue_refund", refund), a: approvers.Allowance{Uses: 1, Within: -1}, code: approvers.DeniedNoGrants},
		"less than the call":   {r: ask("issue_refund", refund), a: approvers.Allowance{Uses: 1, Within: 1, AtMost: atMost("49.98")}, code: approvers.DeniedNoGrants},
		"up to no number":      {r: ask("issue_refund", refund), a: approvers.Allowance{Uses: 1, Within: 1, AtMost: atMost(`"1000"`)}, code: approvers.DeniedNoGrants},
		"up to a fraction":     {r: ask("issue_refund", refund), a: approvers.Allowance{Uses: 1, Within: 1, AtMost: atMost(`1000/2`)}, code: approvers.DeniedNoGrants},
		"up to without an end": {r: ask("issue_refund", refund), a: approvers.Allowance{Uses: 1, Within: 1, AtMost: atMost(`1e99`)}, code: approvers.DeniedNoGrants},
		"up to nothing":        {r: ask("issue_refund", refund), a: approvers.Allowance{Uses: 1, Within: 1, AtMost: atMost(``)}, code: approvers.DeniedNoGrants},
	} {
		t.Run(name, func(t *testing.T) {
			m := actionBy(c.r, onLead, start)
			if c.m.Who.ID != "" || c.code == approvers.DeniedUnidentified {
				m.Who = c.m.Who
			}
			if c.m.Digest != "" {
				m = c.m
			}
			if c.a.Within == 0 {
				c.a = threeMore
			}
			_, denied := c.r.Allow(deciding(p, start), m, c.a)
			wantDenied(t, denied, c.code)
		})
	}
}

// If a request was handed on to a colleague, the colleague may approve the request. The colleague can't give a grant,
// because the colleague could not decide the next call.
func TestWhoWasInvitedAllowsNoMore(t *testing.T) {
	p := granting(role("team-lead", func(r *approvers.Role) { r.Lead = "" }))
	r := asked(p, "issue_refund", refund)
	r, _, denied := r.HandOn(deciding(p, start), actionBy(r, onLead, start), onFin1)
	if denied != nil {
		t.Fatal(denied)
	}
	_, denied = r.Allow(deciding(p, start), actionBy(r, onFin1, start), threeMore)
	wantDenied(t, denied, approvers.DeniedNoGrants)
	mustApprove(t, p, r, onFin1, start)
}

// A person can't give a grant up to a number that is above the ceiling of the person's role, or for which the policy
// asks other people. The denial names the risk of a call with this number.
func TestGrantUpToMoreThanTheRoleMayApprove(t *testing.T) {
	p := granting(tool("issue_refund", func(t *approvers.ToolPolicy) {
		t.Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}}
		t.Rules = []approvers.Rule{{When: amountAbove(500), Risk: approvers.Critical}, {When: amountAbove(300), Stages: []approvers.Stage{{Approver: "finance-director", Quorum: 1}}}}
	}))
	r := asked(p, "issue_refund", refund)
	for most, want := range map[string]string{"300": "", "301": "needs other people", "501": "is critical risk, above what " + p.Approvers[1].Title + " may approve"} {
		a := approvers.Allowance{Uses: 2, Within: time.Hour, AtMost: atMost(most)}
		_, denied := r.Allow(deciding(p, start), actionBy(r, onLead, start), a)
		switch {
		case want == "" && denied != nil:
			t.Errorf("up to %s: denied for %s (%s)", most, denied.Code, denied.Detail)
		case want != "" && (denied == nil || denied.Code != approvers.DeniedNoGrants || !strings.Contains(denied.Detail, want)):
			t.Errorf("up to %s: %+v; want a denial that says %q", most, denied, want)
		}
	}
}

// A grant can be given for a call with a long text, also if JSON encoders write its characters as escapes.
func TestGrantForALongText(t *testing.T) {
	p := granting()
	r := asked(p, "issue_refund", strings.Replace(refund, "ORD-1", strings.Repeat("<", 12_000), 1))
	if _, denied := r.Allow(deciding(p, start), actionBy(r, onLead, start), threeMore); denied != nil {
		t.Errorf("denied for %s (%s)", denied.Code, denied.Detail)
	}
}

func TestGrantIsUsedUp(t *testing.T) {
	g := allowed(t, granting(), "issue_refund", refund, onLead, threeMore)
	var err error
	for left := 2; left >= 0; left-- {
		if g, err = g.Use(start.Add(time.Minute)); err != nil || g.Left != left {
			t.Fatalf("%d left, %v; want %d", g.Left, err, left)
		}
	}
	if g.State != approvers.GrantUsed || g.ClosedAt.IsZero() {
		t.Errorf("%s after the last use", g.State)
	}
	if _, err := g.Use(start.Add(time.Minute)); err == nil {
		t.Error("used once too often")
	}
	late := allowed(t, granting(), "issue_refund", refund, onLead, threeMore)
	if _, err := late.Use(late.Until); err == nil {
		t.Error("used after its time")
	}
	if _, err := late.Use(late.At.Add(-1)); err == nil {
		t.Error("used before its time")
	}
	if same, over := late.Lapse(late.Until.Add(-1)); over || same.State != approvers.GrantLive {
		t.Error("lapsed before its time")
	}
	if ended, over := late.Lapse(late.Until); !over || ended.State != approvers.GrantExpired {
		t.Errorf("%s after its time", ended.State)
	}
}

func TestGrantIsRevoked(t *testing.T) {
	p := granting()
	g := allowed(t, p, "issue_refund", refund, onLead, threeMore)
	colleague := person("U0007")
	for name, c := range map[string]struct {
		in   approvers.DecisionContext
		who  approvers.Identity
		code approvers.Code
	}{
		"its giver":            {in: deciding(p, start), who: onLead},
		"the same role":        {in: deciding(p, start), who: colleague},
		"another role":         {in: deciding(p, start), who: onFin1, code: approvers.DeniedNotMember},
		"the asker":            {in: deciding(p, start), who: asker, code: approvers.DeniedNotMember},
		"nobody":               {in: deciding(p, start), code: approvers.DeniedUnidentified},
		"the giver, role gone": {in: deciding(&approvers.Policy{}, start), who: onLead},
		"role gone":            {in: deciding(&approvers.Policy{}, start), who: colleague, code: approvers.DeniedNotMember},
	} {
		t.Run(name, func(t *testing.T) {
			after, denied := g.Revoke(c.in, c.who)
			if c.code != "" {
				wantDenied(t, denied, c.code)
				return
			}
			if denied != nil || after.State != approvers.GrantRevoked || after.ClosedBy != c.who.ID {
				t.Fatalf("%v, %s by %s", denied, after.State, after.ClosedBy)
			}
			_, denied = after.Revoke(c.in, c.who)
			wantDenied(t, denied, approvers.DeniedResolved)
		})
	}
}

// A newer grant for the same calls replaces the earlier grant, so the remaining uses of both don't add up.
func TestGrantsDoNotAddUp(t *testing.T) {
	p := granting()
	g := allowed(t, p, "issue_refund", refund, onLead, threeMore)
	next := allowed(t, p, "issue_refund", `{"order_id":"ORD-9","amount":20,"currency":"USD"}`, onLead, threeMore)
	next.ID = "grant_2"
	if after, ok := g.Replace(next); !ok || after.State != approvers.GrantReplaced || after.ClosedBy != onLead.ID {
		t.Errorf("%t, %s", ok, after.State)
	}
	euros := allowed(t, p, "issue_refund", `{"order_id":"ORD-9","amount":20,"currency":"EUR"}`, onLead, threeMore)
	elsewhere := next
	euros.ID, elsewhere.Conversation = "grant_3", "conv_2"
	for name, other := range map[string]approvers.Grant{"of euros": euros, "elsewhere": elsewhere, "itself": g} {
		if _, ok := g.Replace(other); ok {
			t.Errorf("replaced by one %s", name)
		}
	}
}
