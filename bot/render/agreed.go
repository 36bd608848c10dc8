package render

import (
	"fmt"

	"countersign/approvers"
)

// agreed names everybody whose approval counted, in order. Consecutive people of one role share its title.
func (v View) agreed(r approvers.Request) *RichText {
	by := approvals(r)
	p := new(RichText)
	for i, d := range by {
		if i == maxPeopleTold {
			return p.Say(fmt.Sprintf(" and %d more", len(by)-i))
		}
		switch {
		case i > 0 && i == len(by)-1:
			p.Say(" and ")
		case i > 0:
			p.Say(", ")
		}
		p.Person(d.By, d.Name)
		if d.Role != "" && (i == len(by)-1 || i == maxPeopleTold-1 || by[i+1].Role != d.Role) {
			p.Say(" (" + v.title(d.Role) + ")")
		}
	}
	return p
}

// approvals returns the decisions that allowed a request. If a person closed the request and it holds no approvals,
// that person made the decision.
func approvals(r approvers.Request) []approvers.Decision {
	var out []approvers.Decision
	for _, d := range r.Decisions {
		if d.Kind != approvers.Reject && !d.Fallen {
			out = append(out, d)
		}
	}
	if len(out) == 0 {
		return []approvers.Decision{{By: r.ClosedBy, Name: r.ClosedName, Role: r.ClosedRole}}
	}
	return out
}
