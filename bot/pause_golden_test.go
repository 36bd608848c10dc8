package bot

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

var anIncident = desk.Pause{On: true, By: approvers.Who("T0001", "U0002"), At: noon.Add(-time.Minute), Reason: "wrong refunds <!channel>", Round: 3}

// pausedSight is a sight while everything is paused.
func pausedSight(s desk.Sight, change ...func(*desk.Sight)) desk.Sight {
	s.Pause = anIncident
	for _, c := range change {
		c(&s)
	}
	return s
}

// What everybody sees who waits while everything is paused: who paused it, since when, why, and what that means for what they look at.
func TestPausedSurfaces(t *testing.T) {
	refund := testRequest(refundArgs)
	approved := approvedBy(closed(refund, approvers.Approved, "U0002", "team-lead", ""), "U0002", "Teo", "team-lead", 0)
	approved.RunBy = noon.Add(19 * time.Minute)
	stopping := pausedSight(sightOf(approvedBy(closed(refund, approvers.Consumed, "U0002", "team-lead", ""), "U0002", "Teo", "team-lead", 0)))
	stopping.Execution.State = approvers.ExecutionExecuting

	ran := func(effect approvers.Effect) *approvers.Execution {
		return &approvers.Execution{State: approvers.ExecutionExecuting, Effect: effect}
	}
	step := pausedSight(sightOf(refund), func(s *desk.Sight) {
		s.Surface.Kind, s.Surface.Ref = store.SurfaceStep, "turn_1"
		s.Calls = []desk.CallSight{
			{Call: store.Call{ID: "call_1", Tool: "issue_refund", Preview: refund.Preview}, Request: &refund},
			{Call: store.Call{ID: "call_2", Tool: "issue_refund", Preview: refund.Preview}, Request: &approved, Execution: &approvers.Execution{State: approvers.ExecutionNone}},
			{Call: store.Call{ID: "call_3", Tool: "search_orders", Args: `{"q":"a"}`}, Execution: &approvers.Execution{State: approvers.ExecutionNone}},
			{Call: store.Call{ID: "call_4", Tool: "search_orders", Args: `{"q":"b"}`}, Execution: ran(approvers.ReadOnly)},
			{Call: store.Call{ID: "call_5", Tool: "charge_card", Args: `{}`}, Execution: ran(approvers.Unprotected)},
			{Call: store.Call{ID: "call_6", Tool: "search_orders", Args: `{"q":"c"}`, Outcome: approvers.OutcomeExecuted}, Execution: &approvers.Execution{State: approvers.ExecutionSucceeded}},
		}
	})
	done := pausedSight(step, func(s *desk.Sight) { s.Calls = s.Calls[5:] })
	kind := func(k store.SurfaceKind, ref string) func(*desk.Sight) {
		return func(s *desk.Sight) {
			s.Surface.Kind, s.Surface.Ref, s.Request, s.Execution, s.Call = k, ref, nil, nil, nil
		}
	}
	waits := func(s *desk.Sight) { s.Queued = []store.Message{{Text: "hello"}, {Text: "anybody?"}} }
	resumed := func(s *desk.Sight) {
		s.Pause = desk.Pause{By: approvers.Who("T0001", "U0003"), At: noon, Reason: "it was a test order", Round: 4}
	}
	base := sightOf(refund)
	for name, s := range map[string]desk.Sight{
		"paused_card":            pausedSight(base),
		"paused_card_approved":   pausedSight(sightOf(approved)),
		"paused_card_stopping":   stopping,
		"paused_bundle":          pausedSight(bundleOf(refundOf("ORD-1", "1"), refundOf("ORD-2", "2"))),
		"paused_step":            step,
		"paused_step_done":       done,
		"paused_standstill":      pausedSight(base, kind(store.SurfaceStandstill, "turn_1")),
		"paused_standstill_more": pausedSight(base, kind(store.SurfaceStandstill, "turn_1"), waits),
		"paused_standstill_over": pausedSight(base, kind(store.SurfaceStandstill, "turn_1"), resumed),
		"paused_queued":          pausedSight(base, kind(store.SurfaceQueued, "turn_1"), waits),
		"pause":                  pausedSight(base, kind(store.SurfacePause, "pause/3")),
		"pause_by_operator":      pausedSight(base, kind(store.SurfacePause, "pause/3"), func(s *desk.Sight) { s.Pause.By, s.Pause.Reason = approvers.Operator("root"), "" }),
		"pause_over":             pausedSight(base, kind(store.SurfacePause, "pause/3"), resumed),
		"pause_earlier":          pausedSight(base, kind(store.SurfacePause, "pause/1")),
	} {
		t.Run(name, func(t *testing.T) {
			d := drawn(t, s)
			golden(t, name, d.messages[0])
			if live := strings.Contains(string(encode(t, d)), actResume); live != strings.HasPrefix(name, "pause") && name == "pause" {
				t.Errorf("there is a button to resume: %t", live)
			}
		})
	}
}

// A pause is not said to hold up what is over.
func TestWhatIsOverIsNotPaused(t *testing.T) {
	for name, s := range map[string]desk.Sight{
		"a rejected card": sightOf(closed(testRequest(refundArgs), approvers.Rejected, "U0002", "team-lead", "no")),
		"an answer": func() desk.Sight {
			s := sightOf(testRequest(refundArgs))
			s.Surface.Kind, s.Text = store.SurfaceAnswer, "Done."
			return s
		}(),
	} {
		if text := drawn(t, pausedSight(s)).messages[0].Text; strings.Contains(text, "paused") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// Whoever may pause is told first what that would stop.
func TestStoppage(t *testing.T) {
	for name, s := range map[string]desk.Stoppage{"stoppage": {Runs: 2, Thinking: 1, Approved: 12}, "stoppage_nothing": {}} {
		m := stoppage(s, "wrong refunds <!channel>").message()
		withinLimits(t, m)
		golden(t, name, m)
	}
	withinLimits(t, stoppage(desk.Stoppage{Runs: 10_000, Thinking: 10_000, Approved: 10_000}, strings.Repeat("𝕏", maxPauseReason)).message())
	if raw, err := json.Marshal(stoppage(desk.Stoppage{}, "x").message()); err != nil || !strings.Contains(string(raw), `"style":"danger"`) {
		t.Errorf("%s (%v)", raw, err)
	}
}
