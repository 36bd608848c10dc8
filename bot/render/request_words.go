package render

import (
	"fmt"
	"slices"

	"countersign/approvers"
)

// requestWords describes the state of a request: for whom it waits, what happens if nobody decides, who decided, and
// how it ended.
type requestWords struct{ titles }

// wordsUnder returns the words about requests under a policy.
func wordsUnder(p *approvers.Policy) requestWords { return requestWords{titles{p}} }

// waiting says, to the people who asked, for whom a request waits and until when.
func (w requestWords) waiting(r approvers.Request) *RichText {
	if r.ReachesNobody() {
		return w.unreachedNotice(r).Say(" ").add(w.deadline(r))
	}
	st := r.CurrentStage()
	p := Say("Waits for ").Strong(w.stageTitle(st) + w.escalatedRoles(r)).add(invitedPeople(r))
	if n := len(r.Plan.Stages); n > 1 {
		p.Say(fmt.Sprintf(" (stage %d of %d)", r.Stage+1, n))
	}
	if st.Quorum > 1 {
		p.Say(fmt.Sprintf(", %d of %d agreed", r.At(r.Stage), st.Quorum))
	}
	if len(r.Against(r.Stage)) > 0 {
		p.Say(against(r, ", "))
	}
	p.Say(". ").add(w.deadline(r)).add(w.unreachedNotice(r))
	if len(r.Edits) > 0 {
		e := r.Edits[len(r.Edits)-1]
		p.Say(" ").Person(e.By, e.Name).Say(" (" + w.title(e.Role) + ") changed the arguments.")
	}
	return p
}

// ending describes how a request ended: by whom, in which role, when, and why.
func (w requestWords) ending(r approvers.Request) *RichText {
	verb := map[approvers.State]string{
		approvers.Approved: "Approved", approvers.Consumed: "Approved", approvers.Rejected: "Rejected", approvers.Expired: "Expired",
		approvers.Withdrawn: "Withdrawn", approvers.Revoked: "Approval taken back", approvers.Voided: "Voided", approvers.Refused: "Refused by the policy",
	}[r.State]
	p := new(RichText).Strong(verb)
	if d, broken := r.BrokenBy(); broken && (r.State == approvers.Approved || r.State == approvers.Consumed) {
		return p.Say(" at the command line by ").Person(d.By, d.Name).Say(" (break glass), ").At(d.At, DayTime).reason(d.Reason, maxReason)
	}
	if r.State == approvers.Approved || r.State == approvers.Consumed {
		p.Say(" by ").add(w.countedApprovals(r))
		if len(r.Edits) > 0 {
			p.Say(" with changes")
		}
		return p.Say(", ").At(r.ClosedAt, DayTime).Say(".")
	}
	if r.ClosedBy != "" {
		if r.ClosedBy.Login() != "" {
			p.Say(" at the command line")
		}
		p.Say(" by ").Person(r.ClosedBy, r.ClosedName)
		if r.ClosedRole != "" {
			p.Say(" (" + w.title(r.ClosedRole) + ")")
		}
	}
	p.Say(", ").At(r.ClosedAt, DayTime)
	return p.reason(r.Reason, maxReason)
}

// endSign maps final states to the sign shown before them.
var endSign = map[approvers.State]string{
	approvers.Approved: "✅", approvers.Consumed: "✅", approvers.Rejected: "⛔", approvers.Expired: "⌛",
	approvers.Withdrawn: "↩️", approvers.Revoked: "↩️", approvers.Voided: "🚫", approvers.Refused: "🚫",
}

// For a person who has approved, haveAgreed says which approvals are missing.
func (w requestWords) haveAgreed(r approvers.Request) *RichText {
	return w.stillNeeded(r, "☑️ You have agreed.")
}

// stillNeeded describes what a person did, and which approvals are missing.
func (w requestWords) stillNeeded(r approvers.Request, did string) *RichText {
	st := r.CurrentStage()
	line := Say(did + " Still needed: ")
	switch n := st.Quorum - r.At(r.Stage); {
	case n > 1:
		line.Say(fmt.Sprintf("%d people of ", n))
	case st.Quorum > 1:
		line.Say("one more of ")
	}
	return line.Strong(w.stageTitle(st) + w.escalatedRoles(r)).Say(".")
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
func (w requestWords) earlierStages(r approvers.Request) *RichText {
	p := new(RichText)
	for i, st := range r.Plan.Stages[:min(r.Stage, len(r.Plan.Stages))] {
		if i == maxStagesTold {
			p.Say(" " + Plural(r.Stage-i, "more stage") + " agreed.")
			break
		}
		p.Say(map[bool]string{true: "✔️ ", false: " "}[i == 0] + w.stageTitle(st) + " agreed")
		if by := decisionsAt(r, i); len(by) > 0 {
			p.Say(": ").add(peopleOf(by)).Say(" ").At(by[len(by)-1].At, clock)
		}
		p.Say(".")
	}
	return p
}

// laterStages names the stages that follow the current one.
func (w requestWords) laterStages(r approvers.Request) *RichText {
	p := new(RichText)
	for i, next := range r.Plan.Stages[min(r.Stage+1, len(r.Plan.Stages)):] {
		if i == maxStagesTold {
			return p.Say(" Then " + Plural(len(r.Plan.Stages)-1-r.Stage-i, "more stage") + ".")
		}
		p.Say(" Then " + w.stageTitle(next))
		if next.Quorum > 1 {
			p.Say(fmt.Sprintf(" (%d people)", next.Quorum))
		}
		p.Say(".")
	}
	return p
}

// nobodyLeft explains why nobody else of a stage can decide.
func (w requestWords) nobodyLeft(r approvers.Request, call approvers.LeadCall) *RichText {
	if len(call.Deactivated) == 0 {
		return Say("Nobody of " + w.stageTitle(r.CurrentStage()) + " can decide this now")
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

// decision describes one person's decision.
func (w requestWords) decision(r approvers.Request, i int) *RichText {
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
	in := w.title(d.Role)
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
func (w requestWords) remarks(r approvers.Request) []*RichText {
	shown := slices.DeleteFunc(w.allRemarks(r, maxRemark), func(lines []*RichText) bool { return len(lines) == 0 })
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
func (w requestWords) allRemarks(r approvers.Request, most int) [][]*RichText {
	out := make([][]*RichText, len(r.Remarks))
	for i, m := range r.Remarks {
		said := Clip(OneLine(m.Text), most)
		switch m.Kind {
		case approvers.Comment:
			out[i] = []*RichText{Say("🗨️ ").add(w.speaker(m)).Say(": ").soft(said)}
		case approvers.Question:
			out[i] = []*RichText{Say("❓ ").add(w.speaker(m)).Say(" asked: ").soft(said)}
			if a := slices.IndexFunc(r.Remarks, func(a approvers.Remark) bool { return a.Kind == approvers.Answer && a.To == i }); a >= 0 {
				answer := r.Remarks[a]
				out[i] = append(out[i], Say("   💬 ").add(w.speaker(answer)).Say(changedLater(answer)+": ").soft(Clip(OneLine(answer.Text), most)))
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
func (w requestWords) speaker(m approvers.Remark) *RichText {
	p := new(RichText).Person(m.By, m.Name)
	if m.Role != "" {
		p.Say(" (" + w.title(m.Role) + ")")
	}
	return p
}

// handedOnBy names the person who added the reader to the stage.
func (w requestWords) handedOnBy(i approvers.Invite) *RichText {
	if i.Away {
		return Say("↪️ You stand in for ").Person(i.By, i.ByName).Say(", who is away. You decide in your own name, as " + w.title(i.Role) + ".")
	}
	return Say("↪️ ").Person(i.By, i.ByName).Say(" handed this on to you. You decide in your own name, as " + w.title(i.Role) + ".")
}

// invitedPeople names the people who were added to the current stage.
func invitedPeople(r approvers.Request) *RichText {
	p := new(RichText)
	for i, one := range r.Invited {
		if i == 2 {
			return p.Say(" or " + Plural(len(r.Invited)-i, "other person"))
		}
		p.Say(" or ").Person(one.Who, one.Name)
	}
	return p
}

// countedApprovals names everybody whose approval counted, in order. For consecutive people of one role, the role's
// title appears once.
func (w requestWords) countedApprovals(r approvers.Request) *RichText {
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
			p.Say(" (" + w.title(d.Role) + ")")
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

// decisionLines describes the decisions so far, except those that the line about the request's end already describes.
func (w requestWords) decisionLines(r approvers.Request) (out []*RichText) {
	for i := range r.Decisions {
		if toldByEnding(r, i) {
			continue
		}
		if len(out) == maxPeopleTold {
			return append(out, Say("… and "+Plural(len(r.Decisions)-i, "more decision")))
		}
		out = append(out, w.decision(r, i))
	}
	return out
}

// toldByEnding reports whether the line about a request's end already says everything about decision i. The result is
// true for the rejection that ended the request, for the only approval if no other decision was made, and for an
// operator's approval in place of the approvers (break glass).
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
