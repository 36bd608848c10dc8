package workflow

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// SentMessage is one version of an outbox message in the form that was sent to Slack.
type SentMessage struct {
	Body  []byte        // text and blocks as JSON
	Shows []store.Shown // the requests that the message shows; Since is set when the delivery is recorded
	Began time.Time     // before the bot looked up who can read the channel, and posted the message; zero: unknown
}

// Delivered records that Slack shows an outbox message. s is the outbox message that was rendered, with Channel, TS and
// Parts set. The store keeps every version that was posted, except notices about card queues, and versions that may contain
// texts that were erased since. If another replica has taken over the delivery, Delivered returns store.ErrFenced: see
// sentLate.
func (w *Outbox) Delivered(ctx context.Context, s store.OutboxMessage, p SentMessage) error {
	w.slack.saw(s.TS)
	err := w.delivered(ctx, s, p)
	if errors.Is(err, store.ErrFenced) && s.TS != "" {
		return errors.Join(err, w.sentLate(store.WithClaims(context.WithoutCancel(ctx)), s))
	}
	return err
}

func (w *Outbox) delivered(ctx context.Context, s store.OutboxMessage, p SentMessage) error {
	hash := view.HashOf(p.Body)
	return w.record(ctx, "delivered", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil {
			return err
		}
		lost := cur.Round != s.Round // since s was rendered, the Slack message was deleted, or a new one must replace it
		posted := !lost && cur.TS != s.TS
		if !lost {
			cur.Channel, cur.TS, cur.ShownRevision, cur.Hash, cur.LastError, cur.RepostIfLost, cur.ReplacedTS = s.Channel, s.TS, s.Revision, hash, "", false, ""
			cur.Drafted, cur.Refusals, cur.RefusedSince, cur.Parts = false, 0, time.Time{}, s.Parts
			cur.Step = s.Step // for OutboxHead, Step is the number of the head that was posted
			cur.Steps = s.Steps
			if err := errors.Join(t.outbox.toldOf(cur), t.outbox.countAnswer(cur)); err != nil {
				return err
			}
		}
		shows, err := t.outbox.setSince(cur, p.Shows)
		if err != nil {
			return err
		}
		cur.Posts++
		switch {
		case lost:
		case cur.Revision == s.Revision:
			cur.State = store.OutboxShown
			err = t.outbox.shownAsWanted(cur)
		default: // the state changed while it was sent, so it is sent again
			cur.State = store.OutboxWanted
			err = t.outbox.showNow(cur)
		}
		if err != nil {
			return err
		}
		if err := t.PutOutboxMessage(cur); err != nil {
			return err
		}
		if !lost {
			if err := t.cards.updateUnreached(cur); err != nil {
				return err
			}
		}
		var text any = p.Body
		switch {
		case s.Kind == store.OutboxCardQueue: // the notice has no buttons, and package retention would not find the texts of the calls in the notice
			_, err = t.EraseRenderings(s.ID, 0) // deletes the versions that earlier releases of Countersign stored
		case s.Revision < cur.KeepFrom:
			text = nil
		default:
			err = t.PutRendering(store.Rendering{OutboxMessage: s.ID, Post: cur.Posts, Hash: hash, Shows: shows, Body: p.Body, At: t.now})
		}
		if err != nil {
			return err
		}
		for _, one := range p.Shows {
			if one.Request == "" {
				continue // an execution without a request has no card
			}
			facts := map[string]string{
				approvers.FactShownAs: string(s.Kind), "to": s.To, "channel": s.Channel, "message": s.TS, "rendering": hash, "digest": one.Digest,
			}
			if err := t.audit(one.Request, approvers.AuditShown, "", facts, text); err != nil {
				return err
			}
			if !posted {
				continue
			}
			if err := t.cards.linkCard(one.Request); err != nil { // the requester's thread and notices link to the card
				return err
			}
		}
		if posted {
			if err := t.channels.postedIn(cur, p.Began); err != nil {
				return err
			}
		}
		return t.outbox.goneBefore(s.Channel, s.TS)
	})
}

// sentLate corrects the messages in Slack after this replica sent an outbox message that another replica had taken
// over. For example, the process was suspended for longer than its lease, just before it called Slack. There are two
// cases. If this replica posted a Slack message, the other replica may have posted the outbox message too. Then one of
// the two Slack messages must be deleted, so sentLate records this replica's message as a leftover. If this replica
// changed a Slack message, it may have replaced a newer version. Then the message must be sent again.
func (w *Outbox) sentLate(ctx context.Context, s store.OutboxMessage) error {
	return w.update(ctx, "sent late", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil {
			return store.IgnoreNotFound(err)
		}
		if cur.Channel == s.Channel && cur.TS == s.TS {
			cur.Hash = "" // otherwise the bot would not send an unchanged version again
			return t.outbox.changed(cur)
		}
		return t.outbox.addLeftover(cur, store.Leftover{
			Channel: s.Channel, TS: s.TS, Parts: s.Parts, Since: t.now, Next: t.now, Late: true, Cause: "another replica had taken over the message",
		})
	})
}

// Flow returns the flow to which the delivery of an outbox message belongs; see view.Flow. If a record is missing or
// damaged, Flow returns "" and no error, because the handler of the timer reads the record too and reports the error.
func (w *Outbox) Flow(r store.Reader, timer store.Timer) (string, error) {
	s, err := r.OutboxMessage(timer.Ref)
	flow := ""
	if err == nil {
		flow, err = view.Flow(r, s)
	}
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged) {
		return "", nil
	}
	return flow, err
}

// goneBefore marks a message as lost if Slack reported the message's deletion before the bot recorded the message's
// delivery.
func (t outboxTx) goneBefore(channel, ts string) error {
	gone, err := t.turns.deleted(channel, ts)
	if err != nil || !gone {
		return err
	}
	return t.reposts.lost(channel, ts)
}

// Same reports whether Slack already shows exactly this body. For a message with buttons, Same always returns false,
// because the buttons contain the number of the version.
func Same(s store.OutboxMessage, body []byte) bool {
	return s.Hash != "" && s.Hash == view.HashOf(body)
}

// Unchanged records that an outbox message needs no edit, because its new rendering equals the version in Slack. s is
// the outbox message that was rendered.
func (w *Outbox) Unchanged(ctx context.Context, s store.OutboxMessage) error {
	return w.update(ctx, "unchanged", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil {
			return err
		}
		if cur.Round != s.Round {
			return nil // since s was rendered, the Slack message was deleted, or a new one must replace it
		}
		cur.ShownRevision = s.Revision
		return t.homes.settled(cur, s.Revision)
	})
}

// linkCard schedules an update of the messages about a pending request: the step in the thread, and notices. The
// updated messages link to the request's card.
func (t cardsTx) linkCard(request string) error {
	r, err := t.Request(request)
	if err != nil || r.State != approvers.Pending {
		return err
	}
	messages, err := t.OutboxMessagesOf(request)
	if err != nil {
		return err
	}
	for _, s := range messages {
		if s.Kind != store.OutboxNotice {
			continue
		}
		if err := t.outbox.changed(s); err != nil {
			return err
		}
	}
	if err := t.runs.changedEarlier(r); err != nil {
		return err
	}
	call, err := t.Call(r.Call)
	if err != nil {
		return err
	}
	return t.outbox.changedTurn(r.Turn, store.OutboxStep, call.Step)
}

// Expand replaces an outbox message to a role or a group with direct messages to the members. Members who are away get
// no message, except a notice about break glass. If all members are away, each member gets the message. If there are no
// members, Expand marks the outbox message as unreachable.
func (w *Outbox) Expand(ctx context.Context, message string, members []approvers.Identity) error {
	if len(members) == 0 {
		return w.Unreachable(ctx, message, approvers.NobodyThere, "")
	}
	return w.update(ctx, "expand", func(t *tx) error {
		s, err := t.OutboxMessage(message)
		if err != nil {
			return err
		}
		if s.State == store.OutboxExpanded {
			return t.outbox.shownAsWanted(s)
		}
		told := members
		if s.Note != store.NoteBreakGlass { // people who are away are told of break glass, too
			if told, err = t.people.present(members); err != nil {
				return err
			}
		}
		s.State, s.ShownRevision = store.OutboxExpanded, s.Revision
		if err := t.PutOutboxMessage(s); err != nil {
			return err
		}
		for _, who := range told {
			if err := t.outbox.copyFor(s, who); err != nil {
				return err
			}
		}
		return t.outbox.shownAsWanted(s)
	})
}

// copyFor creates one person's copy of an outbox message, unless the person has a copy already. A person who has a card
// of a request gets no copy of another card of the request. So a person who holds several roles of a stage gets only
// one card. This card asks the person again, unless the person can't decide.
func (t outboxTx) copyFor(s store.OutboxMessage, who approvers.Identity) error {
	copies, err := t.copiesOf(s)
	if err != nil {
		return err
	}
	card, has := hasCard(copies, atPerson(who))
	if !has {
		return t.add(sameTo(s, store.ToUser+who.ID.User()))
	}
	if view.IsCard(s.Kind) {
		r, err := t.Request(s.Ref)
		if err != nil || approvers.IsOut(r, who) {
			return err
		}
	}
	return t.cards.askAgain(card)
}

// copiesOf returns the outbox messages that replace a copy of s. If s is a card, these are all cards of the request or
// of the bundle. Otherwise, these are the messages with the same content that are not older than s.
func (t outboxTx) copiesOf(s store.OutboxMessage) ([]store.OutboxMessage, error) {
	if view.IsCard(s.Kind) {
		r, err := t.Request(s.Ref)
		if err != nil {
			return nil, err
		}
		return t.reposts.cardsOf(r)
	}
	messages, err := t.OutboxMessagesOf(s.Ref)
	return slices.DeleteFunc(messages, func(o store.OutboxMessage) bool {
		return !isSame(o, sameTo(s, o.To)) || o.CreatedAt.Before(s.CreatedAt) && s.Kind != store.OutboxBundle
	}), err
}

// sameTo returns a new outbox message with the content of s and another address.
func sameTo(s store.OutboxMessage, to string) store.OutboxMessage {
	return store.OutboxMessage{Kind: s.Kind, Ref: s.Ref, Step: s.Step, Request: s.Request, To: to, Role: s.Role, Bundle: s.Bundle, Note: s.Note}
}

// isSame reports whether two outbox messages with the same Ref have the same content and address.
func isSame(a, b store.OutboxMessage) bool {
	return a.To == b.To && a.Kind == b.Kind && a.Step == b.Step && a.Bundle == b.Bundle && a.Note == b.Note
}

// Removed records that the bot deleted an expired outbox message in Slack. s is the outbox message that the bot read
// before the deletion. If the outbox message has changed in the meantime, the bot posts it again.
func (w *Outbox) Removed(ctx context.Context, s store.OutboxMessage) error {
	return w.update(ctx, "removed", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil {
			return err
		}
		if cur.State == store.OutboxRemoved {
			if err := t.outbox.shownAsWanted(cur); err != nil || cur.Revision == s.Revision {
				return err
			}
			return t.outbox.addAgain(cur) // Slack's event about this deletion came before Slack's response to the deletion
		}
		cur.TS = ""
		if cur.Revision != s.Revision {
			if err := t.PutOutboxMessage(cur); err != nil {
				return err
			}
			return t.outbox.showNow(cur)
		}
		cur.State = store.OutboxRemoved
		if err := t.PutOutboxMessage(cur); err != nil {
			return err
		}
		return t.outbox.shownAsWanted(cur)
	})
}

// addAgain adds a copy of a removed outbox message. If the store already has a copy that is not removed, addAgain does
// nothing.
func (t outboxTx) addAgain(s store.OutboxMessage) error {
	messages, err := t.OutboxMessagesOf(s.Ref)
	if err != nil || slices.ContainsFunc(messages, func(o store.OutboxMessage) bool { return isSame(o, s) && o.State != store.OutboxRemoved }) {
		return err
	}
	return t.add(sameTo(s, s.To))
}

// Unreachable handles an outbox message that Slack permanently refuses. The message is marked as unreachable. If the
// message has other addresses, Unreachable sends the message to them. Unreachable also logs an error for the operator.
// Later refusals at the same address for the same record (for example, a request) are logged only for debugging,
// because the bot tries refused cards many times. If Slack refused because the bot can't write in the channel, lost is
// the channel. In all other cases, lost is empty. The loss of a channel is logged only once.
func (w *Outbox) Unreachable(ctx context.Context, message, cause, lost string) error {
	return w.update(ctx, "unreachable", func(t *tx) error {
		s, err := t.OutboxMessage(message)
		if errors.Is(err, store.ErrNotFound) {
			for _, kind := range store.ShowTimers {
				if err := t.ClearTimer(kind, message); err != nil {
					return err
				}
			}
			return nil
		}
		if err != nil {
			return err
		}
		if s.State == store.OutboxUnreachable {
			if s.ReplacedTS == "" {
				return t.outbox.shownAsWanted(s)
			}
			s.ReplacedTS = "" // the bot has already tried to delete the replaced message
			return errors.Join(t.PutOutboxMessage(s), t.outbox.shownAsWanted(s))
		}
		if lost != "" {
			return t.channels.leave(lost, s, cause)
		}
		what := "Slack refused a message permanently; correct the cause in Slack or in the policy"
		if cause == approvers.NobodyThere {
			what = "a message is for a role or a user group without members who can be written to; add members in Slack or in the policy"
		}
		others, err := t.OutboxMessagesOf(s.Ref)
		if err != nil {
			return err
		}
		level := slog.LevelError
		if slices.ContainsFunc(others, func(o store.OutboxMessage) bool { return o.To == s.To && o.LastError != "" }) {
			level = slog.LevelDebug
		}
		t.note(level, what, "message", string(s.Kind), "to", s.To, "request", s.Request, "cause", cause)
		return t.channels.giveUp(s, cause)
	})
}

// A leftover is a Slack message that the bot must still delete. For example, Slack refused to edit a card, so the bot
// posted the card again, and Slack also refused to delete the old card. The buttons of a leftover have no effect. The
// outbox message lists its leftovers in Leftovers. The bot tries again until the deletion succeeds or leftoversKept has
// passed.
const (
	firstDeletion = time.Minute
	lastDeletion  = 6 * time.Hour
	leftoversKept = 3 * 24 * time.Hour
	maxLeftovers  = 100 // leftovers of one outbox message
)

// LeftOver records that Slack refused to delete an old Slack message of an outbox message.
func (w *Outbox) LeftOver(ctx context.Context, message, channel, ts, cause string) error {
	return w.update(ctx, "left over", func(t *tx) error {
		s, err := t.OutboxMessage(message)
		if err != nil {
			return store.IgnoreNotFound(err)
		}
		if s.ReplacedTS == ts {
			s.ReplacedTS = ""
		}
		return t.outbox.addLeftover(s, store.Leftover{Channel: channel, TS: ts, Since: t.now, Next: t.now.Add(firstDeletion), Cause: cause})
	})
}

// addLeftover adds a leftover to an outbox message and stores the message.
func (t outboxTx) addLeftover(s store.OutboxMessage, leftover store.Leftover) error {
	if !slices.ContainsFunc(s.Leftovers, leftover.IsAt) {
		s.Leftovers = append(s.Leftovers, leftover)
	}
	if more := len(s.Leftovers) - maxLeftovers; more > 0 {
		t.noteLeft(s, s.Leftovers[0])
		s.Leftovers = slices.Delete(s.Leftovers, 0, more)
	}
	return t.putLeftovers(s)
}

// TriedDeletion is the outcome of an attempt to delete a leftover.
type TriedDeletion struct {
	store.Leftover
	Refused string // Slack's reason; empty: the message is gone
}

// TriedLeftovers records the outcomes of attempts to delete leftovers. If Slack still refuses a deletion after
// leftoversKept, the bot stops trying.
func (w *Outbox) TriedLeftovers(ctx context.Context, message string, tried []TriedDeletion) error {
	return w.update(ctx, "tried leftovers", func(t *tx) error {
		s, err := t.OutboxMessage(message)
		if errors.Is(err, store.ErrNotFound) {
			return t.ClearTimer(store.TimerLeftover, message)
		}
		if err != nil {
			return err
		}
		var left []store.Leftover
		for _, l := range s.Leftovers {
			i := slices.IndexFunc(tried, func(d TriedDeletion) bool { return l.IsAt(d.Leftover) })
			switch {
			case s.MayUse(l):
				l.Next = t.now.Add(firstDeletion)
			case len(s.ToDelete(l)) == 0: // another replica found the late post, and uses it as the outbox message's Slack message
				continue
			case i < 0:
			case tried[i].Refused == "":
				what := "an old message is deleted"
				if l.Late {
					what = "a message that was posted twice is deleted"
				}
				t.note(slog.LevelInfo, what, "message", string(s.Kind), "request", s.Request, "channel", l.Channel, "since", l.Since)
				continue
			case t.now.Sub(l.Since) >= leftoversKept:
				l.Cause = tried[i].Refused
				t.outbox.noteLeft(s, l)
				continue
			default:
				l.Cause = tried[i].Refused
				l.Next = t.now.Add(min(lastDeletion, t.now.Sub(l.Since)+firstDeletion))
				if end := l.Since.Add(leftoversKept); l.Next.After(end) {
					l.Next = end
				}
			}
			left = append(left, l)
		}
		s.Leftovers = left
		return t.outbox.putLeftovers(s)
	})
}

// noteLeft logs that a leftover stays in Slack.
func (t outboxTx) noteLeft(s store.OutboxMessage, l store.Leftover) {
	t.note(slog.LevelError, "Slack does not let the bot delete a message; it stays, and its buttons do nothing. Delete it in Slack", "message", string(s.Kind),
		"request", s.Request, "channel", l.Channel, "ts", l.TS, "since", l.Since, "cause", l.Cause)
}

// putLeftovers stores an outbox message. putLeftovers also sets the timer for the leftover that is due first.
func (t outboxTx) putLeftovers(s store.OutboxMessage) error {
	if err := t.PutOutboxMessage(s); err != nil {
		return err
	}
	if len(s.Leftovers) == 0 {
		return t.ClearTimer(store.TimerLeftover, s.ID)
	}
	first := slices.MinFunc(s.Leftovers, func(a, b store.Leftover) int { return a.Next.Compare(b.Next) })
	return t.SetTimer(store.Timer{Kind: store.TimerLeftover, Ref: s.ID, Due: first.Next})
}

// Timers are divided into shares, and each share belongs to one process at a time. The earlier owner of a share may
// have posted an outbox message and stopped before it recorded the post. If this process posted the message too, Slack
// would show the message twice. So this process first has to search Slack for the message. A search costs calls, and
// Slack limits the number of calls. To avoid needless searches, a process that gets a share lists the waiting outbox
// messages of the share. Only a listed message may have been posted without a record. Every other message was recorded
// as posted, or was added after this process got the share.

// inherited holds the outbox messages that waited when this process got a share. The keys of shares are the numbers of
// the shares.
type inherited struct {
	mu     sync.Mutex
	shares map[int]inheritance
}

// inheritance holds the outbox messages that waited in one share.
type inheritance struct {
	listed   time.Time // by the clock of Replica.Since
	messages map[string]bool
}

// mostInherited is the maximum number of outbox messages of one rank that inherit reads.
const mostInherited = 10_000

// inherit lists the waiting outbox messages of the shares that this process has just got. If there are too many
// messages, or a record is damaged, Made has no list, and compares times instead.
func (w *Outbox) inherit(ctx context.Context, shares store.Shares) error {
	var lists map[int]inheritance
	err := w.Store.View(ctx, func(r store.Reader) error {
		lists = map[int]inheritance{}
		for share := range store.ShareCount {
			if shares.Has(share) {
				lists[share] = inheritance{listed: time.Now(), messages: map[string]bool{}}
			}
		}
		for _, rank := range store.Ranks {
			timers, err := r.TimersIn(shares, rank.Timer(), time.Time{}, mostInherited)
			if err != nil {
				return err
			}
			if len(timers) == mostInherited {
				clear(lists)
				return nil
			}
			for _, t := range timers {
				lists[t.Share()].messages[t.Ref] = true
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		return err
	}
	if err == nil {
		w.inherited.put(lists)
	}
	return nil
}

func (i *inherited) put(lists map[int]inheritance) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.shares == nil {
		i.shares = map[int]inheritance{}
	}
	for share, list := range lists {
		i.shares[share] = list
	}
}

// i.has reports whether a message waited when this process got the message's share. The parameter since is the time at
// which this process last got the share. If the share's messages were not listed after this time, known is false.
func (i *inherited) has(share int, since time.Time, message string) (waited, known bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	list, listed := i.shares[share]
	return list.messages[message], listed && list.listed.After(since)
}

// Made determines whether another process may have posted an outbox message. If no other process can have posted the
// message, made is true. Otherwise since is the last time at which another process could have posted the message, by
// the clock of this machine. If since is zero, another process could have posted the message at any time before this
// process started.
func (w *Outbox) Made(s store.OutboxMessage) (made bool, since time.Time) {
	if store.IsAlone(w.Replica) {
		return s.Process == w.owner, since
	}
	share := store.Timer{Kind: s.Rank.Timer(), Ref: s.ID, Lane: s.To}.Share()
	since, ok := w.Replica.Since(share)
	if !ok {
		return false, time.Now()
	}
	if waited, known := w.inherited.has(share, since, s.ID); known {
		return !waited, since
	}
	after := w.Now().Add(-time.Since(since)) // by the clock of CreatedAt, which may differ from the clock of since
	if s.Process != w.owner {
		after = after.Add(clocksDiffer)
	}
	return s.CreatedAt.After(after), since
}

// clocksDiffer is more than the clocks of two replicas differ.
const clocksDiffer = time.Minute
