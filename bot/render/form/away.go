package form

import (
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"time"

	"github.com/slack-go/slack"
)

// Away asks for the period of an absence and for a stand-in. Slack shows both times in the person's own time zone.
func Away(s ClickTarget) slack.ModalViewRequest {
	p := new(block.Builder)
	p.Para(block.Say("While you are away, your cards go to the others in your roles, to your stand-in, or to the lead."))
	from := slack.NewDateTimePickerBlockElement(control.FieldFrom)
	from.InitialDateTime = s.Now.Truncate(5 * time.Minute).Unix()
	p.Blocks = append(p.Blocks, inputBlock(control.FieldFrom, "From", "", from, false),
		inputBlock(control.FieldUntil, "Until", "From then on you are asked again.", slack.NewDateTimePickerBlockElement(control.FieldUntil), false),
		inputBlock(control.FieldColleague, "Who stands in?", "They are told, and decide in their own name, as far as their roles allow.",
			slack.NewOptionsSelectBlockElement(slack.OptTypeUser, block.PlainText("Choose a person"), control.FieldColleague), true))
	return submittable(Modal(Titles[control.ActAway], p), control.ActAway, "Save", control.FormToken{ButtonToken: s.Token})
}
