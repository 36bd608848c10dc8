package bot

import (
	"fmt"
	"slices"

	"countersign/approvers"
)

// progress says who must agree and who did, or was against.
func (s scene) progress(r approvers.Request) []*prose {
	var out []*prose
	if r.State == approvers.Pending {
		out = append(out, s.stages(r))
	}
	told := 0
	for i := range r.Decisions {
		if toldByEnding(r, i) {
			continue
		}
		if told++; told > maxPeopleTold {
			out = append(out, say("… and "+plural(len(r.Decisions)-i, "more decision")))
			break
		}
		out = append(out, s.decision(r, i))
	}
	return out
}

// toldByEnding reports whether the line on how a request ended says all there is to say of a decision: the rejection that ended it, and the
// approval of one who allowed it alone or in place of the others.
func toldByEnding(r approvers.Request, i int) bool {
	d := r.Decisions[i]
	if r.State == approvers.Pending || d.Fallen || d.By != r.ClosedBy {
		return false
	}
	if d.Kind == approvers.Reject {
		return r.State == approvers.Rejected && i == len(r.Decisions)-1
	}
	return d.BreakGlass || len(r.Decisions) == 1
}

// stages says at which stage a request is, and what follows.
func (s scene) stages(r approvers.Request) *prose {
	all := r.Plan.Stages
	st := all[r.Stage]
	line := say("👥 ").strong(fmt.Sprintf("Stage %d of %d", r.Stage+1, len(all))).say(" · " + s.stageTitle(st)).say(s.joined(r)).also(s.invited(r))
	line.say(fmt.Sprintf(" · %d of %d agreed", r.At(r.Stage), st.Quorum)).say(against(r, " · "))
	for i, next := range all[r.Stage+1:] {
		if i == maxStagesTold {
			line.say(", then " + plural(len(all)-r.Stage-1-i, "more stage"))
			break
		}
		line.say(", then " + s.stageTitle(next))
		if next.Quorum > 1 {
			line.say(fmt.Sprintf(" (%d people)", next.Quorum))
		}
	}
	return line
}

// against says how many are against, where it takes several to end a request, and begins with sep; empty where one is enough.
func against(r approvers.Request, sep string) string {
	if need := r.Plan.Stages[r.Stage].Rejects; need > 1 {
		return fmt.Sprintf("%s%d of %d against", sep, len(r.Against(r.Stage)), need)
	}
	return ""
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
func (s scene) decision(r approvers.Request, i int) *prose {
	d := r.Decisions[i]
	sign, did := "✔️ ", "approved"
	switch {
	case d.Kind == approvers.Reject:
		sign, did = "👎 ", "rejected"
	case d.Kind == approvers.Modify && d.Fallen && d.Digest == r.Digest:
		did = "changed it, which does not count as an approval"
	case d.Kind == approvers.Modify && d.Fallen:
		did = "changed it"
	case d.Kind == approvers.Modify:
		did = "changed and approved"
	}
	if d.Fallen {
		sign = "✖️ "
	}
	in := s.title(d.Role)
	if d.By.Login() != "" {
		in = "at the command line"
	}
	line := say(sign).person(d.By, d.Name).say(fmt.Sprintf(" (%s) %s at stage %d, ", in, did, d.Stage+1)).at(d.At, clock)
	if d.Kind == approvers.Reject && d.Reason != "" {
		line.say(": ").soft(clip(oneLine(d.Reason), maxAgainst))
	}
	if d.Fallen {
		line.say(whyFallen(r, i))
	}
	return line
}

// whyFallen says why a decision counts no more.
func whyFallen(r approvers.Request, i int) string {
	d := r.Decisions[i]
	switch {
	case d.Digest != r.Digest:
		return "; no longer counts, because it was changed afterwards"
	case slices.ContainsFunc(r.Decisions[i+1:], func(o approvers.Decision) bool { return o.By == d.By && o.Stage == d.Stage && o.Kind != d.Kind }):
		return "; no longer counts: they changed their mind"
	case d.Kind == approvers.Modify:
		return ""
	}
	return "; no longer counts, because the policy changed afterwards"
}
