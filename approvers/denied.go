package approvers

import "time"

// Code is the machine-readable reason for a denial. The audit record contains the code.
type Code string

// The reasons for denying an action.
const (
	DeniedUnidentified Code = "unidentified"   // it is not known who acted
	DeniedDeactivated  Code = "deactivated"    //
	DeniedBot          Code = "bot"            //
	DeniedForeign      Code = "foreign"        // unknown to the workspace, or from another one
	DeniedGuest        Code = "guest"          //
	DeniedNotMember    Code = "not_member"     // the person is not in a role that may decide this stage
	DeniedTool         Code = "tool_list"      // the role's tool list lacks the tool
	DeniedCeiling      Code = "ceiling"        // the role's ceiling is below the risk
	DeniedSelf         Code = "self_approval"  // a requester can't decide, and nobody can be their own stand-in
	DeniedCounted      Code = "counted"        // the person's decision is counted already: one person counts once
	DeniedResolved     Code = "resolved"       // the request or the grant has already ended
	DeniedLate         Code = "late"           // after the deadline
	DeniedStale        Code = "stale"          // the card shows other arguments than the request's current ones
	DeniedNotRequester Code = "not_requester"  // only a requester can withdraw, or answer a question about the request
	DeniedNotAsked     Code = "not_asked"      // the question is for the people who asked the agent
	DeniedLateAnswer   Code = "late_answer"    // the answer came after the deadline of a tool's question
	DeniedAnswered     Code = "answered"       // the question has been answered, or nobody waits for its answer any more
	DeniedNotFound     Code = "not_found"      // no such request, or its texts were erased
	DeniedEdit         Code = "edit_refused"   // nobody could approve the edited call
	DeniedUnchanged    Code = "unchanged"      // the edit changes nothing
	DeniedChannel      Code = "channel"        // the agent does not answer here
	DeniedUnseen       Code = "not_shown"      // the person must first open the complete arguments
	DeniedNothing      Code = "nothing_to_do"  // nothing is left to do, or what the action is about does not exist
	DeniedInvalidArgs  Code = "invalid_args"   // the tool would not accept the edited arguments
	DeniedNoReason     Code = "reason_missing" // a reason or a text is required
	DeniedGroup        Code = "group"          // the person is not in the user group that the stage asks for
	DeniedNotPeer      Code = "not_a_peer"     // the colleague lacks the authority that the stage needs
	DeniedAsked        Code = "asked_already"  // the colleague was asked before, or has decided
	DeniedTyped        Code = "not_typed"      // the required value was not typed
	DeniedFull         Code = "full"           // the request can't have more remarks, invited people or decisions
	DeniedNotApprover  Code = "not_approver"   // only people who approved, or may approve, can revoke an approval
	DeniedDates        Code = "dates"          // the absence ends before it begins, is over, or is too far ahead
	DeniedStandIn      Code = "no_stand_in"    // the named person can't stand in; Detail is the Code that says why
	DeniedStarted      Code = "started"        // an approval can't be taken back once the run has begun
	DeniedUnfinished   Code = "unfinished"     // the run is pending or under way, so its outcome can't be reported yet
	DeniedBreakGlass   Code = "glass"          // the policy does not allow break glass for the tool
	DeniedReplaced     Code = "replaced"       // the clicked version or message has been replaced by a newer one
	DeniedUnrecorded   Code = "unrecorded"     // the clicked version was displayed without being recorded; it is rendered again
	DeniedCopied       Code = "copied"         // the clicked message is not the one that the bot posted
	DeniedForged       Code = "forged"         // the click contains a value that the bot did not put there
	DeniedWorkspace    Code = "workspace"      // the click came from another workspace
	DeniedNoGrants     Code = "no_grants"      // the policy allows no grant for these calls, or not this grant
	DeniedReturned     Code = "returned"       // the model has the outcome, or was told that it is unknown: nobody can request another run
	DeniedAgain        Code = "asked_again"    // a request to run the call again exists already
	DeniedNotAgain     Code = "not_again"      // the call can't be requested again now
	DeniedDamaged      Code = "damaged"        // the record was damaged, so nothing was run
	DeniedNoPause      Code = "no_pause"       // the person is not in a role that may pause everything
	DeniedPaused       Code = "paused"         // everything is paused already
	DeniedNotPaused    Code = "not_paused"     // nothing is paused
	DeniedOften        Code = "often"          // the person set an absence too often today
	DeniedAbandoned    Code = "abandoned"      // processing this delivery crashed several processes
	DeniedMasked       Code = "masked"         // the masked values were not revealed to the person
	DeniedNoEdits      Code = "no_edits"       // the caller can't use other arguments
	DeniedPreview      Code = "preview"        // a critical call can't be approved before its tool preview is ready
)

// Denied is the error for an action that a person may not perform. Denied contains the details that the bot shows to
// the person.
type Denied struct {
	Code   Code
	Role   string    // title or name of a role: the role that may decide; for DeniedTool and DeniedCeiling, the person's role; for DeniedResolved, the role that ended it
	Need   Risk      // the ceiling needed, for DeniedCeiling and DeniedNotPeer
	By     PersonID  // who decided, for DeniedResolved; who can't stand in, for DeniedStandIn; for others, who asked again, paused or resumed
	State  State     // how the request ended, for DeniedResolved; Rejected for DeniedCounted if the person's rejection was counted before
	At     time.Time // when the request ended, or its deadline; for DeniedDates, the end of the absence
	Detail string    // the fault in edited arguments, or why the action is not possible; for DeniedStandIn and DeniedNotPeer, the Code that applies to the other person
}

func (d *Denied) Error() string { return "denied: " + string(d.Code) }
