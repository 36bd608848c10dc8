package approvers

import "time"

// Code is the machine-readable reason for a denial. The audit record contains the code.
type Code string

// The reasons for denying an action.
const (
	DeniedUnidentified Code = "unidentified"   // it is not known who acted
	DeniedDeactivated  Code = "deactivated"    //
	DeniedBot          Code = "bot"            //
	DeniedForeign      Code = "foreign"        // the person is unknown to the workspace, or belongs to another workspace
	DeniedGuest        Code = "guest"          //
	DeniedNotMember    Code = "not_member"     // the person is not in a role that may decide this stage
	DeniedTool         Code = "tool_list"      // the role's tool list lacks the tool
	DeniedCeiling      Code = "ceiling"        // the role's ceiling is below the risk
	DeniedSelf         Code = "self_approval"  // a requester can't decide, and nobody can be their own stand-in
	DeniedCounted      Code = "counted"        // the person's decision already counts; one person counts once in a request
	DeniedResolved     Code = "resolved"       // the request or the grant has already ended
	DeniedLate         Code = "late"           // the deadline has passed
	DeniedStale        Code = "stale"          // the clicked card does not show the request's current arguments
	DeniedStage        Code = "earlier_stage"  // the clicked card shows an earlier stage or plan than the request's current one
	DeniedNotRequester Code = "not_requester"  // only a requester can withdraw, or answer a question about the request
	DeniedNotAsked     Code = "not_asked"      // only the people who asked the agent may answer this question
	DeniedLateAnswer   Code = "late_answer"    // the deadline of a tool's question passed before the answer came
	DeniedAnswered     Code = "answered"       // the question was answered before, or its answer is no longer needed
	DeniedNotFound     Code = "not_found"      // the request does not exist, or its texts were erased
	DeniedEdit         Code = "edit_refused"   // nobody could approve the edited call
	DeniedUnchanged    Code = "unchanged"      // the edit changes nothing
	DeniedChannel      Code = "channel"        // the agent does not answer in this channel
	DeniedUnseen       Code = "not_shown"      // the person must first open the complete arguments
	DeniedNothing      Code = "nothing_to_do"  // there is nothing to do: the action was done before, or its object does not exist
	DeniedInvalidArgs  Code = "invalid_args"   // the tool would not accept the edited arguments
	DeniedNoReason     Code = "reason_missing" // a reason or a text is required
	DeniedGroup        Code = "group"          // the person is not in the user group that the stage asks for
	DeniedUnnamed      Code = "group_unnamed"  // Slack refuses to name the members of a user group that could give the authority; Detail is the group
	DeniedNotPeer      Code = "not_a_peer"     // the colleague lacks the authority that the stage needs
	DeniedAsked        Code = "asked_already"  // the colleague was asked before, or has decided
	DeniedTyped        Code = "not_typed"      // the person did not type the required value
	DeniedFull         Code = "full"           // the request already has the largest number of remarks or invited people, or of decisions of this person
	DeniedNotApprover  Code = "not_approver"   // only people who approved, or may approve, can revoke an approval
	DeniedDates        Code = "dates"          // the absence ends before it begins, is over, or is too far ahead
	DeniedStandIn      Code = "no_stand_in"    // the named person can't be a stand-in; Detail is the Code of the reason
	DeniedStarted      Code = "started"        // an approval can't be taken back once the run has begun
	DeniedUnfinished   Code = "unfinished"     // the run has not ended, so nobody can report its outcome yet
	DeniedBreakGlass   Code = "glass"          // the policy does not allow break glass for the tool
	DeniedReplaced     Code = "replaced"       // the clicked version or message has been replaced by a newer one
	DeniedUnrecorded   Code = "unrecorded"     // Slack may have shown a version that the store does not have; the bot renders the message again
	DeniedCopied       Code = "copied"         // the clicked message is not the one that the bot posted
	DeniedForged       Code = "forged"         // the click contains a value that the bot did not put there
	DeniedWorkspace    Code = "workspace"      // the click came from another workspace
	DeniedNoGrants     Code = "no_grants"      // the policy allows no grant for these calls, or not this grant
	DeniedReturned     Code = "returned"       // the model already has the outcome, or was told that the outcome is unknown, so nobody can request another run
	DeniedAgain        Code = "asked_again"    // a request to run the call again exists already
	DeniedNotAgain     Code = "not_again"      // the call can't be requested again now
	DeniedDamaged      Code = "damaged"        // the request's stored record was damaged, so the bot ended the request
	DeniedNoPause      Code = "no_pause"       // the person is not in a role that may pause everything
	DeniedPaused       Code = "paused"         // everything is paused already
	DeniedNotPaused    Code = "not_paused"     // nothing is paused
	DeniedOften        Code = "often"          // the person has set too many absences in the last 24 hours
	DeniedAbandoned    Code = "abandoned"      // the bot gave up this delivery, because several processes crashed while they handled it
	DeniedMasked       Code = "masked"         // the person has not seen the masked values
	DeniedNoEdits      Code = "no_edits"       // the caller can't run the call with other arguments
	DeniedPreview      Code = "preview"        // a critical call can't be approved before its tool preview is ready
)

// Denied is the error for an action that a person may not perform. Denied contains the details that the bot shows to
// the person.
type Denied struct {
	Code   Code
	Role   string    // title or name of the role that may decide; for DeniedTool and DeniedCeiling, of the person's role; for DeniedResolved, of the role that ended the request
	Need   Risk      // for DeniedCeiling and DeniedNotPeer: the ceiling that a role needs
	By     PersonID  // for DeniedResolved, who decided; for DeniedStandIn, who can't be a stand-in; for other codes, who asked again, paused or resumed
	State  State     // for DeniedResolved and DeniedDamaged, how the request ended; for DeniedCounted, Rejected if the decision that counts is a rejection
	At     time.Time // when the request ended, or its deadline; for DeniedDates, the end of the absence
	Detail string    // the fault in edited arguments, or why the action is not possible; for DeniedStandIn and DeniedNotPeer, the Code that applies to the other person
}

func (d *Denied) Error() string { return "denied: " + string(d.Code) }
