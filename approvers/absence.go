package approvers

import (
	"slices"
	"time"
)

// Absence is the time in which a person is away, with the name of the person's stand-in. The stand-in gets the person's
// cards and reminders, but not the person's authority. The stand-in decides in the stand-in's own name and role.
type Absence struct {
	Who          PersonID  `json:"who"`
	Version      uint64    `json:"version"`
	Name         string    `json:"name"`
	From         time.Time `json:"from"`
	Until        time.Time `json:"until"` // the end of the absence
	Delegate     PersonID  `json:"delegate,omitempty"`
	DelegateName string    `json:"delegate_name,omitempty"`
	Covers       []Cover   `json:"covers,omitempty"` // for each role that the person had when the absence was set: the calls that the stand-in can decide
}

// Cover is about one role of an absent person. Cover says which calls of this role the stand-in can decide. The
// stand-in decides these calls under a role of their own.
type Cover struct {
	Role  string   `json:"role"`
	None  bool     `json:"none,omitempty"`  // the stand-in can decide no calls to the role's tools
	Lacks []string `json:"lacks,omitempty"` // the role's tools whose calls the stand-in can't decide
}

// maxAway limits how far ahead an absence can end. A later date is probably mistyped.
const maxAway = 2 * 366 * 24 * time.Hour

// Leave returns the absence that a person sets. The stand-in must be another person and a full member. The stand-in's
// authority is checked when the stand-in decides.
func Leave(in DecisionContext, who Identity, from, until time.Time, delegate *Identity) (Absence, *Denied) {
	if code := who.trouble(); code != "" {
		return Absence{}, &Denied{Code: code}
	}
	if !from.Before(until) || !in.Now.Before(until) || until.After(in.Now.Add(maxAway)) {
		return Absence{}, &Denied{Code: DeniedDates, At: until}
	}
	a := Absence{Who: who.ID, Name: who.Name, From: from.UTC(), Until: until.UTC()}
	if delegate == nil {
		return a, nil
	}
	code := delegate.trouble()
	if delegate.ID == who.ID {
		code = DeniedSelf
	}
	if code != "" {
		return Absence{}, &Denied{Code: DeniedStandIn, By: delegate.ID, Detail: string(code)}
	}
	a.Delegate, a.DelegateName = delegate.ID, delegate.Name
	for _, role := range in.Policy.Approvers {
		if role.Holds(who) {
			a.Covers = append(a.Covers, in.Policy.cover(role, *delegate))
		}
	}
	return a, nil
}

// cover returns which of the role's calls a stand-in can decide. The stand-in can decide a tool's calls if one of the
// stand-in's roles lists the tool and has at least the ceiling of this role.
func (p *Policy) cover(role Role, who Identity) Cover {
	names := role.CanApprove
	if slices.Contains(names, "*") {
		names = make([]string, len(p.Tools))
		for i, t := range p.Tools {
			names[i] = t.Name
		}
	}
	out := Cover{Role: role.Name}
	for _, name := range names {
		able := false
		p.covering(name, role.MaxRisk, func(r Role) bool {
			able = r.Holds(who)
			return !able
		})
		if !able {
			out.Lacks = append(out.Lacks, name)
		}
	}
	if len(out.Lacks) == len(names) {
		out.None, out.Lacks = true, nil
	}
	return out
}

// During reports whether the person is away at the given time.
func (a Absence) During(t time.Time) bool { return !t.Before(a.From) && t.Before(a.Until) }

// Over reports whether the absence has ended. Over returns true for the zero Absence.
func (a Absence) Over(now time.Time) bool { return !now.Before(a.Until) }

// Back ends the absence now, because the person has come back. If the absence has not begun, Back cancels it.
func (a Absence) Back(now time.Time) Absence {
	a.Until = now
	if a.From.After(now) {
		a.From = now
	}
	return a
}
