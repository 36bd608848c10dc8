package approvers

import "time"

// Code says for machines why somebody was denied. The audit keeps it.
type Code string

// The reasons for denying a person a move.
const (
	DeniedUnidentified Code = "unidentified"   // Slack could not say who clicked
	DeniedDeactivated  Code = "deactivated"    //
	DeniedBot          Code = "bot"            //
	DeniedForeign      Code = "foreign"        // a stranger, or of another workspace
	DeniedGuest        Code = "guest"          //
	DeniedNotMember    Code = "not_member"     // not in a role that may decide this stage
	DeniedTool         Code = "tool_list"      // the role's tool list lacks the tool
	DeniedCeiling      Code = "ceiling"        // the role's ceiling is below the risk
	DeniedSelf         Code = "self_approval"  // a requester
	DeniedCounted      Code = "counted"        // counted before: one person counts once
	DeniedResolved     Code = "resolved"       // somebody was first
	DeniedLate         Code = "late"           // after the deadline
	DeniedStale        Code = "stale"          // the card shows other arguments than the request has now
	DeniedNotRequester Code = "not_requester"  // only a requester can withdraw
	DeniedNotAsked     Code = "not_asked"      // the question is for those who asked the agent
	DeniedLateAnswer   Code = "late_answer"    // after the deadline of a tool's question
	DeniedAnswered     Code = "answered"       // the question has its answer, or nobody waits for one any more
	DeniedNotFound     Code = "not_found"      // no such request
	DeniedEdit         Code = "edit_refused"   // nobody could approve the edited call
	DeniedUnchanged    Code = "unchanged"      // an edit that changes nothing
	DeniedChannel      Code = "channel"        // the agent does not answer here
	DeniedUnseen       Code = "not_shown"      // the whole arguments must be opened first
	DeniedNothing      Code = "nothing_to_do"  // the button's purpose is gone
	DeniedInvalidArgs  Code = "invalid_args"   // edited arguments that the tool would not take
	DeniedNoReason     Code = "reason_missing" // it needs a reason or a text
	DeniedGroup        Code = "group"          // not in the user group that the stage asks for
	DeniedNotPeer      Code = "not_a_peer"     // a colleague without the authority that it is handed on for
	DeniedAsked        Code = "asked_already"  // handed on to somebody who was asked before, or has had their say
	DeniedTyped        Code = "not_typed"      // the value that has to be typed was not
	DeniedFull         Code = "full"           // no more remarks, or people, fit on the card
	DeniedNotApprover  Code = "not_approver"   // only whoever approved, or may, can take an approval back
	DeniedDates        Code = "dates"          // an absence that ends before it begins, is over, or is too far ahead
	DeniedStandIn      Code = "no_stand_in"    // whoever was named can't stand in for anybody; Detail is the reason's code
	DeniedStarted      Code = "started"        // an approval can't be taken back once the run has begun
	DeniedUnfinished   Code = "unfinished"     // it runs, or is still to be run: nobody can say yet how it ended
	DeniedGlass        Code = "glass"          // the policy does not break the glass for the tool
	DeniedReplaced     Code = "replaced"       // what was clicked is an older version, or an older message, of what is shown now
	DeniedUnrecorded   Code = "unrecorded"     // what was clicked was on the screen without having been recorded; it is drawn anew
	DeniedCopied       Code = "copied"         // what was clicked is not the message that the bot posted
	DeniedForged       Code = "forged"         // what was clicked names something that the bot did not put there
	DeniedWorkspace    Code = "workspace"      // the click came from another workspace
	DeniedNoGrants     Code = "no_grants"      // the policy allows no grants here, or not these
	DeniedReturned     Code = "returned"       // the agent was told how it ended, or that nobody knows: nothing can be asked again for that call
	DeniedAgain        Code = "asked_again"    // it is asked again already
	DeniedNotAgain     Code = "not_again"      // it can't be asked again as things are
	DeniedNoPause      Code = "no_pause"       // not in a role whose people may pause everything
	DeniedPaused       Code = "paused"         // everything is paused already
	DeniedNotPaused    Code = "not_paused"     // it goes on already
	DeniedPreview      Code = "preview"        // what is critical waits for the preview that a tool makes
)

// Denied is the answer to a person who may not do what they tried. It is an error, and it
// carries what the person should be told.
type Denied struct {
	Code   Code
	Role   string    // title of the role that may decide, where one is known
	Need   Risk      // the ceiling needed, for DeniedCeiling
	By     PersonID  // who decided, for DeniedResolved; who can't stand in, for DeniedStandIn; who asked again, paused or resumed
	State  State     // how the request ended, for DeniedResolved; Rejected for DeniedCounted where a rejection was counted before
	At     time.Time // when it ended or fell due
	Detail string    // the fault in edited arguments, for DeniedInvalidArgs; why not, for DeniedNotAgain; a code where another person's trouble is the reason
}

func (d *Denied) Error() string { return "denied: " + string(d.Code) }
