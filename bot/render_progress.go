package bot

import (
	"fmt"

	"countersign/approvers"
)

// progress says who must agree and who did.
func (s scene) progress(r approvers.Request) []*prose {
	var out []*prose
	if r.State == approvers.Pending {
		out = append(out, s.stages(r))
	}
	told := 0
	for i, d := range r.Decisions {
		if d.Kind == approvers.Reject {
			continue // the ending says it
		}
		if r.State != approvers.Pending && len(r.Decisions) == 1 && d.By == r.ClosedBy && !d.Fallen {
			continue // likewise
		}
		if told++; told > maxPeopleTold {
			out = append(out, say("… and "+plural(len(r.Decisions)-i, "more decision")))
			break
		}
		out = append(out, s.decision(d))
	}
	return out
}

// stages says at which stage a request is, and what follows.
func (s scene) stages(r approvers.Request) *prose {
	all := r.Plan.Stages
	st := all[r.Stage]
	line := say("👥 ").strong(fmt.Sprintf("Stage %d of %d", r.Stage+1, len(all))).say(" · " + s.title(st.Approver)).say(s.joined(r))
	line.say(fmt.Sprintf(" · %d of %d agreed", r.At(r.Stage), st.Quorum))
	for i, next := range all[r.Stage+1:] {
		if i == maxStagesTold {
			line.say(", then " + plural(len(all)-r.Stage-1-i, "more stage"))
			break
		}
		line.say(", then " + s.title(next.Approver))
		if next.Quorum > 1 {
			line.say(fmt.Sprintf(" (%d people)", next.Quorum))
		}
	}
	return line
}

// joined names the roles that escalation added to the stage.
func (s scene) joined(r approvers.Request) string {
	out := ""
	for i, j := range r.Joined {
		if i == 2 {
			return out + " or " + plural(len(r.Joined)-i, "other role")
		}
		out += " or " + s.title(j)
	}
	return out
}

// decision says what one person did.
func (s scene) decision(d approvers.Decision) *prose {
	sign, did := "✔️ ", "approved"
	if d.Kind == approvers.Modify {
		did = "changed and approved"
	}
	if d.Fallen {
		sign = "✖️ "
		if d.Kind == approvers.Modify {
			did = "changed it, and may not approve it as changed"
		}
	}
	line := say(sign).person(d.By, d.Name).say(fmt.Sprintf(" (%s) %s at stage %d, ", s.title(d.Role), did, d.Stage+1)).at(d.At, clock)
	switch {
	case d.Fallen && d.Digest == s.Request.Digest:
		line.say("; no longer counts, because the policy changed afterwards")
	case d.Fallen && d.Kind != approvers.Modify:
		line.say("; no longer counts, because it was changed afterwards")
	}
	return line
}

// otherwise says what happens if nobody does anything, and when.
func (s scene) otherwise(r approvers.Request) *prose {
	line := say("⏳ If nobody decides by ").at(r.ExpiresAt, dayTime).say(", it is rejected and will not run.")
	if !r.EscalateAt.IsZero() {
		line.say(" At ").at(r.EscalateAt, clock).say(" " + s.lead(r) + " is told.")
	}
	return line
}

// lead names who is told next, by asking what an escalation at that time would do.
func (s scene) lead(r approvers.Request) string {
	_, told, ok := r.Escalate(approvers.Deciding{Policy: s.Policy, Now: r.EscalateAt})
	switch {
	case !ok:
		return "the next approver up"
	case told.Again:
		return "everybody"
	}
	return s.title(told.Lead.Name)
}
