package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/bot/render/argument"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
	"countersign/store"
)

func testGrant() approvers.Grant {
	return approvers.Grant{
		ID: "grant_1", State: approvers.GrantLive, Agent: "support", Conversation: "conv_1", Tool: "issue_refund", Request: "req_1",
		Args: []string{"amount", "currency", "order_id", "reason"},
		Bounds: []approvers.Bound{
			{Arg: "amount", AtMost: json.RawMessage("50")}, {Arg: "currency", Equal: json.RawMessage(`"USD"`)},
		},
		By: teo, Name: "Teo", Role: "team-lead", At: bottest.Noon.Add(-time.Hour), Until: bottest.Noon.Add(time.Hour), Within: 2 * time.Hour, Uses: 5, Left: 3,
	}
}

func testOffer() approvers.Grant {
	g := testGrant()
	g.State, g.Conversation, g.Request, g.By, g.Name, g.Role = approvers.GrantOffered, "", "", "", "", ""
	g.OfferedTo, g.Row, g.Left, g.Until = "finance-director", 20, 0, bottest.Noon.Add(approvers.OfferHolds)
	g.Approved = []approvers.Signer{{ID: teo, Name: "Teo"}, {ID: ingrid, Name: "Ingrid"}}
	return g
}

func grantView(g approvers.Grant, to string) view.Model {
	return view.Model{
		Message:      store.OutboxMessage{ID: "s_1", Kind: store.OutboxGrant, Ref: g.ID, To: to, Posts: 2, Revision: 3},
		Conversation: store.Conversation{ID: "conv_1", Channel: "C0001", Name: "support", Thread: "1772452800.000100"},
		Grant:        &g, Policy: bottest.GrantingPolicy(), Now: bottest.Noon,
	}
}

func overGrant(g approvers.Grant, state approvers.GrantState, by approvers.PersonID) approvers.Grant {
	g.State, g.ClosedBy, g.ClosedName, g.ClosedAt = state, by, by.User(), bottest.Noon.Add(-time.Minute)
	return g
}

const inThread = "conversation:conv_1"

func TestGrants(t *testing.T) {
	plain, everywhere, passed, used := testGrant(), testGrant(), testGrant(), testGrant()
	plain.Bounds, plain.Args = nil, nil
	everywhere.Conversation, everywhere.OfferedTo, everywhere.Role, everywhere.By = "", "finance-director", "finance-director", ingrid
	passed.Until, passed.Left, used.Left = bottest.Noon, 5, 0
	stalled := grantView(testGrant(), inThread)
	stalled.Stalled = "the policy allows no grants for this tool any more"
	lapsed := testOffer()
	lapsed.Until = bottest.Noon
	for name, s := range map[string]view.Model{
		"grant_live":           grantView(testGrant(), inThread),
		"grant_live_own":       grantView(testGrant(), "user:U0002"),
		"grant_unbounded":      grantView(plain, inThread),
		"grant_everywhere":     grantView(everywhere, "user:U0003"),
		"grant_stalled":        stalled,
		"grant_used_up":        grantView(overGrant(used, approvers.GrantUsed, ""), inThread),
		"grant_passed":         grantView(passed, inThread),
		"grant_revoked":        grantView(overGrant(testGrant(), approvers.GrantRevoked, kenji), inThread),
		"grant_replaced":       grantView(overGrant(testGrant(), approvers.GrantReplaced, teo), inThread),
		"grant_offered":        grantView(testOffer(), "user:U0003"),
		"grant_declined":       grantView(overGrant(testOffer(), approvers.GrantDeclined, ingrid), "user:U0003"),
		"grant_offer_passed":   grantView(lapsed, "user:U0003"),
		"grant_accepted_ended": grantView(overGrant(everywhere, approvers.GrantExpired, ""), "user:U0003"),
	} {
		t.Run(name, func(t *testing.T) {
			m := drawn(t, s).Messages[0]
			bottest.Golden(t, name, m)
			if live := strings.HasPrefix(m.Text, "🎟️") && !s.Grant.State.Open(); live && strings.Contains(bottest.MustJSON(t, m.Blocks), `"actions"`) {
				t.Error("an ended grant has buttons")
			}
		})
	}
}

// The button Allow more… appears only in the details. The button appears only if the policy allows a grant for the call
// and the card shows the whole call.
func TestAllowMoreButton(t *testing.T) {
	allowed := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
	allowed.Policy = bottest.GrantingPolicy()
	changed := func(change func(*approvers.Request)) view.Model {
		r := bottest.Request(bottest.RefundArgs)
		change(&r)
		s := bottest.ViewModel(r)
		s.Policy = bottest.GrantingPolicy()
		return s
	}
	for name, c := range map[string]struct {
		s    view.Model
		want bool
	}{
		"allowed":       {allowed, true},
		"not by policy": {bottest.ViewModel(bottest.Request(bottest.RefundArgs)), false},
		"critical":      {changed(func(r *approvers.Request) { r.Plan.Risk = approvers.Critical }), false},
		"to be typed":   {changed(func(r *approvers.Request) { r.StepUp = "many" }), false},
		"two people":    {changed(func(r *approvers.Request) { r.Plan.Stages[0].Quorum = 2 }), false},
		"no amount":     {changed(func(r *approvers.Request) { r.Args = json.RawMessage(`{"currency":"USD"}`) }), false},
		"not shown whole": {changed(func(r *approvers.Request) {
			r.Args = json.RawMessage(`{"amount":1,"note":"` + strings.Repeat("x", argument.MaxCardArgs) + `"}`)
		}), false},
		"approved": {changed(func(r *approvers.Request) { r.State = approvers.Approved }), false},
	} {
		t.Run(name, func(t *testing.T) {
			text := bottest.MustJSON(t, detailsOn(c.s, testToken(*c.s.Request), "U0002").Blocks.BlockSet)
			if strings.Contains(text, `"action_id":"allow_more"`) != c.want {
				t.Errorf("the button is there: %t", !c.want)
			}
		})
	}
}

func allowSeen(r approvers.Request) form.ClickTarget {
	s := form.ClickTarget{Token: testToken(r).ButtonToken, Model: bottest.ViewModel(r)}
	s.Policy = bottest.GrantingPolicy()
	s.Shown.Shows = []store.Shown{{Request: r.ID, Digest: r.Digest, Whole: true}}
	return s
}

func TestAllowForm(t *testing.T) {
	lead := approvers.Identity{ID: teo, Name: "Teo"}
	r := bottest.Request(bottest.RefundArgs)
	long := bottest.Request(`{ "amount": 123456789012345678901234567890, "order_id": "ORD-1" }`)
	partly, stale := allowSeen(r), allowSeen(r)
	partly.Shown.Shows[0].Whole, stale.Shown.Shows[0].Digest = false, "another"
	none := allowSeen(r)
	none.Policy = bottest.Policy()
	for name, v := range map[string]slack.ModalViewRequest{
		"modal_allow":         form.People[control.ActAllow](allowSeen(r), lead),
		"modal_allow_long":    form.People[control.ActAllow](allowSeen(long), lead),
		"modal_allow_none":    form.People[control.ActAllow](none, lead),
		"modal_allow_partly":  form.People[control.ActAllow](partly, lead),
		"modal_allow_stale":   form.People[control.ActAllow](stale, lead),
		"modal_allow_refused": form.People[control.ActAllow](allowSeen(r), approvers.Identity{ID: sam}),
	} {
		t.Run(name, func(t *testing.T) {
			viewWithin(t, v)
			bottest.Golden(t, name, v)
		})
	}
}

// Grants and their form at maximum size are within Slack's limits.
func TestLargestGrant(t *testing.T) {
	big := func(n int) string { return strings.Repeat("𝕏", n) }
	g, offer := testGrant(), testOffer()
	g.Name, g.Role, g.Tool, g.Agent, g.Args, g.Bounds = big(300), big(300), big(300), big(300), nil, nil
	for i := range 60 {
		g.Args = append(g.Args, fmt.Sprint(big(300), i))
		g.Bounds = append(g.Bounds, approvers.Bound{Arg: fmt.Sprint(big(300), "b", i), Equal: json.RawMessage(`"` + big(9000) + `"`)})
		offer.Approved = append(offer.Approved, approvers.Signer{ID: "operator:x", Name: big(300)})
	}
	offer.Tool, offer.Args, offer.Bounds, offer.OfferedTo, offer.Agent = g.Tool, g.Args, g.Bounds, big(300), big(300)
	s := grantView(g, "user:U0002")
	s.Stalled, s.Conversation.Name = big(3000), big(300)
	drawn(t, s)
	drawn(t, grantView(offer, "user:U0003"))
	r := bottest.Request(bottest.RefundArgs)
	r.Preview, r.Tool = big(9000), big(300)
	var args []string
	terms := approvers.GrantTerms{Uses: 1000, Within: 400 * 24 * time.Hour}
	for i := range 40 {
		n := fmt.Sprintf("field_%d_%s", i, strings.Repeat("x", 250))
		terms.AtMost = append(terms.AtMost, n)
		terms.Same = append(terms.Same, n+"s")
		args = append(args, fmt.Sprintf(`%q:%d`, n, 123456789012345+i), fmt.Sprintf(`%q:%q`, n+"s", big(200)))
	}
	r.Args = json.RawMessage("{" + strings.Join(args, ",") + "}")
	r.Digest = "d"
	seen := allowSeen(r)
	seen.Policy.Tools = append(seen.Policy.Tools, approvers.ToolPolicy{Name: r.Tool, Risk: approvers.High, Confirm: true, Grants: terms})
	seen.Policy.Approvers[1].CanApprove = []string{"*"}
	v := form.People[control.ActAllow](seen, approvers.Identity{ID: teo})
	viewWithin(t, v)
	if v.Submit == nil {
		t.Error(bottest.MustJSON(t, v))
	}
	stepCalls := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
	stepCalls.Message.Kind = store.OutboxStep
	for i := range 40 {
		e := approvers.Execution{State: approvers.ExecutionSucceeded, Grant: g.ID, GrantUse: 2}
		stepCalls.Calls = append(stepCalls.Calls, view.Call{Call: store.Call{Tool: big(300), Preview: big(900), Outcome: approvers.OutcomeExecuted, Index: i}, Execution: &e, Grant: &g})
	}
	drawn(t, stepCalls)
}
