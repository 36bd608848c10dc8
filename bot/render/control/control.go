package control

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// ButtonToken is the value of a button. A token only identifies the rendering in which the button was shown. A token
// grants nothing. The field Ref is the id of a request, a turn, an execution, a grant or a pause. The field Post is the
// number of the outbox message's version, and the field Print is the fingerprint of this version. If a version was
// replaced before it was recorded, the replacement has the same number, but another fingerprint.
type ButtonToken struct {
	Ref     string
	Message string
	Post    uint64
	Print   string
}

// String returns the value of the button.
func (t ButtonToken) String() string {
	return t.version() + t.Print
}

// version returns the common prefix of all tokens of one version for the same Ref.
func (t ButtonToken) version() string {
	return t.Ref + " " + t.Message + " " + strconv.FormatUint(t.Post, 10) + " "
}

// ErrButtonToken is the error about a value that no button or form of the bot has.
var ErrButtonToken = errors.New("not the value of one of the bot's buttons")

// ParseButtonToken parses the value of a button.
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

// tokenValue matches the value of a button in JSON.
var tokenValue = regexp.MustCompile(`"value":"([^" ]+ [^" ]+ [0-9]+ [0-9a-f]{16})"`)

// TokensIn returns the tokens of the buttons in a message's JSON.
func TokensIn(body []byte) (tokens []ButtonToken) {
	for _, value := range tokenValue.FindAllSubmatch(body, -1) {
		if t, err := ParseButtonToken(string(value[1])); err == nil {
			tokens = append(tokens, t)
		}
	}
	return tokens
}

// The regular expression "printed" matches a valid Print.
var printed = regexp.MustCompile(`^[0-9a-f]{16}$`)

// These are the action IDs of the buttons.
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

	ActApart        = "apart"      // moves a call of a bundle to a card of its own
	ActDetailsOf    = "arguments_" // followed by the number of a call; otherwise like ActArguments
	ActApproveAll   = "approve_all"
	ActRejectAll    = "reject_all"
	ActWithdrawSome = "withdraw_some" // opens a form of the waiting calls, if a step has more than a message can list
)

// ActionOf returns the action of a button from its ID. Within a row, buttons have different IDs even if they have the
// same action.
func ActionOf(id string) string {
	if number, ok := strings.CutPrefix(id, ActDetailsOf); ok && number != "" {
		return ActArguments
	}
	return id
}

// RefAway is the Ref of buttons about absences.
const RefAway = "away"

// A feedback token begins with one of these prefixes, and the id of the turn follows.
const (
	FeedbackGood = "good:"
	FeedbackPoor = "poor:"
)

// These are the block IDs of form inputs.
const (
	FieldFrom      = "from"
	FieldUntil     = "until"
	FieldReason    = "reason" // for a reason, and for any other free text
	FieldResult    = "result"
	FieldRaw       = "arguments"
	FieldTyped     = "typed"
	FieldColleague = "colleague"
	FieldUses      = "uses"
	FieldWithin    = "within"
	FieldCalls     = "calls"
)

// ExplainShortcut is the callback of the shortcut that explains an approval.
const ExplainShortcut = "explain_approval"

// FormToken is a modal's metadata: the button that opened the modal, the shown execution, and the page.
type FormToken struct {
	ButtonToken
	Execution string
	Page      int
}

// String returns the metadata of the modal.
func (f FormToken) String() string {
	return f.ButtonToken.String() + " " + f.Execution + " " + strconv.Itoa(f.Page)
}

// ParseFormToken parses the metadata of a modal.
func ParseFormToken(s string) (FormToken, error) {
	parts := strings.Split(s, " ")
	if len(parts) != 6 {
		return FormToken{}, ErrButtonToken
	}
	m, err := ParseButtonToken(strings.Join(parts[:4], " "))
	if err != nil {
		return FormToken{}, err
	}
	page, err := strconv.Atoi(parts[5])
	if err != nil || page < 0 {
		return FormToken{}, ErrButtonToken
	}
	return FormToken{ButtonToken: m, Execution: parts[4], Page: page}, nil
}

// WarningID returns the ID of a form's block that warns of invisible characters in changed arguments. The ID has the
// digest of the arguments. When the form is submitted, Slack returns the IDs of the form's blocks. So the bot knows of
// which arguments the form warned. The digest is not in the metadata, because earlier versions of the bot, which may
// run on another replica, refuse metadata that has a further part.
//
// The ID grants nothing. People can't change it in Slack. With a forged ID, a change could count as an approval without
// the form's warning. Even then, the person must be allowed to approve the changed call.
func WarningID(digest string) string { return warningPrefix + digest }

const warningPrefix = "unseen:"

var warningID = regexp.MustCompile(`^` + warningPrefix + `([0-9a-f]{64})$`)

// WarnedDigest returns the digest of the arguments of which a form warned. If no block of the form has a valid
// WarningID, or several have one, WarnedDigest returns "".
func WarnedDigest(blockIDs []string) (digest string) {
	for _, id := range blockIDs {
		found := warningID.FindStringSubmatch(id)
		switch {
		case found == nil:
			continue
		case digest != "":
			return ""
		}
		digest = found[1]
	}
	return digest
}
