package render

import (
	"strconv"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/slackapi"
)

// WithdrawForm lists the waiting calls of a step so that a person can withdraw some of them.
func WithdrawForm(s ClickTarget) slack.ModalViewRequest {
	var options []*slack.OptionBlockObject
	waiting := 0
	for _, c := range s.Calls {
		if !waits(c) {
			continue
		}
		if waiting++; waiting <= slackapi.MaxOptions {
			what := inFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets)
			options = append(options, slack.NewOptionBlockObject(c.Request.ID, plainText(shorten(what, slackapi.MaxOptionText)), nil))
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
