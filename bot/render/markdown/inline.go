package markdown

import (
	"regexp"
	"strings"

	"github.com/slack-go/slack"
)

// inlineSyntax matches Markdown's inline syntax. At each position the alternatives are tried in this order. The
// comments give the numbers of the groups.
var inlineSyntax = regexp.MustCompile("(?s)" + strings.Join([]string{
	"(`+)([^`\n]+?)`+",              // 1, 2: code
	`!?\[([^\]\n]*)\]\(([^)\s]+)\)`, // 3, 4: a link or an image
	`\*\*([^*]+?)\*\*`,              // 5: bold
	`__([^_]+?)__`,                  // 6: bold
	`~~([^~]+?)~~`,                  // 7: struck out
	`\*([^*\s][^*\n]*?)\*`,          // 8: italic
	`\b_([^_\s][^_\n]*?)_\b`,        // 9: italic
	`(https?://[^\s<>\[\]()"'⟨⟩]+)`, // 10: an address
}, "|"))

// parseInline parses the inline syntax of one paragraph.
func parseInline(s string) []slack.RichTextSectionElement {
	return inlineIn(s, nil, 0)
}

// maxNested is the maximum depth of nested styles.
const maxNested = 3

func inlineIn(s string, style *slack.RichTextSectionTextStyle, depth int) []slack.RichTextSectionElement {
	var out []slack.RichTextSectionElement
	for s != "" {
		m := inlineSyntax.FindStringSubmatchIndex(s)
		if m == nil || depth > maxNested {
			return append(out, literal(s, style)...)
		}
		out = append(out, literal(s[:m[0]], style)...)
		group := func(n int) (string, bool) {
			if m[2*n] < 0 {
				return "", false
			}
			return s[m[2*n]:m[2*n+1]], true
		}
		out = append(out, matched(group, style, depth)...)
		s = s[m[1]:]
	}
	return out
}

func matched(group func(int) (string, bool), style *slack.RichTextSectionTextStyle, depth int) []slack.RichTextSectionElement {
	if text, ok := group(2); ok {
		return literal(text, with(style, slack.RichTextSectionTextStyle{Code: true}))
	}
	if url, ok := group(4); ok {
		words, _ := group(3)
		return linkWithTarget(words, url, style)
	}
	if url, ok := group(10); ok {
		return linkWithTarget("", url, style)
	}
	for n, add := range map[int]slack.RichTextSectionTextStyle{5: {Bold: true}, 6: {Bold: true}, 7: {Strike: true}, 8: {Italic: true}, 9: {Italic: true}} {
		if text, ok := group(n); ok {
			return inlineIn(text, with(style, add), depth+1)
		}
	}
	return nil
}

// linkWithTarget shows the target of a link beside its words. So the words can't imitate another address.
func linkWithTarget(words, url string, style *slack.RichTextSectionTextStyle) []slack.RichTextSectionElement {
	if !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") || len(url) > 2000 {
		if words == "" {
			return literal(url, style)
		}
		return literal(words+" ("+url+")", style)
	}
	var out []slack.RichTextSectionElement
	tail := url[len(strings.TrimRight(url, ".,;:!?")):] // punctuation that belongs to the sentence, not to the address
	url = strings.TrimSuffix(url, tail)
	if words != "" && words != url {
		out = literal(words+" (", style)
		tail = ")" + tail
	}
	out = append(out, slack.NewRichTextSectionLinkElement(url, url, style))
	return append(out, literal(tail, style)...)
}

func literal(s string, style *slack.RichTextSectionTextStyle) []slack.RichTextSectionElement {
	if s == "" {
		return nil
	}
	return []slack.RichTextSectionElement{slack.NewRichTextSectionTextElement(s, style)}
}

func with(style *slack.RichTextSectionTextStyle, add slack.RichTextSectionTextStyle) *slack.RichTextSectionTextStyle {
	if style != nil {
		add.Bold, add.Italic = add.Bold || style.Bold, add.Italic || style.Italic
		add.Strike, add.Code = add.Strike || style.Strike, add.Code || style.Code
	}
	return &add
}

func bolden(parts []slack.RichTextSectionElement) []slack.RichTextSectionElement {
	for _, part := range parts {
		if text, ok := part.(*slack.RichTextSectionTextElement); ok {
			text.Style = with(text.Style, slack.RichTextSectionTextStyle{Bold: true})
		}
	}
	return parts
}
