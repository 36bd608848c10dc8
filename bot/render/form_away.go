package render

import (
	"time"

	"github.com/slack-go/slack"
)

// AwayForm asks for the period of an absence and for a stand-in. Slack shows both times in the person's own time zone.
func AwayForm(s ClickTarget) slack.ModalViewRequest {
	p := new(BlockBuilder)
	p.Para(Say("While you are away, your cards go to the others in your roles, to your stand-in, or to the lead."))
	from := slack.NewDateTimePickerBlockElement(FieldFrom)
	from.InitialDateTime = s.Now.Truncate(5 * time.Minute).Unix()
	p.Blocks = append(p.Blocks, inputBlock(FieldFrom, "From", "", from, false),
		inputBlock(FieldUntil, "Until", "From then on you are asked again.", slack.NewDateTimePickerBlockElement(FieldUntil), false),
		inputBlock(FieldColleague, "Who stands in?", "They are told, and decide in their own name, as far as their roles allow.",
			slack.NewOptionsSelectBlockElement(slack.OptTypeUser, plainText("Choose a person"), FieldColleague), true))
	return submittable(Modal(FormTitles[ActAway], p), ActAway, "Save", FormToken{ButtonToken: s.Token})
}
