package render

import (
	"countersign/approvers"
)

// DeniedAsker tells a person why the agent does not accept their messages here.
func DeniedAsker(d *approvers.Denied, at approvers.ChannelRef) *RichText {
	switch d.Code {
	case approvers.DeniedChannel:
		if at.DM {
			return Say("I don't answer in direct messages here. Mention me in a channel that I work in; whoever runs me can say which.")
		}
		return Say("I'm not set up to answer in this channel. Mention me in a channel that I work in, or ask whoever runs me to add this one to the policy.")
	case approvers.DeniedGuest:
		return Say("Guests of this workspace can't ask me for things. Ask a colleague who is a full member to do it.")
	case approvers.DeniedForeign:
		return Say("I only take requests from members of my own workspace. Ask your contact there to do it.")
	case approvers.DeniedDeactivated:
		return Say("This account is deactivated, so I can't take requests from it.")
	case approvers.DeniedBot:
		return Say("I don't take requests from other bots.")
	case approvers.DeniedUnidentified:
		return Say("Slack could not tell me who you are, so I did nothing. Please try again.")
	}
	return Say("I can't take this request (" + string(d.Code) + "). Ask whoever runs me.")
}

// Unidentified is the notice for a click whose user Slack could not identify.
func Unidentified() *RichText {
	return Say("Slack could not tell who clicked, so nothing was decided. Please try again in a moment.")
}

// Denied tells a person why their click changed nothing, and what they can do. r is the request, if one is known.
func Denied(d *approvers.Denied, r *approvers.Request, p *approvers.Policy) *RichText { //nolint:cyclop // one case for each reason of a refusal
	role := "an approver"
	if d.Role != "" {
		role = Name(RoleTitle(p, d.Role))
	}
	switch d.Code {
	case approvers.DeniedUnidentified:
		return Unidentified()
	case approvers.DeniedDeactivated:
		return Say("Your account is deactivated, so it can't decide anything.")
	case approvers.DeniedBot:
		return Say("Bots can't decide. A person has to click.")
	case approvers.DeniedForeign:
		return Say("Only members of this workspace can decide. Nothing was changed.")
	case approvers.DeniedGuest:
		return Say("Guests can't decide. Ask ").Strong(role).Say(" to look at it.")
	case approvers.DeniedNotMember:
		return Say("Nothing was changed: this waits for ").Strong(role).Say(", and you are not a member of that role.")
	case approvers.DeniedTool:
		return Say("Nothing was changed: ").Strong(role).Say(" may not decide about this tool, by the policy's list.")
	case approvers.DeniedCeiling:
		return Say("Nothing was changed: this needs somebody who may approve up to ").Strong(d.Need.String()).Say(" risk, which is above what ").
			Strong(role).Say(" may approve.")
	case approvers.DeniedSelf:
		return Say("Nothing was changed: you asked for this, or wrote in the conversation that led to it, so somebody else has to decide. It waits for ").Strong(role).Say(".")
	case approvers.DeniedCounted:
		if d.State == approvers.Rejected {
			return Say("Your rejection counts already. It needs another person: nobody counts twice.")
		}
		return Say("Your approval counts already. It needs another person: nobody counts twice.")
	case approvers.DeniedResolved:
		return resolved(d, r, p)
	case approvers.DeniedLate:
		return Say("Too late: the time for this ended ").At(d.At, DayTime).Say(". It was not run; it can be asked for again.")
	case approvers.DeniedStale:
		return Say("Nothing was decided: the arguments were changed after the card that you clicked was drawn. Look at the card again; it shows them as they are now.")
	case approvers.DeniedNotRequester:
		return Say("Nothing was changed: only somebody who asked for this can do that.")
	case approvers.DeniedNotFound:
		return Say("I don't know this request any more. It may belong to another installation, or to data that was removed.")
	case approvers.DeniedEdit:
		return Say("The change was not taken, because nobody could approve the call as changed: ").Say(Clip(Visible(d.Detail), MaxSentence)).
			Say(" The request waits as it was.")
	case approvers.DeniedUnchanged:
		return Say("Nothing was changed: the new arguments say the same as the old ones. To agree to them, use Approve.")
	case approvers.DeniedChannel:
		return Say("The policy has no agent here any more. Ask whoever runs me.")
	case approvers.DeniedUnseen:
		return Say("The card can't show all arguments, so it can't be approved from there. Choose “Open all arguments”, read them, and approve on the last page.")
	case approvers.DeniedNothing:
		return Say("There is nothing left to do here: it went on without this.")
	case approvers.DeniedInvalidArgs:
		return Say("The change was not taken, because the tool would refuse the new arguments: ").Say(Clip(Visible(d.Detail), MaxSentence)).
			Say(" The request waits as it was.")
	case approvers.DeniedNoReason:
		return Say("Nothing was decided: write a text. The people concerned are told it.")
	case approvers.DeniedLateAnswer:
		return Say("Too late: the time to answer this ended ").At(d.At, DayTime).Say(". The tool was told that nobody answered.")
	case approvers.DeniedAnswered:
		return Say("Nothing was changed: this question has its answer, or its tool does not wait for one any more.")
	case approvers.DeniedNotAsked:
		return Say("Nothing was changed: this question is for those who asked the agent.")
	case approvers.DeniedGroup:
		return Say("Nothing was changed: this waits for ").Strong(role).Say(", and you are not in that user group.")
	case approvers.DeniedNotPeer:
		return Say("It was not handed on: your colleague may not decide this in place of ").Strong(role).
			Say(". It takes a role whose tool list has this tool, with a ceiling that is high enough, and nobody who asked for it.")
	case approvers.DeniedAsked:
		return Say("It was not handed on: your colleague was asked already, or has had their say.")
	case approvers.DeniedTyped:
		return Say("Nothing was decided: approving this asks for a value to be typed. Use Approve… on the card.")
	case approvers.DeniedMasked:
		where := "Choose “Reveal…” on the card"
		if r != nil && r.Bundled() {
			where = "Choose “On its own card”, then “Reveal…” there"
		}
		return Say("Nothing was decided: some of its values are masked, and you have not seen them. " + where + ", read them, and decide then.")
	case approvers.DeniedPreview:
		return Say("Nothing was decided: this is critical, and a preview of it is being made. Please wait until the card shows it, or that there is none, and look at it then.")
	case approvers.DeniedFull:
		return Say("Nothing was changed: no more fits on this card. Go on in the thread.")
	case approvers.DeniedNotApprover:
		return Say("Nothing was changed: only somebody whose approval counts can take it back, and only before it runs.")
	case approvers.DeniedStarted:
		return Say("Too late: it was started already, so the approval can't be taken back. The card shows what came of it.")
	case approvers.DeniedUnfinished:
		return Say("Nothing was changed: it runs, or is still to be run. How it ends is shown here.")
	case approvers.DeniedBreakGlass:
		return Say("Nothing was decided: the policy does not let the operator allow this tool.")
	case approvers.DeniedDates, approvers.DeniedStandIn, approvers.DeniedOften:
		return DeniedLeave(d)
	case approvers.DeniedReturned:
		return Say("Nothing was asked again: the agent was told already how this stands, and each of its calls has one answer. To have it done, ask the agent anew in the thread.")
	case approvers.DeniedAgain:
		return Say("It is asked again already, by ").Person(d.By, "").Say(", ").At(d.At, DayTime).Say(". The new card shows where that stands.")
	case approvers.DeniedNotAgain:
		return Say("It can't be asked again as things are: ").Say(Clip(Visible(d.Detail), MaxSentence)).Say(".")
	case approvers.DeniedDamaged:
		return Say("Nothing was decided: this request's record is damaged, so it was closed and nothing was run. Whoever runs me was told. It can be asked for again.")
	case approvers.DeniedNoPause, approvers.DeniedPaused, approvers.DeniedNotPaused:
		return DeniedPause(d, p)
	case approvers.DeniedReplaced:
		return Say("Nothing was decided: what you clicked was replaced by a newer version in the meantime. Please look at it again, and click there.")
	case approvers.DeniedUnrecorded:
		return Say("Nothing was decided: the message was being drawn anew just when you clicked, so I can't say for certain what you were shown. It is drawn again now. Please look at it, and click once more.")
	case approvers.DeniedCopied:
		return Say("Nothing was decided: what you clicked is a copy. Decide on the message that I posted myself.")
	case approvers.DeniedForged:
		return Say("Nothing was decided: what you clicked is nothing that I put there. If you did not make it yourself, tell whoever runs me.")
	case approvers.DeniedAbandoned:
		return Say("Nothing was done: my process ended again and again while it worked on this, so I set it aside. Please tell whoever runs me, who finds the reason in my log; you can try it again.")
	case approvers.DeniedWorkspace:
		return Say("Nothing was decided: you clicked in another workspace than the one that I work for.")
	case approvers.DeniedNoGrants:
		if d.Detail != "" {
			return Say("Nothing was decided or allowed: ").Say(Clip(Visible(d.Detail), MaxSentence)).Say(".")
		}
		return Say("Nothing was decided or allowed: the policy does not let this call be allowed more than once.")
	}
	return Say("Nothing was changed (" + string(d.Code) + ").")
}

// resolved says who decided first, and when.
func resolved(d *approvers.Denied, r *approvers.Request, p *approvers.Policy) *RichText {
	called := ""
	if r != nil && r.ClosedBy == d.By {
		called = r.ClosedName
	}
	out := Say("Too late: ")
	if d.By != "" {
		out.Person(d.By, called)
		if d.Role != "" {
			out.Say(" (" + Name(RoleTitle(p, d.Role)) + ")")
		}
		out.Say(" " + ended[d.State].by + " ")
	} else {
		out.Say("this " + ended[d.State].alone + " ")
	}
	return out.At(d.At, DayTime).Say(". Your click changed nothing.")
}

// ended describes how requests end: by a person, or without one.
var ended = map[approvers.State]struct{ by, alone string }{
	approvers.Approved:  {"approved this", "was approved"},
	approvers.Consumed:  {"approved this", "was approved"},
	approvers.Rejected:  {"rejected this", "was rejected"},
	approvers.Expired:   {"let this expire", "expired"},
	approvers.Withdrawn: {"withdrew this", "was withdrawn"},
	approvers.Revoked:   {"took the approval back", "was revoked"},
	approvers.Voided:    {"voided this", "was voided, because the tool or the policy changed,"},
	approvers.Refused:   {"refused this", "was refused"},
	"":                  {"reported on this", "was settled"},
}

// RoleTitle returns a role's title in the current policy. A name that is no role in it is returned unchanged.
func RoleTitle(p *approvers.Policy, role string) string {
	if p == nil {
		return role
	}
	if r, ok := p.Role(role); ok {
		return r.Title
	}
	return role
}

// DeniedReport tells a person why they can't report the outcome of a run, and who can.
func DeniedReport(d *approvers.Denied, s ClickTarget) *RichText {
	switch d.Code {
	case approvers.DeniedNotMember, approvers.DeniedNotRequester, approvers.DeniedTool, approvers.DeniedCeiling, approvers.DeniedGroup, approvers.DeniedSelf,
		approvers.DeniedGuest, approvers.DeniedForeign, approvers.DeniedBot, approvers.DeniedDeactivated:
		line := Say("Nothing was changed: only those who asked for this")
		if r := s.Request; r != nil && r.Stage < len(r.Plan.Stages) {
			line.Say(", and people of ").Strong(View{Model: s.Model}.stageTitle(r.CurrentStage()))
		}
		return line.Say(" can say what became of it.")
	case approvers.DeniedNothing:
		return Say("Nothing was changed: the agent was told, or is told what comes of the new request.")
	}
	return Denied(d, s.Request, s.Policy)
}

// DeniedGrant tells a person why their click on a grant changed nothing.
func DeniedGrant(d *approvers.Denied, g approvers.Grant, p *approvers.Policy) *RichText {
	switch d.Code {
	case approvers.DeniedNotMember:
		if g.State == approvers.GrantOffered {
			return Say("Nothing was changed: this is offered to ").Strong(Name(RoleTitle(p, d.Role))).Say(", and you are not a member of that role.")
		}
		return Say("Nothing was changed: only ").Person(g.By, g.Name).Say(" and people of ").Strong(Name(RoleTitle(p, d.Role))).Say(" can take this back.")
	case approvers.DeniedResolved:
		out := Say("Too late: ")
		switch {
		case g.State == approvers.GrantLive:
			return out.Person(g.By, g.Name).Say(" accepted this ").At(g.At, DayTime).Say(". Your click changed nothing.")
		case d.By != "":
			return out.Person(d.By, g.ClosedName).Say(" ended this ").At(d.At, DayTime).Say(". Your click changed nothing.")
		}
		return out.Say("this has ended by itself. Your click changed nothing.")
	case approvers.DeniedNotFound:
		return Say("I don't know this permission any more. It may belong to another installation, or to data that was removed.")
	case approvers.DeniedTool:
		return Say("Nothing was changed: ").Strong(Name(RoleTitle(p, d.Role))).Say(" may not allow this tool any more, by the policy's list.")
	case approvers.DeniedCeiling:
		return Say("Nothing was changed: this tool is ").Strong(d.Need.String()).Say(" risk now, which is above what ").Strong(Name(RoleTitle(p, d.Role))).Say(" may allow.")
	}
	return Denied(d, nil, p)
}

// DeniedLeave says why an absence was not recorded.
func DeniedLeave(d *approvers.Denied) *RichText {
	if d.Code == approvers.DeniedDates {
		return Say("Nothing was changed: the time has to end after it begins, after now, and within two years.")
	}
	if d.Code == approvers.DeniedOften {
		return Say("Nothing was changed: you have said this very often since yesterday, and each time is recorded. Please try again tomorrow; you can say at any time that you are back.")
	}
	if d.Code == approvers.DeniedGuest {
		return Say("Guests decide nothing here, so nothing waits for you.")
	}
	if d.Code != approvers.DeniedStandIn {
		return Say("I can only take this from members of this workspace.")
	}
	out := Say("Nothing was changed: ")
	if d.By != "" {
		out.Person(d.By, "")
	} else {
		out.Say("whom you named")
	}
	return out.Say(" can't stand in: " + map[approvers.Code]string{
		approvers.DeniedSelf:         "that is you. Name somebody else.",
		approvers.DeniedBot:          "that is not a person.",
		approvers.DeniedGuest:        "guests can't decide anything.",
		approvers.DeniedForeign:      "they are not a member of this workspace.",
		approvers.DeniedDeactivated:  "that account is deactivated.",
		approvers.DeniedUnidentified: "Slack does not know them.",
	}[approvers.Code(d.Detail)])
}

// DeniedPause tells a person why they can't pause or resume, and who can.
func DeniedPause(d *approvers.Denied, p *approvers.Policy) *RichText {
	switch {
	case d.Code == approvers.DeniedUnidentified:
		return Unidentified()
	case d.Code == approvers.DeniedPaused:
		return Say("Everything is paused already, by ").Person(d.By, "").Say(" since ").At(d.At, DayTime).Say(".")
	case d.Code == approvers.DeniedNotPaused && d.By == "":
		return Say("Nothing is paused.")
	case d.Code == approvers.DeniedNotPaused:
		return Say("Nothing is paused any more: ").Person(d.By, "").Say(" let everything go on ").At(d.At, DayTime).Say(".")
	case len(p.PausedBy) == 0:
		return Say("Nothing was changed: the policy names nobody who may pause everything from Slack. Whoever runs me can, at the command line.")
	}
	line := Say("Nothing was changed: only people of ")
	for i, role := range p.PausedBy {
		if i > 0 {
			line.Say(" or ")
		}
		line.Strong(Name(RoleTitle(p, role)))
	}
	return line.Say(" can pause everything and let it go on, and whoever runs me.")
}
