package form

import (
	"countersign/approvers"
	"countersign/bot/render/block"
	"countersign/bot/render/wording"
)

// DeniedAskerText tells a person why the agent does not accept their messages here.
func DeniedAskerText(d *approvers.Denied, at approvers.ChannelRef) *block.RichText {
	switch d.Code {
	case approvers.DeniedChannel:
		if at.DM {
			return block.Say("I don't answer in direct messages here. Mention me in a channel that I work in; my operator can say which.")
		}
		return block.Say("I'm not set up to answer in this channel. Mention me in a channel that I work in, or ask my operator to add this one to the policy.")
	case approvers.DeniedGuest:
		return block.Say("Guests of this workspace can't ask me for things. Ask a colleague who is a full member to do it.")
	case approvers.DeniedForeign:
		return block.Say("I only take requests from members of my own workspace. Ask your contact there to do it.")
	case approvers.DeniedDeactivated:
		return block.Say("This account is deactivated, so I can't take requests from it.")
	case approvers.DeniedBot:
		return block.Say("I don't take requests from other bots.")
	case approvers.DeniedUnidentified:
		return block.Say("Slack could not tell me who you are, so I did nothing. Please try again.")
	}
	return block.Say("I can't take this request (" + string(d.Code) + "). Ask my operator.")
}

// UnpermittedText tells a person that the bot lacks a permission in Slack.
func UnpermittedText() *block.RichText {
	return block.Say("I lack a permission in Slack that I need for this, so nothing was done. My operator has been told. Please try again when it is fixed.")
}

// LookedUpLaterText tells a person that their message waits until Slack identifies them.
func LookedUpLaterText() *block.RichText {
	return block.Say("Slack does not tell me who you are at the moment, so I can't work on your message yet. I keep it and try again for an hour. My operator has been told.")
}

// NotLookedUpText tells a person that their message was not handled, because Slack did not identify them.
func NotLookedUpText() *block.RichText {
	return block.Say("Slack did not tell me for an hour who you are, so nothing was done about your message. My operator has been told. Please write it again when it is fixed.")
}

// UnidentifiedText is the notice that Slack could not identify the person who clicked.
func UnidentifiedText() *block.RichText {
	return block.Say("Slack could not tell who clicked, so nothing was decided. Please try again in a moment.")
}

// ErasedText tells a person that the store has only the history of a request.
func ErasedText(request string) *block.RichText {
	return block.Say("The texts of this call were erased, because of their age or by an operator. The history still says who decided it: my operator can list it with ").
		Code("countersign audit list --request " + block.Name(request)).Say(".")
}

// DeniedText tells a person why their click changed nothing, and what they can do. r is the request, or nil if the
// request is not known.
func DeniedText(d *approvers.Denied, r *approvers.Request, p *approvers.Policy) *block.RichText { //nolint:cyclop // one case for each reason of a refusal
	role := "an approver"
	if d.Role != "" {
		role = wording.Titles{Policy: p}.Title(d.Role)
	}
	switch d.Code {
	case approvers.DeniedUnidentified:
		return UnidentifiedText()
	case approvers.DeniedDeactivated:
		return block.Say("Your account is deactivated, so it can't decide anything.")
	case approvers.DeniedBot:
		return block.Say("Bots can't decide. A person has to click.")
	case approvers.DeniedForeign:
		return block.Say("Only members of this workspace can decide. Nothing was changed.")
	case approvers.DeniedGuest:
		return block.Say("Guests can't decide. Ask ").Strong(role).Say(" to look at it.")
	case approvers.DeniedNotMember:
		return block.Say("Nothing was changed: this waits for ").Strong(role).Say(", and you are not a member of that role.")
	case approvers.DeniedTool:
		return block.Say("Nothing was changed: ").Strong(role).Say(" may not decide calls to this tool.")
	case approvers.DeniedCeiling:
		return block.Say("Nothing was changed: this is ").Strong(d.Need.String()).Say(" risk, above what ").
			Strong(role).Say(" may approve.")
	case approvers.DeniedSelf:
		return block.Say("Nothing was changed: you asked for this, or wrote in the conversation that led to it, so somebody else has to decide. It waits for ").Strong(role).Say(".")
	case approvers.DeniedCounted:
		if d.State == approvers.Rejected {
			return block.Say("Your rejection counts already. To end this, another person has to reject it too.")
		}
		return block.Say("Your approval counts already. Another person has to agree too.")
	case approvers.DeniedResolved:
		return firstDecision(d, r, p)
	case approvers.DeniedLate:
		return block.Say("Too late: the deadline was ").At(d.At, block.DayTime).Say(". It did not run. It can be asked for again.")
	case approvers.DeniedStale:
		return block.Say("Nothing was decided: the arguments were changed after you opened this. The card shows the new ones.")
	case approvers.DeniedStage:
		return block.Say("Nothing was decided: the next stage began, or the policy changed, after you opened this. It now waits for ").Strong(role).
			Say(". Look at the card again, and then decide.")
	case approvers.DeniedNotRequester:
		return block.Say("Nothing was changed: only somebody who asked for this can do that.")
	case approvers.DeniedNotFound:
		return block.Say("I don't know this request any more. It may belong to another installation, or to data that was removed.")
	case approvers.DeniedEdit:
		return block.Say("Nothing was changed, because nobody could approve the new call: ").Say(block.Clip(block.Visible(d.Detail), block.MaxSentence)).
			Say(" The request waits as it was.")
	case approvers.DeniedNoEdits:
		return block.Say("Nothing was changed: the agent that asked can't use other arguments. Approve it as it is, or reject it and say what should be changed.")
	case approvers.DeniedUnchanged:
		return block.Say("Nothing was changed: the new values equal the old ones. To agree to them, use Approve.")
	case approvers.DeniedChannel:
		return block.Say("The policy has no agent here any more. Ask my operator.")
	case approvers.DeniedUnseen:
		return block.Say("The card does not show all arguments. Choose “Details…”, read them, and approve on the last page.")
	case approvers.DeniedNothing:
		return block.Say("There is nothing left to do here.")
	case approvers.DeniedInvalidArgs:
		return block.Say("Nothing was changed, because the tool would refuse the new values: ").Say(block.Clip(block.Visible(d.Detail), block.MaxSentence)).
			Say(" The request waits as it was.")
	case approvers.DeniedNoReason:
		return block.Say("Nothing was changed: please write a text.")
	case approvers.DeniedLateAnswer:
		return block.Say("Too late: this could be answered until ").At(d.At, block.DayTime).Say(". The tool was told that nobody answered.")
	case approvers.DeniedAnswered:
		return block.Say("Nothing was changed: this question is answered, or its tool no longer waits.")
	case approvers.DeniedNotAsked:
		return block.Say("Nothing was changed: only those who asked the agent can answer this.")
	case approvers.DeniedGroup:
		return block.Say("Nothing was changed: this waits for ").Strong(role).Say(", and you are not in that user group.")
	case approvers.DeniedUnnamed:
		return block.Say("Nothing was changed: Slack refuses to tell me who is in the user group @" + block.Name(d.Detail) +
			", so I can't see whether you may do this. An operator finds the reason with countersign doctor.")
	case approvers.DeniedNotPeer:
		return block.Say("It was not handed on: your colleague may not decide this for ").Strong(role).
			Say(". They need a role that may approve this tool at this risk, and must not have asked for it.")
	case approvers.DeniedAsked:
		return block.Say("It was not handed on: your colleague was asked already, or has decided.")
	case approvers.DeniedTyped:
		return block.Say("Nothing was decided: to approve this, you type one of its values. Use Approve… on the card.")
	case approvers.DeniedMasked:
		where := "Choose “Reveal…” on the card"
		if r != nil && r.Bundled() {
			where = "Choose “Details…”, then “Open separately”, then “Reveal…” there"
		}
		return block.Say("Nothing was decided: some values are hidden, and you have not seen them. " + where + ", and decide then.")
	case approvers.DeniedPreview:
		return block.Say("Nothing was decided: this is critical, and its preview is not there yet. Please wait until the card shows it.")
	case approvers.DeniedFull:
		return block.Say("Nothing was changed: a limit is reached, of this card's remarks or invited people, or of your own decisions. Please use the thread.")
	case approvers.DeniedNotApprover:
		return block.Say("Nothing was changed: only somebody whose approval counts can take it back, and only before it runs.")
	case approvers.DeniedStarted:
		return block.Say("Too late: it has started, so the approval can't be taken back. The card shows the result.")
	case approvers.DeniedUnfinished:
		return block.Say("Nothing was changed: it is running, or about to run. The result will be shown here.")
	case approvers.DeniedBreakGlass:
		return block.Say("Nothing was decided: the policy does not let the operator allow this tool.")
	case approvers.DeniedDates, approvers.DeniedStandIn, approvers.DeniedOften:
		return DeniedLeaveText(d)
	case approvers.DeniedReturned:
		return block.Say("Nothing was asked again: the agent already has its answer. To have it done, ask the agent in the thread.")
	case approvers.DeniedAgain:
		return block.Say("Nothing was changed: ").Person(d.By, "").Say(" asked for it again ").At(d.At, block.DayTime).Say(". The new card shows how it stands.")
	case approvers.DeniedNotAgain:
		return block.Say("It can't be asked for again now: ").Say(block.Clip(block.Visible(d.Detail), block.MaxSentence)).Say(".")
	case approvers.DeniedDamaged:
		if d.State == approvers.Consumed {
			return block.Say("Nothing was decided: this request's record is damaged, so it was closed. The card says what is known about its run. My operator was told.")
		}
		return block.Say("Nothing was decided: this request's record is damaged, so it was closed and did not run. My operator was told. It can be asked for again.")
	case approvers.DeniedNoPause, approvers.DeniedPaused, approvers.DeniedNotPaused:
		return DeniedPauseText(d, p)
	case approvers.DeniedReplaced:
		return block.Say("Nothing was decided: there is a newer version of this message. Please look at it, and click there.")
	case approvers.DeniedUnrecorded:
		return block.Say("Nothing was decided: the message changed while you clicked, so I can't be sure what you saw. Please look at it again and click once more.")
	case approvers.DeniedCopied:
		return block.Say("Nothing was decided: the message that you clicked is a copy. Use the message that I posted.")
	case approvers.DeniedForged:
		return block.Say("Nothing was decided: I did not make the button that you clicked. If you did not make it either, tell my operator.")
	case approvers.DeniedAbandoned:
		return block.Say("Nothing was done: I crashed each time I worked on this, so I set it aside. Please tell my operator, who finds the reason in my log. You can try again.")
	case approvers.DeniedWorkspace:
		return block.Say("Nothing was decided: you clicked in another workspace, and I work for one only.")
	case approvers.DeniedNoGrants:
		if d.Detail != "" {
			return block.Say("Nothing was decided or allowed: ").Say(block.Clip(block.Visible(d.Detail), block.MaxSentence)).Say(".")
		}
		return block.Say("Nothing was decided or allowed: by the policy, each such call needs its own approval.")
	}
	return block.Say("Nothing was changed (" + string(d.Code) + ").")
}

// firstDecision names the person who decided first, and the time of the decision.
func firstDecision(d *approvers.Denied, r *approvers.Request, p *approvers.Policy) *block.RichText {
	called := ""
	if r != nil && r.ClosedBy == d.By {
		called = r.ClosedName
	}
	out := block.Say("Too late: ")
	if d.By != "" {
		out.Person(d.By, called)
		if d.Role != "" {
			out.Say(" (" + wording.Titles{Policy: p}.Title(d.Role) + ")")
		}
		out.Say(" " + ended[d.State].by + " ")
	} else {
		out.Say("this " + ended[d.State].alone + " ")
	}
	return out.At(d.At, block.DayTime).Say(". Your click changed nothing.")
}

// ended maps final states to the words for an end by a person, and for an end without a person.
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

// DeniedReportText tells a person why they can't report the outcome of a run, and names the people who can.
func DeniedReportText(d *approvers.Denied, s ClickTarget) *block.RichText {
	switch d.Code {
	case approvers.DeniedNotMember, approvers.DeniedNotRequester, approvers.DeniedTool, approvers.DeniedCeiling, approvers.DeniedGroup,
		approvers.DeniedSelf, approvers.DeniedGuest, approvers.DeniedForeign, approvers.DeniedBot, approvers.DeniedDeactivated:
		line := block.Say("Nothing was changed: only those who asked for this")
		if r := s.Request; r != nil && r.Stage < len(r.Plan.Stages) {
			line.Say(", and people of ").Strong(wording.Titles{Policy: s.Policy}.StageTitle(r.CurrentStage()))
		}
		return line.Say(" can say what happened.")
	case approvers.DeniedNothing:
		return block.Say("Nothing was changed: the agent has its answer, or gets it from the new request.")
	}
	return DeniedText(d, s.Request, s.Policy)
}

// DeniedGrantText tells a person why their click on a grant changed nothing.
func DeniedGrantText(d *approvers.Denied, g approvers.Grant, p *approvers.Policy) *block.RichText {
	switch d.Code {
	case approvers.DeniedNotMember:
		if g.State == approvers.GrantOffered {
			return block.Say("Nothing was changed: this is offered to ").Strong(wording.Titles{Policy: p}.Title(d.Role)).Say(", and you are not a member of that role.")
		}
		return block.Say("Nothing was changed: only ").Person(g.By, g.Name).Say(" and people of ").Strong(wording.Titles{Policy: p}.Title(d.Role)).Say(" can revoke this grant.")
	case approvers.DeniedResolved:
		out := block.Say("Too late: ")
		switch {
		case g.State == approvers.GrantLive:
			return out.Person(g.By, g.Name).Say(" accepted this ").At(g.At, block.DayTime).Say(". Your click changed nothing.")
		case d.By != "":
			return out.Person(d.By, g.ClosedName).Say(" ended this ").At(d.At, block.DayTime).Say(". Your click changed nothing.")
		}
		return out.Say("this has ended. Your click changed nothing.")
	case approvers.DeniedNotFound:
		return block.Say("I don't know this grant any more. It may belong to another installation, or to data that was removed.")
	case approvers.DeniedTool:
		return block.Say("Nothing was changed: ").Strong(wording.Titles{Policy: p}.Title(d.Role)).Say(" may not allow this tool any more.")
	case approvers.DeniedCeiling:
		return block.Say("Nothing was changed: this tool is ").Strong(d.Need.String()).Say(" risk now, above what ").Strong(wording.Titles{Policy: p}.Title(d.Role)).Say(" may allow.")
	}
	return DeniedText(d, nil, p)
}

// DeniedLeaveText explains why an absence was not recorded.
func DeniedLeaveText(d *approvers.Denied) *block.RichText {
	if d.Code == approvers.DeniedDates {
		return block.Say("Nothing was changed: the absence has to end after it begins, in the future, and within two years.")
	}
	if d.Code == approvers.DeniedOften {
		return block.Say("Nothing was changed: you have changed this very often since yesterday. Please try again tomorrow. You can always say that you are back.")
	}
	if d.Code == approvers.DeniedGuest {
		return block.Say("Guests decide nothing here, so nothing waits for you.")
	}
	if d.Code != approvers.DeniedStandIn {
		return block.Say("I can only take this from members of this workspace.")
	}
	out := block.Say("Nothing was changed: ")
	if d.By != "" {
		out.Person(d.By, "")
	} else {
		out.Say("the person you named")
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

// DeniedPauseText tells a person why they can't pause or resume, and names the people who can.
func DeniedPauseText(d *approvers.Denied, p *approvers.Policy) *block.RichText {
	switch {
	case d.Code == approvers.DeniedUnidentified:
		return UnidentifiedText()
	case d.Code == approvers.DeniedPaused:
		return block.Say("Everything is paused already, by ").Person(d.By, "").Say(" since ").At(d.At, block.DayTime).Say(".")
	case d.Code == approvers.DeniedNotPaused && d.By == "":
		return block.Say("Nothing is paused.")
	case d.Code == approvers.DeniedNotPaused:
		return block.Say("Nothing is paused any more: ").Person(d.By, "").Say(" ended the pause ").At(d.At, block.DayTime).Say(".")
	case len(p.PausedBy) == 0:
		return block.Say("Nothing was changed: the policy lets nobody pause everything from Slack. My operator can, at the command line.")
	}
	line := block.Say("Nothing was changed: only people of ")
	for i, role := range p.PausedBy {
		if i > 0 {
			line.Say(" or ")
		}
		line.Strong(wording.Titles{Policy: p}.Title(role))
	}
	return line.Say(" and my operator can pause everything and resume.")
}
