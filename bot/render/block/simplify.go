package block

import (
	"countersign/bot/render/control"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"
)

// Some workspaces and clients do not support all kinds of blocks that the bot uses. Therefore, if Slack refuses a
// message, the bot sends it again in a simpler form. The simpler form has the same content, and keeps its buttons as
// long as Slack accepts buttons.

// Simplicity says how much of a message's design is left out.
type Simplicity int

// These are the forms of a message, in the order in which the bot tries them.
const (
	AsDrawn      Simplicity = iota
	Undecorated             // only kinds of blocks that Slack has had for years
	SectionsOnly            // only text and buttons
	TextOnly                // no blocks
)

var (
	usualKinds   = []string{"rich_text", "header", "section", "context", "actions", "divider"}
	plainestKind = []string{"section", "actions", "divider"}
	spareKinds   = []string{"divider", "context_actions", "image"} // kinds that are left out without a replacement
)

// IsUsualKind reports whether Slack has had a kind of block for years.
func IsUsualKind(kind string) bool { return slices.Contains(usualKinds, kind) }

// Simplify returns a message in a simpler form, without the kinds of blocks for which refused returns true. With
// AsDrawn, only the refused kinds of blocks are left out. The result whole reports whether the blocks of the simpler
// form have every text and button of the message.
func Simplify(m Message, form Simplicity, refused func(kind string) bool) (simpler Message, whole bool) {
	if form == TextOnly {
		return textOnly(m), false
	}
	takes := func(kind string) bool {
		return !refused(kind) && (form < Undecorated || slices.Contains(usualKinds, kind)) && (form < SectionsOnly || slices.Contains(plainestKind, kind))
	}
	s := simplifier{takes: takes, whole: true}
	for _, b := range m.Blocks {
		if !s.add(b) || len(s.blocks) > max(maxBlocks, len(m.Blocks)) {
			return textOnly(m), false
		}
	}
	if len(s.blocks) == 0 {
		return textOnly(m), false
	}
	return Message{Text: m.Text, Blocks: s.blocks}, s.whole
}

// maxBlocks is the number of blocks that Slack accepts in a message. A Home tab may have more.
const maxBlocks = 50

// Kinds returns the kinds of blocks in a message.
func (m Message) Kinds() (kinds []string) {
	for _, b := range m.Blocks {
		if kind := string(b.BlockType()); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// noButtons replaces the names of the buttons in a message without blocks. One of the texts below follows, and says
// what people can do instead.
const (
	noButtons     = "\nSlack refuses the buttons of this message. "
	insteadDecide = "Decide on my Home tab, or write /countersign pending."
	insteadResume = "Write /countersign resume to resume everything."
	insteadTool   = "So it can't be answered here; when the time is over, the tool is told that nobody answered."
)

// textOnly returns a message without blocks.
func textOnly(m Message) Message {
	text, buttons := m.Text, slices.ContainsFunc(m.Blocks, func(b slack.Block) bool { return b.BlockType() == slack.MBTAction })
	if at := strings.LastIndex(text, buttonsNamed); buttons && at >= 0 {
		text = text[:at]
	}
	return Message{Text: text + insteadOfButtons(m.Blocks)}
}

// insteadOfButtons returns a text that says what people can do without the buttons of some blocks. The text is empty if
// there is nothing to do.
func insteadOfButtons(blocks []slack.Block) string {
	var choices []string
	instead := ""
	for _, b := range blocks {
		row, ok := b.(*slack.ActionBlock)
		if !ok {
			continue
		}
		for _, e := range row.Elements.ElementSet {
			one, ok := e.(*slack.ButtonBlockElement)
			switch {
			case !ok:
				instead = insteadDecide
			case control.ActionOf(one.ActionID) == control.ActArguments: // the button only shows details
			case strings.HasPrefix(one.ActionID, control.ActChoose):
				choices = append(choices, one.Text.Text)
			case one.ActionID == control.ActResume:
				instead = insteadResume
			case one.ActionID == control.ActFillIn, one.ActionID == control.ActVisited, one.ActionID == control.ActNoAnswer:
				instead = insteadTool
			default:
				instead = insteadDecide
			}
		}
	}
	switch {
	case len(choices) > 0:
		return noButtons + "Write one of these, or an answer of your own: " + strings.Join(choices, " · ")
	case instead != "":
		return noButtons + instead
	}
	return ""
}

// simplifier collects the blocks of a simpler form.
type simplifier struct {
	takes  func(kind string) bool
	blocks []slack.Block
	whole  bool
}

// add adds a block. If the kind of block is not accepted, add leaves out the block if it is spare, and otherwise adds
// the block's text instead. If the text can't be added either, add returns false.
func (s *simplifier) add(b slack.Block) bool {
	kind := string(b.BlockType())
	switch {
	case s.takes(kind):
		s.blocks = append(s.blocks, b)
		return true
	case slices.Contains(spareKinds, kind):
		return true
	case kind == "actions", kind == "input":
		return false
	}
	raw, err := json.Marshal(b)
	var o map[string]any
	if err != nil || json.Unmarshal(raw, &o) != nil {
		return false
	}
	id, _ := o["block_id"].(string)
	text := strings.Trim(blockText(o), "\n")
	if text == "" {
		return true
	}
	switch {
	case kind != "rich_text" && s.takes("rich_text"):
		s.blocks = append(s.blocks, slack.NewRichTextBlock(id, slack.NewRichTextSection(Say(text).parts...)))
	case s.takes("section"):
		for i, part := range chunks(text, maxSection) {
			part := slack.NewSectionBlock(PlainText(part), nil, nil)
			if part.BlockID = id; i > 0 && id != "" {
				part.BlockID = Shorten(id, 200) + ":" + strconv.Itoa(i)
			}
			s.blocks = append(s.blocks, part)
		}
	default:
		return false
	}
	return true
}

// maxSection is the number of characters that Slack accepts in the text of a section.
const maxSection = 3000

// chunks cuts a text into parts of at most the given number of characters. The parts together contain the whole text.
func chunks(text string, most int) (parts []string) {
	for utf8.RuneCountInString(text) > most {
		runes := []rune(text)
		end := most
		if line := strings.LastIndexByte(string(runes[:most]), '\n'); line > 0 {
			end = utf8.RuneCountInString(string(runes[:most])[:line+1])
		}
		parts, text = append(parts, string(runes[:end])), string(runes[end:])
	}
	return append(parts, text)
}

var taskSigns = map[slack.TaskCardStatus]string{
	slack.TaskCardStatusPending: "✋ ", slack.TaskCardStatusInProgress: "▶️ ", slack.TaskCardStatusComplete: "✅ ", slack.TaskCardStatusError: "⚠️ ",
}

// blockText returns the literal text of a block, or of a part of a block. The parameter v is decoded JSON.
func blockText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		return joinTexts(v, "")
	case map[string]any:
		kind, _ := v["type"].(string)
		if text, ok := elementText(kind, v); ok {
			return text
		}
		return blockText(v["text"]) + joinTexts(list(v["fields"]), "\n") + blockText(v["elements"])
	}
	return ""
}

// elementText returns the text of an element if its kind adds signs, line breaks or other words to the texts of its
// parts. For all other kinds, the second result is false.
func elementText(kind string, v map[string]any) (string, bool) {
	word := func(key string) string { s, _ := v[key].(string); return s }
	switch kind {
	case "task_card":
		return taskSigns[slack.TaskCardStatus(word("status"))] + word("title") + onNextLine(blockText(v["details"])) + onNextLine(blockText(v["output"])), true
	case "plan":
		return blockText(v["title"]) + onNextLine(joinTexts(list(v["tasks"]), "\n")), true
	case "table":
		var rows []string
		for _, row := range list(v["rows"]) {
			rows = append(rows, joinTexts(list(row), " | "))
		}
		return strings.Join(rows, "\n"), true
	case "rich_text", "context":
		return joinTexts(list(v["elements"]), "\n"), true
	case "rich_text_list":
		var items []string
		for i, item := range list(v["elements"]) {
			sign := "• "
			if word("style") == "ordered" {
				sign = strconv.Itoa(i+1) + ". "
			}
			indent, _ := v["indent"].(float64)
			items = append(items, strings.Repeat("  ", int(indent))+sign+blockText(item))
		}
		return strings.Join(items, "\n"), true
	case "rich_text_quote":
		return "“" + blockText(v["elements"]) + "”", true
	case "user":
		return "@" + word("user_id"), true
	case "usergroup":
		return "@" + word("usergroup_id"), true
	case "channel":
		return "#" + word("channel_id"), true
	case "broadcast":
		return "@" + word("range"), true
	case "emoji":
		return ":" + word("name") + ":", true
	case "date":
		return word("fallback"), true
	case "link":
		if words := word("text"); words != "" && words != word("url") {
			return fmt.Sprintf("%s (%s)", words, word("url")), true
		}
		return word("url"), true
	}
	return "", false
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// joinTexts joins the texts of a list.
func joinTexts(items []any, with string) string {
	texts := make([]string, 0, len(items))
	for _, item := range items {
		texts = append(texts, blockText(item))
	}
	return strings.Join(texts, with)
}

// onNextLine puts a text on a line of its own.
func onNextLine(text string) string {
	if text == "" {
		return ""
	}
	return "\n" + text
}
