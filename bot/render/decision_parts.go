package render

import (
	"slices"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/slackapi"
	"countersign/store"
)

// decisionParts draws the parts of a message that people need for a decision: for whom a request waits, and the buttons
// with which they decide.
type decisionParts struct {
	requestWords
	version
	mentions []Mention
}

// waitsLine returns the line that names the people for whom a request waits, and the lines around it. The lines above
// list the stages that have agreed. If the stage does not name the reader, the lines also explain why the reader got
// this copy. The lines below name the people who have rejected.
func (d decisionParts) waitsLine(r approvers.Request) []*RichText {
	st := r.CurrentStage()
	line := Say("✋ Waits for ").Strong(d.stageTitle(st) + d.escalatedRoles(r)).add(invitedPeople(r))
	for i, c := range d.mentions {
		line.Say(map[bool]string{true: ": ", false: " "}[i == 0])
		c.in(line)
	}
	line.add(agreedAt(r)).Say(against(r, ", ")).Say(".").add(d.laterStages(r))
	out := []*RichText{d.handedOn(r), d.escalated(r), d.earlierStages(r), line}
	for _, against := range r.Against(r.Stage) {
		no := Say("👎 ").Person(against.By, against.Name).Say(" is against it")
		if against.Reason != "" {
			no.Say(": ").soft(Clip(OneLine(against.Reason), maxAgainst))
		}
		out = append(out, no)
	}
	return out[:min(len(out), maxPeopleTold+4)]
}

// escalated tells a role why it was added to the stage. The stage's own people have not decided in time, can't decide,
// or could not see the card. If the stage itself names the role, escalated returns nothing.
func (d decisionParts) escalated(r approvers.Request) *RichText {
	if d.message.Kind != store.OutboxEscalation || !slices.Contains(r.Joined, d.message.Role) {
		return new(RichText)
	}
	if r.Unreached.Added(r, d.message.Role) {
		return Say("⏫ I could not show this to " + d.stageTitle(r.CurrentStage()) + ", because " + refusedCard(r.Unreached.Cause) + ", so " + d.title(d.message.Role) + " is asked.")
	}
	if call, ok := approvers.CallOf(r, d.message.Role); ok {
		return Say("⏫ ").add(d.nobodyLeft(r, call)).Say(", so " + d.title(d.message.Role) + " is asked.")
	}
	return Say("⏫ Not decided yet, so " + d.title(d.message.Role) + " is asked as well.")
}

// handedOn names the person who added the owner of this copy to the stage, if there is one.
func (d decisionParts) handedOn(r approvers.Request) *RichText {
	for _, i := range r.Invited {
		if d.message.To == store.ToUser+i.Who.User() {
			return d.handedOnBy(i)
		}
	}
	return new(RichText)
}

// decisions returns the decision buttons. A call that is not shown whole can't be approved here.
func (d decisionParts) decisions(r approvers.Request, whole bool, style slack.Style) []slack.BlockElement {
	value := d.token(r.ID)
	var row []slack.BlockElement
	masked := d.mustReveal(r)
	if previewSaysNo(r) != "" {
		style = slack.StyleDefault
	}
	if masked {
		row = append(row, button(ActReveal, "Reveal…", value, slack.StylePrimary))
		style = slack.StyleDefault
	}
	switch {
	case masked && d.ownCopy(): // once the values are revealed, this copy has the button
	case whole && r.WantsTyping():
		row = append(row, button(ActTyped, "Approve…", value, style))
	case whole:
		row = append(row, button(ActApprove, "Approve", value, style).WithConfirm(askApprove(r)))
	default:
		row = append(row, button(ActArguments, "Details…", value, style))
	}
	row = append(row, button(ActReject, "Reject…", value, slack.StyleDanger))
	if masked || r.Bundled() || !r.Facts.Editable() { // the button is in Details…, or there is none
		return row
	}
	return append(row, button(ActModify, "Modify…", value, slack.StyleDefault))
}

// mustReveal reports whether a reader of this message can approve only after the masked values were revealed to them.
// mustReveal returns false for a bundle. A bundled call first gets a card of its own, which can reveal the values.
func (d decisionParts) mustReveal(r approvers.Request) bool {
	var reader approvers.PersonID
	for _, seen := range r.Revealed {
		if d.message.To == store.ToUser+seen.By.User() {
			reader = seen.By
		}
	}
	return !r.Bundled() && r.MustReveal(d.policy, reader)
}

// askApprove returns the confirmation dialog of an approval. The dialog repeats the effect of the call and the
// warnings.
func askApprove(r approvers.Request) *slack.ConfirmationBlockObject {
	_, risk := riskWords(r.Plan.Risk, r.Effect)
	rest := "\n\n" + risk + "."
	for _, doubt := range []string{previewSaysNo(r), twiceWarning(r)} {
		if doubt != "" {
			rest += "\n\n" + Clip(doubt, maxCallAsk)
		}
	}
	what := inFull(r.Preview, r.Tool, r.Args, r.Secrets)
	return confirm("Approve this?", Clip(what, slackapi.MaxConfirm-Width(rest))+rest, "Approve", "Not yet", slack.StylePrimary)
}
