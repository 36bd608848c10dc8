package block

import (
	"strings"

	"github.com/slack-go/slack"
)

// These are the sizes of the parts of a message on a phone of 390×844 pixels. Heights are in pixels, and widths are in
// characters per row. The sizes were measured in the demo workspace, where TestCardsFit also checks the cards.
const (
	MaxPhoneHeight = 720

	phoneHeader, headerColumns  = 24, 30
	phoneLine, lineColumns      = 22, 36
	phoneSmall, smallColumns    = 19, 51
	phoneExact, exactColumns    = 20, 38
	phoneButtons, buttonColumns = 40, 40
	buttonFrame                 = 5 // columns that a button's frame takes, in addition to the label
	phoneGap                    = 8
)

// PhoneHeight estimates how high blocks are on a phone.
func PhoneHeight(blocks []slack.Block) (height int) {
	for _, b := range blocks {
		switch b := b.(type) {
		case *slack.HeaderBlock:
			height += phoneHeader * rowsOf(b.Text.Text, headerColumns)
		case *slack.RichTextBlock:
			for _, e := range b.Elements {
				switch e := e.(type) {
				case *slack.RichTextSection:
					height += phoneLine * rowsOf(partsText(e.Elements), lineColumns)
				case *slack.RichTextQuote:
					height += phoneLine * rowsOf(partsText(e.Elements), lineColumns)
				case *slack.RichTextPreformatted:
					height += phoneExact*rowsOf(partsText(e.Elements), exactColumns) + 2*phoneGap
				}
			}
		case *slack.ActionBlock:
			height += phoneButtons * rowsOfButtons(b)
		case *slack.ContextBlock:
			for _, e := range b.ContextElements.Elements {
				if text, ok := e.(*slack.TextBlockObject); ok {
					height += phoneSmall * rowsOf(text.Text, smallColumns)
				}
			}
		}
		height += phoneGap
	}
	return height
}

// rowsOf returns how many rows a text takes.
func rowsOf(text string, columns int) (n int) {
	for line := range strings.SplitSeq(text, "\n") {
		wide := 0
		for _, r := range line {
			switch {
			case r == '\uFE0F': // turns the preceding sign into an emoji, and takes no column
			case r >= 0x2600 && r < 0x2800, r >= 0x2E80: // signs, letters of East Asia, emoji
				wide += 2
			default:
				wide++
			}
		}
		n += max(1, (wide+columns-1)/columns)
	}
	return n
}

// partsText returns the text of rich text elements. The length of this text is about the length that people see.
func partsText(parts []slack.RichTextSectionElement) string {
	var b strings.Builder
	for _, part := range parts {
		switch part := part.(type) {
		case *slack.RichTextSectionTextElement:
			b.WriteString(part.Text)
		case *slack.RichTextSectionLinkElement:
			b.WriteString(part.Text)
		case *slack.RichTextSectionDateElement:
			b.WriteString(strings.NewReplacer("{time}", "12:30", "{date_short_pretty}", "Yesterday", "{date_long}", "September 30th, 2026").Replace(part.Format))
		default: // a person or a user group
			b.WriteString("@Somebody Else")
		}
	}
	return b.String()
}

// rowsOfButtons returns how many rows a block of buttons takes.
func rowsOfButtons(b *slack.ActionBlock) (n int) {
	left := 0
	for _, e := range b.Elements.ElementSet {
		if one, ok := e.(*slack.ButtonBlockElement); ok {
			wide := Width(one.Text.Text) + buttonFrame
			if left < wide {
				n, left = n+1, buttonColumns
			}
			left -= wide
		}
	}
	return n
}
