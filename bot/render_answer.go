package bot

import (
	"strconv"

	"github.com/slack-go/slack"
)

// say adds a model's words, at most max characters of them; what is missing is said.
func (p *page) say(pieces []piece, max int) {
	total := 0
	for i, piece := range pieces {
		if total += piece.size; total > max {
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
	p.blocks = append(p.blocks, slack.NewRichTextBlock("", x.element))
	p.lines = append(p.lines, escape(x.plain))
}

// answer draws what the agent answered, whole: in several messages where one can't hold it.
func (s scene) answer() drawing {
	pieces := markdown(s.Text)
	if len(pieces) == 0 {
		pieces = linePieces("(The agent answered with nothing.)", false)
	}
	var d drawing
	for _, part := range parts(pieces) {
		p := new(page)
		for _, x := range part {
			p.piece(x)
		}
		d.messages = append(d.messages, p.message())
	}
	return d
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
