package desk_test

import (
	"context"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// The office's people as Slack would tell of them: what package bot does for the desk, without Slack.

// company looks up the people of a request's stage.
func (o *office) company(ctx context.Context, request string) (desk.Roll, []approvers.Presence, error) {
	roll, err := o.Roll(ctx, request)
	if err != nil || roll.Request.State != approvers.Pending {
		return roll, nil, err
	}
	var names []string
	for _, name := range roll.Request.Roles() {
		role, _ := roll.Policy.Role(name)
		for _, m := range role.Members {
			names = append(names, m.Value)
		}
	}
	for _, i := range roll.Request.Invited {
		names = append(names, i.Who.User())
	}
	slices.Sort(names)
	var people []approvers.Presence
	for _, user := range slices.Compact(names) {
		people = append(people, o.presence(user, roll, 5))
	}
	return roll, people, nil
}

func (o *office) presence(user string, roll desk.Roll, line int) approvers.Presence {
	p := approvers.Presence{Who: person(user)}
	if until := o.quiet[user]; until.After(o.clock.Now()) {
		p.QuietUntil = until
	}
	if a, away := roll.Away[user]; away {
		p.Away = true
		if a.Delegate != "" && line > 0 {
			next := o.presence(a.Delegate.User(), roll, line-1)
			p.StandIn = &next
		}
	}
	return p
}

func (o *office) muster(ctx context.Context, t store.Timer) error {
	roll, people, err := o.company(ctx, t.Ref)
	if err != nil {
		return err
	}
	return o.Muster(ctx, t, roll, people)
}

func (o *office) remind(ctx context.Context, t store.Timer) error {
	roll, people, err := o.company(ctx, t.Ref)
	if err != nil {
		return err
	}
	return o.Remind(ctx, t, roll, people)
}

func (o *office) depart(ctx context.Context, t store.Timer) error {
	var roles []string
	for _, role := range o.policy.Load().Approvers {
		if role.Holds(person(approvers.PersonID(t.Ref).User())) {
			roles = append(roles, role.Name)
		}
	}
	return o.Depart(ctx, t, roles)
}

// away has somebody say that they are away from now on, for so long.
func (o *office) away(who approvers.Identity, d time.Duration, delegate ...approvers.Identity) approvers.Absence {
	o.t.Helper()
	m := desk.Departure{Inbox: o.command(), Who: who, Until: o.clock.Now().Add(d)}
	if len(delegate) > 0 {
		m.Delegate = &delegate[0]
	}
	a, err := o.SetAway(o.ctx(), m)
	o.ok(err)
	return a
}

// command is a slash command that was received.
func (o *office) command() string {
	o.t.Helper()
	id := o.id("command")
	_, err := o.Receive(o.ctx(), store.Inbox{ID: id, Kind: store.InboxCommand, ReceivedAt: o.clock.Now(), Payload: []byte("{}")}, "")
	o.ok(err)
	return id
}

// at moves the clock to a moment and does what is due by then, step by step, as it falls due.
func (o *office) at(then time.Time) {
	o.t.Helper()
	for {
		next := then
		for _, kind := range timed {
			for _, t := range o.timers(kind) {
				if t.Due.After(o.clock.Now()) && t.Due.Before(next) {
					next = t.Due
				}
			}
		}
		o.clock.pass(next.Sub(o.clock.Now()))
		o.due()
		if next.Equal(then) {
			return
		}
	}
}

// timed are the kinds of timers that tell people something, or end it.
var timed = []store.TimerKind{store.TimerExpire, store.TimerEscalate, store.TimerRemind, store.TimerMuster, store.TimerAway, store.TimerLeave}

// reminders counts the reminders that each person was sent about a request.
func (o *office) reminders(request string) map[string]int {
	o.t.Helper()
	out := map[string]int{}
	for _, s := range o.surfacesOf(request) {
		if s.Kind == store.SurfaceNotice && s.Note == store.NoteReminder {
			out[s.To]++
		}
	}
	return out
}

// cardsOf lists where a request's cards are wanted.
func (o *office) cardsOf(request string) (to []string) {
	o.t.Helper()
	for _, s := range o.surfacesOf(request) {
		if s.Kind == store.SurfaceCard || s.Kind == store.SurfaceEscalation {
			to = append(to, s.To)
		}
	}
	return to
}
