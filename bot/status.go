package bot

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers/workflow/view"
	"countersign/bot/render/thread"
	"countersign/bot/slackapi"
	"countersign/store"
)

// Slack removes a status after two minutes, and with each message from the bot.
const (
	statusAgain = 90 * time.Second // age at which a status is set again
	statusEnds  = time.Hour        // a status that has been unchanged for this long is not renewed, because the step's message has the same information
	statusTick  = 15 * time.Second
	maxStatuses = 1000 // maximum number of threads
)

// Statuses maintains the status that Slack shows under a thread. The status says that the agent thinks, names the
// running call, or names the people for whom a call waits. The status is derived from the current state. The status is
// optional, because the thread's messages contain the same information. So an error of Slack is only logged.
type Statuses struct {
	*core
	progress *runProgresses

	mu       sync.Mutex
	by       map[destination]status
	unusable int // consecutive calls without a usable answer
}

type status struct {
	at         destination
	turn       string
	text       string
	since, set time.Time
}

// show updates the status of a turn's thread. posted is set if a message has just been posted in the thread.
func (b *Statuses) show(ctx context.Context, turn string, posted bool) {
	s, err := b.Views.Turn(ctx, turn)
	if err != nil || s.Conversation.Thread == "" || s.Conversation.Gone {
		return
	}
	text := thread.Status(s, b.progress.progressOf(s.Calls))
	b.set(ctx, destination{s.Conversation.Channel, s.Conversation.Thread}, status{turn: turn, text: text}, posted)
}

func (b *Statuses) set(ctx context.Context, at destination, s status, posted bool) {
	now := b.Now()
	b.mu.Lock()
	before, known := b.by[at]
	if known && before.text == s.text {
		s.since = before.since
	} else {
		s.since = now
	}
	same := before.text == s.text && !posted && now.Sub(before.set) < statusAgain
	if s.at, s.set = at, now; same {
		s.set = before.set // the time at which Slack got the status
	}
	if s.text == "" {
		delete(b.by, at)
	} else if known || len(b.by) < maxStatuses {
		if b.by == nil {
			b.by = map[destination]status{}
		}
		b.by[at] = s
	}
	b.mu.Unlock()
	if same || s.text == "" && (!known || posted) || b.refused.has(ctx, refusedStatuses) { // the status is the same, there is nothing to remove, or Slack refuses statuses
		return
	}
	err := b.api.SetAssistantThreadsStatusContext(slackapi.WithCallPriority(ctx, slackapi.CallPriority{Priority: slackapi.PriorityLast}), slack.AssistantThreadsSetStatusParameters{
		ChannelID: at.channel, ThreadTS: at.thread, Status: s.text,
	})
	unusable := b.countUnusable(err)
	if err == nil {
		return
	}
	b.Log.DebugContext(ctx, "no status could be shown", "error", err)
	switch slackapi.ErrorCode(err) {
	case "missing_scope", "not_allowed_token_type", "method_not_supported_for_channel_type", "access_denied", "team_access_not_granted":
	default:
		if !slackapi.IsMissing(err) && unusable < mostUnusable {
			return
		}
	}
	b.refused.markMissing(ctx, refusedStatuses, "threads show no status of the agent", err)
}

// countUnusable returns the number of consecutive calls without a usable answer, up to the call with this result. A call
// that was not made does not count, and the number for it is 0.
func (b *Statuses) countUnusable(err error) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case slackapi.IsPutOff(err):
		return 0
	case slackapi.IsUnusable(err):
		b.unusable++
	default:
		b.unusable = 0
	}
	return b.unusable
}

// Keep renews statuses before Slack removes them, until ctx ends.
func (b *Statuses) Keep(ctx context.Context) error {
	tick := time.NewTicker(statusTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if !b.api.Worth() {
			continue
		}
		for _, s := range b.old(b.Now()) {
			now, err := b.Views.Turn(ctx, s.turn)
			if errors.Is(err, store.ErrNotFound) {
				b.set(ctx, s.at, status{}, true)
			}
			if err == nil {
				b.set(ctx, s.at, status{turn: s.turn, text: thread.Status(now, b.progress.progressOf(now.Calls))}, false)
			}
		}
	}
}

// old returns the statuses that are due for renewal, oldest first. The function drops statuses that have been unchanged
// for statusEnds.
func (b *Statuses) old(now time.Time) (out []status) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for at, s := range b.by {
		switch {
		case now.Sub(s.since) > statusEnds:
			delete(b.by, at)
		case now.Sub(s.set) >= statusAgain:
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b status) int { return cmp.Or(a.set.Compare(b.set), cmp.Compare(a.turn, b.turn)) })
	return out
}

// affectsStatus reports whether showing an outbox message may change the status of the message's thread.
func affectsStatus(s view.Model) bool {
	switch s.Message.Kind {
	case store.OutboxStep, store.OutboxAnswer, store.OutboxProblem, store.OutboxQueued:
		return true
	}
	return false
}
