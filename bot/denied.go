package bot

import (
	"countersign/approvers"
)

// deniedAsker says to somebody why the agent does not listen to them here.
func deniedAsker(d *approvers.Denied, at approvers.Place) *prose {
	switch d.Code {
	case approvers.DeniedChannel:
		if at.DM {
			return say("I don't answer in direct messages here. Mention me in a channel that I work in; whoever runs me can say which.")
		}
		return say("I'm not set up to answer in this channel. Mention me in a channel that I work in, or ask whoever runs me to add this one to the policy.")
	case approvers.DeniedGuest:
		return say("Guests of this workspace can't ask me for things. Ask a colleague who is a full member to do it.")
	case approvers.DeniedForeign:
		return say("I only take requests from members of my own workspace. Ask your contact there to do it.")
	case approvers.DeniedDeactivated:
		return say("This account is deactivated, so I can't take requests from it.")
	case approvers.DeniedBot:
		return say("I don't take requests from other bots.")
	case approvers.DeniedUnidentified:
		return say("Slack could not tell me who you are, so I did nothing. Please try again.")
	}
	return say("I can't take this request (" + string(d.Code) + "). Ask whoever runs me.")
}

// unidentified is said where Slack can't be asked who clicked.
func unidentified() *prose {
	return say("Slack could not tell who clicked, so nothing was decided. Please try again in a moment.")
}

// denied says to somebody why their click changed nothing, and what they can do. r is the request, where one is known.
func denied(d *approvers.Denied, r *approvers.Request, p *approvers.Policy) *prose {
	role := "an approver"
	if d.Role != "" {
		role = name(titleOf(p, d.Role))
	}
	switch d.Code {
	case approvers.DeniedUnidentified:
		return unidentified()
	case approvers.DeniedDeactivated:
		return say("Your account is deactivated, so it can't decide anything.")
	case approvers.DeniedBot:
		return say("Bots can't decide. A person has to click.")
	case approvers.DeniedForeign:
		return say("Only members of this workspace can decide. Nothing was changed.")
	case approvers.DeniedGuest:
		return say("Guests can't decide. Ask ").strong(role).say(" to look at it.")
	case approvers.DeniedNotMember:
		return say("Nothing was changed: this waits for ").strong(role).say(", and you are not a member of that role.")
	case approvers.DeniedTool:
		return say("Nothing was changed: ").strong(role).say(" may not decide about this tool, by the policy's list.")
	case approvers.DeniedCeiling:
		return say("Nothing was changed: this needs somebody who may approve up to ").strong(d.Need.String()).say(" risk, which is above what ").
			strong(role).say(" may approve.")
	case approvers.DeniedSelf:
		return say("Nothing was changed: you asked for this, or wrote in the conversation that led to it, so somebody else has to decide. It waits for ").strong(role).say(".")
	case approvers.DeniedCounted:
		if d.State == approvers.Rejected {
			return say("Your rejection counts already. It needs another person: nobody counts twice.")
		}
		return say("Your approval counts already. It needs another person: nobody counts twice.")
	case approvers.DeniedResolved:
		return resolved(d, r, p)
	case approvers.DeniedLate:
		return say("Too late: the time for this ended ").at(d.At, dayTime).say(". It was not run; it can be asked for again.")
	case approvers.DeniedStale:
		return say("Nothing was decided: the arguments were changed after the card that you clicked was drawn. Look at the card again; it shows them as they are now.")
	case approvers.DeniedNotRequester:
		return say("Nothing was changed: only somebody who asked for this can do that.")
	case approvers.DeniedNotFound:
		return say("I don't know this request any more. It may belong to another installation, or to data that was removed.")
	case approvers.DeniedEdit:
		return say("The change was not taken, because nobody could approve the call as changed: ").say(clip(Visible(d.Detail), maxSentence)).
			say(" The request waits as it was.")
	case approvers.DeniedUnchanged:
		return say("Nothing was changed: the new arguments say the same as the old ones. To agree to them, use Approve.")
	case approvers.DeniedChannel:
		return say("The policy has no agent here any more. Ask whoever runs me.")
	case approvers.DeniedUnseen:
		return say("The card can't show all arguments, so it can't be approved from there. Choose “Open all arguments”, read them, and approve on the last page.")
	case approvers.DeniedNothing:
		return say("There is nothing left to do here: it went on without this.")
	case approvers.DeniedInvalidArgs:
		return say("The change was not taken, because the tool would refuse the new arguments: ").say(clip(Visible(d.Detail), maxSentence)).
			say(" The request waits as it was.")
	case approvers.DeniedNoReason:
		return say("Nothing was decided: write a text. The people concerned are told it.")
	case approvers.DeniedLateAnswer:
		return say("Too late: the time to answer this ended ").at(d.At, dayTime).say(". The tool was told that nobody answered.")
	case approvers.DeniedAnswered:
		return say("Nothing was changed: this question has its answer, or its tool does not wait for one any more.")
	case approvers.DeniedNotAsked:
		return say("Nothing was changed: this question is for those who asked the agent.")
	case approvers.DeniedGroup:
		return say("Nothing was changed: this waits for ").strong(role).say(", and you are not in that user group.")
	case approvers.DeniedNotPeer:
		return say("It was not handed on: your colleague may not decide this in place of ").strong(role).
			say(". It takes a role whose tool list has this tool, with a ceiling that is high enough, and nobody who asked for it.")
	case approvers.DeniedAsked:
		return say("It was not handed on: your colleague was asked already, or has had their say.")
	case approvers.DeniedTyped:
		return say("Nothing was decided: approving this asks for a value to be typed. Use Approve… on the card.")
	case approvers.DeniedPreview:
		return say("Nothing was decided: this is critical, and a preview of it is being made. Please wait until the card shows it, or that there is none, and look at it then.")
	case approvers.DeniedFull:
		return say("Nothing was changed: no more fits on this card. Go on in the thread.")
	case approvers.DeniedNotApprover:
		return say("Nothing was changed: only somebody whose approval counts can take it back, and only before it runs.")
	case approvers.DeniedStarted:
		return say("Too late: it was started already, so the approval can't be taken back. The card shows what came of it.")
	case approvers.DeniedUnfinished:
		return say("Nothing was changed: it runs, or is still to be run. How it ends is shown here.")
	case approvers.DeniedGlass:
		return say("Nothing was decided: the policy does not let the operator allow this tool.")
	case approvers.DeniedDates, approvers.DeniedStandIn:
		return deniedLeave(d)
	case approvers.DeniedReturned:
		return say("Nothing was asked again: the agent was told already how this stands, and each of its calls has one answer. To have it done, ask the agent anew in the thread.")
	case approvers.DeniedAgain:
		return say("It is asked again already, by ").person(d.By, "").say(", ").at(d.At, dayTime).say(". The new card shows where that stands.")
	case approvers.DeniedNotAgain:
		return say("It can't be asked again as things are: ").say(clip(Visible(d.Detail), maxSentence)).say(".")
	case approvers.DeniedNoPause, approvers.DeniedPaused, approvers.DeniedNotPaused:
		return deniedPause(d, p)
	case approvers.DeniedReplaced:
		return say("Nothing was decided: what you clicked was replaced by a newer version in the meantime. Please look at it again, and click there.")
	case approvers.DeniedUnrecorded:
		return say("Nothing was decided: the message was being drawn anew just when you clicked, so I can't say for certain what you were shown. It is drawn again now. Please look at it, and click once more.")
	case approvers.DeniedCopied:
		return say("Nothing was decided: what you clicked is a copy. Decide on the message that I posted myself.")
	case approvers.DeniedForged:
		return say("Nothing was decided: what you clicked is nothing that I put there. If you did not make it yourself, tell whoever runs me.")
	case approvers.DeniedWorkspace:
		return say("Nothing was decided: you clicked in another workspace than the one that I work for.")
	case approvers.DeniedNoGrants:
		if d.Detail != "" {
			return say("Nothing was decided or allowed: ").say(clip(Visible(d.Detail), maxSentence)).say(".")
		}
		return say("Nothing was decided or allowed: the policy does not let this call be allowed more than once.")
	}
	return say("Nothing was changed (" + string(d.Code) + ").")
}

// resolved says who was first, and when.
func resolved(d *approvers.Denied, r *approvers.Request, p *approvers.Policy) *prose {
	called := ""
	if r != nil && r.ClosedBy == d.By {
		called = r.ClosedName
	}
	out := say("Too late: ")
	if d.By != "" {
		out.person(d.By, called)
		if d.Role != "" {
			out.say(" (" + name(titleOf(p, d.Role)) + ")")
		}
		out.say(" " + ended[d.State].by + " ")
	} else {
		out.say("this " + ended[d.State].alone + " ")
	}
	return out.at(d.At, dayTime).say(". Your click changed nothing.")
}

// ended says how requests end: by somebody, or alone.
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

// titleOf is a role's title as the policy has it now. What names no role is a title already.
func titleOf(p *approvers.Policy, role string) string {
	if p == nil {
		return role
	}
	if r, ok := p.Role(role); ok {
		return r.Title
	}
	return role
}
