package bot

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// unknownSight is what is asked about a run of which nobody knows how it ended, at an approver.
func unknownSight(change ...func(*desk.Sight)) desk.Sight {
	ran := approvedBy(closed(testRequest(refundArgs), approvers.Consumed, "U0002", "team-lead", ""), "U0002", "Teo", "team-lead", 0)
	s := sightOf(ran)
	s.Surface.Kind, s.Surface.Ref = store.SurfaceUnknown, s.Execution.ID
	s.Execution.State, s.Execution.Loss, s.Execution.StartedAt, s.Execution.FinishedAt = approvers.ExecutionUnknown, approvers.LossStopped, noon, noon.Add(time.Minute)
	s.Call.Execution, s.LeaveAt = s.Execution.ID, noon.Add(31*time.Minute)
	for _, c := range change {
		c(&s)
	}
	return s
}

// laterRefund is the request by which a refund is asked for again.
func laterRefund() approvers.Request {
	r := testRequest(refundArgs)
	r.ID, r.Execution = "req_2", "exec_2"
	r.Digest = approvers.Digest(r.Execution, r.Tool, r.ToolHash, r.Args)
	r.Again = &approvers.Again{Execution: "exec_1", LostAt: noon.Add(time.Minute), By: approvers.Who("T0001", "U0002"), Name: "Teo", At: noon.Add(5 * time.Minute)}
	return r
}

// What is asked about an unknown outcome says why nobody knows, until when the agent waits for the answer, and what can be done.
func TestUnknownSurfaces(t *testing.T) {
	loss := func(l approvers.Loss) func(*desk.Sight) { return func(s *desk.Sight) { s.Execution.Loss = l } }
	told := func(s *desk.Sight) {
		s.Call.Outcome, s.LeaveAt, s.Execution.LeftBy = approvers.OutcomeUnknown, time.Time{}, approvers.Who("T0001", "U0002")
	}
	inThread := func(s *desk.Sight) { s.Surface.To = "conversation:conv_1" }
	later := func(change func(*approvers.Request)) func(*desk.Sight) {
		return func(s *desk.Sight) {
			r := laterRefund()
			change(&r)
			s.Later, s.LeaveAt, s.Call.Execution, s.Call.Request = &r, time.Time{}, r.Execution, r.ID
			s.Cards = []store.Surface{{Kind: store.SurfaceCard, To: "channel:#support-approvals", Channel: "C0002", TS: "1772453100.000100"}}
		}
	}
	for name, c := range map[string]struct {
		s       desk.Sight
		buttons int
	}{
		"unknown_stopped":   {unknownSight(), 4},
		"unknown_in_thread": {unknownSight(inThread), 4},
		"unknown_unclear":   {unknownSight(loss(approvers.LossUnclear)), 4},
		"unknown_paused":    {unknownSight(loss(approvers.LossPaused)), 4},
		"unknown_restored":  {unknownSight(loss(approvers.LossRestored)), 4},
		"unknown_told":      {unknownSight(told), 2},
		"unknown_again":     {unknownSight(later(func(*approvers.Request) {})), 2},
		"unknown_again_rejected": {unknownSight(later(func(r *approvers.Request) {
			*r = closed(*r, approvers.Rejected, "U0002", "team-lead", "it did happen")
		}), told), 2},
		"unknown_again_reported": {unknownSight(later(func(*approvers.Request) {}), func(s *desk.Sight) {
			s.Execution.State, s.Execution.ReportedBy, s.Execution.Result = approvers.ExecutionFailed, approvers.Who("T0001", "U0100"), "nothing on the account"
		}), 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := drawn(t, c.s)
			golden(t, name, d.messages[0])
			if n := bytes.Count(encode(t, d), []byte(`"type":"button"`)); n != c.buttons {
				t.Errorf("%d buttons, want %d", n, c.buttons)
			}
		})
	}
}

// A card that asks again says that it may have happened already, when, who asks, and where people are asked about the earlier run.
func TestCardsThatAskAgain(t *testing.T) {
	found := func(s approvers.ExecutionState) desk.Sight {
		r := laterRefund()
		r.Again.Found, r.Again.FoundBy = s, approvers.Who("T0001", "U0100")
		return sightOf(r)
	}
	waits := sightOf(laterRefund())
	waits.Earlier = []store.Surface{
		{Kind: store.SurfaceUnknown, To: "conversation:conv_1", Channel: "C0001", TS: "1772452860.000100"},
		{Kind: store.SurfaceUnknown, To: "channel:#support-approvals", Channel: "C0002", TS: "1772452860.000200"},
	}
	own := waits
	own.Surface.To, own.Earlier = "user:U0002", waits.Earlier[:1]
	earlier := unknownSight(func(s *desk.Sight) {
		r := laterRefund()
		s.Surface.Kind, s.Surface.Ref, s.Later = store.SurfaceCard, s.Request.ID, &r
	})
	step := sightOf(laterRefund())
	step.Surface.Kind, step.Surface.Ref = store.SurfaceStep, "turn_1"
	step.Calls = []desk.CallSight{{Call: *step.Call, Request: step.Request}}
	for name, s := range map[string]desk.Sight{
		"again_card": waits, "again_card_own": own, "again_card_did_not": found(approvers.ExecutionFailed), "again_card_happened": found(approvers.ExecutionSucceeded),
		"again_card_earlier": earlier, "again_step": step,
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, drawn(t, s).messages[0]) })
	}
}

// At their largest they are still messages that Slack takes.
func TestLargestUnknown(t *testing.T) {
	big := func(n int) string { return strings.Repeat("𝕏", n) }
	s := unknownSight(func(s *desk.Sight) {
		s.Request.Facts.Quote, s.Request.Facts.AskerName, s.Call.Preview, s.Execution.Tool = big(9000), big(900), big(9000), big(900)
		s.Execution.Args = []byte(`{"body":"` + big(maxCardArgs-20) + `"}`)
	})
	drawn(t, s)
	r := laterRefund()
	r.Again.By, r.Again.Name, r.Reason = "operator:x", big(900), big(9000)
	for i := range 9 {
		r.Joined = append(r.Joined, fmt.Sprint(big(200), i))
	}
	s.Later = &r
	drawn(t, s)
	over := closed(r, approvers.Rejected, "", "", big(9000))
	s.Later = &over
	drawn(t, s)
}
