package render

import (
	"fmt"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// waitsLine returns the line that names the people for whom a request waits, and the lines around it. The lines above
// list the stages that have agreed. If the stage does not name the reader, the lines also explain why the reader got
// this copy. The lines below name the people who have rejected.
func (v View) waitsLine(r approvers.Request) []*RichText {
	st := r.CurrentStage()
	line := Say("✋ Waits for ").Strong(v.stageTitle(st) + v.escalatedRoles(r)).add(v.invitedPeople(r))
	for i, c := range v.Mentions {
		line.Say(map[bool]string{true: ": ", false: " "}[i == 0])
		c.in(line)
	}
	line.add(agreedAt(r)).Say(against(r, ", ")).Say(".").add(laterStages(v, r))
	out := []*RichText{v.handedOn(r), v.escalated(r), v.earlierStages(r), line}
	for _, d := range r.Against(r.Stage) {
		no := Say("👎 ").Person(d.By, d.Name).Say(" is against it")
		if d.Reason != "" {
			no.Say(": ").soft(Clip(OneLine(d.Reason), maxAgainst))
		}
		out = append(out, no)
	}
	return out[:min(len(out), maxPeopleTold+4)]
}

// If a stage needs several people, agreedAt returns how many of them have agreed.
func agreedAt(r approvers.Request) *RichText {
	p := new(RichText)
	quorum, n := r.CurrentStage().Quorum, r.At(r.Stage)
	switch {
	case quorum < 2:
		return p
	case n == 0:
		return p.Say(fmt.Sprintf(" (%d people)", quorum))
	}
	return p.Say(fmt.Sprintf(" (%d of %d agreed: ", n, quorum)).add(peopleOf(decisionsAt(r, r.Stage))).Say(")")
}

// decisionsAt returns the valid approvals of a stage.
func decisionsAt(r approvers.Request, stage int) (out []approvers.Decision) {
	for _, d := range r.ValidApprovals() {
		if d.Stage == stage {
			out = append(out, d)
		}
	}
	return out
}

// peopleOf names the people who made decisions.
func peopleOf(by []approvers.Decision) *RichText {
	p := new(RichText)
	for i, d := range by {
		if i == maxPeopleTold {
			return p.Say(fmt.Sprintf(" and %d more", len(by)-i))
		}
		if i > 0 {
			p.Say(", ")
		}
		p.Person(d.By, d.Name)
	}
	return p
}

// earlierStages names the people who agreed at the stages before the current one.
func (v View) earlierStages(r approvers.Request) *RichText {
	p := new(RichText)
	for i, st := range r.Plan.Stages[:min(r.Stage, len(r.Plan.Stages))] {
		if i == maxStagesTold {
			p.Say(" " + Plural(r.Stage-i, "more stage") + " agreed.")
			break
		}
		p.Say(map[bool]string{true: "✔️ ", false: " "}[i == 0] + v.stageTitle(st) + " agreed")
		if by := decisionsAt(r, i); len(by) > 0 {
			p.Say(": ").add(peopleOf(by)).Say(" ").At(by[len(by)-1].At, clock)
		}
		p.Say(".")
	}
	return p
}

// laterStages names the stages that follow the current one.
func laterStages(v View, r approvers.Request) *RichText {
	p := new(RichText)
	for i, next := range r.Plan.Stages[min(r.Stage+1, len(r.Plan.Stages)):] {
		if i == maxStagesTold {
			return p.Say(" Then " + Plural(len(r.Plan.Stages)-1-r.Stage-i, "more stage") + ".")
		}
		p.Say(" Then " + v.stageTitle(next))
		if next.Quorum > 1 {
			p.Say(fmt.Sprintf(" (%d people)", next.Quorum))
		}
		p.Say(".")
	}
	return p
}

// escalated tells a role why it was added to the stage. The stage's own people have not decided in time, can't decide,
// or could not see the card. If the stage itself names the role, escalated returns nothing.
func (v View) escalated(r approvers.Request) *RichText {
	if v.Message.Kind != store.OutboxEscalation || !slices.Contains(r.Joined, v.Message.Role) {
		return new(RichText)
	}
	if r.Unreached.Added(r, v.Message.Role) {
		return Say("⏫ I could not show this to " + v.stageTitle(r.CurrentStage()) + ", because " + refusedCard(r.Unreached.Cause) + ", so " + v.title(v.Message.Role) + " is asked.")
	}
	if call, ok := approvers.CallOf(r, v.Message.Role); ok {
		return Say("⏫ ").add(nobodyLeft(v, r, call)).Say(", so " + v.title(v.Message.Role) + " is asked.")
	}
	return Say("⏫ Not decided yet, so " + v.title(v.Message.Role) + " is asked as well.")
}

// nobodyLeft explains why nobody else of a stage can decide.
func nobodyLeft(v View, r approvers.Request, call approvers.LeadCall) *RichText {
	if len(call.Deactivated) == 0 {
		return Say("Nobody of " + v.stageTitle(r.CurrentStage()) + " can decide this now")
	}
	p, is := Say("The account of "), " is deactivated"
	if len(call.Deactivated) > 1 {
		p, is = Say("The accounts of "), " are deactivated"
	}
	for i, d := range call.Deactivated {
		if i == maxPeopleTold {
			p.Say(fmt.Sprintf(" and %d more", len(call.Deactivated)-i))
			break
		}
		if i > 0 {
			p.Say(", ")
		}
		p.Person(d.Who, d.Name)
	}
	if p.Say(is); call.Others {
		p.Say(", and nobody else can be reached now")
	}
	return p
}

// against returns the number of people who have rejected, as a text that begins with sep. If one rejection would end
// the request, the function returns "".
func against(r approvers.Request, sep string) string {
	if need := r.CurrentStage().Rejects; need > 1 {
		return fmt.Sprintf("%s%d of %d against", sep, len(r.Against(r.Stage)), need)
	}
	return ""
}

// escalatedRoles names the roles that escalation added to the stage.
func (v View) escalatedRoles(r approvers.Request) string {
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
	line := Say(sign).Person(d.By, d.Name).Say(" (" + in + ") " + did)
	if len(r.Plan.Stages) > 1 {
		line.Say(fmt.Sprintf(" at stage %d", d.Stage+1))
	}
	line.Say(", ").At(d.At, clock)
	if d.Kind == approvers.Reject && d.Reason != "" {
		line.Say(": ").soft(Clip(OneLine(d.Reason), maxAgainst))
	}
	if d.Fallen {
		line.Say(whyFallen(r, i))
	}
	return line
}

// whyFallen returns the reason why a decision no longer counts.
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

// remarks shows the newest remarks: comments, and each question with its answer below it. Each remark begins with one
// of the bot's signs, and the text of a remark has no line breaks. Therefore no text can imitate another remark.
func (v View) remarks(r approvers.Request) []*RichText {
	shown := slices.DeleteFunc(v.allRemarks(r, maxRemark), func(lines []*RichText) bool { return len(lines) == 0 })
	var out []*RichText
	if n := len(shown) - maxRemarksOnCard; n > 0 {
		out = append(out, Say("🗨️ "+Plural(n, "earlier remark")+" in Details…"))
		shown = shown[n:]
	}
	return append(out, slices.Concat(shown...)...)
}

// maxRemarksOnCard is the number of remarks on a card. Details… shows all remarks.
const maxRemarksOnCard = 2

// allRemarks returns the lines of each remark. An answer is part of its question.
func (v View) allRemarks(r approvers.Request, most int) [][]*RichText {
	out := make([][]*RichText, len(r.Remarks))
	for i, m := range r.Remarks {
		said := Clip(OneLine(m.Text), most)
		switch m.Kind {
		case approvers.Comment:
			out[i] = []*RichText{Say("🗨️ ").add(v.speaker(m)).Say(": ").soft(said)}
		case approvers.Question:
			out[i] = []*RichText{Say("❓ ").add(v.speaker(m)).Say(" asked: ").soft(said)}
			if a := slices.IndexFunc(r.Remarks, func(a approvers.Remark) bool { return a.Kind == approvers.Answer && a.To == i }); a >= 0 {
				answer := r.Remarks[a]
				out[i] = append(out[i], Say("   💬 ").add(v.speaker(answer)).Say(changedLater(answer)+": ").soft(Clip(OneLine(answer.Text), most)))
			} else if r.State == approvers.Pending {
				out[i] = append(out[i], Say("   💬 Not answered yet."))
			}
		}
	}
	return out
}

// changedLater marks an answer whose message was edited or deleted afterwards.
func changedLater(m approvers.Remark) string {
	switch {
	case m.MessageEdit == nil:
		return ""
	case m.MessageEdit.Deleted:
		return " (deleted later)"
	}
	return " (edited later)"
}

// speaker names the author of a remark and their role.
func (v View) speaker(m approvers.Remark) *RichText {
	p := new(RichText).Person(m.By, m.Name)
	if m.Role != "" {
		p.Say(" (" + v.title(m.Role) + ")")
	}
	return p
}

// handedOn names the person who added the owner of this copy to the stage, if there is one.
func (v View) handedOn(r approvers.Request) *RichText {
	for _, i := range r.Invited {
		if v.Message.To == store.ToUser+i.Who.User() {
			return v.handedOnBy(i)
		}
	}
	return new(RichText)
}

// handedOnBy names the person who added the reader to the stage.
func (v View) handedOnBy(i approvers.Invite) *RichText {
	if i.Away {
		return Say("↪️ You stand in for ").Person(i.By, i.ByName).Say(", who is away. You decide in your own name, as " + v.title(i.Role) + ".")
	}
	return Say("↪️ ").Person(i.By, i.ByName).Say(" handed this on to you. You decide in your own name, as " + v.title(i.Role) + ".")
}

// invitedPeople names the people who were added to the current stage.
func (v View) invitedPeople(r approvers.Request) *RichText {
	p := new(RichText)
	for i, one := range r.Invited {
		if i == 2 {
			return p.Say(" or " + Plural(len(r.Invited)-i, "other person"))
		}
		p.Say(" or ").Person(one.Who, one.Name)
	}
	return p
}

// cardFor returns the address of a card that the person can open. This is the person's own copy or, without one, a card
// in a channel.
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

// countedApprovals names everybody whose approval counted, in order. For consecutive people of one role, the role's
// title appears once.
func (v View) countedApprovals(r approvers.Request) *RichText {
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

// approvals returns the decisions that allowed a request. If there are no such decisions and a person closed the
// request, the function returns that person's decision.
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
