package workflow_test

import (
	"context"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// The functions in this file replace package bot in the tests. They give the workflow Slack's data about people,
// without Slack.

// company looks up the approvers of a request's stage.
func (h *harness) company(ctx context.Context, request string) (view.StageSnapshot, []approvers.Presence, error) {
	snapshot, err := h.Views.StageSnapshot(ctx, request)
	if err != nil || snapshot.Request.State != approvers.Pending {
		return snapshot, nil, err
	}
	var names []string
	for _, name := range snapshot.Request.Roles() {
		role, _ := snapshot.Policy.Role(name)
		for _, m := range role.Members {
			names = append(names, m.Value)
		}
	}
	for _, i := range snapshot.Request.Invited {
		names = append(names, i.Who.User())
	}
	slices.Sort(names)
	var people []approvers.Presence
	for _, user := range slices.Compact(names) {
		people = append(people, h.presence(user, snapshot, 5))
	}
	return snapshot, people, nil
}

func (h *harness) presence(user string, snapshot view.StageSnapshot, line int) approvers.Presence {
	p := approvers.Presence{Who: person(user)}
	if who, ok := h.known[p.Who.ID]; ok {
		p.Who = who
	}
	p.Who.Deleted = h.gone[user]
	if until := h.quiet[user]; until.After(h.clock.Now()) {
		p.QuietUntil = until
	}
	if a, away := snapshot.Away[user]; away {
		p.Away = true
		if a.Delegate != "" && line > 0 {
			next := h.presence(a.Delegate.User(), snapshot, line-1)
			p.StandIn = &next
		}
	}
	return p
}

func (h *harness) resolveAvailability(ctx context.Context, t store.Timer) error {
	snapshot, people, err := h.company(ctx, t.Ref)
	if err != nil {
		return err
	}
	return h.People.ResolveAvailability(ctx, t, snapshot, people)
}

func (h *harness) remind(ctx context.Context, t store.Timer) error {
	snapshot, people, err := h.company(ctx, t.Ref)
	if err != nil {
		return err
	}
	return h.People.Remind(ctx, t, snapshot, people)
}

func (h *harness) absenceChanged(ctx context.Context, t store.Timer) error {
	return h.People.AbsenceChanged(ctx, t, person(approvers.PersonID(t.Ref).User()))
}

// h.away makes a person set an absence that begins now and lasts for d.
func (h *harness) away(who approvers.Identity, d time.Duration, delegate ...approvers.Identity) approvers.Absence {
	h.t.Helper()
	m := workflow.Departure{Inbox: h.command(), Who: who, Until: h.clock.Now().Add(d)}
	if len(delegate) > 0 {
		m.Delegate = &delegate[0]
	}
	a, err := h.People.SetAway(h.ctx(), m)
	h.ok(err)
	return a
}

// command stores the delivery of a slash command, and returns the delivery's id.
func (h *harness) command() string {
	h.t.Helper()
	id := h.id("command")
	_, err := h.Intake.Receive(h.ctx(), store.Inbox{ID: id, Kind: store.InboxCommand, ReceivedAt: h.clock.Now(), Payload: []byte("{}")}, "")
	h.ok(err)
	return id
}

// h.at sets the clock to a time, and handles all due timers in order.
func (h *harness) at(then time.Time) {
	h.t.Helper()
	for {
		next := then
		for _, kind := range timed {
			for _, t := range h.timers(kind) {
				if t.Due.After(h.clock.Now()) && t.Due.Before(next) {
					next = t.Due
				}
			}
		}
		h.clock.pass(next.Sub(h.clock.Now()))
		h.due()
		if next.Equal(then) {
			return
		}
	}
}

// timed lists the timer kinds whose handlers notify people or end a request.
var timed = []store.TimerKind{store.TimerExpire, store.TimerEscalate, store.TimerRemind, store.TimerAvailability, store.TimerAway, store.TimerLeave}

// h.reminders returns how many reminders of a request each person got.
func (h *harness) reminders(request string) map[string]int {
	h.t.Helper()
	out := map[string]int{}
	for _, s := range h.messagesOf(request) {
		if s.Kind == store.OutboxNotice && s.Note == store.NoteReminder {
			out[s.To]++
		}
	}
	return out
}

// cardsOf lists the addresses of a request's cards and escalations, in any state.
func (h *harness) cardsOf(request string) (to []string) {
	h.t.Helper()
	for _, s := range h.messagesOf(request) {
		if s.Kind == store.OutboxCard || s.Kind == store.OutboxEscalation {
			to = append(to, s.To)
		}
	}
	return to
}
