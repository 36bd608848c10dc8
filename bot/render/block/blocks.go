package block

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"countersign/bot/render/control"
	"countersign/bot/render/markdown"
	"countersign/bot/slackapi"
)

// Message is one Slack message: its blocks, and a text with the same content for notifications and screen readers.
type Message struct {
	Text   string        `json:"text"`
	Blocks []slack.Block `json:"blocks"`
}

// Body returns the message in the form in which it is stored.
func (m Message) Body() ([]byte, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return b, nil
}

// Builder collects the blocks of a message or a modal, and the matching text.
type Builder struct {
	Blocks []slack.Block
	lines  []string
	labels []string // labels of the buttons
	Tabled bool     // contains a table; Slack accepts one per message
}

// Line adds a line only to the message's text.
func (p *Builder) Line(s string) { p.lines = append(p.lines, s) }

// FirstLine returns the first line of the collected text.
func (p *Builder) FirstLine() string { return p.lines[0] }

// Width returns the number of characters of the collected text.
func (p *Builder) Width() (n int) {
	for _, line := range p.lines {
		n += Width(line)
	}
	return n
}

// Headline adds the first line. If the text is too long for Slack's header block, it becomes a bold paragraph.
func (p *Builder) Headline(s string) {
	if utf8.RuneCountInString(s) > slackapi.MaxHeader || strings.Contains(s, "\n") {
		p.Para(new(RichText).Strong(s))
		return
	}
	p.Blocks = append(p.Blocks, slack.NewHeaderBlock(PlainText(s)))
	p.lines = append(p.lines, Escape(s))
}

// Para adds one block with a line for each text. Empty texts are skipped.
func (p *Builder) Para(runs ...*RichText) {
	p.Quiet(runs...)
	for _, r := range runs {
		if !r.Empty() {
			p.lines = append(p.lines, r.plain.String())
		}
	}
}

// ParaWithID is like Para, but the block has an ID. If all texts are empty, ParaWithID adds no block.
func (p *Builder) ParaWithID(id string, runs ...*RichText) {
	before := len(p.Blocks)
	p.Para(runs...)
	if len(p.Blocks) > before {
		p.Blocks[before].(*slack.RichTextBlock).BlockID = id
	}
}

// Quiet is like Para, but does not add to the message's text.
func (p *Builder) Quiet(runs ...*RichText) {
	var parts []slack.RichTextSectionElement
	for _, r := range runs {
		if r.Empty() {
			continue
		}
		if len(parts) > 0 {
			parts = append(parts, slack.NewRichTextSectionTextElement("\n", nil))
		}
		parts = append(parts, r.parts...)
	}
	if len(parts) > 0 {
		p.Blocks = append(p.Blocks, slack.NewRichTextBlock("", slack.NewRichTextSection(parts...)))
	}
}

// Quote adds text that a person wrote, as a quotation.
func (p *Builder) Quote(s string) {
	if s == "" {
		return
	}
	p.Blocks = append(p.Blocks, slack.NewRichTextBlock("", &slack.RichTextQuote{
		Type: slack.RTEQuote, Elements: []slack.RichTextSectionElement{slack.NewRichTextSectionTextElement(s, nil)},
	}))
	p.lines = append(p.lines, "“"+Escape(s)+"”")
}

// Preformatted adds preformatted text, so that people see each character, also spaces, as it is.
func (p *Builder) Preformatted(s string) {
	if s == "" {
		return
	}
	p.Blocks = append(p.Blocks, slack.NewRichTextBlock("", &slack.RichTextPreformatted{
		Type: slack.RTEPreformatted, Elements: []slack.RichTextSectionElement{slack.NewRichTextSectionTextElement(s, nil)},
	}))
	p.lines = append(p.lines, Escape(s))
}

// Small adds a line of the bot's own text in small print.
func (p *Builder) Small(s string) {
	p.Blocks = append(p.Blocks, slack.NewContextBlock("", PlainText(s)))
	p.lines = append(p.lines, Escape(s))
}

// Buttons adds a row of buttons. The parameter id distinguishes rows that contain the same button.
func (p *Builder) Buttons(id string, buttons ...slack.BlockElement) {
	p.Blocks = append(p.Blocks, slack.NewActionBlock(id, buttons...))
	for _, b := range buttons {
		if b, ok := b.(*slack.ButtonBlockElement); ok && !slices.Contains(p.labels, b.Text.Text) {
			p.labels = append(p.labels, b.Text.Text)
		}
	}
}

// maxButtonsNamed is the maximum number of buttons that a message's text names.
const maxButtonsNamed = 12

// whatToDo names a message's buttons for people who get only the message's text, such as users of screen readers.
func (p *Builder) whatToDo() string {
	if len(p.labels) == 0 {
		return ""
	}
	told := make([]string, 0, maxButtonsNamed)
	for i, m := range p.labels {
		if i == maxButtonsNamed {
			told = append(told, fmt.Sprintf("%d more", len(p.labels)-i))
			break
		}
		told = append(told, Escape(Shorten(m, MaxNameShown)))
	}
	return buttonsNamed + strings.Join(told, " · ")
}

// buttonsNamed introduces the names of the buttons at the end of a message's text.
const buttonsNamed = "\nButtons: "

// Message returns the collected blocks as a message. The text of the message is cut to the length that chat.update
// accepts, with a note about the cut.
func (p *Builder) Message() Message {
	what := p.whatToDo()
	return Message{Text: clipMarked(strings.Join(p.lines, "\n"), slackapi.MaxMessageText-100-Width(what)) + what, Blocks: p.Blocks}
}

// PlainText returns text that Slack shows literally, without turning :words: into emoji.
func PlainText(s string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
}

// Button returns a button. The parameter value only identifies what was shown.
func Button(action, text, value string, style slack.Style) *slack.ButtonBlockElement {
	return slack.NewButtonBlockElement(action, value, PlainText(Shorten(text, slackapi.MaxButtonText))).WithStyle(style)
}

// Confirm returns a confirmation dialog that repeats what will happen.
func Confirm(title, text, yes, no string, style slack.Style) *slack.ConfirmationBlockObject {
	return slack.NewConfirmationBlockObject(PlainText(title), PlainText(Clip(text, slackapi.MaxConfirm)), PlainText(yes), PlainText(no)).WithStyle(style)
}

// Paragraph returns a Builder with one paragraph.
func Paragraph(p ...*RichText) *Builder {
	out := new(Builder)
	out.Para(p...)
	return out
}

// LinkButton returns a button that opens an address.
func LinkButton(words, url string) slack.BlockElement {
	return Button(control.ActLink, words, "", slack.StyleDefault).WithURL(url)
}

// Pieces adds text from the model. The parameter max limits the characters, and the parameter most limits the blocks.
// If the text is cut, a note says so.
func (p *Builder) Pieces(list []markdown.Piece, max, most int) {
	total := 0
	for i, piece := range list {
		if total += piece.Size; total > max || i == most {
			missing := 0
			for _, m := range list[i:] {
				missing += m.Size
			}
			p.Para(Say("… (cut: " + Plural(missing, "more character") + ")"))
			return
		}
		p.Piece(piece)
	}
}

// Piece adds a part of a model's text: rich text or a table.
func (p *Builder) Piece(x markdown.Piece) {
	if x.Table != nil && !p.Tabled {
		p.Tabled = true
		p.Blocks = append(p.Blocks, x.Table)
	} else {
		p.Blocks = append(p.Blocks, slack.NewRichTextBlock("", x.Element))
	}
	p.lines = append(p.lines, Escape(x.Plain))
}
