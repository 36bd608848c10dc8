package bot

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"countersign/approvers/desk"
)

// say adds a model's words, at most max characters of them and as many blocks as most; what is missing is said.
func (p *page) say(pieces []piece, max, most int) {
	total := 0
	for i, piece := range pieces {
		if total += piece.size; total > max || i == most {
			missing := 0
			for _, m := range pieces[i:] {
				missing += m.size
			}
			p.para(say("… (cut: " + plural(missing, "more character") + ")"))
			return
		}
		p.piece(piece)
	}
}

func (p *page) piece(x piece) {
	if x.table != nil && !p.tabled {
		p.tabled = true
		p.blocks = append(p.blocks, x.table)
	} else {
		p.blocks = append(p.blocks, slack.NewRichTextBlock("", x.element))
	}
	p.lines = append(p.lines, escape(x.plain))
}

// answer draws what the agent answered, whole: in several messages where one can't hold it.
func (s scene) answer() drawing {
	pieces := markdown(s.Text)
	if len(pieces) == 0 {
		pieces = linePieces("(The agent answered with nothing.)", false)
	}
	var d drawing
	all := parts(pieces)
	if desk.IsLong(s.Text) { // the rest is in a file
		all = all[:1]
	}
	for i, part := range all {
		p := new(page)
		for _, x := range part {
			p.piece(x)
		}
		if desk.IsLong(s.Text) {
			p.para(new(prose).soft(fmt.Sprintf("The answer has %d characters in all. The whole of it follows in this thread.", utf8.RuneCountInString(s.Text))))
		}
		if i == 0 { // the message that is known by its place
			p.blocks = append(p.blocks, s.feedback())
		}
		d.messages = append(d.messages, p.message())
	}
	return d
}

// file draws what goes on after the first message of an answer that is handed over as a file, for a Slack that takes none.
func (s scene) file() drawing {
	var d drawing
	for i, part := range parts(markdown(s.Text)) {
		if i == 0 {
			continue
		}
		p := new(page)
		for _, x := range part {
			p.piece(x)
		}
		d.messages = append(d.messages, p.message())
	}
	if len(d.messages) == 0 {
		return one(paragraph(say("That was all of it.")))
	}
	return d
}

// feedback are the buttons with which people say what they think of an answer.
func (s scene) feedback() slack.Block {
	side := func(words, ref, aloud string) *slack.FeedbackButton {
		return slack.NewFeedbackButton(plainText(words), s.mark(ref+s.Turn.ID)).WithAccessibilityLabel(aloud)
	}
	return slack.NewContextActionsBlock("feedback", slack.NewFeedbackButtonsBlockElement(actRate,
		side("Good answer", rateGood, "This answer was good"), side("Poor answer", ratePoor, "This answer was not good")))
}

// maxParts is how many blocks one message of an answer has at most.
const maxParts = 45

// parts divides an answer into messages.
func parts(pieces []piece) [][]piece {
	var out [][]piece
	size := 0
	for _, x := range pieces {
		if n := len(out); n == 0 || len(out[n-1]) == maxParts || size+x.size > maxPartText {
			out, size = append(out, nil), 0
		}
		size += x.size
		out[len(out)-1] = append(out[len(out)-1], x)
	}
	return out
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}
