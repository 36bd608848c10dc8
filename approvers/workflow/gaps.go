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

// Received stores two times in settings.Received. The field Until is the time before which the bot has received all
// messages. The field Open is the last time at which Slack could deliver. While the bot reads the messages of a gap,
// Received changes nothing. So if the process stops before all these messages are read, the next process still reads
// all of them.
func (w *Intake) Received(ctx context.Context, until, open time.Time) error {
	return w.record(ctx, "received", func(t *tx) error {
		now, row, err := settings.ReadReceived(t)
		if err != nil || now.Gap != nil {
			return err
		}
		now.Until, now.Open = latest(now.Until, until), latest(now.Open, open)
		return t.gaps.put(now, row)
	})
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Missed records a gap: a period in which Slack could not deliver messages to the bot. The gap begins at the time in
// the field Open of settings.Received, and ends now. If the bot was connected but no delivery arrived, the parameter
// quiet is true, and the gap begins at the time in the field Until instead. If the messages of an earlier gap are not
// read yet, the new gap includes the earlier gap. Missed also schedules a catch-up, in which the bot reads the messages
// of the gap. If Received never recorded a time, there is no gap.
func (w *Intake) Missed(ctx context.Context, quiet bool) error {
	return w.update(ctx, "missed", func(t *tx) error {
		now, row, err := settings.ReadReceived(t)
		if err != nil {
			return err
		}
		if now.Until.IsZero() {
			now.Until, now.Open, now.Since = t.now, t.now, t.now
			return t.gaps.put(now, row)
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
		if err := t.gaps.put(now, row); err != nil {
			return err
		}
		return t.SetTimer(store.Timer{Kind: store.TimerCatchUp, Ref: store.SettingReceived, Due: t.now})
	})
}

// StillWaits sends a reminder for each request that waited during a gap. During a gap of at least approvers.LostClicks,
// Slack dropped deliveries, so clicks are lost. After a shorter gap, or a gap in which Slack could deliver (Quiet),
// StillWaits does nothing.
func (w *Intake) StillWaits(ctx context.Context, gap settings.Gap) error {
	if gap.Quiet || gap.To.Sub(gap.From) < approvers.LostClicks {
		return nil
	}
	return w.openRequests(ctx, "still waits", func(t *tx, r approvers.Request) error {
		if r.State == approvers.Pending && !t.now.Before(r.ExpiresAt) { // the deadline has passed, so the request ends, or other people are asked
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

// ChannelRead records the progress of a catch-up. The bot reads the channels in the order of their ids, and has read
// the gap's messages in all channels up to the given channel.
func (w *Intake) ChannelRead(ctx context.Context, gap settings.Gap, channel string) error {
	return w.update(ctx, "channel read", func(t *tx) error {
		now, row, err := settings.ReadReceived(t)
		if err != nil || now.Gap == nil || !now.Gap.To.Equal(gap.To) {
			return err
		}
		now.Gap.Done = channel
		return t.gaps.put(now, row)
	})
}

// CaughtUp records that the bot has read the messages of a gap. If there was another gap in the meantime, CaughtUp
// keeps the timer, so the bot reads the messages of the other gap too.
func (w *Intake) CaughtUp(ctx context.Context, gap settings.Gap) error {
	return w.update(ctx, "caught up", func(t *tx) error {
		now, row, err := settings.ReadReceived(t)
		if err != nil {
			return err
		}
		switch {
		case now.Gap == nil:
		case !now.Gap.To.Equal(gap.To):
			return nil
		default:
			now.Until, now.Open, now.Gap = gap.To, gap.To, nil
			if err := t.gaps.put(now, row); err != nil {
				return err
			}
		}
		return t.ClearTimer(store.TimerCatchUp, store.SettingReceived)
	})
}

// JoinedRead records that the bot has read the earlier messages of a channel that it joined. The timer's Ref is the
// channel.
func (w *Intake) JoinedRead(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "joined read", func(t *tx) error {
		if _, still, err := jobs.Reread(t, timer); err != nil || !still {
			return err // the bot has joined the channel again
		}
		return t.ClearTimer(timer.Kind, timer.Ref)
	})
}

func (t gapsTx) put(now settings.Received, row store.Setting) (err error) {
	if row.Value, err = json.Marshal(now); err != nil {
		return err
	}
	return t.PutSetting(row)
}

// startAnew deletes the recorded times and gaps. The next start of the bot then counts as the first start.
func (t gapsTx) startAnew() error {
	_, row, err := settings.ReadReceived(t)
	if err != nil {
		return err
	}
	if err := t.put(settings.Received{}, row); err != nil {
		return err
	}
	return t.ClearTimer(store.TimerCatchUp, store.SettingReceived)
}

// forgettable returns the time before which handled deliveries may be deleted. The result is normally the parameter
// before. If the bot may read older messages again, the result is earlier. The store must keep the deliveries of these
// messages, so that the messages are recognised as handled.
func (t gapsTx) forgettable(before time.Time) (time.Time, error) {
	now, _, err := settings.ReadReceived(t)
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

// retryDeferred makes deferred deliveries due now. A delivery is deferred if the bot could not look up its sender in
// Slack.
func (t gapsTx) retryDeferred() error {
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
