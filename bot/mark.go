package bot

import (
	"errors"
	"strconv"
	"strings"
)

// mark is the value of a button: it names what the button was drawn for, and grants nothing. Ref is a request, a turn, an execution or a grant;
// Post counts the versions of the surface; Print is a fingerprint of the version, so that a click on one that
// was replaced before it was recorded is told from a click on its successor.
type mark struct {
	Ref     string
	Surface string
	Post    uint64
	Print   string
}

func (m mark) String() string {
	return m.Ref + " " + m.Surface + " " + strconv.FormatUint(m.Post, 10) + " " + m.Print
}

var errMark = errors.New("not the value of one of the bot's buttons")

func readMark(s string) (mark, error) {
	parts := strings.Split(s, " ")
	if len(parts) != 4 {
		return mark{}, errMark
	}
	post, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil || parts[0] == "" || parts[1] == "" {
		return mark{}, errMark
	}
	return mark{Ref: parts[0], Surface: parts[1], Post: post, Print: parts[3]}, nil
}

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
	actHappened  = "happened"
	actDidNot    = "did_not"
	actLeave     = "leave"
	actAsk       = "ask"
	actAnswer    = "answer"
	actComment   = "comment"
	actHandOn    = "hand_on"
	actTakeBack  = "take_back"
	actAllow     = "allow_more"
	actRevoke    = "revoke_grant"
	actAccept    = "accept_grant"
	actDecline   = "decline_grant"
	actLink      = "link"
	actChoose    = "choose_" // with the number of the option
)

// The inputs of forms.
const (
	fieldReason    = "reason" // and whatever else people write
	fieldResult    = "result"
	fieldRaw       = "arguments"
	fieldTyped     = "typed"
	fieldColleague = "colleague"
	fieldUses      = "uses"
	fieldWithin    = "within"
)
