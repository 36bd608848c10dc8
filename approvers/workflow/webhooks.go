package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/store"
	"countersign/store/jobs"
)

// If the policy has a webhook for a caller, each change of the caller's request sets a timer in the same transaction.
// The timer's handler reads the request and delivers its latest change. If several changes happen before a delivery,
// only the latest change is delivered. The store records the last change that was delivered. A change may be delivered
// twice, for example if the process ends after the delivery and before the store has recorded this change.
//
// If a delivery fails, the bot tries again after growing delays. After a failure, the client's other deliveries also
// wait for a short time. A webhook is switched off if it answers 410, or if no delivery succeeds for a long time. The
// webhook stays off until its settings in the policy change, or until an operator switches it on.

// These constants are the delays between the tries of webhook deliveries.
const (
	webhookFirstDelay  = 5 * time.Second    // before the second try of a delivery; each further delay is four times as long
	webhookMostDelay   = time.Hour          // the longest delay between two tries of a delivery
	webhookGiveUp      = 3 * 24 * time.Hour // counted from a delivery's first try, or from the first failure after the client's last success
	webhookClientDelay = 5 * time.Minute    // the longest time for which one failure delays the client's other deliveries
)

// announceChanges sets a webhook timer for each changed call.
func (t callersTx) announceChanges() error {
	if len(t.changedCalls) == 0 || !slices.ContainsFunc(t.policy.Clients, func(c approvers.Client) bool { return c.Webhook != nil }) {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(t.changedCalls)) {
		call, err := t.Call(id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		conv, err := t.Conversation(call.Conversation)
		if err != nil {
			return err
		}
		if conv.Caller == nil || conv.Caller.Request != id {
			continue
		}
		client, ok := t.policy.Client(conv.Caller.Caller.Name)
		if !ok || client.Webhook == nil {
			continue
		}
		c, err := view.ReadCaller(t, conv, call)
		if err != nil {
			return err
		}
		if change, ok := c.Change(); !ok || change.Key == conv.Caller.Told {
			continue
		}
		if err := t.SetTimer(store.Timer{Kind: store.TimerWebhook, Ref: id, Due: t.now, Lane: client.Name}); err != nil {
			return err
		}
	}
	return nil
}

// Told records that a webhook has received a change. key identifies the change. If key is empty, there was no change to
// deliver. Told clears the timer, unless there is a newer change.
func (w *Callers) Told(ctx context.Context, timer store.Timer, target, key string) error {
	return w.update(ctx, "a webhook was told", func(t *tx) error {
		_, still, err := jobs.Reread(t, timer)
		if err != nil {
			return err
		}
		if still {
			if err := t.ClearTimer(timer.Kind, timer.Ref); err != nil {
				return err
			}
		}
		if key == "" {
			return nil
		}
		conv, _, err := view.CallerCall(t, timer.Lane, timer.Ref)
		if err != nil {
			return store.IgnoreNotFound(err)
		}
		own := *conv.Caller
		own.Told = key
		conv.Caller = &own
		if err := t.PutConversation(conv); err != nil {
			return err
		}
		known, s, err := settings.ReadWebhook(t, timer.Lane, target)
		if err != nil || known.Failures == 0 {
			return err
		}
		t.note(slog.LevelInfo, "a client's webhook works again", "client", timer.Lane, "request", timer.Ref, "conversation", conv.ID, "failures", known.Failures)
		return t.callers.webhookWorks(timer.Lane, s, target)
	})
}

// WebhookFailure describes why a webhook delivery failed.
type WebhookFailure struct {
	Why   string
	Gone  bool          // the receiver answered that it wants no more deliveries
	After time.Duration // the receiver asks for this delay; zero: it asks for none
}

// NotTold records a failed delivery, and sets the timer for the next try. After the last try, NotTold clears the timer.
func (w *Callers) NotTold(ctx context.Context, timer store.Timer, target string, f WebhookFailure) error {
	return w.update(ctx, "a webhook was not told", func(t *tx) error {
		known, s, err := settings.ReadWebhook(t, timer.Lane, target)
		if err != nil {
			return err
		}
		if known.Failures++; known.Failures == 1 {
			known.Since = t.now
			t.note(slog.LevelWarn, "a delivery to a client's webhook failed, and is tried again", "client", timer.Lane, "request", timer.Ref, "why", f.Why)
		}
		known.Why = f.Why
		known.Next = t.now.Add(max(f.After, min(webhookFirstDelay<<min(known.Failures-1, 20), webhookClientDelay)))
		if known.Off.IsZero() && (f.Gone || t.now.Sub(known.Since) >= webhookGiveUp) {
			known.Off = t.now
			t.note(slog.LevelError, "a client's webhook was switched off; its lines in the policy, or countersign client resume, switch it on again",
				"client", timer.Lane, "since", known.Since, "why", f.Why)
			if err := t.operators.webhookOff(timer.Lane, known); err != nil {
				return err
			}
		}
		if err := t.callers.putWebhook(s, known); err != nil {
			return err
		}
		now, still, err := jobs.Reread(t, timer)
		if err != nil || !still {
			return err
		}
		delay := max(min(webhookFirstDelay<<min(2*now.Tries, 20), webhookMostDelay), f.After)
		now.Tries++
		if !known.Off.IsZero() || webhookTried(now.Tries) >= webhookGiveUp {
			t.note(slog.LevelError, "a delivery to a client's webhook was given up", "client", timer.Lane, "request", timer.Ref, "tries", now.Tries, "why", f.Why)
			return t.ClearTimer(timer.Kind, timer.Ref)
		}
		now.Due, now.PutOff = t.now.Add(delay), t.now
		return t.SetTimer(now)
	})
}

// webhookTried returns the sum of the delays after the given number of failed tries.
func webhookTried(tries int) (sum time.Duration) {
	for n := range tries {
		sum += min(webhookFirstDelay<<min(2*n, 20), webhookMostDelay)
	}
	return sum
}

// WaitToTell postpones a delivery until the bot may call the client's webhook again. The postponed delivery does not
// count as a try.
func (w *Callers) WaitToTell(ctx context.Context, timer store.Timer, until time.Time) error {
	return w.update(ctx, "a webhook waits", func(t *tx) error {
		now, still, err := jobs.Reread(t, timer)
		if err != nil || !still {
			return err
		}
		now.Due, now.PutOff = until, t.now
		return t.SetTimer(now)
	})
}

func (t callersTx) putWebhook(s store.Setting, w settings.Webhook) (err error) {
	if s.Value, err = json.Marshal(w); err != nil {
		return err
	}
	return t.PutSetting(s)
}

// ErrNoWebhook means that the policy has no webhook for a client.
var ErrNoWebhook = errors.New("workflow: the client has no webhook")

// ResumeWebhook switches a client's webhook on, and makes the client's waiting deliveries due now. If the webhook has
// no failures, ResumeWebhook returns ErrNotDue.
func (w *Callers) ResumeWebhook(ctx context.Context, name string) error {
	return w.update(ctx, "resume a webhook", func(t *tx) error {
		client, ok := t.policy.Client(name)
		if !ok || client.Webhook == nil {
			return fmt.Errorf("%q: %w", name, ErrNoWebhook)
		}
		known, s, err := settings.ReadWebhook(t, name, client.Webhook.Target())
		if err != nil {
			return err
		}
		if known.Failures == 0 {
			return ErrNotDue
		}
		timers, err := t.Timers(store.TimerWebhook, mostResumed)
		if err != nil {
			return err
		}
		for _, timer := range timers {
			if timer.Lane != name {
				continue
			}
			timer.Due, timer.PutOff = t.now, time.Time{}
			if err := t.SetTimer(timer); err != nil {
				return err
			}
		}
		return t.callers.webhookWorks(name, s, known.Target)
	})
}

// webhookWorks removes the failures of a client's webhook. If the webhook was switched off, it is on again.
func (t callersTx) webhookWorks(client string, s store.Setting, target string) error {
	return errors.Join(t.operators.webhookOn(client), t.putWebhook(s, settings.Webhook{Target: target}))
}

// mostResumed is the maximum number of waiting deliveries that ResumeWebhook reads. Deliveries beyond the limit are
// tried at their scheduled times.
const mostResumed = 1000
