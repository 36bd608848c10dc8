package desk_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// TestManyClaimOneRuns: one approval, one run, however many executors ask for it at once.
func TestManyClaimOneRuns(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`issue_refund {"amount":1}`)
	o.approve(lead, r.ID)
	var wg sync.WaitGroup
	runs := make([]bool, 20)
	for i := range runs {
		wg.Go(func() {
			_, run, err := o.Claim(o.ctx(), r.Execution)
			runs[i] = run
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n := 0
	for _, run := range runs {
		n += b2i(run)
	}
	if n != 1 {
		t.Errorf("%d of 20 may run it", n)
	}
}

func TestStagesAndQuorum(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`issue_refund {"amount":900}`)
	cards := func() (to []string) {
		for _, s := range o.surfacesOf(r.ID) {
			to = append(to, s.To)
		}
		return to
	}
	if got := fmt.Sprint(cards()); got != "[role:team-lead]" {
		t.Errorf("cards at %s", got)
	}
	_, err := o.Decide(o.ctx(), o.clickOn(fin1, approvers.Approve, r.ID))
	wantDenied(t, err, approvers.DeniedNotMember)
	o.approve(lead, r.ID)
	if got := fmt.Sprint(cards()); got != "[role:team-lead role:finance-director]" {
		t.Errorf("cards at %s", got)
	}
	o.approve(fin1, r.ID)
	_, err = o.Decide(o.ctx(), o.clickOn(fin1, approvers.Approve, r.ID))
	wantDenied(t, err, approvers.DeniedCounted)
	o.wantState(r.ID, approvers.Pending)
	o.approve(fin2, r.ID)
	o.wantState(r.ID, approvers.Approved)
	o.run(r.Execution, "refunded")
	o.wantKinds(r.ID, "proposed denied decided advanced decided denied decided approved executing executed returned")
}

func TestDenialsAreRecorded(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`issue_refund {"amount":1}`)
	tests := []struct {
		name   string
		who    approvers.Identity
		change func(*desk.Click)
		code   approvers.Code
	}{
		{"the requester", alice, nil, approvers.DeniedSelf},
		{"a stranger to the role", bob, nil, approvers.DeniedNotMember},
		{"nobody", approvers.Identity{}, nil, approvers.DeniedUnidentified},
		{"from a card that does not show it whole", lead, func(c *desk.Click) { c.Whole = false }, approvers.DeniedUnseen},
		{"from an old card", lead, func(c *desk.Click) { c.Digest = "old" }, approvers.DeniedStale},
		{"without a reason", lead, func(c *desk.Click) { c.Kind, c.Reason = approvers.Reject, "" }, approvers.DeniedNoReason},
		{"arguments that are no JSON", lead, func(c *desk.Click) { c.Kind, c.Args = approvers.Modify, []byte(`{"amount":`) }, approvers.DeniedInvalidArgs},
		{"arguments that the schema refuses", lead, func(c *desk.Click) { c.Kind, c.Args = approvers.Modify, []byte(`{"nonsense":1}`) }, approvers.DeniedInvalidArgs},
		{"a number that a rule can't read", lead, func(c *desk.Click) { c.Kind, c.Args = approvers.Modify, []byte(`{"amount":9007199254740993}`) }, approvers.DeniedInvalidArgs},
		{"an edit that changes nothing", lead, func(c *desk.Click) { c.Kind, c.Args = approvers.Modify, []byte(`{ "amount": 1 }`) }, approvers.DeniedUnchanged},
		{"an edit by somebody who may not", bob, func(c *desk.Click) { c.Kind, c.Args = approvers.Modify, []byte(`{"nonsense":1}`) }, approvers.DeniedNotMember},
		{"an edit from an old card", lead, func(c *desk.Click) { c.Kind, c.Args, c.Digest = approvers.Modify, []byte(`{"amount":1}`), "old" }, approvers.DeniedStale},
		{"an act that there is not", lead, func(c *desk.Click) { c.Kind = "bless" }, approvers.DeniedNothing},
	}
	want := "proposed"
	for _, tt := range tests {
		c := o.clickOn(tt.who, approvers.Approve, r.ID)
		if tt.change != nil {
			tt.change(&c)
		}
		_, err := o.Decide(o.ctx(), c)
		if got := wantDenied(t, err, tt.code); tt.code == approvers.DeniedInvalidArgs && got.Detail == "" {
			t.Errorf("%s: not told what is wrong", tt.name)
		}
		want += " denied"
		if after := o.request(r.ID); after.State != approvers.Pending || len(after.Decisions) != 0 {
			t.Fatalf("%s: denied, and the request is %s with %d decisions", tt.name, after.State, len(after.Decisions))
		}
	}
	o.wantKinds(r.ID, want)
	_, err := o.Decide(o.ctx(), desk.Click{Request: "req_none", Who: lead, Kind: approvers.Approve, Whole: true})
	wantDenied(t, err, approvers.DeniedNotFound)
	if n := len(o.timers(store.TimerInbox)); n != 0 {
		t.Errorf("%d clicks are still due", n)
	}
}

// TestAuthorsOfHighRiskCallsAreBarred: for high, everybody whose words the model was given is a requester.
func TestAuthorsOfHighRiskCallsAreBarred(t *testing.T) {
	more := func(p *approvers.Policy) {
		p.Approvers[0].Members = users("U0001", "U0200")
		p.Approvers[1].Members = users("U0002", "U0200")
	}
	for _, tt := range []struct {
		spec string
		code approvers.Code
	}{{`issue_refund {"amount":1}`, approvers.DeniedSelf}, {`apply_discount {}`, ""}} {
		o := newOffice(t)
		o.policy.Store(policy("policy-1", more))
		first := o.say(bob, "the refund policy says: refund everybody").Turn // an earlier turn, answered
		o.answer(first)
		r := o.ask(tt.spec)
		_, err := o.Decide(o.ctx(), o.clickOn(bob, approvers.Approve, r.ID))
		if tt.code == "" {
			o.ok(err)
			continue
		}
		wantDenied(t, err, tt.code)
	}
}

func TestASecondSpeakerCannotApprove(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Approvers[0].Members = users("U0001", "U0200") }))
	turn := o.say(alice, "a discount please").Turn
	o.say(bob, "yes, ten percent")
	r := o.requestIn(turn, `apply_discount {}`)
	_, err := o.Decide(o.ctx(), o.clickOn(bob, approvers.Approve, r.ID))
	wantDenied(t, err, approvers.DeniedSelf)
}

func TestEdits(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`issue_refund {"amount":10}`)
	first := r.Execution
	out, err := o.Decide(o.ctx(), o.edit(lead, r.ID, `{"amount":  900}`))
	o.ok(err)
	if out.State != approvers.Pending || out.Stage != 0 || out.Execution == first || string(out.Args) != `{"amount":  900}` {
		t.Fatalf("%s at stage %d over %s %s", out.State, out.Stage, out.Execution, out.Args)
	}
	if e := o.execution(first); e.State != approvers.ExecutionNone {
		t.Errorf("the execution of the first arguments is %s", e.State)
	}
	o.notRun(first)
	o.approve(lead, r.ID)
	o.approve(fin1, r.ID)
	out, err = o.Decide(o.ctx(), o.edit(fin2, r.ID, `{"amount":20}`))
	o.ok(err)
	if out.State != approvers.Approved || out.ClosedRole != "finance-director" {
		t.Fatalf("%s by %s; a director's edit within their ceiling approves", out.State, out.ClosedRole)
	}
	c := o.call(r.Call)
	if c.Execution != out.Execution || c.Preview != "Refund of 20" {
		t.Errorf("the call is at %s with preview %q", c.Execution, c.Preview)
	}
	o.notRun(first)
	o.run(out.Execution, `{"ok":true}`)
	c = o.wantOutcome(r.Call, approvers.OutcomeExecuted)
	if want := `"modified":{"by":"Team Lead and Finance Director","args":{"amount":20},"why":"because"}`; !contains(c.Result, want) {
		t.Errorf("the model is told %s; want %s in it", c.Result, want)
	}
	o.wantKinds(r.ID, "proposed decided advanced decided advanced decided decided approved executing executed returned")
}

// TestStoredBytesThatWereChangedNeverRun: somebody who can write to the store can't have other bytes run than were signed.
func TestStoredBytesThatWereChangedNeverRun(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`issue_refund {"amount":1}`)
	o.approve(lead, r.ID)
	o.ok(o.store.Update(o.ctx(), func(tx store.Tx) error {
		e, err := tx.Execution(r.Execution)
		if err != nil {
			return err
		}
		e.Args = []byte(`{"amount":499}`)
		return tx.PutExecution(e)
	}))
	o.notRun(r.Execution)
	o.wantOutcome(r.Call, approvers.OutcomeError)
	o.wantKinds(r.ID, "proposed decided approved executed returned")
	if e := o.execution(r.Execution); e.State != approvers.ExecutionFailed || !e.StartedAt.IsZero() {
		t.Errorf("%s, started %s", e.State, e.StartedAt)
	}
}

func TestAStepWithoutCallsIsRefused(t *testing.T) {
	o := newOffice(t)
	turn := o.say(alice, "x").Turn
	b := o.begin(turn)
	if err := o.Propose(o.ctx(), desk.Proposal{Turn: turn, Step: b.Turn.Step, Text: "hm"}); err == nil || errors.Is(err, desk.ErrNotDue) {
		t.Errorf("a step that asks for nothing would wait for ever; got %v", err)
	}
	o.wantTurn(turn, approvers.TurnThinking)
}
