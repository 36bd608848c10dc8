package bot

import (
	"context"
	"sync/atomic"
	"time"

	"countersign/bot/transport"
)

// These intervals determine how often the bot records that it has received everything, and when the bot suspects a gap.
// After a process is killed, the next process knows only the last recorded time, and reads the messages since that
// time.
const (
	lookFirst    = 100 * time.Millisecond // how often the bot checks whether Slack can deliver, until Slack can for the first time
	lookEvery    = 2 * time.Second
	receivedNote = time.Minute      // how often the bot records that it has received everything
	quietHTTP    = 30 * time.Minute // over HTTP: if no request comes for this time, the bot reads the histories, because requests may be lost
)

// Gaps records the time up to which everything was received. After a start and after each gap, it schedules the
// reading of the messages since the recorded time.
type Gaps struct {
	*core
	transport    transport.Transport
	rereadAt     transport.ReceiptClock // gives receipt times to messages that are read from histories
	gapsRecorded atomic.Int64           // the value of Listening.Began when the last gap was recorded; a newer gap is not recorded yet if Began has changed since
}

// begin records the time of the very first start. With this record, the bot can later read all messages since the first
// start, even if this process is killed immediately.
func (b *Gaps) begin(ctx context.Context) {
	if now, err := b.Views.Received(ctx); err == nil && now.Until.IsZero() {
		b.missed(ctx, false)
	}
}

func (b *Gaps) run(ctx context.Context) {
	tick := time.NewTicker(lookFirst)
	defer tick.Stop()
	began, looked, noted := 0, b.Now(), time.Time{}
	for {
		l, now := b.transport.Listening(), b.Now()
		switch {
		case l.Began != began:
			if b.missed(ctx, false) {
				began, looked = l.Began, now
				b.gapsRecorded.Store(int64(began))
				tick.Reset(lookEvery)
			}
		case b.overHTTP() && now.Sub(later(looked, l.Received)) >= quietHTTP && b.api.Available() == nil:
			if b.missed(ctx, true) {
				looked = now
			}
		case l.Open.Sub(noted) >= receivedNote:
			b.received(ctx)
			noted = l.Open
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if began > 0 {
				b.received(context.WithoutCancel(ctx))
			}
			return
		}
	}
}

// Recorded reports whether every gap that has ended is recorded. For a recorded gap, the reading of its messages is
// scheduled.
func (b *Gaps) Recorded() bool {
	return b.gapsRecorded.Load() == int64(b.transport.Listening().Began)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// received records the time up to which everything was received. If the record fails, the bot rereads more messages
// after the next start.
func (b *Gaps) received(ctx context.Context) {
	l := b.transport.Listening()
	if err := b.Intake.Received(ctx, l.Received, l.Open); err != nil {
		b.Log.DebugContext(ctx, "the time of the last received delivery could not be recorded", "error", err)
	}
}

// missed schedules the reading of the histories. The function returns false if the schedule could not be stored.
func (b *Gaps) missed(ctx context.Context, quiet bool) bool {
	err := b.Intake.Missed(ctx, quiet)
	if err != nil {
		b.Log.DebugContext(ctx, "a gap could not be recorded yet", "error", err)
	}
	return err == nil
}
