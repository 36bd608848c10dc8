package approvers_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"countersign/approvers"
)

// ran returns a request that was approved unchanged, and whose run was started.
func ran(t testing.TB, p *approvers.Policy, tool, args string, who approvers.Identity) approvers.Request {
	t.Helper()
	r := mustApprove(t, p, asked(p, tool, args), who, start)
	r, _, denied := r.Consume(deciding(p, start))
	if denied != nil {
		t.Fatal(denied)
	}
	return r
}

func dollars(amount string) string {
	return fmt.Sprintf(`{"order_id":"ORD-1","amount":%s,"currency":"USD"}`, amount)
}

func TestTrustIsEarned(t *testing.T) {
	p := granting()
	in := deciding(p, start)
	var trust approvers.Trust
	for i, amount := range []string{"20", "120.50", "3"} {
		var g approvers.Grant
		var offered bool
		trust, g, offered = trust.Grow(in, ran(t, p, "issue_refund", dollars(amount), onLead))
		if offered != (i == 2) {
			t.Fatalf("offered after %d: %t", i+1, offered)
		}
		if !offered {
			continue
		}
		if g.State != approvers.GrantOffered || g.OfferedTo != "finance-director" || g.Uses != 5 || g.Left != 0 || g.Within != time.Hour || g.Row != 3 ||
			g.Conversation != "" || g.Until != start.Add(approvers.OfferHolds) || g.By != "" || len(g.Approved) != 1 || g.Approved[0].ID != onLead.ID {
			t.Errorf("offered %+v", g)
		}
		if len(g.Bounds) != 2 || string(g.Bounds[0].AtMost) != "120.50" || string(g.Bounds[1].Equal) != `"USD"` {
			t.Errorf("bounds %+v", g.Bounds)
		}
		if trust.Row != 0 {
			t.Error("the row continues after the offer")
		}
	}
}

func TestTrustBeginsAnew(t *testing.T) {
	p := granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.TrustAfter = 9 }))
	two := func() approvers.Trust {
		var trust approvers.Trust
		for range 2 {
			trust, _, _ = trust.Grow(deciding(p, start), ran(t, p, "issue_refund", dollars("20"), onLead))
		}
		return trust
	}
	changed := func(change func(*approvers.Request)) approvers.Request {
		r := ran(t, p, "issue_refund", dollars("20"), onLead)
		change(&r)
		return r
	}
	other := granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.TrustAfter, t.Grants.Uses = 9, 4 }))
	for name, c := range map[string]struct {
		p   *approvers.Policy
		r   approvers.Request
		row int
	}{
		"alike":              {p, changed(func(*approvers.Request) {}), 3},
		"another currency":   {p, ran(t, p, "issue_refund", `{"order_id":"ORD-1","amount":2,"currency":"EUR"}`, onLead), 1},
		"other arguments":    {p, ran(t, p, "issue_refund", `{"order_id":"ORD-1","amount":2,"currency":"USD","note":"x"}`, onLead), 1},
		"another definition": {p, changed(func(r *approvers.Request) { r.ToolHash = "tool-2" }), 1},
		"other terms":        {other, changed(func(*approvers.Request) {}), 1},
		"it was changed":     {p, changed(func(r *approvers.Request) { r.Edits = []approvers.Edit{{By: onLead.ID}} }), 0},
		"somebody was against": {p, changed(func(r *approvers.Request) {
			r.Decisions = append(r.Decisions, approvers.Decision{Kind: approvers.Reject, By: onFin1.ID})
		}), 0},
		"no trust any more":    {granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.TrustAfter = 0 })), changed(func(*approvers.Request) {}), 0},
		"no grants any more":   {granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.Grants = approvers.GrantTerms{} })), changed(func(*approvers.Request) {}), 0},
		"critical":             {granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.Risk = approvers.Critical })), changed(func(*approvers.Request) {}), 0},
		"a call that was more": {p, changed(func(r *approvers.Request) { r.Plan.Risk = approvers.Critical }), 2},
		"of several people":    {p, changed(func(r *approvers.Request) { r.Plan.Stages = slices.Repeat(r.Plan.Stages, 2) }), 2},
	} {
		t.Run(name, func(t *testing.T) {
			if trust, _, offered := two().Grow(deciding(c.p, start), c.r); trust.Row != c.row || offered {
				t.Errorf("a row of %d; want %d", trust.Row, c.row)
			}
		})
	}
}

// An offer goes to the lead who may grant such calls. If there is no lead, the offer goes to the role of the last
// approval.
func TestWhoIsOffered(t *testing.T) {
	lowered := role("finance-director", func(r *approvers.Role) { r.MaxRisk = approvers.Medium })
	for name, c := range map[string]struct {
		p  *approvers.Policy
		to string
	}{
		"the lead":             {granting(), "finance-director"},
		"no lead":              {granting(role("team-lead", func(r *approvers.Role) { r.Lead = "" })), "team-lead"},
		"a lead who may not":   {granting(lowered), "team-lead"},
		"a lead in a circle":   {granting(role("team-lead", func(r *approvers.Role) { r.Lead = "team-lead" })), "team-lead"},
		"a lead who is no one": {granting(role("team-lead", func(r *approvers.Role) { r.Lead = "gone" })), "team-lead"},
	} {
		t.Run(name, func(t *testing.T) {
			var trust approvers.Trust
			var g approvers.Grant
			for range 3 {
				trust, g, _ = trust.Grow(deciding(c.p, start), ran(t, c.p, "issue_refund", dollars("20"), onLead))
			}
			if g.OfferedTo != c.to {
				t.Errorf("offered to %q; want %q", g.OfferedTo, c.to)
			}
		})
	}
}

func offer(t testing.TB, p *approvers.Policy) approvers.Grant {
	t.Helper()
	var trust approvers.Trust
	var g approvers.Grant
	for range 3 {
		trust, g, _ = trust.Grow(deciding(p, start), ran(t, p, "issue_refund", dollars("20"), onLead))
	}
	g.ID = "grant_1"
	return g
}

func TestOfferIsAnswered(t *testing.T) {
	p := granting()
	g := offer(t, p)
	like := callIn("conv_7", "issue_refund", dollars("20"))
	if why := g.Admits(deciding(p, start), like, "tool-1", []byte(dollars("20")), p.Plan(like)); why == "" {
		t.Error("a call runs under an offer that nobody took up")
	}
	if _, err := g.Use(start); err == nil {
		t.Error("an offer that nobody took up was used")
	}
	at := start.Add(time.Hour)
	actionOf := func(who approvers.Identity) approvers.Action { return approvers.Action{Who: who, At: at} }
	_, denied := g.Revoke(deciding(p, at), onFin1)
	wantDenied(t, denied, approvers.DeniedResolved)
	_, denied = g.Accept(deciding(p, at), actionOf(onLead), "tool-1")
	wantDenied(t, denied, approvers.DeniedNotMember)
	_, denied = g.Accept(deciding(p, at), actionOf(approvers.Identity{}), "tool-1")
	wantDenied(t, denied, approvers.DeniedUnidentified)
	_, denied = g.Accept(deciding(p, at), actionOf(onFin1), "tool-2")
	wantDenied(t, denied, approvers.DeniedNoGrants)
	_, denied = g.Accept(deciding(granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.Grants.Uses = 4 })), at), actionOf(onFin1), "tool-1")
	wantDenied(t, denied, approvers.DeniedNoGrants)
	_, denied = g.Accept(deciding(granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.Risk = approvers.Critical })), at), actionOf(onFin1), "tool-1")
	wantDenied(t, denied, approvers.DeniedNoGrants)
	_, denied = g.Accept(deciding(granting(role("finance-director", func(r *approvers.Role) { r.MaxRisk = approvers.Medium })), at), actionOf(onFin1), "tool-1")
	wantDenied(t, denied, approvers.DeniedCeiling)
	_, denied = g.Accept(deciding(granting(role("finance-director", func(r *approvers.Role) { r.CanApprove = nil })), at), actionOf(onFin1), "tool-1")
	wantDenied(t, denied, approvers.DeniedTool)
	_, denied = g.Accept(deciding(p, at), approvers.Action{Who: onFin1, At: g.Until}, "tool-1")
	wantDenied(t, denied, approvers.DeniedResolved)

	taken, denied := g.Accept(deciding(p, at), actionOf(onFin1), "tool-1")
	if denied != nil || taken.State != approvers.GrantLive || taken.By != onFin1.ID || taken.Role != "finance-director" || taken.Left != 5 || taken.Until != at.Add(time.Hour) {
		t.Fatalf("%v, %+v", denied, taken)
	}
	if why := admits(taken, deciding(p, at), like, "tool-1", dollars("20"), onFin1); why != "" {
		t.Errorf("not admitted: %s", why)
	}
	_, denied = taken.Accept(deciding(p, at), actionOf(onFin2), "tool-1")
	wantDenied(t, denied, approvers.DeniedResolved)

	_, denied = g.Decline(deciding(p, at), actionOf(onLead))
	wantDenied(t, denied, approvers.DeniedNotMember)
	declined, denied := g.Decline(deciding(p, at), actionOf(onFin2))
	if denied != nil || declined.State != approvers.GrantDeclined || declined.ClosedBy != onFin2.ID {
		t.Fatalf("%v, %+v", denied, declined)
	}
	_, denied = declined.Accept(deciding(p, at), actionOf(onFin1), "tool-1")
	wantDenied(t, denied, approvers.DeniedResolved)
}
