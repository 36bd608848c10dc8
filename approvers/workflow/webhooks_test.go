package workflow_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

var hook = approvers.Webhook{URL: "https://ci.example.com/hook", Secrets: []string{"SECRET"}}

// newWebhookHarness returns a harness whose policy has a webhook for the client ci.
func newWebhookHarness(t testing.TB) *harness {
	return newCallerHarness(t, func(p *approvers.Policy) { p.Clients[0].Webhook = &hook })
}

// toTell returns the timers of webhook deliveries.
func (h *harness) toTell() []store.Timer {
	h.t.Helper()
	return readStore(h, func(r store.Reader) ([]store.Timer, error) { return r.Timers(store.TimerWebhook, 100) })
}

// h.tells makes the due webhook deliveries, as the gateway does. h.tells returns the types and statuses of the
// deliveries.
func (h *harness) tells() (told []string) {
	h.t.Helper()
	for _, timer := range h.toTell() {
		if timer.Due.After(h.clock.Now()) {
			continue
		}
		c, key := h.callerView(timer.Lane, timer.Ref), ""
		if change, ok := c.Change(); ok && change.Key != c.Conversation.Caller.Told {
			told, key = append(told, change.Type+" "+change.Status), change.Key
		}
		h.ok(h.Callers.Told(h.ctx(), timer, hook.Target(), key))
	}
	return told
}

func (h *harness) wantTold(what string, want ...string) {
	h.t.Helper()
	h.clock.pass(time.Second)
	if got := h.tells(); !slices.Equal(got, want) {
		h.t.Errorf("%s: the webhook is told %q, want %q", what, got, want)
	}
}

func (h *harness) webhook() settings.Webhook {
	h.t.Helper()
	w, err := h.Views.Webhook(h.ctx(), "ci", hook.Target())
	h.ok(err)
	return w
}

// Each change of a caller's request is delivered once to the caller's webhook. The transaction of the change sets the
// timer of the delivery. The webhook does not get the caller's own proposals, claims and answers. A client without a
// webhook gets nothing.
func TestWebhookChanges(t *testing.T) {
	h := newWebhookHarness(t)
	id := h.callerAsks(callerCall("1", `issue_refund {"amount": 5}`))
	h.callerAsks(callerCall("2", `issue_refund {"amount": 5}`, func(c *workflow.CallerCall) { c.Client = other }))
	automatic := h.callerAsks(callerCall("3", `search_orders {}`))
	h.ok(h.claims(automatic))
	if timers := h.toTell(); len(timers) > 0 {
		t.Errorf("the timers %v are set for nothing", timers)
	}
	_, err := h.Requests.Say(h.ctx(), h.words(lead, id, "why?"), approvers.Question)
	h.ok(err)
	h.wantTold("a question", "request.asked pending")
	h.ok(h.Callers.Answer(h.ctx(), ci, id, 0, "because"))
	h.wantTold("the answer")
	h.approve(lead, id)
	h.wantTold("the approval", "request.decided approved")
	h.wantTold("nothing")
	h.ok(h.claims(id))
	h.wantTold("the claim")
	h.clock.pass(ci.OutcomeWithin)
	h.due()
	told := h.tells()
	if slices.Sort(told); !slices.Equal(told, []string{"execution.finished unknown", "execution.finished unknown"}) {
		t.Errorf("runs that nobody reported: %q", told)
	}
	h.ok(h.Runs.Report(h.ctx(), workflow.Click{Who: lead, Execution: h.callerView("ci", id).Execution.ID, Reason: "seen", At: h.clock.Now()}, workflow.Happened))
	h.wantTold("a report of a person", "execution.finished succeeded")

	rejected, expired, withdrawn := h.callerAsks(callerCall("4", `issue_refund {"amount": 6}`)), h.callerAsks(callerCall("5", `issue_refund {"amount": 7}`)), h.callerAsks(callerCall("6", `issue_refund {"amount": 8}`))
	h.reject(lead, rejected)
	h.wantTold("a rejection", "request.decided rejected")
	h.ok(h.Callers.Withdraw(h.ctx(), ci, withdrawn, ""))
	h.wantTold("a withdrawal", "request.withdrawn withdrawn")
	h.clock.pass(expiresAfter)
	h.due()
	h.wantTold("an expiry", "request.expired expired")
	if v := h.callerView("ci", expired); v.Status() != "expired" {
		t.Errorf("the status is %s", v.Status())
	}

	// A later change replaces an earlier change that was not delivered. A second decision on the same request is
	// another change.
	id = h.callerAsks(callerCall("7", `issue_refund {"amount": 9}`))
	h.approve(lead, id)
	first, _ := h.callerView("ci", id).Change()
	h.policy.Store(policy("policy-2", withClients, func(p *approvers.Policy) {
		p.Clients[0].Webhook = &hook
		p.Tools[3].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 1}}
	}))
	wantProblem(t, h.claims(id), workflow.CallerNotApproved)
	h.wantTold("asked again before the delivery")
	h.clock.pass(time.Second)
	h.approve(lead, id)
	h.approve(fin1, id)
	if second, _ := h.callerView("ci", id).Change(); second.Key == first.Key {
		t.Error("two approvals of one request are the same change")
	}
	h.wantTold("approved again", "request.decided approved")
}

// The process may end after the commit of a change and before the delivery, or after the delivery and before the store
// records the delivery. The next process then delivers the change with the same key. If the request changes during a
// delivery, the new change is delivered afterwards.
func TestWebhookIsDurable(t *testing.T) {
	h := newWebhookHarness(t)
	id := h.callerAsks(callerCall("1", `issue_refund {"amount": 5}`))
	h.approve(lead, id)
	h.reopen()
	timers := h.toTell()
	if len(timers) != 1 || timers[0].Ref != id || timers[0].Lane != "ci" {
		t.Fatalf("after a restart the timers are %v", timers)
	}
	sent, ok := h.callerView("ci", id).Change()
	h.reopen() // the change was sent, but this is not recorded
	if again, _ := h.callerView("ci", id).Change(); !ok || again.Key != sent.Key || len(h.toTell()) != 1 {
		t.Errorf("after a delivery that was not recorded, it is %+v instead of %+v", again, sent)
	}
	h.clock.pass(time.Second)
	h.ok(h.claims(id))
	h.ok(h.Callers.Report(h.ctx(), ci, id, "", approvers.ExecutionUnknown, "")) // during the delivery
	h.ok(h.Callers.Told(h.ctx(), timers[0], hook.Target(), sent.Key))
	h.reopen()
	h.wantTold("the change during the delivery", "execution.finished unknown")
	if left := h.toTell(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A failed webhook delivery is tried again after growing delays. The client's other deliveries are also delayed. The
// webhook is switched off after days without a success, or if the receiver answers that it wants no more deliveries.
// The webhook stays off until the policy changes the webhook, or an operator resumes it.
func TestWebhookFails(t *testing.T) {
	h := newWebhookHarness(t)
	fail := func(f workflow.WebhookFailure) (tries int, delay time.Duration) {
		t.Helper()
		timer := h.toTell()[0]
		h.clock.pass(max(0, timer.Due.Sub(h.clock.Now())))
		h.ok(h.Callers.NotTold(h.ctx(), timer, hook.Target(), f))
		if left := h.toTell(); len(left) > 0 {
			return left[0].Tries, left[0].Due.Sub(h.clock.Now())
		}
		return 0, 0
	}
	approved := func(key string) {
		t.Helper()
		h.approve(lead, h.callerAsks(callerCall(key, `issue_refund {"amount": `+key+`}`)))
	}
	broken := workflow.WebhookFailure{Why: "the receiver answered 500"}
	approved("1")
	began := h.clock.Now()
	for i, want := range []time.Duration{5 * time.Second, 20 * time.Second, 80 * time.Second, 320 * time.Second, 1280 * time.Second, time.Hour, time.Hour} {
		if tries, delay := fail(broken); tries != i+1 || delay != want {
			t.Errorf("after the failure %d the next try is %d, after %s; want %s", i+1, tries, delay, want)
		}
	}
	if w := h.webhook(); w.Failures != 7 || w.Next.Sub(h.clock.Now()) != 5*time.Minute || !w.Off.IsZero() || w.Why != broken.Why {
		t.Errorf("the webhook is %+v", w)
	}
	if tries, delay := fail(workflow.WebhookFailure{Why: "the receiver answered 503", After: 2 * time.Hour}); tries != 8 || delay != 2*time.Hour || h.webhook().Next.Sub(h.clock.Now()) != 2*time.Hour {
		t.Errorf("the receiver asked for 2h, and the next try is after %s", delay)
	}
	timer := h.toTell()[0]
	h.ok(h.Callers.WaitToTell(h.ctx(), timer, timer.Due.Add(time.Minute)))
	if now := h.toTell()[0]; now.Tries != timer.Tries || !now.Due.Equal(timer.Due.Add(time.Minute)) {
		t.Errorf("put off, the timer is %+v", now)
	}
	for len(h.toTell()) > 0 {
		fail(broken)
	}
	if w := h.webhook(); w.Off.IsZero() || w.Off.Sub(began) < 3*24*time.Hour || w.Off.Sub(began) > 3*24*time.Hour+2*time.Hour {
		t.Errorf("it is off since %s, %s after the first failure", w.Off, w.Off.Sub(began))
	}
	if w, err := h.Views.Webhook(h.ctx(), "ci", (&approvers.Webhook{URL: hook.URL, Secrets: []string{"NEW"}}).Target()); err != nil || !w.Off.IsZero() || w.Failures > 0 {
		t.Errorf("with another secret it is %+v (%v)", w, err)
	}
	h.ok(h.Callers.ResumeWebhook(h.ctx(), "ci"))
	if err := h.Callers.ResumeWebhook(h.ctx(), "ci"); !errors.Is(err, workflow.ErrNotDue) || h.webhook().Failures != 0 {
		t.Errorf("resumed twice: %v, %+v", err, h.webhook())
	}
	if err := h.Callers.ResumeWebhook(h.ctx(), "other"); !errors.Is(err, workflow.ErrNoWebhook) {
		t.Errorf("a client without a webhook: %v", err)
	}
	approved("2")
	if tries, _ := fail(workflow.WebhookFailure{Why: "the receiver answered 410", Gone: true}); tries != 0 || h.webhook().Off.IsZero() {
		t.Errorf("after a 410 the webhook is %+v, and the delivery has the try %d", h.webhook(), tries)
	}
	h.ok(h.Callers.ResumeWebhook(h.ctx(), "ci"))

	// If one delivery always fails while other deliveries succeed, only the failing delivery is given up.
	approved("3")
	for tries := 1; tries > 0; {
		if tries, _ = fail(broken); tries > 0 {
			known := h.webhook()
			h.ok(h.Callers.Told(h.ctx(), store.Timer{Kind: store.TimerWebhook, Ref: h.toTell()[0].Ref, Lane: "ci"}, hook.Target(), "another"))
			if known.Failures != 1 || h.webhook().Failures != 0 {
				t.Fatalf("a success between failures leaves %+v", h.webhook())
			}
		}
	}
	if w := h.webhook(); !w.Off.IsZero() || strings.Contains(w.Why, "410") {
		t.Errorf("one delivery that fails has switched the webhook off: %+v", w)
	}
}
