package workflow_test

import (
	"testing"
	"time"

	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

func (h *harness) received() settings.Received {
	h.t.Helper()
	now, err := h.Views.Received(h.ctx())
	h.ok(err)
	return now
}

// TestGap checks that the bot reads messages from the last time at which it had received all messages. If the bot
// restarts before it has read all these messages, it reads from the same time.
func TestGap(t *testing.T) {
	h := newHarness(t)
	h.ok(h.Intake.Missed(h.ctx(), false))
	first := h.received()
	if first.Gap != nil || !first.Until.Equal(h.clock.Now()) {
		t.Fatalf("a new installation has %+v", first)
	}
	h.clock.pass(time.Hour)
	h.ok(h.Intake.Received(h.ctx(), h.clock.Now(), h.clock.Now()))
	until := h.clock.Now()
	h.clock.pass(time.Hour)
	h.ok(h.Intake.Missed(h.ctx(), false))
	gap := *h.received().Gap
	if !gap.From.Equal(until) || !gap.Received.Equal(until) || !gap.To.Equal(h.clock.Now()) {
		t.Errorf("the gap is %+v", gap)
	}
	h.ok(h.Intake.ChannelRead(h.ctx(), gap, "C1"))
	h.ok(h.Intake.Received(h.ctx(), h.clock.Now(), h.clock.Now())) // has no effect until the gap is read
	h.clock.pass(time.Minute)
	h.ok(h.Intake.Missed(h.ctx(), false)) // as if another process started
	h.ok(h.Intake.CaughtUp(h.ctx(), gap)) // the first process finishes late, so its report has no effect
	again := h.received()
	if g := again.Gap; g == nil || !g.From.Equal(until) || !g.To.Equal(h.clock.Now()) || g.Done != "" || !again.Until.Equal(until) {
		t.Fatalf("another start has %+v", again)
	}
	h.ok(h.Intake.CaughtUp(h.ctx(), *again.Gap))
	if now := h.received(); now.Gap != nil || !now.Until.Equal(h.clock.Now()) || len(h.timers(store.TimerCatchUp)) > 0 {
		t.Errorf("after reading: %+v, timers %v", now, h.timers(store.TimerCatchUp))
	}
}

// TestKnownWhileReadAgain checks that the store keeps the row of a delivery as long as the bot may read the delivery's
// message a second time.
func TestKnownWhileReadAgain(t *testing.T) {
	h := newHarness(t)
	h.ok(h.Intake.Missed(h.ctx(), false))
	row := store.Inbox{ID: "message:C0001/1", Kind: store.InboxEvent, ReceivedAt: h.clock.Now(), Payload: []byte("x")}
	_, err := h.Intake.Receive(h.ctx(), row, "")
	h.ok(err)
	h.ok(h.Intake.Done(h.ctx(), row.ID, ""))
	h.ok(h.Intake.Received(h.ctx(), h.clock.Now(), h.clock.Now()))
	h.clock.pass(9 * time.Hour)
	h.ok(h.Intake.Forget(h.ctx(), 2*time.Hour))
	if _, err := h.Views.Inbox(h.ctx(), row.ID); err != nil {
		t.Errorf("after nine hours without the bot: %v", err)
	}
	h.ok(h.Intake.Received(h.ctx(), h.clock.Now(), h.clock.Now()))
	h.ok(h.Intake.Forget(h.ctx(), 2*time.Hour))
	if _, err := h.Views.Inbox(h.ctx(), row.ID); err == nil {
		t.Error("it is kept although nothing is read again")
	}
}

// TestRestoredReadsNothing checks that the bot does not read messages from before the first start with a store, or
// before the first start after a restoration. These messages may have been answered already. The bot skips them even if
// they are within RereadMargin of a gap.
func TestRestoredReadsNothing(t *testing.T) {
	h := newHarness(t)
	h.ok(h.Intake.Missed(h.ctx(), false))
	first := h.clock.Now()
	gapAfter := func(wait time.Duration) settings.Received {
		h.t.Helper()
		h.ok(h.Intake.Received(h.ctx(), h.clock.Now(), h.clock.Now()))
		h.clock.pass(wait)
		h.ok(h.Intake.Missed(h.ctx(), false))
		return h.received()
	}
	now := gapAfter(time.Minute)
	if at, _ := now.Gap.Oldest(now.Since); !at.Equal(first) {
		t.Errorf("a minute after the first start it reads from %s, want %s", at, first)
	}
	h.ok(h.Intake.CaughtUp(h.ctx(), *now.Gap))
	h.clock.pass(5 * time.Hour)
	now = gapAfter(time.Minute)
	if at, _ := now.Gap.Oldest(now.Since); !at.Equal(now.Gap.Received.Add(-settings.RereadMargin)) {
		t.Errorf("hours later it reads from %s, and the gap begins at %s", at, now.Gap.Received)
	}
	h.ok(h.History.Restored(h.ctx(), workflow.Restoration{Who: lead.ID, Backup: "b"}))
	if now := h.received(); now.Gap != nil || len(h.timers(store.TimerCatchUp)) > 0 {
		t.Errorf("after a restore: %+v", now)
	}
	h.clock.pass(3 * time.Minute)
	h.ok(h.Intake.Missed(h.ctx(), false))
	started := h.clock.Now()
	now = gapAfter(time.Minute)
	if at, _ := now.Gap.Oldest(now.Since); !at.Equal(started) {
		t.Errorf("after a restore it reads from %s, want its first start at %s", at, started)
	}
}
