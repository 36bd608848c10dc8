package wording

import (
	"fmt"
	"slices"

	"countersign/approvers"
	"countersign/bot/render/block"
)

// RequestWords describes the state of a request: for whom it waits, what happens if nobody decides, who decided, and
// how it ended.
type RequestWords struct{ Titles }

// Under returns the words about requests under a policy.
func Under(p *approvers.Policy) RequestWords { return RequestWords{Titles{p}} }

// Waiting says, to the people who asked, for whom a request waits and until when.
func (w RequestWords) Waiting(r approvers.Request) *block.RichText {
	if r.ReachesNobody() {
		return w.unreachedNotice(r).Say(" ").Add(w.Deadline(r))
	}
	st := r.CurrentStage()
	p := block.Say("Waits for ").Strong(w.StageTitle(st) + w.EscalatedRoles(r)).Add(InvitedPeople(r))
	if n := len(r.Plan.Stages); n > 1 {
		p.Say(fmt.Sprintf(" (stage %d of %d)", r.Stage+1, n))
	}
	if st.Quorum > 1 {
		p.Say(fmt.Sprintf(", %d of %d agreed", r.At(r.Stage), st.Quorum))
	}
	if len(r.Against(r.Stage)) > 0 {
		p.Say(Against(r, ", "))
	}
	p.Say(". ").Add(w.Deadline(r)).Add(w.unreachedNotice(r))
	if len(r.Edits) > 0 {
		e := r.Edits[len(r.Edits)-1]
		p.Say(" ").Person(e.By, e.Name).Say(" (" + w.Title(e.Role) + ") changed the arguments.")
	}
	return p
}

// Ending describes how a request ended: by whom, in which role, when, and why.
func (w RequestWords) Ending(r approvers.Request) *block.RichText {
	if decisionsLost(r) {
		return new(block.RichText).Strong("Closed").Say(", ").At(r.ClosedAt, block.DayTime).Reason(r.Reason, block.MaxReason)
	}
	verb := map[approvers.State]string{
		approvers.Approved: "Approved", approvers.Consumed: "Approved", approvers.Rejected: "Rejected", approvers.Expired: "Expired",
		approvers.Withdrawn: "Withdrawn", approvers.Revoked: "Approval taken back", approvers.Voided: "Voided", approvers.Refused: "Refused by the policy",
	}[r.State]
	p := new(block.RichText).Strong(verb)
	if d, broken := r.BrokenBy(); broken && (r.State == approvers.Approved || r.State == approvers.Consumed) {
		return p.Say(" at the command line by ").Person(d.By, d.Name).Say(" (break glass), ").At(d.At, block.DayTime).Reason(d.Reason, block.MaxReason)
	}
	if r.State == approvers.Approved || r.State == approvers.Consumed {
		p.Say(" by ").Add(w.countedApprovals(r))
		if len(r.Edits) > 0 {
			p.Say(" with changes")
		}
		return p.Say(", ").At(r.ClosedAt, block.DayTime).Say(".")
	}
	if r.ClosedBy != "" {
		if r.ClosedBy.Login() != "" {
			p.Say(" at the command line")
		}
		p.Say(" by ").Person(r.ClosedBy, r.ClosedName)
		if r.ClosedRole != "" {
			p.Say(" (" + w.Title(r.ClosedRole) + ")")
		}
	}
	p.Say(", ").At(r.ClosedAt, block.DayTime)
	return p.Reason(r.Reason, block.MaxReason)
}

// EndSign returns the sign that is shown before a request's ending. If the request is pending, EndSign returns "".
func EndSign(r approvers.Request) string {
	if decisionsLost(r) {
		return "❓"
	}
	return endSigns[r.State]
}

var endSigns = map[approvers.State]string{
	approvers.Approved: "✅", approvers.Consumed: "✅", approvers.Rejected: "⛔", approvers.Expired: "⌛",
	approvers.Withdrawn: "↩️", approvers.Revoked: "↩️", approvers.Voided: "🚫", approvers.Refused: "🚫",
}

// decisionsLost reports whether a request was rebuilt after damage, and its run has begun, or may have begun. It is not
// known whether people approved such a request.
func decisionsLost(r approvers.Request) bool { return r.Damaged && r.State == approvers.Consumed }

// HaveAgreed says which approvals are missing, to a person who has approved.
func (w RequestWords) HaveAgreed(r approvers.Request) *block.RichText {
	return w.StillNeeded(r, "☑️ You have agreed.")
}

// StillNeeded describes what a person did, and which approvals are missing.
func (w RequestWords) StillNeeded(r approvers.Request, did string) *block.RichText {
	st := r.CurrentStage()
	line := block.Say(did + " Still needed: ")
	switch n := st.Quorum - r.At(r.Stage); {
	case n > 1:
		line.Say(fmt.Sprintf("%d people of ", n))
	case st.Quorum > 1:
		line.Say("one more of ")
	}
	return line.Strong(w.StageTitle(st) + w.EscalatedRoles(r)).Say(".")
}

// If a stage needs several people, agreedAt returns how many of them have agreed.
func agreedAt(r approvers.Request) *block.RichText {
	p := new(block.RichText)
	quorum, n := r.CurrentStage().Quorum, r.At(r.Stage)
	switch {
	case quorum < 2:
		return p
	case n == 0:
		return p.Say(fmt.Sprintf(" (%d people)", quorum))
	}
	return p.Say(fmt.Sprintf(" (%d of %d agreed: ", n, quorum)).Add(peopleOf(decisionsAt(r, r.Stage))).Say(")")
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
func peopleOf(by []approvers.Decision) *block.RichText {
	p := new(block.RichText)
	for i, d := range by {
		if i == block.MaxPeopleTold {
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
func (w RequestWords) earlierStages(r approvers.Request) *block.RichText {
	p := new(block.RichText)
	for i, st := range r.Plan.Stages[:min(r.Stage, len(r.Plan.Stages))] {
		if i == block.MaxStagesTold {
			p.Say(" " + block.Plural(r.Stage-i, "more stage") + " agreed.")
			break
		}
		p.Say(map[bool]string{true: "✔️ ", false: " "}[i == 0] + w.StageTitle(st) + " agreed")
		if by := decisionsAt(r, i); len(by) > 0 {
			p.Say(": ").Add(peopleOf(by)).Say(" ").At(by[len(by)-1].At, block.Clock)
		}
		p.Say(".")
	}
	return p
}

// laterStages names the stages that follow the current one.
func (w RequestWords) laterStages(r approvers.Request) *block.RichText {
	p := new(block.RichText)
	for i, next := range r.Plan.Stages[min(r.Stage+1, len(r.Plan.Stages)):] {
		if i == block.MaxStagesTold {
			return p.Say(" Then " + block.Plural(len(r.Plan.Stages)-1-r.Stage-i, "more stage") + ".")
		}
		p.Say(" Then " + w.StageTitle(next))
		if next.Quorum > 1 {
			p.Say(fmt.Sprintf(" (%d people)", next.Quorum))
		}
		p.Say(".")
	}
	return p
}

// NobodyLeft explains why nobody else of a stage can decide, or why too few people of the stage are left.
func (w RequestWords) NobodyLeft(r approvers.Request, call approvers.LeadCall) *block.RichText {
	switch stage := w.StageTitle(r.CurrentStage()); {
	case len(call.Deactivated) > 0:
	case call.TooFew:
		return block.Say("Too few members of " + stage + " can decide this now")
	default:
		return block.Say("No member of " + stage + " can decide this now")
	}
	p, is := block.Say("The account of "), " is deactivated"
	if len(call.Deactivated) > 1 {
		p, is = block.Say("The accounts of "), " are deactivated"
	}
	for i, d := range call.Deactivated {
		if i == block.MaxPeopleTold {
			p.Say(fmt.Sprintf(" and %d more", len(call.Deactivated)-i))
			break
		}
		if i > 0 {
			p.Say(", ")
		}
		p.Person(d.Who, d.Name)
	}
	switch p.Say(is); {
	case call.TooFew:
		p.Say(", and too few others can decide this")
	case call.Others:
		p.Say(", and nobody else can be reached now")
	}
	return p
}

// Against returns the number of people who have rejected, as a text that begins with sep. If one rejection would end
// the request, the function returns "".
func Against(r approvers.Request, sep string) string {
	if need := r.CurrentStage().Rejects; need > 1 {
		return fmt.Sprintf("%s%d of %d against", sep, len(r.Against(r.Stage)), need)
	}
	return ""
}

// decision describes one person's decision.
func (w RequestWords) decision(r approvers.Request, i int) *block.RichText {
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
	in := w.Title(d.Role)
	if d.By.Login() != "" {
		in = "at the command line"
	}
	line := block.Say(sign).Person(d.By, d.Name).Say(" (" + in + ") " + did)
	if len(r.Plan.Stages) > 1 {
		line.Say(fmt.Sprintf(" at stage %d", d.Stage+1))
	}
	line.Say(", ").At(d.At, block.Clock)
	if d.Kind == approvers.Reject && d.Reason != "" {
		line.Say(": ").Soft(block.Clip(block.OneLine(d.Reason), maxAgainst))
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

// Remarks shows the newest remarks: comments, and each question with its answer below it. Each remark begins with one
// of the bot's signs, and the text of a remark has no line breaks. Therefore no text can imitate another remark.
func (w RequestWords) Remarks(r approvers.Request) []*block.RichText {
	shown := slices.DeleteFunc(w.AllRemarks(r, block.MaxRemark), func(lines []*block.RichText) bool { return len(lines) == 0 })
	var out []*block.RichText
	if n := len(shown) - maxRemarksOnCard; n > 0 {
		out = append(out, block.Say("🗨️ "+block.Plural(n, "earlier remark")+" in Details…"))
		shown = shown[n:]
	}
	return append(out, slices.Concat(shown...)...)
}

// maxRemarksOnCard is the number of remarks on a card. Details… shows all remarks.
const maxRemarksOnCard = 2

// AllRemarks returns the lines of each remark. An answer is part of its question.
func (w RequestWords) AllRemarks(r approvers.Request, most int) [][]*block.RichText {
	out := make([][]*block.RichText, len(r.Remarks))
	for i, m := range r.Remarks {
		said := block.Clip(block.OneLine(m.Text), most)
		switch m.Kind {
		case approvers.Comment:
			out[i] = []*block.RichText{block.Say("🗨️ ").Add(w.Speaker(m)).Say(": ").Soft(said)}
		case approvers.Question:
			out[i] = []*block.RichText{block.Say("❓ ").Add(w.Speaker(m)).Say(" asked: ").Soft(said)}
			if a := slices.IndexFunc(r.Remarks, func(a approvers.Remark) bool { return a.Kind == approvers.Answer && a.To == i }); a >= 0 {
				answer := r.Remarks[a]
				out[i] = append(out[i], block.Say("   💬 ").Add(w.Speaker(answer)).Say(ChangedLater(answer)+": ").Soft(block.Clip(block.OneLine(answer.Text), most)))
			} else if r.State == approvers.Pending {
				out[i] = append(out[i], block.Say("   💬 Not answered yet."))
			}
		}
	}
	return out
}

// ChangedLater marks an answer whose message was edited or deleted afterwards.
func ChangedLater(m approvers.Remark) string {
	switch {
	case m.MessageEdit == nil:
		return ""
	case m.MessageEdit.Deleted:
		return " (deleted later)"
	}
	return " (edited later)"
}

// Speaker names the author of a remark and their role.
func (w RequestWords) Speaker(m approvers.Remark) *block.RichText {
	p := new(block.RichText).Person(m.By, m.Name)
	if m.Role != "" {
		p.Say(" (" + w.Title(m.Role) + ")")
	}
	return p
}

// HandedOnBy names the person who added the reader to the stage.
func (w RequestWords) HandedOnBy(i approvers.Invite) *block.RichText {
	if i.Away {
		return block.Say("↪️ You stand in for ").Person(i.By, i.ByName).Say(", who is away. You decide in your own name, as " + w.Title(i.Role) + ".")
	}
	return block.Say("↪️ ").Person(i.By, i.ByName).Say(" handed this on to you. You decide in your own name, as " + w.Title(i.Role) + ".")
}

// InvitedPeople names the people who were added to the current stage.
func InvitedPeople(r approvers.Request) *block.RichText {
	p := new(block.RichText)
	for i, one := range r.Invited {
		if i == 2 {
			return p.Say(" or " + block.Plural(len(r.Invited)-i, "other person"))
		}
		p.Say(" or ").Person(one.Who, one.Name)
	}
	return p
}

// countedApprovals names everybody whose approval counted, in order. For consecutive people of one role, the role's
// title appears once.
func (w RequestWords) countedApprovals(r approvers.Request) *block.RichText {
	by := approvals(r)
	p := new(block.RichText)
	for i, d := range by {
		if i == block.MaxPeopleTold {
			return p.Say(fmt.Sprintf(" and %d more", len(by)-i))
		}
		switch {
		case i > 0 && i == len(by)-1:
			p.Say(" and ")
		case i > 0:
			p.Say(", ")
		}
		p.Person(d.By, d.Name)
		if d.Role != "" && (i == len(by)-1 || i == block.MaxPeopleTold-1 || by[i+1].Role != d.Role) {
			p.Say(" (" + w.Title(d.Role) + ")")
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

// DecisionLines describes the decisions so far, except those that the line about the request's end already describes.
func (w RequestWords) DecisionLines(r approvers.Request) (out []*block.RichText) {
	for i := range r.Decisions {
		if toldByEnding(r, i) {
			continue
		}
		if len(out) == block.MaxPeopleTold {
			return append(out, block.Say("… and "+block.Plural(len(r.Decisions)-i, "more decision")))
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
