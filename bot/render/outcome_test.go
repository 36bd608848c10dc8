package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/bot/render/argument"
	"countersign/bot/render/form"
	"countersign/bot/render/thread"
	"countersign/store"
)

// unknownView returns the question to an approver about a run with an unknown outcome.
func unknownView(change ...func(*view.Model)) view.Model {
	ran := bottest.ApprovedBy(bottest.Closed(bottest.Request(bottest.RefundArgs), approvers.Consumed, "U0002", "team-lead", ""), "U0002", "Teo", "team-lead", 0)
	s := bottest.ViewModel(ran)
	s.Message.Kind, s.Message.Ref = store.OutboxUnknown, s.Execution.ID
	s.Execution.State, s.Execution.Loss, s.Execution.StartedAt, s.Execution.FinishedAt = approvers.ExecutionUnknown, approvers.LossStopped, bottest.Noon, bottest.Noon.Add(time.Minute)
	s.Call.Execution, s.LeaveAt = s.Execution.ID, bottest.Noon.Add(31*time.Minute)
	for _, c := range change {
		c(&s)
	}
	return s
}

// laterRefund returns a request that repeats a refund.
func laterRefund() approvers.Request {
	r := bottest.Request(bottest.RefundArgs)
	r.ID, r.Execution = "req_2", "exec_2"
	r.Digest = approvers.Digest(r.Execution, r.Tool, r.ToolHash, r.Args)
	r.Retry = &approvers.Retry{Execution: "exec_1", LostAt: bottest.Noon.Add(time.Minute), By: approvers.Who("T0001", "U0002"), Name: "Teo", At: bottest.Noon.Add(5 * time.Minute)}
	return r
}

// The question about an unknown outcome says why the outcome is unknown, until when the agent waits, and what people
// can do.
func TestUnknownOutcomes(t *testing.T) {
	loss := func(l approvers.Loss) func(*view.Model) {
		return func(s *view.Model) { s.Execution.Loss = l }
	}
	told := func(s *view.Model) {
		s.Call.Outcome, s.LeaveAt, s.Execution.LeftBy = approvers.OutcomeUnknown, time.Time{}, approvers.Who("T0001", "U0002")
	}
	inThread := func(s *view.Model) { s.Message.To = "conversation:conv_1" }
	long := func(s *view.Model) { s.Execution.Args = []byte(`{"body":"` + strings.Repeat("word ", 800) + `"}`) }
	later := func(change func(*approvers.Request)) func(*view.Model) {
		return func(s *view.Model) {
			r := laterRefund()
			change(&r)
			s.Later, s.LeaveAt, s.Call.Execution, s.Call.Request = &r, time.Time{}, r.Execution, r.ID
			s.Cards = []store.OutboxMessage{{Kind: store.OutboxCard, To: "channel:#support-approvals", Channel: "C0002", TS: "1772453100.000100"}}
		}
	}
	for name, c := range map[string]struct {
		s       view.Model
		buttons int
	}{
		"unknown_stopped":   {unknownView(), 4},
		"unknown_in_thread": {unknownView(inThread), 4},
		"unknown_unclear":   {unknownView(loss(approvers.LossUnclear)), 4},
		"unknown_paused":    {unknownView(loss(approvers.LossPaused)), 4},
		"unknown_cut":       {unknownView(long), 5},
		"unknown_cut_grant": {unknownView(long, func(s *view.Model) { s.Request = nil }), 4},
		"unknown_restored":  {unknownView(loss(approvers.LossRestored)), 4},
		"unknown_damaged":   {unknownView(loss(approvers.LossDamaged)), 4},
		"unknown_told":      {unknownView(told), 2},
		"unknown_again":     {unknownView(later(func(*approvers.Request) {})), 2},
		"unknown_again_rejected": {unknownView(later(func(r *approvers.Request) {
			*r = bottest.Closed(*r, approvers.Rejected, "U0002", "team-lead", "it did happen")
		}), told), 2},
		"unknown_again_reported": {unknownView(later(func(*approvers.Request) {}), func(s *view.Model) {
			s.Execution.State, s.Execution.ReportedBy, s.Execution.Result = approvers.ExecutionFailed, approvers.Who("T0001", "U0100"), "nothing on the account"
		}), 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := drawn(t, c.s)
			bottest.Golden(t, name, d.Messages[0])
			if n := bytes.Count(encode(t, d), []byte(`"type":"button"`)); n != c.buttons {
				t.Errorf("%d buttons, want %d", n, c.buttons)
			}
			said := 0
			for _, label := range []string{"It happened…", "It did not", "Leave it", "Ask again"} {
				_, does, ok := strings.Cut(d.Messages[0].Text, "\n"+label+" ")
				does, _, _ = strings.Cut(does, "\n")
				if n := len(strings.Fields(does)); ok && n > 8 {
					t.Errorf("what %q does is said in %d words: %q", label, n, does)
				} else if ok {
					said++
				}
			}
			if want := min(c.buttons, 4); said != want {
				t.Errorf("it says of %d buttons what they do, want %d", said, want)
			}
		})
	}
}

// The question names the people who can report the outcome: people who may decide the call, the requesters, and the
// author of a grant.
func TestUnknownWaitsFor(t *testing.T) {
	two := func(s *view.Model) { s.Turn.Requesters = []approvers.PersonID{sam, approvers.Who("T0001", "U0101")} }
	granted := func(s *view.Model) { s.Request, s.Execution.Request, s.Message.To = nil, "", "user:U0002" }
	for want, s := range map[string]view.Model{
		"✋ Waits for Team Lead or <@U0100>.":                          unknownView(func(s *view.Model) { s.LeaveAt = time.Time{} }),
		"✋ Waits for Team Lead or <@U0100> until <!date":              unknownView(),
		"✋ Waits for Team Lead or <@U0100> or <@U0101> until":         unknownView(two),
		"✋ Waits for Team Lead or Finance Director or <@U0100> until": unknownView(func(s *view.Model) { s.Request.Joined = []string{"finance-director"} }),
		"✋ Waits for <@U0100> or <@U0101> or you until":               unknownView(two, granted),
		"UTC>; then it stays unknown.\n🔎 First look in the system":    unknownView(),
	} {
		if text := drawn(t, s).Messages[0].Text; !strings.Contains(text, want) {
			t.Errorf("%q is missing in %q", want, text)
		}
	}
	told := unknownView(func(s *view.Model) { s.Call.Outcome, s.LeaveAt = approvers.OutcomeUnknown, time.Time{} })
	if text := drawn(t, told).Messages[0].Text; strings.Contains(text, "Waits for") {
		t.Errorf("it waits for nobody any more: %q", text)
	}
}

// If the record of a call's run is lost, neither the step nor the request's card says that the call was not run, or that
// it was started. The decisions of the request are lost too, so nothing says that it was approved.
func TestLostRun(t *testing.T) {
	lost := bottest.Closed(bottest.Request(bottest.RefundArgs), approvers.Consumed, "", "", "its record in the store is damaged")
	lost.Damaged = true
	s := bottest.ViewModel(lost)
	s.Execution, s.Call.Outcome = nil, approvers.OutcomeUnknown
	ran := bottest.ViewModel(lost)
	ran.Execution, ran.Call.Outcome = nil, approvers.OutcomeExecuted
	step := unknownView()
	step.Message.Kind, step.Message.Ref, step.Message.Step = store.OutboxStep, "turn_1", 1
	step.Calls = []view.Call{{Call: *s.Call}}
	step.Request, step.Execution, step.Call = nil, nil, nil
	for want, s := range map[string]view.Model{
		"UTC>: its record in the store is damaged. It is not known whether it ran.":         s,
		"UTC>: its record in the store is damaged. It ran.":                                 ran,
		"\nIts records are lost, so it is not known whether it ran. The agent was told so.": step,
	} {
		if text := drawn(t, s).Messages[0].Text; !strings.HasPrefix(text, "❓ ") || !strings.Contains(text, want) || strings.Contains(text, "pproved") {
			t.Errorf("%q is missing in %q", want, text)
		}
	}
	if text := form.DeniedText(lost.Over(), &lost, nil).Mrkdwn(); !strings.Contains(text, "its run") || strings.Contains(text, "pproved") || strings.Contains(text, "did not run") {
		t.Errorf("the answer to a click is %q", text)
	}
}

// While people are asked whether a call happened, neither the step nor the status in the thread says that the call is
// running.
func TestUnknownIsNotRunning(t *testing.T) {
	s := unknownView()
	s.Message.Kind, s.Message.Ref, s.Message.Step = store.OutboxStep, "turn_1", 1
	s.Calls = []view.Call{{Call: *s.Call, Request: s.Request, Execution: s.Execution}}
	s.Request, s.Execution, s.Call = nil, nil, nil
	d := drawn(t, s)
	bottest.Golden(t, "step_unknown", d.Messages[0])
	if text := d.Messages[0].Text; strings.Contains(strings.ToLower(text), "running") {
		t.Errorf("the step says that it runs: %s", text)
	}
	if got, want := thread.Status(s, nil), "is waiting to be told whether issue_refund happened"; got != want {
		t.Errorf("the status is %q, want %q", got, want)
	}
	s.Calls[0].Call.Outcome = approvers.OutcomeUnknown
	if got := thread.Status(s, nil); got != "" {
		t.Errorf("after the agent was told, the status is %q", got)
	}
}

// The card of a repeated request says that the call may have happened already, and when. The card also names the person
// who repeats the call, and links to the question about the earlier run.
func TestCardsThatAskAgain(t *testing.T) {
	found := func(s approvers.ExecutionState) view.Model {
		r := laterRefund()
		r.Retry.Found, r.Retry.FoundBy = s, approvers.Who("T0001", "U0100")
		return bottest.ViewModel(r)
	}
	waits := bottest.ViewModel(laterRefund())
	waits.Earlier = []store.OutboxMessage{
		{Kind: store.OutboxUnknown, To: "conversation:conv_1", Channel: "C0001", TS: "1772452860.000100"},
		{Kind: store.OutboxUnknown, To: "channel:#support-approvals", Channel: "C0002", TS: "1772452860.000200"},
	}
	own := waits
	own.Message.To, own.Earlier = "user:U0002", waits.Earlier[:1]
	earlier := unknownView(func(s *view.Model) {
		r := laterRefund()
		s.Message.Kind, s.Message.Ref, s.Later = store.OutboxCard, s.Request.ID, &r
	})
	step := bottest.ViewModel(laterRefund())
	step.Message.Kind, step.Message.Ref = store.OutboxStep, "turn_1"
	step.Calls = []view.Call{{Call: *step.Call, Request: step.Request}}
	for name, s := range map[string]view.Model{
		"again_card": waits, "again_card_own": own, "again_card_did_not": found(approvers.ExecutionFailed), "again_card_happened": found(approvers.ExecutionSucceeded),
		"again_card_earlier": earlier, "again_step": step,
	} {
		t.Run(name, func(t *testing.T) { bottest.Golden(t, name, drawn(t, s).Messages[0]) })
	}
}

// Messages about an unknown outcome are within Slack's limits at maximum size.
func TestLargestUnknown(t *testing.T) {
	big := func(n int) string { return strings.Repeat("𝕏", n) }
	s := unknownView(func(s *view.Model) {
		s.Request.Facts.Quote, s.Request.Facts.AskerName, s.Call.Preview, s.Execution.Tool = big(9000), big(900), big(9000), big(900)
		s.Execution.Args = []byte(`{"body":"` + big(argument.MaxCardArgs-20) + `"}`)
	})
	drawn(t, s)
	r := laterRefund()
	r.Retry.By, r.Retry.Name, r.Reason = "operator:x", big(900), big(9000)
	for i := range 9 {
		r.Joined = append(r.Joined, fmt.Sprint(big(200), i))
	}
	s.Later = &r
	drawn(t, s)
	over := bottest.Closed(r, approvers.Rejected, "", "", big(9000))
	s.Later = &over
	drawn(t, s)
}
