package desk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

var anna = approvers.Operates(approvers.Operator("anna"))

// order is what the operator orders about a request as it is now, at the command line.
func (o *office) order(kind approvers.DecisionKind, request string) desk.Click {
	o.t.Helper()
	return desk.Click{Who: anna, Request: request, Kind: kind, Reason: "Slack is down", Digest: o.request(request).Digest}
}

// glass lets the operator allow refunds.
func (o *office) glass() {
	o.policy.Store(policy("policy-glass", func(p *approvers.Policy) { p.Tools[3].BreakGlass = true }))
}

// told are the addresses that a notice goes to.
func (o *office) told(request string, note store.Note) (to []string) {
	for _, s := range o.surfacesOf(request) {
		if s.Note == note {
			to = append(to, s.To)
		}
	}
	return to
}

// The operator allows a call for the stages that remain; it runs, and everybody concerned is told, whoever is away included.
func TestBreakGlass(t *testing.T) {
	o := newOffice(t)
	o.glass()
	r := o.ask(`issue_refund {"amount":900}`)
	o.approve(lead, r.ID)
	after, err := o.BreakGlass(o.ctx(), o.order(approvers.Approve, r.ID))
	o.ok(err)
	if after.State != approvers.Approved || after.ClosedBy != anna.ID {
		t.Fatalf("%s by %s", after.State, after.ClosedBy)
	}
	if got := fmt.Sprint(o.told(r.ID, store.NoteGlass)); got != "[role:team-lead role:finance-director]" {
		t.Errorf("told: %s", got)
	}
	records := view(o, func(s store.Reader) ([]approvers.AuditRecord, error) { return s.Audit(r.ID) })
	i := slices.IndexFunc(records, func(a approvers.AuditRecord) bool { return a.Actor == anna.ID })
	if i < 0 || records[i].Kind != approvers.AuditDecided || records[i].Facts["break_glass"] != "true" || records[i].Facts["kind"] != "approve" ||
		records[i].Facts["digest"] != r.Digest || records[i].Facts["stages"] != "2 x finance-director" {
		t.Errorf("recorded as %+v", records)
	}
	body := view(o, func(s store.Reader) (approvers.AuditPayload, error) { return s.AuditPayload(r.ID, records[i].Seq) })
	if !strings.Contains(string(body.Body), "Slack is down") {
		t.Errorf("the reason is not recorded: %s", body.Body)
	}
	_, err = o.Decide(o.ctx(), o.clickOn(fin1, approvers.Approve, r.ID))
	if d := wantDenied(t, err, approvers.DeniedResolved); d.By != anna.ID {
		t.Errorf("the others are told that it was %s", d.By)
	}
	o.run(r.Execution, "refunded")
	o.wantOutcome(r.Call, approvers.OutcomeExecuted)
	o.wantKinds(r.ID, "proposed decided advanced decided approved denied executing executed returned")

	_, err = o.SetAway(o.ctx(), desk.Departure{Who: fin2, Until: o.clock.Now().Add(time.Hour)})
	o.ok(err)
	for _, s := range o.surfacesOf(r.ID) {
		if s.Note == store.NoteGlass && s.To == "role:finance-director" {
			o.ok(o.Expand(o.ctx(), s.ID, []string{"U0003", "U0004"}))
		}
	}
	if got := o.told(r.ID, store.NoteGlass); !slices.Contains(got, "user:U0004") || !slices.Contains(got, "user:U0003") {
		t.Errorf("told: %v", got)
	}
}

// What the policy or the tool does not allow, the operator can't either. A denial is recorded and changes nothing.
func TestBreakGlassObeys(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(*office, *desk.Click)
		code  approvers.Code
		state approvers.State
	}{
		"no glass in the policy of now": {func(o *office, _ *desk.Click) { o.policy.Store(policy("policy-2")) }, approvers.DeniedGlass, approvers.Pending},
		"changed since it was shown": {func(o *office, c *desk.Click) {
			o.approve(lead, c.Request)
			_, err := o.Decide(o.ctx(), o.edit(fin1, c.Request, `{"amount":800}`))
			o.ok(err)
		}, approvers.DeniedStale, approvers.Pending},
		"too late": {func(o *office, _ *desk.Click) { o.clock.pass(expiresAfter + time.Second) }, approvers.DeniedLate, approvers.Pending},
		"another tool by now": {func(o *office, _ *desk.Click) {
			o.tools.change("issue_refund", func(t *desk.Tool) { t.Hash = "another" })
		}, approvers.DeniedResolved, approvers.Voided},
		"nobody could allow it any more": {func(o *office, _ *desk.Click) {
			o.policy.Store(policy("policy-3", func(p *approvers.Policy) {
				p.Tools[3].BreakGlass = true
				p.Approvers = p.Approvers[:1]
			}))
		}, approvers.DeniedResolved, approvers.Voided},
		"no reason":         {func(_ *office, c *desk.Click) { c.Reason = "" }, approvers.DeniedNoReason, approvers.Pending},
		"somebody of Slack": {func(_ *office, c *desk.Click) { c.Who = fin1 }, approvers.DeniedUnidentified, approvers.Pending},
		"decided before":    {func(o *office, c *desk.Click) { o.reject(lead, c.Request) }, approvers.DeniedResolved, approvers.Rejected},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.glass()
			r := o.ask(`issue_refund {"amount":900}`)
			click := o.order(approvers.Approve, r.ID)
			c.do(o, &click)
			_, err := o.BreakGlass(o.ctx(), click)
			wantDenied(t, err, c.code)
			after := o.wantState(r.ID, c.state)
			if _, broken := after.BrokenBy(); broken || len(o.told(r.ID, store.NoteGlass)) > 0 {
				t.Error("it counts, or people were told")
			}
			if !strings.Contains(o.kinds(r.ID), "denied") && c.state != approvers.Rejected {
				t.Errorf("the attempt is not recorded: %s", o.kinds(r.ID))
			}
			o.notRun(after.Execution)
		})
	}
	o := newOffice(t)
	_, err := o.BreakGlass(o.ctx(), desk.Click{Who: anna, Request: "req_none", Kind: approvers.Approve})
	wantDenied(t, err, approvers.DeniedNotFound)
}

// An approval by the operator waits again where the policy takes the glass away before the run.
func TestBrokenGlassIsHeldAgainstThePolicyBeforeTheRun(t *testing.T) {
	o := newOffice(t)
	o.glass()
	r := o.ask(`issue_refund {"amount":1}`)
	_, err := o.BreakGlass(o.ctx(), o.order(approvers.Approve, r.ID))
	o.ok(err)
	o.policy.Store(policy("policy-2"))
	o.notRun(r.Execution)
	o.wantState(r.ID, approvers.Pending)
	o.approve(lead, r.ID)
	o.run(r.Execution, "refunded")
}

func TestOverrule(t *testing.T) {
	o := newOffice(t)
	waits := o.ask(`issue_refund {"amount":1}`)
	after, err := o.Overrule(o.ctx(), o.order(approvers.Reject, waits.ID))
	o.ok(err)
	if after.State != approvers.Rejected || after.Reason != "Slack is down" {
		t.Errorf("%s: %s", after.State, after.Reason)
	}
	if c := o.wantOutcome(waits.Call, approvers.OutcomeRejected); !contains(c.Result, "the operator") || contains(c.Result, "anna") {
		t.Errorf("the agent is told %s", c.Result)
	}
	o.wantKinds(waits.ID, "proposed decided closed returned")

	o.answer(after.Turn)
	approved := o.ask(`issue_refund {"amount":2}`)
	o.approve(lead, approved.ID)
	after, err = o.Overrule(o.ctx(), o.order(approvers.Reject, approved.ID))
	o.ok(err)
	if after.State != approvers.Revoked {
		t.Errorf("what was approved is %s", after.State)
	}
	o.notRun(approved.Execution)

	o.answer(after.Turn)
	began := o.ask(`issue_refund {"amount":3}`)
	o.approve(lead, began.ID)
	_, _, err = o.Claim(o.ctx(), began.Execution)
	o.ok(err)
	_, err = o.Overrule(o.ctx(), o.order(approvers.Reject, began.ID))
	wantDenied(t, err, approvers.DeniedStarted)
	o.ok(o.Finish(o.ctx(), began.Execution, true, "refunded"))
}

// The operator can say what became of a run whose end nobody saw.
func TestOperatorReports(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`issue_refund {"amount":1}`)
	o.approve(lead, r.ID)
	_, _, err := o.Claim(o.ctx(), r.Execution)
	o.ok(err)
	o.clock.pass(time.Hour)
	o.reopen()
	o.notRun(r.Execution)
	o.ok(o.Report(o.ctx(), desk.Click{Who: anna, Execution: r.Execution, Reason: "the bank shows it"}, desk.Happened))
	if e := o.execution(r.Execution); e.State != approvers.ExecutionSucceeded || e.ReportedBy != anna.ID {
		t.Errorf("%s, by %s", e.State, e.ReportedBy)
	}
}

// Nobody on Slack allowed it: whether it happened is asked in the conversation and of those whose turn it was.
func TestBreakGlassUnknown(t *testing.T) {
	o := newOffice(t)
	o.glass()
	r := o.ask(`issue_refund {"amount":1}`)
	_, err := o.BreakGlass(o.ctx(), o.order(approvers.Approve, r.ID))
	o.ok(err)
	_, _, err = o.Claim(o.ctx(), r.Execution)
	o.ok(err)
	o.ok(o.Lose(o.ctx(), r.Execution))
	var to []string
	for _, s := range o.surfacesOf(r.Execution) {
		to = append(to, s.To)
	}
	if want := []string{"conversation:" + r.Conversation, "role:team-lead"}; !slices.Equal(to, want) {
		t.Errorf("asked at %q; want %q", to, want)
	}
}
