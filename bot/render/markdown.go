package render

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"
)

// This file turns a model's Markdown into rich text in which every word is literal. A model can't mention anybody, hide
// a link behind other words, or imitate the bot's buttons.

// Piece is one block of an answer, as a rich text element and as plain text.
type Piece struct {
	element slack.RichTextElement
	Table   *slack.TableBlock // replaces the element in a message that has no table yet; nil if this is no table
	plain   string
	Size    int
}

var (
	mdHeading     = regexp.MustCompile(`^ {0,3}(#{1,6}) +(.*?)#* *$`)
	mdBullet      = regexp.MustCompile(`^( *)(?:[-*+•]) +(.*)$`)
	mdNumber      = regexp.MustCompile(`^( *)(\d{1,9})[.)] +(.*)$`)
	mdQuote       = regexp.MustCompile(`^ {0,3}> ?(.*)$`)
	MarkdownFence = regexp.MustCompile("^ {0,3}(```+|~~~+)")
	mdRule        = regexp.MustCompile(`^ {0,3}([-*_] *){3,}$`)
)

// Markdown divides a model's answer into pieces of at most maxBlockText characters.
func Markdown(text string) []Piece {
	var out []Piece
	lines := strings.Split(strings.ReplaceAll(Visible(strings.ReplaceAll(text, "\r\n", "\n")), "\r", "\n"), "\n")
	for i := 0; i < len(lines); {
		n := fenced(lines[i:])
		switch {
		case n > 0:
			body := lines[i+1 : i+n]
			if len(body) > 0 && MarkdownFence.MatchString(body[len(body)-1]) {
				body = body[:len(body)-1]
			}
			out = append(out, exactPieces(strings.Join(body, "\n"))...)
		case strings.TrimSpace(lines[i]) == "":
			n = 1
		case tabular(lines[i:]) > 0:
			n = tabular(lines[i:])
			out = append(out, tablePiece(lines[i:i+n])...)
		case mdHeading.MatchString(lines[i]):
			n = 1
			out = append(out, linePieces(mdHeading.FindStringSubmatch(lines[i])[2], true)...)
		case mdRule.MatchString(lines[i]):
			n = 1
			out = append(out, linePieces("———", false)...)
		case mdQuote.MatchString(lines[i]):
			n = run(lines[i:], mdQuote.MatchString)
			out = append(out, quotePieces(lines[i:i+n])...)
		case mdBullet.MatchString(lines[i]), mdNumber.MatchString(lines[i]):
			n = run(lines[i:], func(l string) bool { return mdBullet.MatchString(l) || mdNumber.MatchString(l) })
			out = append(out, listPieces(lines[i:i+n])...)
		default:
			n = run(lines[i:], ordinary)
			out = append(out, linePieces(paragraphOf(lines[i:i+n]), false)...)
		}
		i += n
	}
	return out
}

// paragraphOf joins the lines of a paragraph. It removes indentation.
func paragraphOf(lines []string) string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = strings.TrimLeft(l, " ")
	}
	return strings.Join(out, "\n")
}

func run(lines []string, is func(string) bool) int {
	n := 0
	for n < len(lines) && is(lines[n]) {
		n++
	}
	return max(n, 1)
}

func ordinary(l string) bool {
	return strings.TrimSpace(l) != "" && !mdHeading.MatchString(l) && !mdBullet.MatchString(l) && !mdNumber.MatchString(l) &&
		!mdQuote.MatchString(l) && !MarkdownFence.MatchString(l) && !mdRule.MatchString(l)
}

// fenced returns the number of lines of the fenced block at the start of lines. Without a closing fence the block
// extends to the end.
func fenced(lines []string) int {
	open := MarkdownFence.FindStringSubmatch(lines[0])
	if open == nil {
		return 0
	}
	for i := 1; i < len(lines); i++ {
		if l := strings.TrimSpace(lines[i]); strings.HasPrefix(l, open[1]) && strings.Trim(l, open[1][:1]) == "" {
			return i + 1
		}
	}
	return len(lines)
}

// tabular returns the number of lines of the table at the start of lines.
func tabular(lines []string) int {
	if len(lines) < 2 || !strings.Contains(lines[0], "|") || strings.Trim(lines[1], " |:-") != "" || !strings.Contains(lines[1], "-") {
		return 0
	}
	return 2 + run(append(lines[2:len(lines):len(lines)], ""), func(l string) bool { return strings.Contains(l, "|") }) - noRow(lines)
}

func noRow(lines []string) int {
	if len(lines) > 2 && strings.Contains(lines[2], "|") {
		return 0
	}
	return 1
}

func section(parts []slack.RichTextSectionElement, plain string) Piece {
	return Piece{element: slack.NewRichTextSection(parts...), plain: plain, Size: utf8.RuneCountInString(plain)}
}

func linePieces(text string, heading bool) []Piece {
	var out []Piece
	for _, part := range pagesOf(text, maxBlockText) {
		parts := inline(part)
		if heading {
			parts = bolden(parts)
		}
		if len(parts) > 0 {
			out = append(out, section(parts, part))
		}
	}
	return out
}

func exactPieces(text string) []Piece {
	var out []Piece
	for _, part := range pagesOf(text, maxBlockText) {
		if part == "" {
			continue
		}
		out = append(out, Piece{element: &slack.RichTextPreformatted{Type: slack.RTEPreformatted, Elements: literal(part, nil)}, plain: part, Size: utf8.RuneCountInString(part)})
	}
	return out
}

func quotePieces(lines []string) []Piece {
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(mdQuote.FindStringSubmatch(l)[1])
	}
	var out []Piece
	for _, part := range pagesOf(b.String(), maxBlockText) {
		if parts := inline(part); len(parts) > 0 {
			out = append(out, Piece{element: &slack.RichTextQuote{Type: slack.RTEQuote, Elements: parts}, plain: part, Size: utf8.RuneCountInString(part)})
		}
	}
	return out
}

// listPieces makes one list of each run of items with the same kind and depth, because a Slack list has one kind and
// depth.
func listPieces(lines []string) []Piece {
	var out []Piece
	for _, l := range lines {
		style, indent, text := listItem(l)
		for _, part := range pagesOf(text, maxBlockText) {
			parts := inline(part)
			if len(parts) == 0 {
				parts = literal(" ", nil)
			}
			out = append(out, Piece{element: listOf(style, indent, parts), plain: part, Size: utf8.RuneCountInString(part)})
		}
	}
	return mergeLists(out)
}

func listItem(l string) (slack.RichTextListElementType, int, string) {
	if m := mdNumber.FindStringSubmatch(l); m != nil {
		return slack.RTEListOrdered, min(len(m[1])/2, 8), m[3]
	}
	m := mdBullet.FindStringSubmatch(l)
	return slack.RTEListBullet, min(len(m[1])/2, 8), m[2]
}

func listOf(style slack.RichTextListElementType, indent int, parts []slack.RichTextSectionElement) *slack.RichTextList {
	return slack.NewRichTextList(style, indent, slack.NewRichTextSection(parts...))
}

func mergeLists(in []Piece) []Piece {
	var out []Piece
	counted := map[int]int{} // the last number used at each depth
	for _, p := range in {
		list := p.element.(*slack.RichTextList)
		for depth := range counted {
			if depth > list.Indent {
				delete(counted, depth)
			}
		}
		if len(out) > 0 {
			last := out[len(out)-1].element.(*slack.RichTextList)
			if last.Style == list.Style && last.Indent == list.Indent && out[len(out)-1].Size+p.Size <= maxBlockText {
				last.Elements = append(last.Elements, list.Elements...)
				out[len(out)-1].plain += "\n" + p.plain
				out[len(out)-1].Size += p.Size
				counted[list.Indent]++
				continue
			}
		}
		if list.Style == slack.RTEListOrdered {
			list.Offset = counted[list.Indent]
		}
		counted[list.Indent]++
		out = append(out, p)
	}
	return out
}
