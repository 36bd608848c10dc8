package audit

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// DecisionStats sums up the decisions of a role or a person.
type DecisionStats struct {
	Name      string
	Decisions int
	Approvals int
	Changed   int
	Rejected  int
	Timed     int // approvals whose decision time is recorded
	Quick     int // approvals that came so soon after the card appeared that nobody can have read the card
	times     Durations
}

// add counts a decision. The parameter named took is zero if the decision time is not recorded.
func (p *DecisionStats) add(kind approvers.DecisionKind, took time.Duration) {
	p.Decisions++
	switch kind {
	case approvers.Approve:
		p.Approvals++
	case approvers.Modify:
		p.Changed++
	case approvers.Reject:
		p.Rejected++
	}
	if took <= 0 {
		return
	}
	p.times.add(took)
	if kind == approvers.Approve {
		p.Timed++
	}
	if IsQuick(kind, took) {
		p.Quick++
	}
}

// QuickShare returns the share of quick approvals among approvals with a recorded time, from 0 to 1.
func (p *DecisionStats) QuickShare() float64 { return float64(p.Quick) / max(1, float64(p.Timed)) }

// Within returns the shortest time in which the given percentage of the timed decisions were made. Within returns false
// if no decision time is recorded.
func (p *DecisionStats) Within(percent int) (time.Duration, bool) { return p.times.Within(percent) }

// Durations counts durations. Durations of a second and more are rounded to three significant digits, so that the
// memory use is bounded.
type Durations struct {
	N  int
	at map[time.Duration]int
}

func (d *Durations) add(took time.Duration) {
	unit := time.Millisecond
	for took/unit >= 1000 {
		unit *= 10
	}
	if unit > time.Millisecond {
		took = took.Round(unit)
	}
	if d.at == nil {
		d.at = map[time.Duration]int{}
	}
	d.at[took]++
	d.N++
}

// addAll adds the durations of another counter.
func (d *Durations) addAll(o Durations) {
	if d.at == nil {
		d.at = map[time.Duration]int{}
	}
	for took, n := range o.at {
		d.at[took] += n
	}
	d.N += o.N
}

// Within returns a percentile: at least the given percentage of the durations are less than or equal to the result.
// Within returns false if there are no durations.
func (d *Durations) Within(percent int) (time.Duration, bool) {
	left := (d.N*percent + 99) / 100
	for _, took := range slices.Sorted(maps.Keys(d.at)) {
		if left -= d.at[took]; left <= 0 {
			return took, true
		}
	}
	return 0, false
}

// DecisionReport summarizes the decisions in a history, by role and by person.
type DecisionReport struct{ Roles, People map[string]*DecisionStats }

// ReadDecisions summarizes all decisions since the given time.
func ReadDecisions(ctx context.Context, s store.Store, from time.Time) (DecisionReport, error) {
	all := DecisionReport{Roles: map[string]*DecisionStats{}, People: map[string]*DecisionStats{}}
	err := EachChain(ctx, s, func(records []approvers.AuditRecord) error {
		names := map[approvers.PersonID]string{}
		for _, r := range records {
			if r.Kind != approvers.AuditDecided || r.At.Before(from) {
				continue
			}
			if len(names) == 0 {
				var err error
				if names, err = namesIn(ctx, s, r.Chain); err != nil {
					return err
				}
			}
			all.add(r, names[r.Actor])
		}
		return nil
	})
	return all, err
}

func (a DecisionReport) add(r approvers.AuditRecord, name string) {
	ms, err := strconv.ParseInt(r.Facts["took"], 10, 64)
	if err != nil {
		ms = 0 // unknown
	}
	kind, took := approvers.DecisionKind(r.Facts["kind"]), time.Duration(ms)*time.Millisecond
	role := r.Facts["role"]
	if r.Actor.Login() != "" {
		role = "(operator)" // can't be the name of a role
	}
	statsOf(a.Roles, role).add(kind, took)
	person := statsOf(a.People, string(r.Actor))
	person.add(kind, took)
	if name != "" {
		person.Name = name + " " + string(r.Actor)
	}
}

func statsOf(all map[string]*DecisionStats, name string) *DecisionStats {
	if all[name] == nil {
		all[name] = &DecisionStats{Name: name}
	}
	return all[name]
}

// namesIn returns the names of the people of a request.
func namesIn(ctx context.Context, s store.Store, request string) (names map[approvers.PersonID]string, err error) {
	err = s.View(ctx, func(r store.Reader) error {
		names, err = peopleOf(r, request)
		return err
	})
	return names, err
}

// QuickApproval is the shortest time in which a person can read a card.
const QuickApproval = 3 * time.Second

// IsQuick reports whether somebody approved a card too quickly to have read the card. Quick rejections don't count,
// because they are harmless.
func IsQuick(kind approvers.DecisionKind, took time.Duration) bool {
	return kind == approvers.Approve && took < QuickApproval
}
