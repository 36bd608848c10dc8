package wording

import (
	"slices"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/slackapi"
	"countersign/store"
)

// DecisionParts draws the parts of a message that people need for a decision: for whom a request waits, and the buttons
// with which they decide.
type DecisionParts struct {
	RequestWords
	Version
	Mentions []Mention
}

// WaitsLine returns the line that names the people for whom a request waits, and the lines around it. The lines above
// list the stages that have agreed. If the stage does not name the reader, the lines also explain why the reader got
// this copy. The lines below name the people who have rejected.
func (d DecisionParts) WaitsLine(r approvers.Request) []*block.RichText {
	st := r.CurrentStage()
	line := block.Say("✋ Waits for ").Strong(d.StageTitle(st) + d.EscalatedRoles(r)).Add(InvitedPeople(r))
	for i, c := range d.Mentions {
		line.Say(map[bool]string{true: ": ", false: " "}[i == 0])
		c.In(line)
	}
	line.Add(agreedAt(r)).Say(Against(r, ", ")).Say(".").Add(d.laterStages(r))
	out := []*block.RichText{d.HandedOn(r), d.escalated(r), d.earlierStages(r), line}
	for _, against := range r.Against(r.Stage) {
		no := block.Say("👎 ").Person(against.By, against.Name).Say(" is against it")
		if against.Reason != "" {
			no.Say(": ").Soft(block.Clip(block.OneLine(against.Reason), maxAgainst))
		}
		out = append(out, no)
	}
	return out[:min(len(out), block.MaxPeopleTold+4)]
}

// escalated tells a role why it was added to the stage. The stage's own people have not decided in time, can't decide,
// or could not see the card. If the stage itself names the role, escalated returns nothing.
func (d DecisionParts) escalated(r approvers.Request) *block.RichText {
	if d.Message.Kind != store.OutboxEscalation || !slices.Contains(r.Joined, d.Message.Role) {
		return new(block.RichText)
	}
	if r.Unreached.Added(r, d.Message.Role) {
		stage, lead := d.StageTitle(r.CurrentStage()), d.Title(d.Message.Role)
		return block.Say("⏫ I could not show this to " + stage + ", because " + refusedCard(r.Unreached.Cause) + ", so " + lead + " is asked.")
	}
	if call, ok := approvers.CallOf(r, d.Message.Role); ok {
		return block.Say("⏫ ").Add(d.NobodyLeft(r, call)).Say(", so " + d.Title(d.Message.Role) + " is asked.")
	}
	return block.Say("⏫ Not decided yet, so " + d.Title(d.Message.Role) + " is asked as well.")
}

// HandedOn names the person who added the owner of this copy to the stage, if there is one.
func (d DecisionParts) HandedOn(r approvers.Request) *block.RichText {
	for _, i := range r.Invited {
		if d.Message.To == store.ToUser+i.Who.User() {
			return d.HandedOnBy(i)
		}
	}
	return new(block.RichText)
}

// Decisions returns the decision buttons. A call that is not shown whole can't be approved here.
func (d DecisionParts) Decisions(r approvers.Request, whole bool, style slack.Style) []slack.BlockElement {
	value := d.Token(r.ID)
	var row []slack.BlockElement
	masked := d.MustReveal(r)
	if PreviewSaysNo(r) != "" {
		style = slack.StyleDefault
	}
	if masked {
		row = append(row, block.Button(control.ActReveal, "Reveal…", value, slack.StylePrimary))
		style = slack.StyleDefault
	}
	switch {
	case masked && d.OwnCopy(): // once the values are revealed, this copy has the button
	case whole && r.WantsTyping():
		row = append(row, block.Button(control.ActTyped, "Approve…", value, style))
	case whole:
		row = append(row, block.Button(control.ActApprove, "Approve", value, style).WithConfirm(askApprove(r)))
	default:
		row = append(row, block.Button(control.ActArguments, "Details…", value, style))
	}
	row = append(row, block.Button(control.ActReject, "Reject…", value, slack.StyleDanger))
	if masked || r.Bundled() || !r.Facts.Editable() { // the button is in Details…, or there is none
		return row
	}
	return append(row, block.Button(control.ActModify, "Modify…", value, slack.StyleDefault))
}

// MustReveal reports whether a reader of this message can approve only after the masked values were revealed to them.
// MustReveal returns false for a bundle. A bundled call first gets a card of its own, which can reveal the values.
func (d DecisionParts) MustReveal(r approvers.Request) bool {
	var reader approvers.PersonID
	for _, seen := range r.Revealed {
		if d.Message.To == store.ToUser+seen.By.User() {
			reader = seen.By
		}
	}
	return !r.Bundled() && r.MustReveal(d.Policy, reader)
}

// askApprove returns the confirmation dialog of an approval. The dialog repeats the effect of the call and the
// warnings.
func askApprove(r approvers.Request) *slack.ConfirmationBlockObject {
	_, risk := RiskWords(r.Plan.Risk, r.Effect)
	rest := "\n\n" + risk + "."
	for _, doubt := range []string{PreviewSaysNo(r), TwiceWarning(r)} {
		if doubt != "" {
			rest += "\n\n" + block.Clip(doubt, maxCallAsk)
		}
	}
	what := InFull(r.Preview, r.Tool, r.Args, r.Secrets)
	return block.Confirm("Approve this?", block.Clip(what, slackapi.MaxConfirm-block.Width(rest))+rest, "Approve", "Not yet", slack.StylePrimary)
}
