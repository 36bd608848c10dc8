package render

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// ButtonToken is the value of a button. It names what the button was drawn for, and grants nothing. Ref is a request, a
// turn, an execution, a grant or a pause. Post counts the versions of the outbox message. Print is a fingerprint of the
// version: it distinguishes a click on a version that was replaced before it was recorded from a click on its
// successor.
type ButtonToken struct {
	Ref     string
	Message string
	Post    uint64
	Print   string
}

func (m ButtonToken) String() string {
	return m.version() + m.Print
}

// version returns the common prefix of all tokens of one version for the same Ref.
func (m ButtonToken) version() string {
	return m.Ref + " " + m.Message + " " + strconv.FormatUint(m.Post, 10) + " "
}

var ErrButtonToken = errors.New("not the value of one of the bot's buttons")

func ParseButtonToken(s string) (ButtonToken, error) {
	parts := strings.Split(s, " ")
	if len(parts) != 4 {
		return ButtonToken{}, ErrButtonToken
	}
	post, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil || parts[0] == "" || parts[1] == "" || !printed.MatchString(parts[3]) {
		return ButtonToken{}, ErrButtonToken
	}
	return ButtonToken{Ref: parts[0], Message: parts[1], Post: post, Print: parts[3]}, nil
}

// printed matches a valid Print.
var printed = regexp.MustCompile(`^[0-9a-f]{16}$`)

// Action IDs of the buttons.
const (
	ActApprove     = "approve"
	ActTyped       = "approve_typed" // approves a critical call, which requires a typed value
	ActReject      = "reject"
	ActModify      = "modify"
	ActArguments   = "arguments"
	ActPage        = "page"
	ActWithdraw    = "withdraw"
	ActWithdrawAll = "go_on"
	ActTryAgain    = "try_again"
	ActStop        = "stop"
	ActFeedback    = "rate"
	ActHappened    = "happened"
	ActDidNot      = "did_not"
	ActLeave       = "leave"
	ActAskAgain    = "ask_again"
	ActAsk         = "ask"
	ActAnswer      = "answer"
	ActComment     = "comment"
	ActHandOn      = "hand_on"
	ActTakeBack    = "take_back"
	ActAllow       = "allow_more"
	ActRevoke      = "revoke_grant"
	ActAccept      = "accept_grant"
	ActDecline     = "decline_grant"
	ActPause       = "pause_everything"
	ActResume      = "resume_everything"
	ActReveal      = "reveal"
	ActLink        = "link"
	ActHome        = "home" // followed by the label of the button
	ActAway        = "away"
	ActBack        = "back"
	ActFillIn      = "fill_in"   // opens the form that a tool asks for
	ActVisited     = "visited"   // confirms a visit to the address that a tool names
	ActNoAnswer    = "no_answer" // declines a tool's question
	ActChoose      = "choose_"   // followed by the number of the option
)

// refAway is the Ref of buttons about absences.
const refAway = "away"

// Prefixes of feedback tokens; the turn follows.
const (
	FeedbackGood = "good:"
	FeedbackPoor = "poor:"
)

// Block IDs of form inputs.
const (
	FieldFrom      = "from"
	FieldUntil     = "until"
	FieldReason    = "reason" // and any other free text
	FieldResult    = "result"
	FieldRaw       = "arguments"
	FieldTyped     = "typed"
	FieldColleague = "colleague"
	FieldUses      = "uses"
	FieldWithin    = "within"
)

const ExplainShortcut = "explain_approval"
