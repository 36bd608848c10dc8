package form

import (
	"strconv"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/wording"
	"countersign/bot/slackapi"
)

// Withdraw lists the waiting calls of a step so that a person can withdraw some of them.
func Withdraw(s ClickTarget) slack.ModalViewRequest {
	var options []*slack.OptionBlockObject
	waiting := 0
	for _, c := range s.Calls {
		if !wording.Waits(c) {
			continue
		}
		if waiting++; waiting <= slackapi.MaxOptions {
			what := wording.InFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets)
			options = append(options, slack.NewOptionBlockObject(c.Request.ID, block.PlainText(block.Shorten(what, slackapi.MaxOptionText)), nil))
		}
	}
	if waiting == 0 {
		return TextModal(control.ActWithdrawSome, DeniedText(&approvers.Denied{Code: approvers.DeniedNothing}, nil, s.Policy))
	}
	p := new(block.Builder)
	p.Para(block.Say("The calls that you choose will not run, and the agent is told that you withdrew them."))
	if waiting > slackapi.MaxOptions {
		p.Para(block.Say("These are the first " + strconv.Itoa(slackapi.MaxOptions) + " that wait. Open this again for the others."))
	}
	list := slack.NewOptionsMultiSelectBlockElement(slack.MultiOptTypeStatic, block.PlainText("Choose calls"), control.FieldCalls, options...)
	p.Blocks = append(p.Blocks, inputBlock(control.FieldCalls, "Calls", "", list, false))
	return submittable(Modal(Titles[control.ActWithdrawSome], p), control.ActWithdrawSome, "Withdraw", control.FormToken{ButtonToken: s.Token})
}
