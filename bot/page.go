package bot

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"
)

// message is what Slack is sent: text that tells the whole story to notifications and screen readers, and the blocks.
type message struct {
	Text   string        `json:"text"`
	Blocks []slack.Block `json:"blocks"`
}

// body is the message as it is kept.
func (m message) body() ([]byte, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return b, nil
}

// page collects the blocks of a message or a modal, and the text that goes with them.
type page struct {
	blocks []slack.Block
	lines  []string
	moves  []string // what its buttons say
	tabled bool     // it holds a table, of which Slack takes one
}

// headline is the first line: what it is about. Longer ones than Slack's headers hold become a bold paragraph.
func (p *page) headline(s string) {
	if utf8.RuneCountInString(s) > maxHeader || strings.Contains(s, "\n") {
		p.para(new(prose).strong(s))
		return
	}
	p.blocks = append(p.blocks, slack.NewHeaderBlock(plainText(s)))
	p.lines = append(p.lines, escape(s))
}

// para adds one block with a line for each run. Empty runs are left out.
func (p *page) para(runs ...*prose) {
	p.quiet(runs...)
	for _, r := range runs {
		if !r.empty() {
			p.lines = append(p.lines, r.plain.String())
		}
	}
}

// quiet is para for what the text need not repeat.
func (p *page) quiet(runs ...*prose) {
	var parts []slack.RichTextSectionElement
	for _, r := range runs {
		if r.empty() {
			continue
		}
		if len(parts) > 0 {
			parts = append(parts, slack.NewRichTextSectionTextElement("\n", nil))
		}
		parts = append(parts, r.parts...)
	}
	if len(parts) > 0 {
		p.blocks = append(p.blocks, slack.NewRichTextBlock("", slack.NewRichTextSection(parts...)))
	}
}

// quoted adds somebody's words, set apart.
func (p *page) quoted(s string) {
	if s == "" {
		return
	}
	p.blocks = append(p.blocks, slack.NewRichTextBlock("", &slack.RichTextQuote{
		Type: slack.RTEQuote, Elements: []slack.RichTextSectionElement{slack.NewRichTextSectionTextElement(s, nil)},
	}))
	p.lines = append(p.lines, "“"+escape(s)+"”")
}

// exact adds a text in which every character counts.
func (p *page) exact(s string) {
	if s == "" {
		return
	}
	p.blocks = append(p.blocks, slack.NewRichTextBlock("", &slack.RichTextPreformatted{
		Type: slack.RTEPreformatted, Elements: []slack.RichTextSectionElement{slack.NewRichTextSectionTextElement(s, nil)},
	}))
	p.lines = append(p.lines, escape(s))
}

// small adds a line of our own in small print.
func (p *page) small(s string) {
	p.blocks = append(p.blocks, slack.NewContextBlock("", plainText(s)))
	p.lines = append(p.lines, escape(s))
}

// buttons adds a row of buttons. id sets rows apart that hold the same button.
func (p *page) buttons(id string, buttons ...slack.BlockElement) {
	p.blocks = append(p.blocks, slack.NewActionBlock(id, buttons...))
	for _, b := range buttons {
		if b, ok := b.(*slack.ButtonBlockElement); ok && !slices.Contains(p.moves, b.Text.Text) {
			p.moves = append(p.moves, b.Text.Text)
		}
	}
}

// maxMovesTold bounds how many buttons a message's text names.
const maxMovesTold = 12

// whatToDo names a message's buttons, for those who are read its text: that there is something to do is part of the story.
func (p *page) whatToDo() string {
	if len(p.moves) == 0 {
		return ""
	}
	told := make([]string, 0, maxMovesTold)
	for i, m := range p.moves {
		if i == maxMovesTold {
			told = append(told, fmt.Sprintf("%d more", len(p.moves)-i))
			break
		}
		told = append(told, escape(short(m, maxNameShown)))
	}
	return "\nButtons: " + strings.Join(told, " · ")
}

// message is the page as a message. Its text is cut to what chat.update takes, and says so.
func (p *page) message() message {
	what := p.whatToDo()
	return message{Text: clipMarked(strings.Join(p.lines, "\n"), maxUpdateText-100-width(what)) + what, Blocks: p.blocks}
}

// plainText is text that Slack shows literally, without turning :words: into pictures.
func plainText(s string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
}

// button makes a button. value only names what was shown.
func button(action, text, value string, style slack.Style) *slack.ButtonBlockElement {
	return slack.NewButtonBlockElement(action, value, plainText(short(text, maxButtonText))).WithStyle(style)
}

// confirm asks once more, repeating what will happen.
func confirm(title, text, yes, no string, style slack.Style) *slack.ConfirmationBlockObject {
	return slack.NewConfirmationBlockObject(plainText(title), plainText(clip(text, maxConfirm)), plainText(yes), plainText(no)).WithStyle(style)
}
