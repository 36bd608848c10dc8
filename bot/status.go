package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// This file keeps the status that Slack shows under a thread: that the agent thinks, what runs, whom it waits for. It is read off the state whenever that is shown, and is
// nothing that has to be shown: where Slack has no such status, the thread's messages say it all.

// Slack takes a status away after two minutes, and with each message of the bot's.
const (
	statusAgain = 90 * time.Second // it is set again
	statusEnds  = time.Hour        // by then everybody has seen it; the message of the step says it as long as it is so
	statusTick  = 15 * time.Second
	maxStatus   = 120  // characters; ours
	maxStatuses = 1000 // threads
)

// statuses are what Slack shows, by thread.
type statuses struct {
	mu    sync.Mutex
	by    map[spot]status
	unfit refusalNote // Slack has no statuses for this app
}

type status struct {
	at         spot
	turn       string
	text       string
	since, set time.Time
}

// showStatus brings the status of a turn's thread up to date. anew says that a message has just been posted there.
func (b *Bot) showStatus(ctx context.Context, turn string, anew bool) {
	s, err := b.Desk.Standing(ctx, turn)
	if err != nil || s.Conversation.Thread == "" || s.Conversation.Gone {
		return
	}
	b.setStatus(ctx, spot{s.Conversation.Channel, s.Conversation.Thread}, status{turn: turn, text: scene{Sight: s, readings: b.readings.of(s.Calls)}.status()}, anew)
}

// status says in a few words what a turn is at; empty: it is over, or nothing goes on.
func (s scene) status() string {
	switch {
	case s.Turn.Ended():
		return ""
	case s.Pause.On:
		return "is paused"
	case s.Turn.State != approvers.TurnWaiting:
		return "is thinking…"
	}
	who, running, asks := "", "", false
	more := waiting(s.Calls) - 1
	for _, c := range s.Calls {
		switch {
		case c.Call.Outcome != "":
		case waits(c):
			if who == "" {
				who = s.stageTitle(c.Request.Plan.Stages[c.Request.Stage])
			}
		case c.Call.Inquiry != nil, c.Asks:
			asks = true
		case running == "":
			running = "is running " + name(c.Call.Tool) + "…"
			if r, there := s.reading(c); there {
				running = strings.TrimSpace(running + " " + strings.TrimSpace(r.amount()+" "+r.words(c)))
			}
		}
	}
	switch {
	case asks:
		return "is waiting for your answer"
	case who != "" && more > 0:
		return short(fmt.Sprintf("is waiting for %s, and for %s", who, plural(more, "more decision")), maxStatus)
	case who != "":
		return short("is waiting for "+who, maxStatus)
	case running != "":
		return short(running, maxStatus)
	}
	return ""
}

func (b *Bot) setStatus(ctx context.Context, at spot, s status, anew bool) {
	now := b.Now()
	st := &b.statuses
	st.mu.Lock()
	before, known := st.by[at]
	if known && before.text == s.text {
		s.since = before.since
	} else {
		s.since = now
	}
	same := before.text == s.text && !anew && now.Sub(before.set) < statusAgain
	s.at = at
	if s.set = now; s.text == "" {
		delete(st.by, at)
	} else if known || len(st.by) < maxStatuses {
		if st.by == nil {
			st.by = map[spot]status{}
		}
		st.by[at] = s
	}
	st.mu.Unlock()
	if same || s.text == "" && (!known || anew) || st.unfit.isSet(now) { // a message has taken it away
		return
	}
	err := b.api.SetAssistantThreadsStatusContext(withErrand(ctx, errand{precedence: last}), slack.AssistantThreadsSetStatusParameters{
		ChannelID: at.channel, ThreadTS: at.thread, Status: s.text,
	})
	if err == nil {
		return
	}
	b.Log.Debug("no status could be shown", "error", err)
	switch errorCode(err) {
	case "missing_scope", "unknown_method", "not_allowed_token_type", "method_not_supported_for_channel_type", "access_denied", "team_access_not_granted":
		st.unfit.set(now)
	}
}

// Keep sets statuses again before Slack takes them away, as long as they are so, until ctx ends.
func (b *Bot) Keep(ctx context.Context) error {
	tick := time.NewTicker(statusTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if !b.Worth() {
			continue
		}
		for _, s := range b.statuses.old(b.Now()) {
			now, err := b.Desk.Standing(ctx, s.turn)
			if errors.Is(err, store.ErrNotFound) {
				b.setStatus(ctx, s.at, status{}, true)
			}
			if err == nil {
				b.setStatus(ctx, s.at, status{turn: s.turn, text: scene{Sight: now, readings: b.readings.of(now.Calls)}.status()}, false)
			}
		}
	}
}

// old are the statuses that Slack is about to take away, those that were set first before the others. What has been so for long is left to go.
func (st *statuses) old(now time.Time) (out []status) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for at, s := range st.by {
		switch {
		case now.Sub(s.since) > statusEnds:
			delete(st.by, at)
		case now.Sub(s.set) >= statusAgain:
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b status) int { return cmp.Or(a.set.Compare(b.set), cmp.Compare(a.turn, b.turn)) })
	return out
}

// tellsOf reports whether a surface is one after which its thread's status may be another.
func tellsOf(s desk.Sight) bool {
	switch s.Surface.Kind {
	case store.SurfaceStep, store.SurfaceAnswer, store.SurfaceProblem, store.SurfaceQueued:
		return true
	}
	return false
}
