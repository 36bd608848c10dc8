package bot

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// mark is the value of a button: it names what the button was drawn for, and grants nothing. Ref is a request, a turn, an execution, a grant or a pause;
// Post counts the versions of the surface; Print is a fingerprint of the version, so that a click on one that
// was replaced before it was recorded is told from a click on its successor.
type mark struct {
	Ref     string
	Surface string
	Post    uint64
	Print   string
}

func (m mark) String() string {
	return m.version() + m.Print
}

// version is what the marks of one version have in common for what they were drawn for.
func (m mark) version() string {
	return m.Ref + " " + m.Surface + " " + strconv.FormatUint(m.Post, 10) + " "
}

var errMark = errors.New("not the value of one of the bot's buttons")

func readMark(s string) (mark, error) {
	parts := strings.Split(s, " ")
	if len(parts) != 4 {
		return mark{}, errMark
	}
	post, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil || parts[0] == "" || parts[1] == "" || !printed.MatchString(parts[3]) {
		return mark{}, errMark
	}
	return mark{Ref: parts[0], Surface: parts[1], Post: post, Print: parts[3]}, nil
}

// printed is the form of a print.
var printed = regexp.MustCompile(`^[0-9a-f]{16}$`)

// The buttons.
const (
	actApprove   = "approve"
	actTyped     = "approve_typed" // approving what is critical, which asks for a typed value
	actReject    = "reject"
	actModify    = "modify"
	actArguments = "arguments"
	actPage      = "page"
	actWithdraw  = "withdraw"
	actGoOn      = "go_on"
	actTryAgain  = "try_again"
	actStop      = "stop"
	actRate      = "rate"
	actHappened  = "happened"
	actDidNot    = "did_not"
	actLeave     = "leave"
	actAskAgain  = "ask_again"
	actAsk       = "ask"
	actAnswer    = "answer"
	actComment   = "comment"
	actHandOn    = "hand_on"
	actTakeBack  = "take_back"
	actAllow     = "allow_more"
	actRevoke    = "revoke_grant"
	actAccept    = "accept_grant"
	actDecline   = "decline_grant"
	actPause     = "pause_everything"
	actResume    = "resume_everything"
	actReveal    = "reveal"
	actLink      = "link"
	actHome      = "home" // with what it shows of somebody's Home tab
	actAway      = "away"
	actBack      = "back"
	actFillIn    = "fill_in"   // the form of what a tool asks
	actVisited   = "visited"   // the address that a tool asks somebody to visit
	actNoAnswer  = "no_answer" // what a tool asks is not answered
	actChoose    = "choose_"   // with the number of the option
)

// refAway is what a button about somebody's absence names.
const refAway = "away"

// What the marks of feedback begin with, before the turn.
const (
	rateGood = "good:"
	ratePoor = "poor:"
)

// The inputs of forms.
const (
	fieldFrom      = "from"
	fieldUntil     = "until"
	fieldReason    = "reason" // and whatever else people write
	fieldResult    = "result"
	fieldRaw       = "arguments"
	fieldTyped     = "typed"
	fieldColleague = "colleague"
	fieldUses      = "uses"
	fieldWithin    = "within"
)
