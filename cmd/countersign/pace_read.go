package main

import (
	"context"
	"slices"
	"strconv"
	"time"
	"unicode"

	"countersign/approvers"
	"countersign/store"
)

// pace is how a role or a person decides.
type pace struct {
	name      string
	decisions int
	approvals int
	changed   int
	rejected  int
	timed     int             // approvals of which it is known how long they took
	quick     int             // those of them that were hasty
	times     []time.Duration // of all decisions of which it is known
}

func (p *pace) add(kind approvers.DecisionKind, took time.Duration) {
	p.decisions++
	switch kind {
	case approvers.Approve:
		p.approvals++
	case approvers.Modify:
		p.changed++
	case approvers.Reject:
		p.rejected++
	}
	if took <= 0 {
		return
	}
	p.times = append(p.times, took)
	if kind == approvers.Approve {
		p.timed++
	}
	if isHasty(kind, took) {
		p.quick++
	}
}

// share is the part of the approvals that were hasty, from 0 to 1.
func (p *pace) share() float64 { return float64(p.quick) / max(1, float64(p.timed)) }

// within is the time within which so many of a hundred decisions were made: the smallest that is long enough.
func (p *pace) within(percent int) time.Duration {
	slices.Sort(p.times)
	return p.times[(len(p.times)*percent+99)/100-1]
}

// paces are the decisions of a history, by role and by person.
type paces struct{ roles, people map[string]*pace }

func readPaces(ctx context.Context, s store.Store, from time.Time) (paces, error) {
	all := paces{roles: map[string]*pace{}, people: map[string]*pace{}}
	err := eachChain(ctx, s, func(records []approvers.AuditRecord) error {
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

func (a paces) add(r approvers.AuditRecord, name string) {
	ms, err := strconv.ParseInt(r.Facts["took"], 10, 64)
	if err != nil {
		ms = 0 // not known
	}
	kind, took := approvers.DecisionKind(r.Facts["kind"]), time.Duration(ms)*time.Millisecond
	role := r.Facts["role"]
	if r.Actor.Login() != "" {
		role = "(operator)" // not what a role can be called
	}
	of(a.roles, role).add(kind, took)
	person := of(a.people, string(r.Actor))
	person.add(kind, took)
	if name != "" {
		person.name = name + " " + string(r.Actor)
	}
}

func of(all map[string]*pace, name string) *pace {
	if all[name] == nil {
		all[name] = &pace{name: name}
	}
	return all[name]
}

// namesIn are the names of those who had to do with a request.
func namesIn(ctx context.Context, s store.Store, request string) (names map[approvers.PersonID]string, err error) {
	err = s.View(ctx, func(r store.Reader) error {
		names, err = peopleOf(r, request)
		return err
	})
	return names, err
}

// printable drops what would move the terminal's cursor.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return -1
}
