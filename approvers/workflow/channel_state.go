package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// changeChannelState reads a channel's state, changes it and writes it.
func (t channelsTx) changeChannelState(name string, change func(*settings.ChannelState)) error {
	p, s, err := settings.ReadChannelState(t, name)
	if err != nil {
		return err
	}
	change(&p)
	if s.Value, err = json.Marshal(p); err != nil {
		return fmt.Errorf("state of the channel %s: %w", name, err)
	}
	return t.PutSetting(s)
}

// ChannelLost records that the bot can't write in a channel. The last parameter lists other names under which the
// policy may name the channel. If the policy names the channel, the operator gets an error in the log.
func (w *Intake) ChannelLost(ctx context.Context, inbox, channel, cause string, named ...string) error {
	err := w.update(ctx, "channel lost", func(t *tx) error {
		if err := t.settle(inbox, ""); err != nil {
			return err
		}
		wanted := slices.ContainsFunc(append(named, channel), t.policy.Names)
		if err := t.channels.channelLost(channel, cause, wanted); err != nil {
			return err
		}
		for _, name := range named {
			if t.policy.Names(name) {
				if err := t.channels.alias(channel, name, cause); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if errors.Is(err, ErrHandled) {
		return nil
	}
	return err
}

// ChannelShared records that a channel must not show cards, because people of other organisations read it. Open cards
// are removed and sent to each person by direct message. The last parameter lists other names under which the policy
// may name the channel. If the policy names the channel, the operator gets a warning in the log.
func (w *Intake) ChannelShared(ctx context.Context, inbox, channel string, named ...string) error {
	err := w.update(ctx, "channel shared", func(t *tx) error {
		if err := t.settle(inbox, ""); err != nil {
			return err
		}
		p, _, err := settings.ReadChannelState(t, channel)
		if err != nil || p.Lost {
			return err
		}
		if slices.ContainsFunc(append(named, channel), t.policy.Names) {
			t.note(slog.LevelWarn, "a channel is shared with another organisation, so it shows no cards; they go to each person by direct message. "+
				"To allow cards there, add the channel to shared_channels in the policy", "inbox", inbox, "channel", channel)
		}
		if err := t.channels.changeChannelState(channel, func(p *settings.ChannelState) {
			*p = settings.ChannelState{Lost: true, Told: true, Shared: true, Since: t.now, Cause: "it is shared with another organisation"}
		}); err != nil {
			return err
		}
		return t.SetTimer(store.Timer{Kind: store.TimerChannel, Ref: channel, Due: t.now})
	})
	if errors.Is(err, ErrHandled) {
		return nil
	}
	return err
}

// channelLost marks a channel as lost, and schedules the move of the channel's open messages. If the loss has an effect
// on messages, the parameter matters is true, and channelLost logs one error for the operator.
func (t channelsTx) channelLost(name, cause string, matters bool) error {
	p, _, err := settings.ReadChannelState(t, name)
	if err != nil || p.Lost && (p.Told || !matters) {
		return err
	}
	if matters {
		t.note(slog.LevelError, "the bot can't write in a channel any more; the cards there go to each person by direct message. Invite the bot there again, or change the policy",
			"channel", name, "cause", cause)
	}
	if !p.Lost {
		if err := t.SetTimer(store.Timer{Kind: store.TimerChannel, Ref: name, Due: t.now}); err != nil {
			return err
		}
	}
	return t.changeChannelState(name, func(p *settings.ChannelState) {
		if !p.Lost {
			*p = settings.ChannelState{Lost: true, Since: t.now, Cause: cause, Left: p.Left}
		}
		p.Told = p.Told || matters
	})
}

// ChannelRestored records that the bot can write in a channel that was lost. The last parameter lists other names under
// which the channel may be recorded as lost.
func (w *Intake) ChannelRestored(ctx context.Context, inbox, channel string, named ...string) error {
	return w.channelBack(ctx, inbox, append(named, channel), func(*tx) error { return nil })
}

// ChannelJoined records that a person has added the bot to a channel, so the bot can write in the channel.
// ChannelJoined also schedules a catch-up, which reads the messages from before the bot joined.
func (w *Intake) ChannelJoined(ctx context.Context, inbox, channel string, named ...string) error {
	return w.channelBack(ctx, inbox, append(named, channel), func(t *tx) error {
		return t.SetTimer(store.Timer{Kind: store.TimerCatchUp, Ref: channel, Due: t.now})
	})
}

func (w *Intake) channelBack(ctx context.Context, inbox string, names []string, also func(*tx) error) error {
	err := w.update(ctx, "channel restored", func(t *tx) error {
		if err := t.settle(inbox, ""); err != nil {
			return err
		}
		for _, name := range names {
			if err := t.channels.channelRestored(name); err != nil {
				return err
			}
		}
		return errors.Join(t.seals.headAgain(), t.reports.again(0), t.operators.again(), also(t))
	})
	if errors.Is(err, ErrHandled) {
		return nil
	}
	return err
}

// channelRestored marks a channel as not lost. channelRestored also updates the old messages that stayed in the
// channel, because their buttons have no effect.
func (t channelsTx) channelRestored(name string) error {
	p, _, err := settings.ReadChannelState(t, name)
	if err != nil || !p.Lost {
		return err
	}
	t.note(slog.LevelInfo, "the bot can write in a channel again", "channel", name, "lost", p.Since)
	if err := t.changeChannelState(name, func(p *settings.ChannelState) { *p = settings.ChannelState{} }); err != nil {
		return err
	}
	if err := t.ClearTimer(store.TimerChannel, name); err != nil {
		return err
	}
	for _, other := range p.Names {
		if err := t.channelRestored(other); err != nil {
			return err
		}
	}
	for _, id := range p.Left {
		s, err := t.OutboxMessage(id)
		if errors.Is(err, store.ErrNotFound) {
			continue // the outbox message was erased after the loss
		}
		if err != nil {
			return err
		}
		if s.State != store.OutboxUnreachable || s.TS == "" {
			continue
		}
		s.State, s.LastError = store.OutboxWanted, ""
		s.Revision++
		if err := t.PutOutboxMessage(s); err != nil {
			return err
		}
		if err := t.outbox.showNow(s); err != nil {
			return err
		}
	}
	return nil
}

// postedIn marks a channel as not lost after a post in the channel succeeded. If the channel was lost or became shared
// after the delivery began, the post says nothing about the present state. Then the message must leave the channel, too.
func (t channelsTx) postedIn(s store.OutboxMessage, began time.Time) error {
	named, inChannel := strings.CutPrefix(s.To, store.ToChannel)
	if !inChannel && !strings.HasPrefix(s.To, store.ToConversation) {
		return nil
	}
	p, _, err := settings.ReadChannelState(t, s.Channel)
	switch {
	case err != nil:
		return err
	case !inChannel && p.Shared:
		return nil // messages in a conversation of people stay in a shared channel
	case p.Lost && !began.IsZero() && !p.Since.Before(began):
		return t.SetTimer(store.Timer{Kind: store.TimerChannel, Ref: s.Channel, Due: t.now})
	case !inChannel:
		return t.channelRestored(s.Channel)
	}
	return errors.Join(t.channelRestored(s.Channel), t.channelRestored(named))
}

// LeaveChannel moves all open messages of a lost channel to other places. If the process stops between two
// transactions, the timer starts LeaveChannel from the beginning. LeaveChannel then skips the messages that were moved
// by the stopped process.
func (w *Intake) LeaveChannel(ctx context.Context, timer store.Timer) error {
	err := w.openRequests(ctx, "vacate", func(t *tx, r approvers.Request) error { return t.channels.leaveChannel(timer.Ref, r.ID, r.Turn) })
	if err != nil {
		return err
	}
	return w.update(ctx, "leave channel", func(t *tx) error {
		return errors.Join(t.channels.leaveOtherChannels(timer.Ref), t.ClearTimer(store.TimerChannel, timer.Ref))
	})
}

// mostLeft is the maximum number of timers of each kind that leaveOtherChannels handles.
const mostLeft = 2000

// leaveOtherChannels handles the messages of a lost channel that do not belong to requests: it moves them to other
// places. These messages are about runs with an unknown outcome, questions of the model, and questions of tools.
func (t channelsTx) leaveOtherChannels(name string) error {
	for _, kind := range []store.TimerKind{store.TimerLeave, store.TimerModelQuestion, store.TimerElicit} {
		timers, err := t.Timers(kind, mostLeft)
		if err != nil {
			return err
		}
		for _, timer := range timers {
			call := timer.Ref
			if kind == store.TimerLeave {
				e, err := t.Execution(timer.Ref)
				if err != nil {
					return err
				}
				call = e.Call
			}
			if kind == store.TimerElicit {
				q, err := t.Elicitation(timer.Ref)
				if err != nil {
					return err
				}
				call = q.Call
			}
			c, err := t.Call(call)
			if err != nil {
				return err
			}
			if err := t.leaveChannel(name, timer.Ref, c.Turn); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaveChannel moves the outbox messages with one of the given refs out of a lost channel. Messages that are not needed
// any more stay.
func (t channelsTx) leaveChannel(name string, refs ...string) error {
	p, _, err := settings.ReadChannelState(t, name)
	if err != nil || !p.Lost {
		return err // the bot can write in the channel again
	}
	for _, ref := range refs {
		messages, err := t.OutboxMessagesOf(ref)
		if err != nil {
			return err
		}
		for _, s := range messages {
			if p.Shared && !strings.HasPrefix(s.To, store.ToChannel) {
				continue // messages in a conversation of people stay in a shared channel
			}
			if s.Channel != name && s.To != store.ToChannel+name || s.State == store.OutboxUnreachable || s.State == store.OutboxRemoved {
				continue
			}
			life, err := t.reposts.relevance(s)
			if err != nil {
				return err
			}
			if !life.relevant {
				continue
			}
			if err := t.leave(name, s, p.Cause); err != nil {
				return err
			}
		}
	}
	return nil
}

// leave marks the channel of an outbox message as lost, also under the name in the message's address, and moves the
// message out of the channel.
func (t channelsTx) leave(name string, s store.OutboxMessage, cause string) error {
	if err := t.channelLost(name, cause, true); err != nil {
		return err
	}
	if to, ok := strings.CutPrefix(s.To, store.ToChannel); ok && to != name {
		if err := t.alias(name, to, cause); err != nil {
			return err
		}
	}
	return t.moveAway(name, s, cause)
}

// alias marks a lost channel as lost under another of its names too, so that the log has only one error about the
// channel.
func (t channelsTx) alias(name, other, cause string) error {
	if p, _, err := settings.ReadChannelState(t, other); err != nil || p.Lost {
		return err
	}
	if err := t.changeChannelState(other, func(p *settings.ChannelState) {
		*p = settings.ChannelState{Lost: true, Since: t.now, Cause: cause, Told: true}
	}); err != nil {
		return err
	}
	return t.changeChannelState(name, func(p *settings.ChannelState) { p.Names = append(p.Names, other) })
}

// moveAway marks an outbox message in a lost channel as unreachable, and shows its content at another address. The
// channel's state lists the old Slack message, which is updated when the channel is restored. If the channel is lost
// because it is shared, the old Slack message is deleted immediately.
func (t channelsTx) moveAway(name string, s store.OutboxMessage, cause string) error {
	p, _, err := settings.ReadChannelState(t, name)
	if err != nil {
		return err
	}
	stands := s.TS != "" && s.State != store.OutboxLost
	if p.Shared {
		if stands {
			s.ReplacedTS, s.TS, s.Hash = s.TS, "", ""
			s.Round++
		}
		if err := errors.Join(t.ClearTimer(store.TimerRepost, s.ID), t.giveUp(s, cause)); err != nil || !stands {
			return err
		}
		return t.outbox.showNow(s)
	}
	if stands {
		if err := t.changeChannelState(name, func(p *settings.ChannelState) { p.Left = append(p.Left, s.ID) }); err != nil {
			return err
		}
	}
	if err := t.ClearTimer(store.TimerRepost, s.ID); err != nil {
		return err
	}
	return t.giveUp(s, cause)
}

// giveUp marks an outbox message as unreachable, and shows the message at its other addresses. If an answer, a question
// or a notice for the operators has no other address, giveUp schedules another attempt at the same address.
func (t channelsTx) giveUp(s store.OutboxMessage, cause string) error {
	s.State, s.LastError = store.OutboxUnreachable, cause
	if isRetried(s) {
		s.Refusals++
		if s.RefusedSince.IsZero() {
			s.RefusedSince = t.now
		}
	}
	if err := t.PutOutboxMessage(s); err != nil {
		return err
	}
	if err := t.outbox.shownAsWanted(s); err != nil {
		return err
	}
	return errors.Join(t.outbox.elsewhere(s), t.outbox.retryLater(s), t.cards.updateUnreached(s))
}
