package render

import (
	"strconv"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/slackapi"
)

// A step with more calls than a message can list has a form to withdraw the waiting ones.
const (
	ActWithdrawSome = "withdraw_some"
	FieldCalls      = "calls"
)

// WithdrawForm lists the waiting calls of a step so that some can be withdrawn.
func WithdrawForm(s ClickTarget) slack.ModalViewRequest {
	var options []*slack.OptionBlockObject
	waiting := 0
	for _, c := range s.Calls {
		if !waits(c) {
			continue
		}
		if waiting++; waiting <= slackapi.MaxOptions {
			what := inFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets)
			options = append(options, slack.NewOptionBlockObject(c.Request.ID, plainText(short(what, slackapi.MaxOptionText)), nil))
		}
	}
	if waiting == 0 {
		return Refusal(ActWithdrawSome, Denied(&approvers.Denied{Code: approvers.DeniedNothing}, nil, s.Policy))
	}
	p := new(BlockBuilder)
	p.Para(Say("What you choose will not run, and the agent is told that you took it back."))
	if waiting > slackapi.MaxOptions {
		p.Para(Say("These are the first " + strconv.Itoa(slackapi.MaxOptions) + " that wait. Open this again for the others."))
	}
	list := slack.NewOptionsMultiSelectBlockElement(slack.MultiOptTypeStatic, plainText("Choose calls"), FieldCalls, options...)
	p.Blocks = append(p.Blocks, inputBlock(FieldCalls, "Calls", "", list, false))
	return submittable(Modal(FormTitles[ActWithdrawSome], p), ActWithdrawSome, "Withdraw", FormToken{ButtonToken: s.Token})
}
