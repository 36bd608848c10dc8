package render

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/bot/render/control"
	"countersign/bot/render/notice"
	"countersign/store"
)

var anIncident = settings.Pause{On: true, By: approvers.Who("T0001", "U0002"), At: bottest.Noon.Add(-time.Minute), Reason: "wrong refunds <!channel>", Round: 3}

// pausedView returns a view model while everything is paused.
func pausedView(s view.Model, change ...func(*view.Model)) view.Model {
	s.Pause = anIncident
	for _, c := range change {
		c(&s)
	}
	return s
}

// Messages to people who wait say who paused everything, since when, why, and what the pause means for the message's
// subject.
func TestPaused(t *testing.T) {
	refund := bottest.Request(bottest.RefundArgs)
	approved := bottest.ApprovedBy(bottest.Closed(refund, approvers.Approved, "U0002", "team-lead", ""), "U0002", "Teo", "team-lead", 0)
	approved.RunBy = bottest.Noon.Add(19 * time.Minute)
	stopping := pausedView(bottest.ViewModel(bottest.ApprovedBy(bottest.Closed(refund, approvers.Consumed, "U0002", "team-lead", ""), "U0002", "Teo", "team-lead", 0)))
	stopping.Execution.State = approvers.ExecutionExecuting

	ran := func(effect approvers.Effect) *approvers.Execution {
		return &approvers.Execution{State: approvers.ExecutionExecuting, Effect: effect}
	}
	step := pausedView(bottest.ViewModel(refund), func(s *view.Model) {
		s.Message.Kind, s.Message.Ref = store.OutboxStep, "turn_1"
		s.Calls = []view.Call{
			{Call: store.Call{ID: "call_1", Tool: "issue_refund", Preview: refund.Preview}, Request: &refund},
			{Call: store.Call{ID: "call_2", Tool: "issue_refund", Preview: refund.Preview}, Request: &approved, Execution: &approvers.Execution{State: approvers.ExecutionNone}},
			{Call: store.Call{ID: "call_3", Tool: "search_orders", Args: `{"q":"a"}`}, Execution: &approvers.Execution{State: approvers.ExecutionNone}},
			{Call: store.Call{ID: "call_4", Tool: "search_orders", Args: `{"q":"b"}`}, Execution: ran(approvers.ReadOnly)},
			{Call: store.Call{ID: "call_5", Tool: "charge_card", Args: `{}`}, Execution: ran(approvers.Unprotected)},
			{Call: store.Call{ID: "call_6", Tool: "search_orders", Args: `{"q":"c"}`, Outcome: approvers.OutcomeExecuted}, Execution: &approvers.Execution{State: approvers.ExecutionSucceeded}},
		}
	})
	done := pausedView(step, func(s *view.Model) { s.Calls = s.Calls[5:] })
	kind := func(k store.OutboxKind, ref string) func(*view.Model) {
		return func(s *view.Model) {
			s.Message.Kind, s.Message.Ref, s.Request, s.Execution, s.Call = k, ref, nil, nil, nil
		}
	}
	waits := func(s *view.Model) { s.Queued = []store.Message{{Text: "hello"}, {Text: "anybody?"}} }
	resumed := func(s *view.Model) {
		s.Pause = settings.Pause{By: approvers.Who("T0001", "U0003"), At: bottest.Noon, Reason: "it was a test order", Round: 4}
	}
	base := bottest.ViewModel(refund)
	for name, s := range map[string]view.Model{
		"paused_card":            pausedView(base),
		"paused_card_approved":   pausedView(bottest.ViewModel(approved)),
		"paused_card_stopping":   stopping,
		"paused_bundle":          pausedView(bundleOf(refundOf("ORD-1", "1"), refundOf("ORD-2", "2"))),
		"paused_step":            step,
		"paused_step_done":       done,
		"paused_standstill":      pausedView(base, kind(store.OutboxStandstill, "turn_1")),
		"paused_standstill_more": pausedView(base, kind(store.OutboxStandstill, "turn_1"), waits),
		"paused_standstill_over": pausedView(base, kind(store.OutboxStandstill, "turn_1"), resumed),
		"paused_queued":          pausedView(base, kind(store.OutboxQueued, "turn_1"), waits),
		"pause":                  pausedView(base, kind(store.OutboxPause, "pause/3")),
		"pause_by_operator":      pausedView(base, kind(store.OutboxPause, "pause/3"), func(s *view.Model) { s.Pause.By, s.Pause.Reason = approvers.Operator("root"), "" }),
		"pause_over":             pausedView(base, kind(store.OutboxPause, "pause/3"), resumed),
		"pause_earlier":          pausedView(base, kind(store.OutboxPause, "pause/1")),
	} {
		t.Run(name, func(t *testing.T) {
			d := drawn(t, s)
			bottest.Golden(t, name, d.Messages[0])
			if live := strings.Contains(string(encode(t, d)), control.ActResume); live != strings.HasPrefix(name, "pause") && name == "pause" {
				t.Errorf("there is a button to resume: %t", live)
			}
		})
	}
}

// A finished item is not described as paused.
func TestWhatIsOverIsNotPaused(t *testing.T) {
	for name, s := range map[string]view.Model{
		"a rejected card": bottest.ViewModel(bottest.Closed(bottest.Request(bottest.RefundArgs), approvers.Rejected, "U0002", "team-lead", "no")),
		"an answer": func() view.Model {
			s := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
			s.Message.Kind, s.Text = store.OutboxAnswer, "Done."
			return s
		}(),
	} {
		if text := drawn(t, pausedView(s)).Messages[0].Text; strings.Contains(text, "paused") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// Before a pause, the person who pauses reads what the pause would stop.
func TestPauseImpact(t *testing.T) {
	for name, s := range map[string]view.PauseImpact{"stoppage": {Runs: 2, Thinking: 1, Approved: 12}, "stoppage_nothing": {}} {
		m := notice.PauseImpact(s, "wrong refunds <!channel>").Message()
		withinLimits(t, m)
		bottest.Golden(t, name, m)
	}
	withinLimits(t, notice.PauseImpact(view.PauseImpact{Runs: 10_000, Thinking: 10_000, Approved: 10_000}, strings.Repeat("𝕏", notice.MaxPauseReason)).Message())
	if raw, err := json.Marshal(notice.PauseImpact(view.PauseImpact{}, "x").Message()); err != nil || !strings.Contains(string(raw), `"style":"danger"`) {
		t.Errorf("%s (%v)", raw, err)
	}
}
