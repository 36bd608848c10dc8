package evidence

import (
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"strings"
)

// message is one posted version of a card, as it was sent to Slack.
type message struct {
	Text   string  `json:"text"`
	Blocks []block `json:"blocks"`
}

// block is the visible part of a Block Kit block, element or text object.
type block struct {
	Type     string          `json:"type"`
	Text     json.RawMessage `json:"text,omitempty"` // a text object, or the text of a rich text element
	Elements []block         `json:"elements,omitempty"`
	Fields   []block         `json:"fields,omitempty"`
	Style    json.RawMessage `json:"style,omitempty"` // a style name, or the styles of a text
	User     string          `json:"user_id,omitempty"`
	Group    string          `json:"usergroup_id,omitempty"`
	Channel  string          `json:"channel_id,omitempty"`
	Name     string          `json:"name,omitempty"`
	URL      string          `json:"url,omitempty"`
	Fallback string          `json:"fallback,omitempty"`
	Alt      string          `json:"alt_text,omitempty"`
}

// readMessages parses a rendering. A rendering is one message, or several messages if it is long.
func readMessages(body []byte) ([]message, error) {
	var many []message
	if json.Unmarshal(body, &many) == nil {
		return many, nil
	}
	var one message
	if err := json.Unmarshal(body, &one); err != nil {
		return nil, fmt.Errorf("the rendering can't be read: %w", err)
	}
	return []message{one}, nil
}

// look returns the visible content of a rendering. Two renderings that look the same can differ only in invisible
// parts, such as the ids of their buttons.
func look(messages []message) string {
	raw, err := json.Marshal(messages) // block has only the visible parts
	if err != nil {
		return ""
	}
	return string(raw)
}

// drawer writes blocks as HTML. Every text passes through html.EscapeString.
type drawer struct {
	strings.Builder
	user func(id string) string
}

func draw(messages []message, user func(string) string) template.HTML {
	d := &drawer{user: user}
	for _, m := range messages {
		for _, b := range m.Blocks {
			d.block(b)
		}
		if len(m.Blocks) == 0 {
			d.put("<p>", m.Text, "</p>")
		}
	}
	return template.HTML(d.String()) //nolint:gosec // put escapes all text from outside
}

// put writes a start tag, escaped text, and the end tag.
func (d *drawer) put(open, words, end string) {
	d.WriteString(open)
	d.WriteString(html.EscapeString(words))
	d.WriteString(end)
}

func (d *drawer) block(b block) {
	switch b.Type {
	case "header":
		d.put("<h4>", b.words(), "</h4>")
	case "divider":
		d.WriteString("<hr>")
	case "section":
		if b.Text != nil {
			d.put("<p>", b.words(), "</p>")
		}
		for _, f := range b.Fields {
			d.put("<p>", f.words(), "</p>")
		}
	case "context":
		d.within("<p class=\"context\">", b.Elements, " ", "</p>")
	case "actions", "context_actions":
		d.within("<p class=\"actions\">", b.Elements, " ", "</p>")
	case "rich_text":
		for _, e := range b.Elements {
			d.rich(e)
		}
	default:
		d.put("<p class=\"context\">[a block of type ", b.Type, " that this page can't draw; its data is in the export]</p>")
	}
}

// The method writes elements between two tags.
func (d *drawer) within(open string, elements []block, between, end string) {
	d.WriteString(open)
	for i, e := range elements {
		if i > 0 {
			d.WriteString(between)
		}
		d.inline(e)
	}
	d.WriteString(end)
}

// rich writes an element of rich text.
func (d *drawer) rich(b block) {
	switch b.Type {
	case "rich_text_section":
		d.within("<p>", b.Elements, "", "</p>")
	case "rich_text_preformatted":
		d.within("<pre>", b.Elements, "", "</pre>")
	case "rich_text_quote":
		d.within("<blockquote>", b.Elements, "", "</blockquote>")
	case "rich_text_list":
		tag := "ul"
		if b.styleWord() == "ordered" {
			tag = "ol"
		}
		d.WriteString("<" + tag + ">")
		for _, e := range b.Elements {
			d.within("<li>", e.Elements, "", "</li>")
		}
		d.WriteString("</" + tag + ">")
	}
}

// inline writes an element that is part of a line.
func (d *drawer) inline(b block) {
	switch b.Type {
	case "text":
		open, end := b.styles()
		d.put(open, b.words(), end)
	case "plain_text", "mrkdwn":
		d.put("", b.words(), "")
	case "link":
		d.put("<span class=\"link\">", or(b.words(), b.URL), "</span>")
	case "user":
		d.put("<span class=\"person\">@", d.user(b.User), "</span>")
	case "usergroup":
		d.put("<span class=\"person\">@", b.Group, "</span>")
	case "channel":
		d.put("<span class=\"person\">#", b.Channel, "</span>")
	case "emoji":
		d.put(":", b.Name, ":")
	case "date":
		d.put("", b.Fallback, "")
	case "image":
		d.put("[", b.Alt, "]")
	case "button":
		class := "button"
		if style := b.styleWord(); style == "primary" || style == "danger" {
			class += " " + style
		}
		d.put("<span class=\""+class+"\">", b.words(), "</span>")
	}
}

// words returns the text of a block. The text is in the block's text object, or is a plain string.
func (b block) words() string {
	var plain string
	if json.Unmarshal(b.Text, &plain) == nil {
		return plain
	}
	var object struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(b.Text, &object) // if it is not a text object, the text is empty
	return object.Text
}

func (b block) styleWord() (word string) {
	_ = json.Unmarshal(b.Style, &word) // a style that is not a string gives ""
	return word
}

// styles returns the tags around a styled text.
func (b block) styles() (open, end string) {
	var s struct{ Bold, Italic, Strike, Code bool }
	_ = json.Unmarshal(b.Style, &s) // without styles all fields are false
	for _, x := range []struct {
		on  bool
		tag string
	}{{s.Bold, "b"}, {s.Italic, "i"}, {s.Strike, "s"}, {s.Code, "code"}} {
		if x.on {
			open, end = open+"<"+x.tag+">", "</"+x.tag+">"+end
		}
	}
	return open, end
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
