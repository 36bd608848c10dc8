package approvers_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"countersign/approvers"
)

// masking returns the example's policy, changed so that an argument of refunds is masked.
func masking() *approvers.Policy {
	p := granting(tool("issue_refund", func(t *approvers.ToolPolicy) { t.Secrets = []string{"note"} }))
	p.Approvers[1].Members = users("U0002", "U0007")
	return p
}

const masked = `{"amount":50,"currency":"USD","note":"hunter2"}`

// refundAsked opens a request whose note is masked.
func refundAsked(t testing.TB, p *approvers.Policy, args string) approvers.Request {
	t.Helper()
	r := asked(p, "issue_refund", args)
	if r.State != approvers.Pending {
		t.Fatalf("%s: %v", r.State, r.Plan.Why)
	}
	return r
}

func revealed(t testing.TB, p *approvers.Policy, r approvers.Request, who approvers.Identity) approvers.Request {
	t.Helper()
	out, events, denied := r.Reveal(deciding(p, start), actionBy(r, who, start), []string{"note"})
	if denied != nil || !approvers.HasEvent[approvers.ValuesRevealed](events) {
		t.Fatalf("%s could not see it: %v, %v", who.Name, denied, events)
	}
	return out
}

// Each person must see the masked values of the current arguments before approving the call.
func TestMaskedValuesAreRevealedBeforeAnApproval(t *testing.T) {
	p := masking()
	r := refundAsked(t, p, masked)
	other := person("U0007")
	_, _, denied := r.Approve(deciding(p, start), actionBy(r, onLead, start))
	wantDenied(t, denied, approvers.DeniedMasked)
	_, _, denied = r.Modify(deciding(p, start), actionBy(r, onLead, start), edited(p, r, "exec_2", `{"amount":40,"currency":"USD","note":"hunter2"}`))
	wantDenied(t, denied, approvers.DeniedMasked)
	_, denied = r.Allow(deciding(p, start), actionBy(r, onLead, start), threeMore)
	wantDenied(t, denied, approvers.DeniedMasked)
	if _, _, denied := r.Reject(deciding(p, start), actionBy(r, onLead, start)); denied != nil {
		t.Errorf("rejecting needs no look: %v", denied)
	}
	for who, code := range map[*approvers.Identity]approvers.Code{&asker: approvers.DeniedSelf, &bystander: approvers.DeniedNotMember} {
		_, _, denied := r.Reveal(deciding(p, start), actionBy(r, *who, start), []string{"note"})
		wantDenied(t, denied, code)
	}

	seen := revealed(t, p, r, onLead)
	if seen.MustReveal(p, onLead.ID) || !seen.MustReveal(p, other.ID) || !seen.MustReveal(p, "") {
		t.Errorf("MustReveal is wrong for somebody after the reveals %+v", seen.Revealed)
	}
	_, _, denied = seen.Approve(deciding(p, start), actionBy(r, other, start))
	wantDenied(t, denied, approvers.DeniedMasked)
	_, _, denied = seen.Reveal(deciding(p, start), actionBy(r, onLead, start), []string{"note"})
	wantDenied(t, denied, approvers.DeniedNothing)
	if after := mustApprove(t, p, seen, onLead, start); after.State != approvers.Approved {
		t.Errorf("%s", after.State)
	}
}

// An edit changes the arguments. After the edit, only the editor has seen all masked values, because the editor saw
// the old values and wrote the new values.
func TestAnEditNeedsANewLook(t *testing.T) {
	p := masking()
	other := person("U0007")
	p.Tools[5].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 2}}
	r := revealed(t, p, revealed(t, p, refundAsked(t, p, masked), onLead), other)
	r, _, denied := r.Modify(deciding(p, start), actionBy(r, onLead, start), edited(p, r, "exec_2", `{"amount":40,"currency":"USD","note":"hunter2"}`))
	if denied != nil || r.At(0) != 1 {
		t.Fatalf("%v, %d approvals", denied, r.At(0))
	}
	_, _, denied = r.Approve(deciding(p, start), actionBy(r, other, start))
	wantDenied(t, denied, approvers.DeniedMasked)
	if r = mustApprove(t, p, revealed(t, p, r, other), other, start); r.State != approvers.Approved {
		t.Errorf("%s", r.State)
	}
}

// The policy key blind allows approvals without revealing the masked values. The key applies to a request only if
// every policy since the proposal of the call has the key.
func TestBlind(t *testing.T) {
	p := masking()
	blind := tool("issue_refund", func(t *approvers.ToolPolicy) { t.Blind = true })
	blindly := masking()
	blind(blindly)
	blindly.Hash = "policy-2"

	r := refundAsked(t, blindly, masked)
	if r.MustReveal(blindly, onLead.ID) || !r.MustReveal(p, onLead.ID) {
		t.Error("MustReveal does not follow the policy")
	}
	if after := mustApprove(t, blindly, r, onLead, start); after.State != approvers.Approved {
		t.Errorf("%s", after.State)
	}

	waiting, _ := refundAsked(t, p, masked).Refresh(deciding(blindly, start), valuesOf(masked))
	_, _, denied := waiting.Approve(deciding(blindly, start), actionBy(r, onLead, start))
	wantDenied(t, denied, approvers.DeniedMasked)

	drifted := blindly.With(approvers.Overlay{Distrusted: map[string]string{"issue_refund": "it changed"}})
	if got, _ := drifted.Tool("issue_refund", ""); got.Blind {
		t.Error("a tool that is not the pinned one is approved blind")
	}
}

// If a new policy does not allow blind approvals, earlier blind approvals don't count, even after the last stage.
func TestBlindApprovalsFall(t *testing.T) {
	p, stricter := masking(), masking()
	p.Tools[5].Blind = true
	stricter.Hash = "policy-2"
	for name, quorum := range map[string]int{"while it waits": 2, "before it runs": 1} {
		t.Run(name, func(t *testing.T) {
			stage := []approvers.Stage{{Approver: "team-lead", Quorum: quorum}}
			p.Tools[5].Stages, stricter.Tools[5].Stages = stage, stage
			r := mustApprove(t, p, refundAsked(t, p, masked), onLead, start)
			again := approvers.Request.Refresh
			if r.State == approvers.Approved {
				again = approvers.Request.Recheck
			}
			after, events := again(r, deciding(stricter, start), valuesOf(masked))
			if after.State != approvers.Pending || len(after.ValidApprovals()) != 0 || !approvers.HasEvent[approvers.DecisionsFell](events) {
				t.Errorf("%s with %d approvals: %v", after.State, len(after.ValidApprovals()), events)
			}
		})
	}
}

// If a new policy masks an argument, earlier approvers have seen the argument's value. Therefore their approvals
// count, but the value must be revealed to later approvers.
func TestNewlyMaskedValues(t *testing.T) {
	was, now := granting(), masking()
	now.Hash = "policy-2"
	stage := []approvers.Stage{{Approver: "team-lead", Quorum: 2}}
	was.Tools[5].Stages, now.Tools[5].Stages = stage, stage
	r := mustApprove(t, was, refundAsked(t, was, masked), onLead, start)
	r, _ = r.Refresh(deciding(now, start), valuesOf(masked))
	if r.At(0) != 1 {
		t.Fatalf("%d approvals", r.At(0))
	}
	_, _, denied := r.Approve(deciding(now, start), actionBy(r, person("U0007"), start))
	wantDenied(t, denied, approvers.DeniedMasked)
}

// A reveal does not cover values that the policy masks only later.
func TestARevealIsForWhatWasMaskedThen(t *testing.T) {
	p, more := masking(), masking()
	more.Tools[5].Secrets, more.Hash = []string{"currency", "note"}, "policy-2"
	r := revealed(t, p, refundAsked(t, p, masked), onLead)
	if r.MustReveal(p, onLead.ID) || !r.MustReveal(more, onLead.ID) {
		t.Errorf("%+v", r.Revealed)
	}
}

// The operator reads the stored arguments at the command line, so break glass needs no reveal.
func TestBreakGlassNeedsNoReveal(t *testing.T) {
	p := masking()
	p.Tools[5].BreakGlass = true
	r := refundAsked(t, p, masked)
	if after, _, denied := r.BreakGlass(deciding(p, start), actionBy(r, operator, start)); denied != nil || after.State != approvers.Approved {
		t.Errorf("%v", denied)
	}
}

// A grant covers a masked argument only with the value that the grant's author saw, unless the policy allows blind
// approvals.
func TestGrantsOfMaskedCalls(t *testing.T) {
	const free = `{"amount":50,"currency":"USD"}`
	p := masking()
	if r := refundAsked(t, p, masked); r.Grantable(deciding(p, start)) {
		t.Error("a grant would let notes through that nobody saw")
	}
	if r := refundAsked(t, p, free); !r.Grantable(deciding(p, start)) {
		t.Error("no value of it is masked")
	}
	p.Tools[5].Grants.Same = []string{"note"}
	r := revealed(t, p, refundAsked(t, p, masked), onLead)
	g, denied := r.Allow(deciding(p, start), actionBy(r, onLead, start), threeMore)
	if denied != nil {
		t.Fatal(denied)
	}
	call := callIn("conv_1", "issue_refund", masked)
	why := func(p *approvers.Policy, g approvers.Grant) string {
		return g.Admits(deciding(p, start), call, "tool-1", json.RawMessage(masked), p.Plan(call))
	}
	if got := why(p, g); got != "" {
		t.Errorf("with the note that was seen: %s", got)
	}
	loose := g // a grant without a bound for the masked note
	loose.Bounds = slices.DeleteFunc(slices.Clone(g.Bounds), func(b approvers.Bound) bool { return b.Arg == "note" })
	old := masking()
	old.Tools[5].Grants.Same = nil
	if got := why(old, loose); got != "note is masked, and it may have a value that nobody was shown" {
		t.Errorf("with any note: %q", got)
	}
	old.Tools[5].Blind = true
	if got := why(old, loose); got != "" {
		t.Errorf("with any note, blind: %s", got)
	}
}

// No grant is offered for calls with masked values, and nobody can accept an earlier offer, unless the policy allows
// blind approvals. The person who accepts would not see the values.
func TestNoOffersOfMaskedCalls(t *testing.T) {
	p := masking()
	p.Tools[5].Grants.Same = []string{"note"}
	r := mustApprove(t, p, revealed(t, p, refundAsked(t, p, masked), onLead), onLead, start)
	trust := approvers.Trust{}
	for range 9 {
		var offered bool
		if trust, _, offered = trust.Grow(deciding(p, start), r); offered || trust.Row != 0 {
			t.Fatalf("counted: %+v", trust)
		}
	}
	g := approvers.Grant{
		State: approvers.GrantOffered, Agent: r.Agent, Tool: "issue_refund", ToolHash: "tool-1", Args: []string{"amount", "note"}, OfferedTo: "team-lead",
		Uses: 5, Within: time.Hour, Until: start.Add(time.Hour), Bounds: []approvers.Bound{{Arg: "amount", AtMost: json.RawMessage("50")}, {Arg: "note", Equal: json.RawMessage(`"x"`)}},
	}
	_, denied := g.Accept(deciding(p, start), actionBy(r, onLead, start), "tool-1")
	wantDenied(t, denied, approvers.DeniedNoGrants)
	p.Tools[5].Blind = true
	if _, denied := g.Accept(deciding(p, start), actionBy(r, onLead, start), "tool-1"); denied != nil {
		t.Errorf("blind: %v", denied)
	}
}

// A stored reveal that the history does not record is detected.
func TestUnrecordedReveal(t *testing.T) {
	r, chain := chained()
	link := func(kind approvers.AuditKind, facts map[string]string) []approvers.AuditRecord {
		return append(slices.Clone(chain), approvers.AuditRecord{Chain: "req", Kind: kind, Actor: "T/3", Facts: facts}.Link(chain[len(chain)-1]))
	}
	r.Revealed = []approvers.Reveal{{By: "T/3", Digest: r.Digest, Secrets: []string{"pin"}}}
	if why := r.Unrecorded(chain); why != "its masked values were revealed to somebody without a record" {
		t.Errorf("%q", why)
	}
	if why := r.Unrecorded(link(approvers.AuditShown, map[string]string{"surface": approvers.ShownAsReveal, "digest": r.Digest})); why != "" {
		t.Error(why)
	}
	for _, facts := range []map[string]string{{"surface": "view", "digest": r.Digest}, {"surface": approvers.ShownAsReveal, "digest": "of others"}} {
		if r.Unrecorded(link(approvers.AuditShown, facts)) == "" {
			t.Errorf("%v counts", facts)
		}
	}
}

func TestHasSecrets(t *testing.T) {
	for _, c := range []struct {
		args    string
		secrets []string
		want    bool
	}{
		{`{"a":1}`, nil, false},
		{`{"a":1}`, []string{"b"}, false},
		{`{"a":null}`, []string{"a"}, true},
		{`{"a":[{"c":1},{"b":""}]}`, []string{"a.b"}, true},
		{`{"a":[{"c":1},[]]}`, []string{"a.b"}, false},
		{`{}`, []string{"*"}, false},
		{`{"a":1}`, []string{"*"}, true},
		{`not JSON`, []string{"a"}, true},
	} {
		if got := approvers.HasSecrets(json.RawMessage(c.args), c.secrets); got != c.want {
			t.Errorf("%s at %q: %t", c.args, c.secrets, got)
		}
	}
}
