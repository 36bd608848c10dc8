package bot

import (
	"fmt"

	"countersign/approvers"
)

// agreed names everybody whose approval counted, in order. People of one role in a row share its title.
func (s scene) agreed(r approvers.Request) *prose {
	by := approvals(r)
	p := new(prose)
	for i, d := range by {
		if i == maxPeopleTold {
			return p.say(fmt.Sprintf(" and %d more", len(by)-i))
		}
		switch {
		case i > 0 && i == len(by)-1:
			p.say(" and ")
		case i > 0:
			p.say(", ")
		}
		p.person(d.By, d.Name)
		if d.Role != "" && (i == len(by)-1 || i == maxPeopleTold-1 || by[i+1].Role != d.Role) {
			p.say(" (" + s.title(d.Role) + ")")
		}
	}
	return p
}

// approvals are the decisions that allowed a request. A request that was closed by a person and holds no approvals was
// decided by that person.
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
