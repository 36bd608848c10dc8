package render

import (
	"strconv"
	"strings"

	"countersign/approvers"
	"countersign/bot/slackapi"

	"github.com/slack-go/slack"
)

// FormTitles maps actions to the titles of the modals that they open.
var FormTitles = map[string]string{
	ActTyped: "Approve", ActReject: "Reject", ActRejectAll: "Reject all", ActWithdrawSome: "Withdraw", ActModify: "Modify", ActArguments: "All arguments", ActHappened: "It happened",
	ActAsk: "Ask", ActAnswer: "Answer", ActComment: "Comment", ActHandOn: "Hand on", ActTakeBack: "Take back", ActAllow: "Allow more", ActAway: "Away", ActReveal: "Masked values", ActFillIn: "Answer a tool", ExplainShortcut: "Explain this approval",
}

// Modal makes a view from a page.
func Modal(title string, p *BlockBuilder) slack.ModalViewRequest {
	return slack.ModalViewRequest{
		Type: slack.VTModal, Title: plainText(short(title, slackapi.MaxModalTitle)), Close: plainText("Close"), Blocks: slack.Blocks{BlockSet: p.Blocks},
	}
}

// LoadingView is a modal's content until it is filled in.
func LoadingView(id, form string) slack.ModalViewRequest {
	p := new(BlockBuilder)
	p.Para(Say("One moment…"))
	p.Small("Should nothing appear here, close this and click again.")
	v := Modal(FormTitles[form], p)
	v.ExternalID = ExternalID(id)
	return v
}

func ExternalID(inbox string) string { return "countersign:" + inbox }

// FormToken is a modal's metadata: the button that opened it, the execution that it shows, and the page.
type FormToken struct {
	ButtonToken
	Execution string
	Page      int
}

func (f FormToken) String() string {
	return f.ButtonToken.String() + " " + f.Execution + " " + strconv.Itoa(f.Page)
}

// Precheck returns the reason why a person can't decide a request now. It only serves early feedback; the workflow
// checks again on submission.
func Precheck(r approvers.Request, s ClickTarget, who approvers.Identity) *approvers.Denied {
	if r.State != approvers.Pending {
		return r.Over()
	}
	if s.ShownRequest().Digest != r.Digest {
		return &approvers.Denied{Code: approvers.DeniedStale}
	}
	_, d := r.Authority(s.Policy, who)
	return d
}

// Refusal is a modal that only explains why there is no form.
func Refusal(action string, why *RichText) slack.ModalViewRequest {
	p := new(BlockBuilder)
	p.Para(why)
	return Modal(FormTitles[action], p)
}

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
