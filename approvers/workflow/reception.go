package workflow

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
	"countersign/store/jobs"
)

// Received records two times. The bot has received all messages that people wrote before the time until. At the time
// open, Slack could still deliver. While the messages of a gap are being read, Received changes nothing, so that a new
// process reads them again from the beginning of the gap.
func (w *Intake) Received(ctx context.Context, until, open time.Time) error {
	return w.record(ctx, "received", func(t *tx) error {
		now, row, err := settings.ReadReception(t)
		if err != nil || now.Gap != nil {
			return err
		}
		now.Until, now.Open = latest(now.Until, until), latest(now.Open, open)
		return t.reception.put(now, row)
	})
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Missed records a gap from the last times of Received until now. In the gap, Slack could not deliver. If quiet is set,
// no delivery arrived. Missed schedules the reading of the messages in the gap. If the store never received a delivery,
// the bot missed no message.
func (w *Intake) Missed(ctx context.Context, quiet bool) error {
	return w.update(ctx, "missed", func(t *tx) error {
		now, row, err := settings.ReadReception(t)
		if err != nil {
			return err
		}
		if now.Until.IsZero() {
			now.Until, now.Open, now.Since = t.now, t.now, t.now
			return t.reception.put(now, row)
		}
		gap := settings.Gap{Gap: approvers.Gap{From: now.Open, To: t.now}, Received: now.Until, Quiet: quiet}
		if before := now.Gap; before != nil { // the messages of an earlier gap have not been read yet
			gap.From, gap.Quiet = before.From, before.Quiet && quiet
		}
		if quiet && gap.Quiet {
			gap.From = gap.Received
		}
		if gap.From.After(gap.To) { // the clock was set back
			gap.From = gap.To
		}
		now.Gap = &gap
		if err := t.reception.put(now, row); err != nil {
			return err
		}
		return t.SetTimer(store.Timer{Kind: store.TimerCatchUp, Ref: store.SettingReception, Due: t.now})
	})
}

// StillWaits reminds the people of each request that waited in a gap. StillWaits does this only if the gap was so long
// that Slack dropped deliveries. A click in such a gap is lost.
func (w *Intake) StillWaits(ctx context.Context, gap settings.Gap) error {
	if gap.Quiet || gap.To.Sub(gap.From) < approvers.LostClicks {
		return nil
	}
	return w.openRequests(ctx, "still waits", func(t *tx, r approvers.Request) error {
		if r.State == approvers.Pending && !t.now.Before(r.ExpiresAt) { // its deadline has passed: it ends, or other people are asked
			timer, err := t.Timer(store.TimerExpire, r.ID)
			if err != nil {
				return err
			}
			if err := t.expire(timer, r); err != nil {
				return err
			}
			if r, err = t.Request(r.ID); err != nil {
				return err
			}
		}
		messages, err := t.OutboxMessagesOf(r.ID)
		if err != nil {
			return err
		}
		reminded := slices.ContainsFunc(messages, func(s store.OutboxMessage) bool {
			return s.Note == store.NoteReminder && !s.CreatedAt.Before(gap.From)
		})
		after, ok := approvers.RemindOfGap(r, t.now, gap.Gap, reminded)
		if !ok {
			return nil
		}
		return t.apply(after, nil)
	})
}

// ChannelRead records the bot's progress: it has read the gap's messages in all channels up to the given channel.
func (w *Intake) ChannelRead(ctx context.Context, gap settings.Gap, channel string) error {
	return w.update(ctx, "channel read", func(t *tx) error {
		now, row, err := settings.ReadReception(t)
		if err != nil || now.Gap == nil || !now.Gap.To.Equal(gap.To) {
			return err
		}
		now.Gap.Done = channel
		return t.reception.put(now, row)
	})
}

// CaughtUp records that the messages of a gap were read. If there was another gap in the meantime, the timer for the
// next reading stays.
func (w *Intake) CaughtUp(ctx context.Context, gap settings.Gap) error {
	return w.update(ctx, "caught up", func(t *tx) error {
		now, row, err := settings.ReadReception(t)
		if err != nil {
			return err
		}
		switch {
		case now.Gap == nil:
		case !now.Gap.To.Equal(gap.To):
			return nil
		default:
			now.Until, now.Open, now.Gap = gap.To, gap.To, nil
			if err := t.reception.put(now, row); err != nil {
				return err
			}
		}
		return t.ClearTimer(store.TimerCatchUp, store.SettingReception)
	})
}

// JoinedRead records that the earlier messages of a channel that the bot has joined were read. The timer names the
// channel.
func (w *Intake) JoinedRead(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "joined read", func(t *tx) error {
		if _, still, err := jobs.Reread(t, timer); err != nil || !still {
			return err // the bot has joined it again
		}
		return t.ClearTimer(timer.Kind, timer.Ref)
	})
}

func (t receptionTx) put(now settings.Reception, row store.Setting) (err error) {
	if row.Value, err = json.Marshal(now); err != nil {
		return err
	}
	return t.PutSetting(row)
}

// startAnew forgets the recorded times and gaps, so the next start counts as the first start.
func (t receptionTx) startAnew() error {
	_, row, err := settings.ReadReception(t)
	if err != nil {
		return err
	}
	if err := t.put(settings.Reception{}, row); err != nil {
		return err
	}
	return t.ClearTimer(store.TimerCatchUp, store.SettingReception)
}

// forgettable returns the time before which handled deliveries may be forgotten. The result is normally the given time.
// If older messages may be read again, this time is earlier, because the store must still know the deliveries of these
// messages.
func (t receptionTx) forgettable(before time.Time) (time.Time, error) {
	now, _, err := settings.ReadReception(t)
	if err != nil || now.Until.IsZero() {
		return before, err
	}
	kept := now.Until.Add(-2 * settings.RereadMargin)
	if last := t.now.Add(-settings.MostReread - 2*settings.RereadMargin); kept.Before(last) {
		kept = last
	}
	if kept.Before(before) {
		return kept, nil
	}
	return before, nil
}

// retryDeferred makes deferred deliveries due now. Deferred deliveries wait because Slack could not name their sender.
func (t receptionTx) retryDeferred() error {
	timers, err := t.Timers(store.TimerInbox, maxRetried)
	if err != nil {
		return err
	}
	for _, timer := range timers {
		if timer.PutOff.IsZero() || !timer.Due.After(t.now) {
			continue
		}
		row, err := t.Inbox(timer.Ref)
		if store.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil || row.Deferred == nil {
			continue
		}
		timer.Due = t.now
		if err := t.SetTimer(timer); err != nil {
			return err
		}
	}
	return nil
}
