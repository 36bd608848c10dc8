package approvers

import (
	"slices"
	"time"
)

// Absence says when a person is away and who stands in. It moves cards and reminders, never authority: whoever stands in
// decides in their own name, by a role of their own.
type Absence struct {
	Who          PersonID  `json:"who"`
	Version      uint64    `json:"version"`
	Name         string    `json:"name"`
	From         time.Time `json:"from"`
	Until        time.Time `json:"until"` // the person is back from then on
	Delegate     PersonID  `json:"delegate,omitempty"`
	DelegateName string    `json:"delegate_name,omitempty"`
}

// maxAway bounds how far ahead somebody can be away: whoever means more than that has mistyped a date.
const maxAway = 2 * 366 * 24 * time.Hour

// Leave notes that a person is away. Whoever stands in is a full member, and somebody else; what they may decide is looked at when
// they do.
func Leave(now time.Time, who Identity, from, until time.Time, delegate *Identity) (Absence, *Denied) {
	if code := who.trouble(); code != "" {
		return Absence{}, &Denied{Code: code}
	}
	if !from.Before(until) || !now.Before(until) || until.After(now.Add(maxAway)) {
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
		return Absence{}, &Denied{Code: DeniedStandIn, Detail: string(code)}
	}
	a.Delegate, a.DelegateName = delegate.ID, delegate.Name
	return a, nil
}

// Covers reports whether the person is away at a time.
func (a Absence) Covers(t time.Time) bool { return !t.Before(a.From) && t.Before(a.Until) }

// Over reports whether the absence has ended, or there is none.
func (a Absence) Over(now time.Time) bool { return !now.Before(a.Until) }

// Back ends an absence, or takes back one that has not begun.
func (a Absence) Back(now time.Time) Absence {
	a.Until = now
	if a.From.After(now) {
		a.From = now
	}
	return a
}

// Lacks lists the tools of a role about which a person could not decide in place of its people: no role of theirs has the tool with
// a ceiling as high. all says that these are all of the role's tools.
func (p *Policy) Lacks(role Role, who Identity) (tools []string, all bool) {
	names := role.CanApprove
	if slices.Contains(names, "*") {
		names = make([]string, len(p.Tools))
		for i, t := range p.Tools {
			names[i] = t.Name
		}
	}
	for _, name := range names {
		able := false
		p.covering(name, func(r Role) bool {
			able = r.MaxRisk >= role.MaxRisk && r.Holds(who)
			return !able
		})
		if !able {
			tools = append(tools, name)
		}
	}
	return tools, len(tools) == len(names)
}
