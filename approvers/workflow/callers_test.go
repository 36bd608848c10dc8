package workflow_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/retention"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// ci is the client of these tests. Alice is its owner.
var ci = approvers.Client{
	Name: "ci", Title: "CI bot", Token: "hash", Agent: "support", Owner: "U0100", Tools: []string{"*"}, Audience: "ci",
	MaxPending: 3, RejectionHolds: 10 * time.Minute, OutcomeWithin: time.Hour,
}

// other is a second client with the same rights.
var other = func() approvers.Client {
	c := ci
	c.Name, c.Token, c.Owner = "other", "another hash", "U0200"
	return c
}()

func withClients(p *approvers.Policy) { p.Clients = []approvers.Client{ci, other} }

// withOAuth lets the client ci use tokens that can prove for which person it acts.
func withOAuth(p *approvers.Policy) {
	p.Clients[0].Token, p.Clients[0].OAuth = "", &approvers.OAuth{Issuer: "https://login.example.com", Subject: "ci-id", Person: "slack", Algorithm: "RS256"}
}

// newCallerHarness returns a harness whose policy has the clients ci and other.
func newCallerHarness(t testing.TB, change ...func(*approvers.Policy)) *harness {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", append([]func(*approvers.Policy){withClients}, change...)...))
	return h
}

// callerCall returns a call of the client ci in the mode decide. spec is the tool and its arguments, such as
// "issue_refund {}".
func callerCall(key, spec string, change ...func(*workflow.CallerCall)) workflow.CallerCall {
	tool, args, _ := strings.Cut(spec, " ")
	c := workflow.CallerCall{Client: ci, Key: key, Body: spec, Mode: approvers.DecideMode, Tool: tool, Args: json.RawMessage(args), Summary: "the tests passed"}
	for _, f := range change {
		f(&c)
	}
	return c
}

// callerAsks makes a client propose a call, and returns the request's id.
func (h *harness) callerAsks(c workflow.CallerCall) string {
	h.t.Helper()
	id, _, err := h.Callers.Propose(h.ctx(), c)
	h.ok(err)
	return id
}

func (h *harness) callerView(client, id string) view.CallerRequest {
	h.t.Helper()
	v, err := h.Views.Caller(h.ctx(), client, id)
	h.ok(err)
	return v
}

// h.claims makes the client ci claim a request with the request's current arguments.
func (h *harness) claims(id string) error {
	h.t.Helper()
	return h.Callers.Claim(h.ctx(), ci, id, hashText(h.callerView("ci", id).Execution.Args))
}

// hashText returns the SHA-256 of arguments, in hex.
func hashText(args []byte) string {
	sum := sha256.Sum256(args)
	return hex.EncodeToString(sum[:])
}

// wantProblem checks that an error is a workflow.CallerProblem with the given code.
func wantProblem(t testing.TB, err error, code workflow.CallerCode) {
	t.Helper()
	var p *workflow.CallerProblem
	if !errors.As(err, &p) || p.Code != code {
		t.Fatalf("got %v; want the problem %s", err, code)
	}
}

func (h *harness) runs(id string, want approvers.ExecutionState) {
	h.t.Helper()
	if got := h.callerView("ci", id).Execution.State; got != want {
		h.t.Fatalf("the run is %s, want %s", got, want)
	}
}

// The people who ask for a call can't approve the call. These people are the caller's owner, and the person for whom
// the caller says that it acts (the field For). The caller's statement gives this person no rights.
func TestCallersRequesters(t *testing.T) {
	h := newCallerHarness(t, func(p *approvers.Policy) {
		p.Approvers[1].Members = users("U0002", "U0100", "U0300")
	})
	id := h.callerAsks(callerCall("k", `issue_refund {"amount": 5}`, func(c *workflow.CallerCall) { c.For = "U0300" }))
	claimed := person("U0300")
	for _, who := range []approvers.Identity{alice, claimed, {ID: "E1/W9", Local: "U0100", Name: "alice"}} {
		_, err := h.Requests.Decide(h.ctx(), h.clickOn(who, approvers.Approve, id))
		wantDenied(t, err, approvers.DeniedSelf)
	}
	_, err := h.Requests.Withdraw(h.ctx(), h.clickOn(claimed, approvers.Reject, id))
	wantDenied(t, err, approvers.DeniedNotRequester)
	_, err = h.Requests.Decide(h.ctx(), h.edit(lead, id, `{"amount": 4}`))
	wantDenied(t, err, approvers.DeniedNoEdits)
	facts, _ := h.lastFacts(id, approvers.AuditProposed)
	if facts["asker"] != "caller:ci" || facts["requesters"] != "caller:ci,T0001/U0100" || facts["runs"] != "ci" {
		t.Errorf("it is recorded as %v", facts)
	}
	if to := h.places(id, store.OutboxCard); to != "role:team-lead" {
		t.Errorf("the card goes to %q", to)
	}
	h.approve(lead, id)
	h.ok(h.claims(id))
	h.ok(h.Callers.Report(h.ctx(), ci, id, "", approvers.ExecutionSucceeded, "done"))
	h.runs(id, approvers.ExecutionSucceeded)
	if v := h.callerView("ci", id); v.Call.Outcome != approvers.OutcomeExecuted || h.turn(v.Call.Turn).State != approvers.TurnAnswered || v.Conversation.Turn != "" {
		t.Errorf("the call ended as %+v", v.Call)
	}
	if _, err := h.Views.Caller(h.ctx(), "other", id); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another client reads it: %v", err)
	}
	for _, err := range []error{
		h.Callers.Claim(h.ctx(), other, id, ""), h.Callers.Report(h.ctx(), other, id, "", approvers.ExecutionFailed, ""), h.Callers.Withdraw(h.ctx(), other, id, ""),
		h.Callers.Answer(h.ctx(), other, id, 0, "x"),
	} {
		wantProblem(t, err, workflow.CallerNotFound)
	}
	gone := ci
	gone.Token = "the hash of an earlier token"
	wantProblem(t, h.Callers.Withdraw(h.ctx(), gone, id, ""), workflow.CallerUnknown)
}

// A call does not run if the current policy forbids its client to make the call, even if people have approved the call.
// After a change of the policy, a waiting or approved request is voided, at the latest when its run would start.
func TestCallersForbidden(t *testing.T) {
	for what, change := range map[string]func(*approvers.Policy){
		"the client is gone":     func(p *approvers.Policy) { p.Clients = p.Clients[1:] },
		"the tool was taken":     func(p *approvers.Policy) { p.Clients[0].Tools = []string{"update_address"} },
		"the agent has no tools": func(p *approvers.Policy) { p.Agents[0].Tools = []string{"update_address"} },
	} {
		for _, mode := range []approvers.CallerMode{approvers.DecideMode, approvers.ExecuteMode} {
			t.Run(what+", "+string(mode), func(t *testing.T) {
				h := newCallerHarness(t)
				in := func(c *workflow.CallerCall) { c.Mode = mode }
				automatic := h.callerAsks(callerCall("0", `search_orders {}`, in))
				waits := h.callerAsks(callerCall("1", `issue_refund {"amount": 1}`, in))
				approved := h.callerAsks(callerCall("2", `issue_refund {"amount": 2}`, in))
				h.approve(lead, approved)
				h.policy.Store(policy("policy-2", withClients, change))
				for _, id := range []string{automatic, approved} {
					if mode == approvers.DecideMode {
						if err := h.claims(id); err == nil {
							t.Error("it was claimed")
						}
						continue
					}
					if _, run, err := h.Runs.Claim(h.ctx(), h.callerView("ci", id).Execution.ID); run || err != nil {
						t.Errorf("it ran: %t, %v", run, err)
					}
				}
				h.ok(h.Requests.Reevaluate(h.ctx()))
				for _, id := range []string{waits, approved} {
					if r := h.request(id); r.State != approvers.Voided || !strings.Contains(r.Reason, "any more") {
						t.Errorf("%s is %s: %s", id, r.State, r.Reason)
					}
				}
				h.runs(approved, approvers.ExecutionNone)
				h.runs(automatic, approvers.ExecutionNone)
			})
		}
	}
}

// If a caller does not report the outcome of its run, the outcome is unknown. The bot then asks the approving roles and
// the caller's owner, even after a restart.
func TestCallersUnknown(t *testing.T) {
	h := newCallerHarness(t)
	ask := func(key string) string {
		id := h.callerAsks(callerCall(key, `issue_refund {"amount": `+key+`}`))
		h.approve(lead, id)
		h.ok(h.claims(id))
		h.reopen()
		h.runs(id, approvers.ExecutionExecuting)
		h.clock.pass(ci.OutcomeWithin)
		h.due()
		h.runs(id, approvers.ExecutionUnknown)
		return id
	}
	id := ask("1")
	e := h.callerView("ci", id).Execution
	if to := h.places(e.ID, store.OutboxUnknown); to != "user:U0100, role:team-lead" || e.Loss != approvers.LossUnreported {
		t.Errorf("people are asked at %q, because it is %s", to, e.Loss)
	}
	h.ok(h.Callers.Report(h.ctx(), ci, id, "", approvers.ExecutionSucceeded, "late"))
	h.runs(id, approvers.ExecutionSucceeded)
	wantProblem(t, h.Callers.Report(h.ctx(), ci, id, "", approvers.ExecutionFailed, ""), workflow.CallerOutcomeKnown)

	id = ask("2")
	e = h.callerView("ci", id).Execution
	h.ok(h.Runs.Report(h.ctx(), workflow.Click{Who: lead, Execution: e.ID, Reason: "not in the books", At: h.clock.Now()}, workflow.DidNot))
	h.runs(id, approvers.ExecutionFailed)
	wantProblem(t, h.Callers.Report(h.ctx(), ci, id, "", approvers.ExecutionSucceeded, "late"), workflow.CallerOutcomeKnown)

	id = ask("3")
	e = h.callerView("ci", id).Execution
	h.ok(h.Runs.RetryUnknown(h.ctx(), workflow.Click{Who: lead, Execution: e.ID, At: h.clock.Now()}))
	again := h.callerView("ci", id)
	if again.Request.ID == id || again.Request.State != approvers.Pending || again.Execution.Caller != "ci" {
		t.Fatalf("asked again, it is %+v", again.Request)
	}
	h.approve(lead, again.Request.ID)
	h.ok(h.claims(id))
	h.ok(h.Callers.Report(h.ctx(), ci, id, "", approvers.ExecutionFailed, "no"))
	h.runs(id, approvers.ExecutionFailed)
}

// The timers of executions are lost, and the store sets them again without their deadlines. The deadlines stay the same:
// for the claim of a call that needs no approval, for the report of a run, and for a person's report.
func TestLostTimersKeepDeadlines(t *testing.T) {
	h := newCallerHarness(t)
	tool, _ := h.policy.Load().Tool("search_orders", ci.Agent)
	outcome := func(id string) approvers.Outcome { return h.call(id).Outcome }
	for name, c := range map[string]struct {
		begin  func(id string)
		within time.Duration
		over   func(id string) bool
	}{
		"to claim":  {func(string) {}, tool.RunWithin, func(id string) bool { return outcome(id) == approvers.OutcomeExpired }},
		"to report": {func(id string) { h.ok(h.claims(id)) }, ci.OutcomeWithin, func(id string) bool { return h.callerView("ci", id).Execution.State == approvers.ExecutionUnknown }},
		"of people": {func(id string) {
			h.ok(h.claims(id))
			h.ok(h.Callers.Report(h.ctx(), ci, id, "", approvers.ExecutionUnknown, ""))
		}, tool.ExpiresAfter, func(id string) bool { return outcome(id) == approvers.OutcomeUnknown }},
	} {
		id := h.callerAsks(callerCall(name, "search_orders {}"))
		c.begin(id)
		h.clock.pass(c.within / 2)
		e := *h.callerView("ci", id).Execution
		h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error { return tx.SetTimer(store.LostTimer(e)) }))
		h.due()
		h.clock.pass(c.within/2 - time.Second)
		h.due()
		if c.over(id) {
			t.Errorf("the time %s is over too early", name)
		}
		h.clock.pass(time.Second)
		h.due()
		if !c.over(id) {
			t.Errorf("the time %s does not end: %+v", name, h.call(id))
		}
	}
}

// The policy names a caller's owner by the user id in the workspace. If the enterprise has another id for this person,
// the owner can still withdraw the requests, answer questions, and report the outcome of a run.
func TestCallersOwnerInAnEnterprise(t *testing.T) {
	h := newCallerHarness(t)
	owner, stranger := approvers.Identity{ID: "E1/W9", Local: "U0100", Name: "alice"}, approvers.Identity{ID: "E1/W8", Local: "U0300", Name: "carol"}
	id := h.callerAsks(callerCall("1", `issue_refund {"amount": 1}`))
	h.question(lead, id, "why?")
	_, err := h.Requests.Reply(h.ctx(), h.words(stranger, id, "no idea"), 0)
	wantDenied(t, err, approvers.DeniedNotRequester)
	_, err = h.Requests.Reply(h.ctx(), h.words(owner, id, "it broke"), 0)
	h.ok(err)
	_, err = h.Requests.Withdraw(h.ctx(), h.clickOn(stranger, "", id))
	wantDenied(t, err, approvers.DeniedNotRequester)
	_, err = h.Requests.Withdraw(h.ctx(), h.clickOn(owner, "", id))
	h.ok(err)
	h.wantState(id, approvers.Withdrawn)

	for key, spec := range map[string]string{"2": `issue_refund {"amount": 2}`, "3": `search_orders {}`} {
		id = h.callerAsks(callerCall(key, spec))
		if h.call(id).Request != "" {
			h.approve(lead, id)
		}
		h.ok(h.claims(id))
		h.ok(h.Callers.Report(h.ctx(), ci, id, "", approvers.ExecutionUnknown, ""))
		run := h.callerView("ci", id).Execution.ID
		if h.reports(stranger, run, workflow.Happened) == nil {
			t.Errorf("%s: a stranger reported the outcome", spec)
		}
		h.ok(h.reports(owner, run, workflow.Happened))
		h.runs(id, approvers.ExecutionSucceeded)
	}
}

// A person asks for another run of a caller's call with an unknown outcome. Until the new run is claimed, the caller's
// report is about the earlier run. If the earlier run succeeded, the new request is voided. If the earlier run failed,
// the new request still waits.
func TestCallersReportAfterAskAgain(t *testing.T) {
	h := newCallerHarness(t, func(p *approvers.Policy) { p.Clients[0].OutcomeWithin = time.Minute })
	ask := func(key string) (id string, first, retry approvers.Request) {
		t.Helper()
		id = h.callerAsks(callerCall(key, `issue_refund {"amount": 5}`, func(c *workflow.CallerCall) { c.Edits = true }))
		h.approve(lead, id)
		h.ok(h.claims(id))
		h.clock.pass(time.Minute)
		h.due()
		first = *h.callerView("ci", id).Request
		h.ok(h.again(lead, first.Execution))
		return id, first, *h.callerView("ci", id).Request
	}
	report := func(id string, state approvers.ExecutionState, text string) error {
		return h.Callers.Report(h.ctx(), ci, id, "", state, text)
	}
	wantFirst := func(first approvers.Request, want approvers.ExecutionState) {
		t.Helper()
		if got := h.execution(first.Execution); got.State != want {
			t.Errorf("the earlier run is %s; want %s", got.State, want)
		}
	}

	for _, change := range []func(r approvers.Request){
		func(approvers.Request) {},
		func(r approvers.Request) { h.approve(lead, r.ID) },
		func(r approvers.Request) {
			_, err := h.Requests.Decide(h.ctx(), h.edit(lead, r.ID, `{"amount": 4}`))
			h.ok(err)
		},
	} {
		id, first, retry := ask(h.id("key"))
		change(retry)
		h.ok(report(id, approvers.ExecutionUnknown, ""))
		wantFirst(first, approvers.ExecutionUnknown)
		for range 2 { // the caller may repeat its report
			h.ok(report(id, approvers.ExecutionSucceeded, "late"))
		}
		wantFirst(first, approvers.ExecutionSucceeded)
		h.wantState(retry.ID, approvers.Voided)
		if c := h.wantOutcome(id, approvers.OutcomeExecuted); !contains(c.Result, "late") {
			t.Errorf("the result is %s", c.Result)
		}
		if err := h.claims(id); err == nil {
			t.Error("the call was claimed again after it had succeeded")
		}
		wantProblem(t, report(id, approvers.ExecutionFailed, "no"), workflow.CallerOutcomeKnown)
	}

	id, first, retry := ask(h.id("key"))
	h.ok(report(id, approvers.ExecutionFailed, "no"))
	wantFirst(first, approvers.ExecutionFailed)
	h.wantState(retry.ID, approvers.Pending)
	h.approve(lead, retry.ID)
	h.ok(h.claims(id))
	h.ok(report(id, approvers.ExecutionSucceeded, "this time"))
	h.runs(id, approvers.ExecutionSucceeded)
	wantFirst(first, approvers.ExecutionFailed)
}

// People asked for another run of a call, and the caller has claimed it. A late report about the earlier run does not
// close the later run. A report about a run that the caller can't have claimed is refused.
func TestCallersReportAboutARun(t *testing.T) {
	h := newCallerHarness(t)
	run := func(id string) string { return h.callerView("ci", id).Execution.ID }
	approve := func(id string) {
		t.Helper()
		h.approve(lead, h.callerView("ci", id).Request.ID)
		h.ok(h.claims(id))
	}
	report := func(id, run string, state approvers.ExecutionState) error {
		return h.Callers.Report(h.ctx(), ci, id, run, state, "done")
	}
	foreign := h.callerAsks(callerCall("foreign", `issue_refund {"amount": 6}`))
	approve(foreign)
	id := h.callerAsks(callerCall("k", `issue_refund {"amount": 5}`, func(c *workflow.CallerCall) { c.Edits = true }))
	original := run(id)
	_, err := h.Requests.Decide(h.ctx(), h.edit(lead, id, `{"amount": 4}`))
	h.ok(err)
	h.ok(h.claims(id))
	first := run(id)
	h.ok(report(id, first, approvers.ExecutionUnknown))
	h.ok(h.again(lead, first))
	wantProblem(t, report(id, run(id), approvers.ExecutionSucceeded), workflow.CallerNotClaimed)
	approve(id)
	second := run(id)
	for _, wrong := range []string{original, run(foreign), "exec_none"} {
		wantProblem(t, report(id, wrong, approvers.ExecutionSucceeded), workflow.CallerNotClaimed)
	}
	for range 2 { // the caller may repeat its report
		h.ok(report(id, first, approvers.ExecutionSucceeded))
	}
	if earlier, later := h.execution(first), h.execution(second); earlier.State != approvers.ExecutionSucceeded || later.State != approvers.ExecutionExecuting {
		t.Errorf("the earlier run is %s, and the later one %s", earlier.State, later.State)
	}
	h.ok(report(id, second, approvers.ExecutionFailed))
	h.runs(id, approvers.ExecutionFailed)
}

// After an unknown outcome, people ask for the call again. A late answer to a question of the earlier request does not
// become the answer to a question of the new request.
func TestCallersLateAnswer(t *testing.T) {
	h := newCallerHarness(t, func(p *approvers.Policy) { p.Clients[0].OutcomeWithin = time.Minute })
	id := h.callerAsks(callerCall("k", `issue_refund {"amount": 5}`))
	question := 0
	for range 3 {
		r := *h.callerView("ci", id).Request
		if first := r.Retry.EarlierRemarks(); first != question {
			t.Fatalf("the numbers of the questions begin at %d, want %d", first, question)
		}
		h.question(lead, r.ID, "why?")
		if question > 0 {
			wantProblem(t, h.Callers.Answer(h.ctx(), ci, id, question-2, "late"), workflow.CallerNoQuestion)
		}
		h.ok(h.Callers.Answer(h.ctx(), ci, id, question, "because"))
		if remarks := h.callerView("ci", id).Request.Remarks; len(remarks) != 2 || remarks[1].To != 0 || remarks[1].Text != "because" {
			t.Fatalf("the remarks are %+v", remarks)
		}
		h.approve(lead, r.ID)
		h.ok(h.claims(id))
		h.clock.pass(time.Minute)
		h.due()
		h.ok(h.again(lead, h.request(r.ID).Execution))
		question += 2
	}
}

// A caller must also claim a call that needs no approval. The claim must come in time, and the limit of automatic runs
// counts all requests of the client. A pause prevents the claim.
func TestCallersAutomatic(t *testing.T) {
	h := newCallerHarness(t)
	id := h.callerAsks(callerCall("1", `search_orders {}`))
	h.clock.pass(runWithin)
	wantProblem(t, h.claims(id), workflow.CallerNotApproved)
	if v := h.callerView("ci", id); v.Call.Outcome != approvers.OutcomeExpired {
		t.Errorf("not claimed in time, it is %q", v.Call.Outcome)
	}
	id = h.callerAsks(callerCall("2", `search_orders {}`))
	h.ok(h.Callers.Withdraw(h.ctx(), ci, id, ""))
	wantProblem(t, h.claims(id), workflow.CallerNotApproved)

	id = h.callerAsks(callerCall("3", `search_orders {}`))
	h.ok(h.Pauses.Pause(h.ctx(), approvers.Operator("ann"), "a drill"))
	wantProblem(t, h.claims(id), workflow.CallerPaused)
	h.ok(h.Pauses.Resume(h.ctx(), approvers.Operator("ann"), ""))
	h.ok(h.claims(id))
	wantProblem(t, h.claims(id), workflow.CallerClaimed)
	h.ok(h.Callers.Report(h.ctx(), ci, id, "", approvers.ExecutionUnknown, ""))
	if to := h.places(h.callerView("ci", id).Execution.ID, store.OutboxUnknown); to != "user:U0100" {
		t.Errorf("about a run that nobody allowed, people are asked at %q", to)
	}

	for i := range 3 { // the policy lets two of them run in an hour
		id := h.callerAsks(callerCall(fmt.Sprint("a", i), fmt.Sprintf(`update_address {"order_id": "%d"}`, i)))
		if err := h.claims(id); i < 2 {
			h.ok(err)
			h.ok(h.Callers.Report(h.ctx(), ci, id, "", approvers.ExecutionSucceeded, ""))
		} else {
			wantProblem(t, err, workflow.CallerNotApproved)
			if v := h.callerView("ci", id); v.Request == nil || v.Request.ID != id || v.Request.State != approvers.Pending {
				t.Errorf("beyond the limit it is %+v", v.Request)
			}
		}
	}
}

// The claim checks the current policy and the current tool.
func TestCallersClaimChecksAgain(t *testing.T) {
	h := newCallerHarness(t)
	id := h.callerAsks(callerCall("1", `issue_refund {"amount": 5}`))
	h.approve(lead, id)
	h.policy.Store(policy("policy-2", withClients, func(p *approvers.Policy) {
		p.Tools[3].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 1}}
	}))
	wantProblem(t, h.claims(id), workflow.CallerNotApproved)
	if v := h.callerView("ci", id); v.Request.State != approvers.Pending {
		t.Fatalf("under a stricter policy it is %s", v.Request.State)
	}
	h.approve(lead, id)
	h.approve(fin1, id)
	h.tools.change("issue_refund", func(tool *workflow.Tool) { tool.Hash = "another hash" })
	wantProblem(t, h.claims(id), workflow.CallerNotApproved)
	if v := h.callerView("ci", id); v.Call.Outcome != approvers.OutcomeVoided {
		t.Errorf("with another definition it is %q", v.Call.Outcome)
	}

	// The tool deploy is defined only by the caller. If Countersign gets a tool with the same name, requests for the
	// caller's tool are voided.
	id = h.callerAsks(callerCall("2", `deploy {"version": "1"}`))
	h.approve(fin1, id)
	h.tools.asks("deploy")
	wantProblem(t, h.claims(id), workflow.CallerNotApproved)
	if v := h.callerView("ci", id); v.Call.Outcome != approvers.OutcomeVoided {
		t.Errorf("once the tool is known, it is %q", v.Call.Outcome)
	}
	id = h.callerAsks(callerCall("3", `issue_refund {"amount": 6}`))
	h.approve(lead, id)
	h.clock.pass(runWithin)
	h.due()
	if v := h.callerView("ci", id); v.Call.Outcome != approvers.OutcomeExpired && v.Request.State != approvers.Pending {
		t.Errorf("not claimed in time, it is %q", v.Call.Outcome)
	}
}

// The limits of one client do not affect other clients. A rejection applies only to identical calls.
func TestCallersLimits(t *testing.T) {
	h := newCallerHarness(t)
	first := h.callerAsks(callerCall("0", `issue_refund {"amount": 0}`))
	for i := range 2 {
		h.callerAsks(callerCall(fmt.Sprint("p", i), fmt.Sprintf(`issue_refund {"amount": 1%d}`, i)))
	}
	_, _, err := h.Callers.Propose(h.ctx(), callerCall("p3", `issue_refund {"amount": 13}`))
	wantProblem(t, err, workflow.CallerPending)
	h.callerAsks(callerCall("p3", `issue_refund {"amount": 13}`, func(c *workflow.CallerCall) { c.Client = other }))
	h.reject(lead, first)
	if id, again, err := h.Callers.Propose(h.ctx(), callerCall("r", `issue_refund {"amount": 0}`)); err != nil || again || id != first {
		t.Errorf("the identical call: %s, %v, %v", id, again, err)
	}
	if id, again, err := h.Callers.Propose(h.ctx(), callerCall("r", `issue_refund {"amount": 0}`)); err != nil || !again || id != first {
		t.Errorf("and its repetition: %s, %v, %v", id, again, err)
	}
	if id := h.callerAsks(callerCall("o", `issue_refund {"amount": 0}`, func(c *workflow.CallerCall) { c.Client = other })); id == first {
		t.Error("the rejection holds for another client")
	}
	h.clock.pass(ci.RejectionHolds)
	if id := h.callerAsks(callerCall("s", `issue_refund {"amount": 0}`)); id == first {
		t.Error("the rejection holds too long")
	}
	_, _, err = h.Callers.Propose(h.ctx(), callerCall("s", `issue_refund {"amount": 1}`))
	wantProblem(t, err, workflow.CallerKeyReused)
	for spec, want := range map[string]workflow.CallerCode{
		`issue_refund {"nonsense": 1}`: workflow.CallerArgs, `issue_refund {"a": 1, "A": 2}`: workflow.CallerArgs, `ask_people {}`: workflow.CallerTool,
	} {
		_, _, err := h.Callers.Propose(h.ctx(), callerCall(spec, spec))
		wantProblem(t, err, want)
	}
	_, _, err = h.Callers.Propose(h.ctx(), callerCall("x", `deploy {}`, func(c *workflow.CallerCall) { c.Mode = approvers.ExecuteMode }))
	wantProblem(t, err, workflow.CallerTool)
}

// A grant for a client's call covers only calls of the same client.
func TestCallersGrants(t *testing.T) {
	h := newCallerHarness(t, func(p *approvers.Policy) {
		p.Tools[2].Grants = approvers.GrantTerms{Uses: 5, Within: time.Hour, Same: []string{"order_id"}}
	})
	const spec = `apply_discount {"order_id": "7"}`
	id := h.callerAsks(callerCall("1", spec))
	_, err := h.Grants.Give(h.ctx(), h.clickOn(support, approvers.Approve, id), approvers.Allowance{Uses: 3, Within: time.Hour})
	h.ok(err)
	h.ok(h.claims(id))
	h.ok(h.Callers.Report(h.ctx(), ci, id, "", approvers.ExecutionSucceeded, ""))
	granted := h.callerAsks(callerCall("2", spec))
	if v := h.callerView("ci", granted); v.Request != nil {
		t.Fatal("the grant does not cover the next call of the client")
	}
	h.ok(h.claims(granted))
	if v := h.callerView("ci", granted); v.Execution.GrantUse != 1 {
		t.Errorf("the run used %+v", v.Execution)
	}
	h.ok(h.Callers.Report(h.ctx(), ci, granted, "", approvers.ExecutionSucceeded, ""))
	if v := h.callerView("other", h.callerAsks(callerCall("3", spec, func(c *workflow.CallerCall) { c.Client = other }))); v.Request == nil {
		t.Error("the grant covers another client")
	}
	if v := h.callerView("ci", h.callerAsks(callerCall("4", spec, func(c *workflow.CallerCall) { c.For = "U0300" }))); v.Request == nil {
		t.Error("the grant covers calls for another person")
	}
	if r := h.ask(spec); r.State != approvers.Pending {
		t.Error("the grant covers calls of the agent in Slack")
	}
	if _, err := h.Views.Grants(h.ctx(), support.ID); err != nil {
		t.Errorf("the list of grants: %v", err)
	}
}

// When a store is restored from a backup, callers' calls that have not started are voided, and the outcomes of callers'
// runs that have not ended are unknown. An erasure removes the texts of a caller's request.
func TestCallersRestored(t *testing.T) {
	h := newCallerHarness(t, func(p *approvers.Policy) { p.Clients[0].MaxPending = 10 })
	pending, automatic, approved, running, ended := h.callerAsks(callerCall("1", `issue_refund {"amount": 1}`)), h.callerAsks(callerCall("2", `search_orders {}`)),
		h.callerAsks(callerCall("3", `issue_refund {"amount": 3}`)), h.callerAsks(callerCall("4", `search_orders {"q": 4}`)), h.callerAsks(callerCall("5", `search_orders {"q": 5}`))
	erased := h.callerAsks(callerCall("6", `issue_refund {"amount": 6}`))
	edited, again, automaticAgain := h.callerAsks(callerCall("7", `issue_refund {"amount": 7}`)), h.callerAsks(callerCall("8", `issue_refund {"amount": 8}`)),
		h.callerAsks(callerCall("9", `search_orders {"q": 9}`))
	h.approve(lead, again)
	h.ok(h.claims(again))
	first := h.callerView("ci", again).Execution.ID
	h.ok(h.Callers.Report(h.ctx(), ci, again, first, approvers.ExecutionUnknown, ""))
	h.ok(h.again(lead, first))
	h.approve(lead, approved)
	h.ok(h.claims(running))
	h.ok(h.claims(ended))
	h.ok(h.Callers.Report(h.ctx(), ci, ended, "", approvers.ExecutionSucceeded, "five"))
	h.ok(h.History.Restored(h.ctx(), workflow.Restoration{Who: approvers.Operator("ann"), Backup: "b", Taken: h.clock.Now()}))
	for _, id := range []string{pending, automatic, approved} {
		if v := h.callerView("ci", id); v.Call.Outcome != approvers.OutcomeVoided || v.Execution.State != approvers.ExecutionNone || !v.Lost() {
			t.Errorf("%s is %q (lost: %t)", v.Call.Tool, v.Call.Outcome, v.Lost())
		}
		wantProblem(t, h.claims(id), workflow.CallerNotApproved)
	}
	for _, id := range []string{automatic, approved} { // claimed after the backup
		h.ok(h.Callers.Report(h.ctx(), ci, id, "", approvers.ExecutionUnknown, ""))
		h.runs(id, approvers.ExecutionUnknown)
	}
	h.ok(h.Callers.Report(h.ctx(), ci, pending, "", approvers.ExecutionSucceeded, "late"))
	h.ok(h.Callers.Report(h.ctx(), ci, approved, "", approvers.ExecutionFailed, "late"))
	h.runs(approved, approvers.ExecutionFailed)
	for range 2 { // the second report is a repetition
		h.ok(h.Callers.Report(h.ctx(), ci, automatic, "", approvers.ExecutionSucceeded, "late"))
	}
	wantProblem(t, h.Callers.Report(h.ctx(), ci, approved, "", approvers.ExecutionSucceeded, "late"), workflow.CallerOutcomeKnown)
	h.runs(running, approvers.ExecutionUnknown)
	wantProblem(t, h.Callers.Report(h.ctx(), ci, running, "exec_later", approvers.ExecutionFailed, "late"), workflow.CallerNotClaimed)
	h.ok(h.Callers.Report(h.ctx(), ci, running, "", approvers.ExecutionSucceeded, "late"))
	for _, id := range []string{pending, automatic, running} {
		h.runs(id, approvers.ExecutionSucceeded)
		wantProblem(t, h.claims(id), workflow.CallerClaimed)
	}
	for _, id := range []string{edited, again, automaticAgain} { // the reports are about a run that was created after the backup
		report := func(state approvers.ExecutionState) error {
			return h.Callers.Report(h.ctx(), ci, id, "exec_later", state, "late")
		}
		wantProblem(t, h.Callers.Report(h.ctx(), ci, id, h.callerView("ci", ended).Execution.ID, approvers.ExecutionSucceeded, "late"), workflow.CallerNotClaimed)
		h.ok(report(approvers.ExecutionUnknown))
		h.runs(id, approvers.ExecutionUnknown)
		for range 2 { // the second report is a repetition
			h.ok(report(approvers.ExecutionSucceeded))
		}
		h.runs(id, approvers.ExecutionSucceeded)
		wantProblem(t, report(approvers.ExecutionFailed), workflow.CallerOutcomeKnown)
		wantProblem(t, h.claims(id), workflow.CallerClaimed)
	}
	if e := h.execution(first); e.State != approvers.ExecutionUnknown {
		t.Errorf("the run before the backup is %s", e.State)
	}
	_, err := retention.Erase(h.ctx(), h.Workflow, erased, approvers.Operator("ann"), "asked for")
	h.ok(err)
	wantProblem(t, h.Callers.Report(h.ctx(), ci, erased, "", approvers.ExecutionSucceeded, "late"), workflow.CallerNotClaimed)
	_, err = retention.Erase(h.ctx(), h.Workflow, h.callerView("ci", ended).Execution.ID, approvers.Operator("ann"), "asked for")
	h.ok(err)
	if v := h.callerView("ci", ended); v.Conversation.Caller.Summary != "" || v.Execution.Result == "five" {
		t.Errorf("after the erasure it is %+v", v.Conversation.Caller)
	}
}

// The test kills the process before or after each commit in the life of a caller's request. If an action got no answer,
// the caller or the person repeats the action. The tool must not run twice, no approval may be lost, and each call must
// end. The caller's webhook must be notified of the changes.
func TestCallersKilled(t *testing.T) {
	points := 0
	for at := 0; ; at++ {
		h := newWebhookHarness(t)
		n, killed, armed := 0, false, false
		wrap := func(s store.Store) store.Store {
			return &mortal{s, func(string) {
				if !armed || killed {
					return
				}
				if n++; n == at+1 {
					killed = true
					panic(stopped{})
				}
			}}
		}
		h.ok(h.store.Close())
		h.open(wrap)
		// The function try runs a step. If the process is killed during the step, this function repeats the step in a
		// new process.
		try := func(step func() error) (err error) {
			armed = true
			defer func() { armed = false }()
			for done := false; !done; {
				func() {
					defer func() {
						if p := recover(); p != nil {
							if p != any(stopped{}) {
								panic(p)
							}
							h.ok(h.store.Close())
							h.open(wrap)
							h.ok(h.Runs.Recover(h.ctx(), store.AllShares))
						}
					}()
					err = step()
					done = true
				}()
			}
			return err
		}
		id, ran, told := "", 0, map[string]bool{}
		tell := func() {
			h.clock.pass(time.Second)
			h.ok(try(func() error {
				for _, timer := range h.toTell() {
					change, _ := h.callerView("ci", timer.Ref).Change()
					told[change.Type+" "+change.Status] = true // sent
					if err := h.Callers.Told(h.ctx(), timer, hook.Target(), change.Key); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		h.ok(try(func() (err error) {
			id, _, err = h.Callers.Propose(h.ctx(), callerCall("k", `issue_refund {"amount": 5}`))
			return err
		}))
		click := h.clickOn(lead, approvers.Approve, id)
		if err := try(func() error {
			_, err := h.Requests.Decide(h.ctx(), click)
			return err
		}); err != nil && !errors.Is(err, workflow.ErrHandled) {
			t.Fatal(err)
		}
		tell()
		claimed := try(func() error {
			if err := h.claims(id); err != nil {
				return err
			}
			ran++
			return nil
		})
		ended := approvers.ExecutionSucceeded
		if claimed != nil { // the answer to the first claim was lost, so the caller does not run the tool
			wantProblem(t, claimed, workflow.CallerClaimed)
			ended = approvers.ExecutionUnknown
		}
		h.ok(try(func() error { return h.Callers.Report(h.ctx(), ci, id, "", ended, "done") }))
		if ran > 1 || ran == 1 && ended != approvers.ExecutionSucceeded {
			t.Fatalf("killed at point %d: the tool ran %d times, and ended as %s", at, ran, ended)
		}
		h.runs(id, ended)
		tell()
		if !told["request.decided approved"] || !told["execution.finished "+string(ended)] || len(h.toTell()) > 0 {
			t.Fatalf("killed at point %d: the webhook is told %v, and %v is left", at, told, h.toTell())
		}
		h.clock.pass(expiresAfter)
		h.due()
		if v := h.callerView("ci", id); v.Call.Outcome == "" || v.Conversation.Turn != "" {
			t.Fatalf("killed at point %d: the call has no result", at)
		}
		if !killed {
			break
		}
		points++
	}
	if points < 12 { // two for each of the six transactions
		t.Errorf("the process was killed at %d points only", points)
	}
}

// A change of a request wakes the caller that waits for the request. Changes of other requests do not wake the caller.
func TestCallersWatch(t *testing.T) {
	h := newCallerHarness(t)
	id, second := h.callerAsks(callerCall("1", `issue_refund {"amount": 5}`)), h.callerAsks(callerCall("2", `issue_refund {"amount": 6}`))
	changed, stop := h.Callers.Watch(id)
	defer stop()
	woken := func() bool {
		select {
		case <-changed:
			return true
		default:
			return false
		}
	}
	if h.approve(lead, second); woken() {
		t.Error("woken by another request")
	}
	if h.ok(h.claims(second)); woken() {
		t.Error("woken by a claim of another request")
	}
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"a question", func() {
			_, err := h.Requests.Say(h.ctx(), h.words(lead, id, "why?"), approvers.Question)
			h.ok(err)
		}},
		{"the answer", func() { h.ok(h.Callers.Answer(h.ctx(), ci, id, 0, "because")) }},
		{"the approval", func() { h.approve(lead, id) }},
		{"the claim", func() { h.ok(h.claims(id)) }},
		{"the outcome", func() { h.ok(h.Callers.Report(h.ctx(), ci, id, "", approvers.ExecutionUnknown, "")) }},
		{"a report", func() {
			h.ok(h.Runs.Report(h.ctx(), workflow.Click{Who: lead, Execution: h.callerView("ci", id).Execution.ID, Reason: "seen", At: h.clock.Now()}, workflow.Happened))
		}},
	} {
		if step.do(); !woken() {
			t.Errorf("not woken by %s", step.what)
		}
	}
	h.ok(h.Callers.Report(h.ctx(), ci, second, "", approvers.ExecutionSucceeded, ""))
	if r := h.request(id); !slices.ContainsFunc(r.Remarks, func(m approvers.Remark) bool { return m.By == "caller:ci" && m.Text == "because" }) {
		t.Errorf("the remarks are %+v", r.Remarks)
	}
}

// The texts of a caller's request are erased when their retention time ends. If the outcome of the request's run is
// unknown, the texts are kept.
func TestCallersRetention(t *testing.T) {
	h := newCallerHarness(t, func(p *approvers.Policy) {
		p.Retention = approvers.Retention{Conversations: 90 * aDay, Records: 3 * 365 * aDay}
	})
	id, unknown, key := h.callerAsks(callerCall("1", `issue_refund {"amount": 5}`)), h.callerAsks(callerCall("2", `search_orders {}`)), callerCall("3", `issue_refund {"amount": 5}`)
	h.reject(lead, id)
	h.callerAsks(key) // the new key refers to the rejected request
	h.ok(h.claims(unknown))
	h.ok(h.Callers.Report(h.ctx(), ci, unknown, "", approvers.ExecutionUnknown, ""))
	run := h.callerView("ci", unknown).Execution.ID
	if h.payloadsOf(id) == 0 || h.payloadsOf(run) == 0 {
		t.Fatal("there is nothing to erase")
	}
	h.clock.pass(91 * aDay)
	h.due()
	h.clock.pass(91 * aDay)
	h.retain(2, 0)
	if _, err := h.Views.Caller(h.ctx(), "ci", id); !errors.Is(err, store.ErrNotFound) || h.payloadsOf(id) != 0 {
		t.Errorf("after the retention it has %d texts, and reading it is %v", h.payloadsOf(id), err)
	}
	if h.runs(unknown, approvers.ExecutionUnknown); h.payloadsOf(run) == 0 {
		t.Error("the texts of a run whose outcome is unknown are gone")
	}
}

// A repetition of a rejected request with a new key stores only the key. So Erase leaves no text of it.
func TestEraseRepeatedRequestOfCaller(t *testing.T) {
	h := newCallerHarness(t)
	with := func(c *workflow.CallerCall) { c.Summary, c.ClientState = "Roswell refund", "Roswell refund" }
	id := h.callerAsks(callerCall("1", `issue_refund {"amount": 5}`, with))
	h.reject(lead, id)
	if again := h.callerAsks(callerCall("2", `issue_refund {"amount": 5}`, with)); again != id {
		t.Fatalf("the repetition is %s", again)
	}
	_, err := retention.Erase(h.ctx(), h.Workflow, id, approvers.Operator("root"), "asked to")
	h.ok(err)
	if found := h.rowsWith("Roswell refund"); len(found) > 0 {
		t.Errorf("the words are still in %v", found)
	}
}

// A client can prove that it acts for a person. This person is then a requester, who can withdraw the request but can't
// approve it. The client can handle the request only on behalf of the same person.
func TestCallersActForPeople(t *testing.T) {
	h := newCallerHarness(t, withOAuth, func(p *approvers.Policy) { p.Approvers[1].Members = users("U0002", "U0300") })
	own := h.policy.Load().Clients[0]
	forUser := func(user string) approvers.Client {
		c := own
		c.ActsFor = user
		return c
	}
	const spec = `issue_refund {"amount": 5}`
	asks := func(c approvers.Client, key string) string {
		return h.callerAsks(callerCall(key, spec, func(call *workflow.CallerCall) { call.Client = c }))
	}
	id, others, clients := asks(forUser("U0300"), "k"), asks(forUser("U0200"), "k"), asks(own, "k")
	if id == others || id == clients || others == clients || asks(forUser("U0300"), "k") != id {
		t.Fatalf("one key is the requests %s, %s and %s", id, others, clients)
	}
	_, err := h.Requests.Decide(h.ctx(), h.clickOn(person("U0300"), approvers.Approve, id))
	wantDenied(t, err, approvers.DeniedSelf)
	if facts, _ := h.lastFacts(id, approvers.AuditProposed); facts["requesters"] != "caller:ci,T0001/U0100,T0001/U0300" {
		t.Errorf("the requesters are %s", facts["requesters"])
	}
	hash := hashText(h.callerView("ci", id).Execution.Args)
	for _, c := range []approvers.Client{own, forUser("U0200"), other} {
		for _, err := range []error{
			h.Callers.Claim(h.ctx(), c, id, hash), h.Callers.Report(h.ctx(), c, id, "", approvers.ExecutionFailed, ""), h.Callers.Withdraw(h.ctx(), c, id, ""),
			h.Callers.Answer(h.ctx(), c, id, 0, "x"),
		} {
			wantProblem(t, err, workflow.CallerNotFound)
		}
	}
	wantProblem(t, h.Callers.Withdraw(h.ctx(), forUser("U0300"), clients, ""), workflow.CallerNotFound)
	h.approve(lead, id)
	h.ok(h.Callers.Claim(h.ctx(), forUser("U0300"), id, hash))
	if _, err := h.Requests.Withdraw(h.ctx(), h.clickOn(person("U0200"), approvers.Reject, others)); err != nil {
		t.Errorf("the person can't withdraw: %v", err)
	}

	// A rejection applies only to the person for whom the client acted. A client with other credentials counts as
	// another client.
	h.reject(lead, clients)
	if asks(own, "again") != clients || asks(forUser("U0300"), "again") == clients {
		t.Error("a rejection of the client's own call holds for a person, or not for the client")
	}
	changed := forUser("U0300")
	oauth := *own.OAuth
	changed.OAuth, oauth.Subject = &oauth, "another-id"
	wantProblem(t, h.Callers.Withdraw(h.ctx(), changed, id, ""), workflow.CallerUnknown)
	oauth.Subject, oauth.ClientID = own.OAuth.Subject, "another-id"
	wantProblem(t, h.Callers.Withdraw(h.ctx(), changed, id, ""), workflow.CallerUnknown)
	bare := own
	bare.OAuth = nil
	wantProblem(t, h.Callers.Withdraw(h.ctx(), bare, clients, ""), workflow.CallerUnknown)
	// The token names the person. So a call that also names this person is identical to a call that does not.
	names := func(user string) string {
		return h.callerAsks(callerCall("", `issue_refund {"amount": 7}`, func(call *workflow.CallerCall) { call.Client, call.For = forUser("U0300"), user }))
	}
	if without, with := names(""), names("U0300"); without != with {
		t.Errorf("identical calls became the requests %s and %s", without, with)
	}
}
