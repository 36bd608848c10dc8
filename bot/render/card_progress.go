package render

import (
	"fmt"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// progress says who must agree, who has agreed, and who was against.
func (v View) progress(r approvers.Request) []*RichText {
	var out []*RichText
	if r.State == approvers.Pending {
		out = append(out, v.stages(r))
	}
	told := 0
	for i := range r.Decisions {
		if toldByEnding(r, i) {
			continue
		}
		if told++; told > maxPeopleTold {
			out = append(out, Say("… and "+Plural(len(r.Decisions)-i, "more decision")))
			break
		}
		out = append(out, v.decision(r, i))
	}
	return out
}

// toldByEnding reports whether the line about a request's end already says everything about decision i. That holds for
// the rejection that ended it, and for an approval that was sufficient alone or replaced the others.
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

// stages names the current stage of a request and the stages after it.
func (v View) stages(r approvers.Request) *RichText {
	all := r.Plan.Stages
	st := all[r.Stage]
	line := Say("👥 ").Strong(fmt.Sprintf("Stage %d of %d", r.Stage+1, len(all))).Say(" · " + v.stageTitle(st)).Say(v.joined(r)).also(v.invited(r))
	line.Say(fmt.Sprintf(" · %d of %d agreed", r.At(r.Stage), st.Quorum)).Say(against(r, " · "))
	for i, next := range all[r.Stage+1:] {
		if i == maxStagesTold {
			line.Say(", then " + Plural(len(all)-r.Stage-1-i, "more stage"))
			break
		}
		line.Say(", then " + v.stageTitle(next))
		if next.Quorum > 1 {
			line.Say(fmt.Sprintf(" (%d people)", next.Quorum))
		}
	}
	return line
}

// against says how many people are against, prefixed with sep, if ending the request takes more than one rejection.
// Otherwise it is empty.
func against(r approvers.Request, sep string) string {
	if need := r.CurrentStage().Rejects; need > 1 {
		return fmt.Sprintf("%s%d of %d against", sep, len(r.Against(r.Stage)), need)
	}
	return ""
}

// joined names the roles that escalation added to the stage.
func (v View) joined(r approvers.Request) string {
	out := ""
	for i, j := range r.Joined {
		if i == 2 {
			return out + " or " + Plural(len(r.Joined)-i, "other role")
		}
		out += " or " + v.title(j)
	}
	return out
}

// decision describes one person's decision.
func (v View) decision(r approvers.Request, i int) *RichText {
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
	in := v.title(d.Role)
	if d.By.Login() != "" {
		in = "at the command line"
	}
	line := Say(sign).Person(d.By, d.Name).Say(fmt.Sprintf(" (%s) %s at stage %d, ", in, did, d.Stage+1)).At(d.At, clock)
	if d.Kind == approvers.Reject && d.Reason != "" {
		line.Say(": ").soft(Clip(OneLine(d.Reason), maxAgainst))
	}
	if d.Fallen {
		line.Say(whyFallen(r, i))
	}
	return line
}

// whyFallen says why a decision no longer counts.
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

// remarks shows comments, and each question with its answer below it. No text can imitate another remark: each remark
// begins with one of our signs, and its text has no line breaks.
func (v View) remarks(r approvers.Request) []*RichText {
	most := maxRemarks / max(1, len(r.Remarks))
	if len(r.Remarks) <= 3 {
		most = maxRemark
	}
	var out []*RichText
	for i, m := range r.Remarks {
		said := Clip(OneLine(m.Text), most)
		switch m.Kind {
		case approvers.Comment:
			out = append(out, Say("🗨️ ").also(v.speaker(m)).Say(": ").soft(said))
		case approvers.Question:
			out = append(out, Say("❓ ").also(v.speaker(m)).Say(" asked: ").soft(said))
			if a := slices.IndexFunc(r.Remarks, func(a approvers.Remark) bool { return a.Kind == approvers.Answer && a.To == i }); a >= 0 {
				answer := r.Remarks[a]
				out = append(out, Say("   💬 ").also(v.speaker(answer)).Say(": ").soft(Clip(OneLine(answer.Text), most)))
			} else if r.State == approvers.Pending {
				out = append(out, Say("   💬 Not answered yet."))
			}
		}
	}
	return out
}

// speaker names the author of a remark and their role.
func (v View) speaker(m approvers.Remark) *RichText {
	p := new(RichText).Person(m.By, m.Name)
	if m.Role != "" {
		p.Say(" (" + v.title(m.Role) + ")")
	}
	return p
}

// handedOn says on whose behalf this copy was sent, if somebody added its owner.
func (v View) handedOn(r approvers.Request) *RichText {
	for _, i := range r.Invited {
		if v.Message.To == store.ToUser+i.Who.User() {
			return v.handed(i)
		}
	}
	return new(RichText)
}

// handed tells an added person who added them to the stage.
func (v View) handed(i approvers.Invite) *RichText {
	if i.Away {
		return Say("↪️ You stand in for ").Person(i.By, i.ByName).Say(", who is away. You decide in your own name, as " + v.title(i.Role) + ".")
	}
	return Say("↪️ ").Person(i.By, i.ByName).Say(" handed this on to you. You decide in your own name, as " + v.title(i.Role) + ".")
}

// invited names the people who were added to the current stage.
func (v View) invited(r approvers.Request) *RichText {
	p := new(RichText)
	for i, one := range r.Invited {
		if i == 2 {
			return p.Say(" or " + Plural(len(r.Invited)-i, "other person"))
		}
		p.Say(" or ").Person(one.Who, one.Name)
	}
	return p
}

// cardFor returns the address of a card that the person can open: their own copy, or else one in a channel.
func (v View) cardFor(user string) string {
	link := ""
	for _, card := range v.Cards {
		switch {
		case card.To == store.ToUser+user:
			return v.permalink(card.Channel, card.TS, "")
		case strings.HasPrefix(card.To, store.ToChannel):
			link = v.permalink(card.Channel, card.TS, "")
		}
	}
	return link
}

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
