// Package markdown turns a model's Markdown into Slack's rich text. Every word of the result is literal. So a model
// can't mention people, hide a link behind other words, or imitate the bot's buttons.
//
// The package parses headings, paragraphs, lists, quotations, fenced code, rules and tables (markdown.go, table.go).
// Within these blocks, it parses code, links, bold, italic and struck-out text (inline.go). All other text is shown
// unchanged. The only word that is dropped is the language of fenced code. Blocks other than fenced code end at a blank
// line. Therefore the bot can show a text while the model writes it. Settled finds the part of the text that later text
// can't change. For any text, the parsing time grows linearly with the text's length.
package markdown

import (
	"iter"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"countersign/internal/visible"

	"github.com/slack-go/slack"
)

// These values limit an answer in Slack. The limits of texts are in characters. Slack accepts 12,000 characters in a
// message.
const (
	MaxBlockText   = 3000 // text in one block
	MaxMessageText = 9000 // text in one message; longer answers take several messages
	MaxBlocks      = 45   // blocks in one message
)

// Piece is one block of an answer, as a rich text element and as plain text.
type Piece struct {
	Element slack.RichTextElement
	Table   *slack.TableBlock // used instead of the element in a message that has no table yet; nil: not a table
	Plain   string
	Size    int // characters of Plain
}

var (
	headingLine = regexp.MustCompile(`^ {0,3}(#{1,6}) +(.*?)#* *$`)
	bulletLine  = regexp.MustCompile(`^( *)(?:[-*+•]) +(.*)$`)
	numberLine  = regexp.MustCompile(`^( *)(\d{1,9})[.)] +(.*)$`)
	quoteLine   = regexp.MustCompile(`^ {0,3}> ?(.*)$`)
	fenceLine   = regexp.MustCompile("^ {0,3}(```+|~~~+)")
	ruleLine    = regexp.MustCompile(`^ {0,3}([-*_] *){3,}$`)
)

// Parse divides a model's answer into pieces of at most MaxBlockText characters.
func Parse(text string) []Piece {
	var out []Piece
	lines := strings.Split(strings.ReplaceAll(visible.Text(strings.ReplaceAll(text, "\r\n", "\n")), "\r", "\n"), "\n")
	for i := 0; i < len(lines); {
		n := fenced(lines[i:])
		switch {
		case n > 0:
			body := lines[i+1 : i+n]
			if len(body) > 0 && fenceLine.MatchString(body[len(body)-1]) {
				body = body[:len(body)-1]
			}
			out = append(out, exactPieces(strings.Join(body, "\n"))...)
		case strings.TrimSpace(lines[i]) == "":
			n = 1
		case tabular(lines[i:]) > 0:
			n = tabular(lines[i:])
			out = append(out, tablePiece(lines[i:i+n])...)
		case headingLine.MatchString(lines[i]):
			n = 1
			out = append(out, linePieces(headingLine.FindStringSubmatch(lines[i])[2], true)...)
		case ruleLine.MatchString(lines[i]):
			n = 1
			out = append(out, linePieces("———", false)...)
		case quoteLine.MatchString(lines[i]):
			n = run(lines[i:], quoteLine.MatchString)
			out = append(out, quotePieces(lines[i:i+n])...)
		case bulletLine.MatchString(lines[i]), numberLine.MatchString(lines[i]):
			n = run(lines[i:], func(l string) bool { return bulletLine.MatchString(l) || numberLine.MatchString(l) })
			out = append(out, listPieces(lines[i:i+n])...)
		default:
			n = run(lines[i:], ordinary)
			out = append(out, linePieces(paragraphOf(lines[i:i+n]), false)...)
		}
		i += n
	}
	return out
}

// paragraphOf joins the lines of a paragraph. paragraphOf removes indentation.
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
	return strings.TrimSpace(l) != "" && !headingLine.MatchString(l) && !bulletLine.MatchString(l) && !numberLine.MatchString(l) &&
		!quoteLine.MatchString(l) && !fenceLine.MatchString(l) && !ruleLine.MatchString(l)
}

// fenced returns the number of lines in the fenced block that begins with the first line. If no fenced block begins
// there, fenced returns 0. Without a closing fence, the block extends to the last line.
func fenced(lines []string) int {
	open := fenceLine.FindStringSubmatch(lines[0])
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

// tabular returns the number of lines in the table whose header is the first line. If the first line is not a header,
// tabular returns 0.
func tabular(lines []string) int {
	if len(lines) < 2 || !strings.Contains(lines[0], "|") || strings.Trim(lines[1], " |:-") != "" || !strings.Contains(lines[1], "-") {
		return 0
	}
	n := 2
	for n < len(lines) && strings.Contains(lines[n], "|") {
		n++
	}
	return n
}

func section(parts []slack.RichTextSectionElement, plain string) Piece {
	return Piece{Element: slack.NewRichTextSection(parts...), Plain: plain, Size: utf8.RuneCountInString(plain)}
}

func linePieces(text string, heading bool) []Piece {
	var out []Piece
	for _, part := range Pages(text, MaxBlockText) {
		parts := parseInline(part)
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
	for _, part := range Pages(text, MaxBlockText) {
		if part == "" {
			continue
		}
		out = append(out, Piece{Element: &slack.RichTextPreformatted{Type: slack.RTEPreformatted, Elements: literal(part, nil)}, Plain: part, Size: utf8.RuneCountInString(part)})
	}
	return out
}

func quotePieces(lines []string) []Piece {
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(quoteLine.FindStringSubmatch(l)[1])
	}
	var out []Piece
	for _, part := range Pages(b.String(), MaxBlockText) {
		if parts := parseInline(part); len(parts) > 0 {
			out = append(out, Piece{Element: &slack.RichTextQuote{Type: slack.RTEQuote, Elements: parts}, Plain: part, Size: utf8.RuneCountInString(part)})
		}
	}
	return out
}

// listPieces makes one list from each sequence of items with the same kind and depth, because all items of a Slack list
// have the same kind and depth.
func listPieces(lines []string) []Piece {
	var out []Piece
	for _, l := range lines {
		list, text := listItem(l)
		for _, part := range Pages(text, MaxBlockText) {
			parts := parseInline(part)
			if len(parts) == 0 {
				parts = literal(" ", nil)
			}
			one := *list
			one.Elements = []slack.RichTextElement{slack.NewRichTextSection(parts...)}
			out = append(out, Piece{Element: &one, Plain: part, Size: utf8.RuneCountInString(part)})
		}
	}
	return mergeLists(out)
}

// listItem returns an empty list with the kind, the depth and the number of a list item, and the item's text.
func listItem(l string) (*slack.RichTextList, string) {
	if m := numberLine.FindStringSubmatch(l); m != nil {
		list := slack.NewRichTextList(slack.RTEListOrdered, min(len(m[1])/2, 8))
		number, _ := strconv.Atoi(m[2]) // numberLine allows at most nine digits
		list.Offset = max(0, number-1)
		return list, m[3]
	}
	m := bulletLine.FindStringSubmatch(l)
	return slack.NewRichTextList(slack.RTEListBullet, min(len(m[1])/2, 8)), m[2]
}

// mergeLists joins consecutive items of one kind and depth. If a list continues after a deeper list, mergeLists
// continues the list's numbers, even if every item is written as "1.".
func mergeLists(in []Piece) []Piece {
	var out []Piece
	last := map[int]int{} // the last number at each depth
	for _, p := range in {
		list := p.Element.(*slack.RichTextList)
		maps.DeleteFunc(last, func(depth, _ int) bool {
			return depth > list.Indent || depth == list.Indent && list.Style == slack.RTEListBullet
		})
		if n := len(out) - 1; n >= 0 {
			before := out[n].Element.(*slack.RichTextList)
			if before.Style == list.Style && before.Indent == list.Indent && out[n].Size+p.Size <= MaxBlockText {
				before.Elements = append(before.Elements, list.Elements...)
				out[n].Plain += "\n" + p.Plain
				out[n].Size += p.Size
				last[list.Indent]++
				continue
			}
		}
		if list.Style == slack.RTEListOrdered {
			list.Offset = max(list.Offset, last[list.Indent])
			last[list.Indent] = list.Offset + 1
		}
		out = append(out, p)
	}
	return out
}

// Settled returns the length in bytes of a Markdown text's settled part. Later text can't change this part. This part
// ends at the last blank line outside a fence, or at the end of a fence.
func Settled(text string) (n int) {
	for n = range settledLengths(text) {
	}
	return n
}

// settledLengths yields the lengths of all settled parts of a text, the shortest first.
func settledLengths(text string) iter.Seq[int] {
	return func(yield func(int) bool) {
		fence, at := "", 0
		for line := range strings.SplitAfterSeq(text, "\n") {
			at += len(line)
			if !strings.HasSuffix(line, "\n") {
				return
			}
			opens, ends := fenceLine.FindStringSubmatch(strings.TrimSuffix(line, "\n")), false
			switch {
			case fence == "" && opens != nil:
				fence = opens[1]
			case fence == "":
				ends = strings.TrimSpace(line) == ""
			case strings.HasPrefix(strings.TrimSpace(line), fence) && strings.Trim(strings.TrimSpace(line), fence[:1]) == "":
				fence, ends = "", true
			}
			if ends && !yield(at) {
				return
			}
		}
	}
}

// SettledWithin returns the longest settled part of a text that fits within the given numbers of blocks and characters.
// SettledWithin returns the part's length in bytes, and its pieces.
func SettledWithin(text string, blocks, size int) (n int, pieces []Piece) {
	for end := range settledLengths(text) {
		more := Parse(text[n:end])
		for _, x := range more {
			size -= x.Size
		}
		if blocks -= len(more); blocks < 0 || size < 0 {
			break
		}
		n, pieces = end, append(pieces, more...)
	}
	return n, pieces
}

// Messages divides an answer into messages.
func Messages(pieces []Piece) [][]Piece {
	var out [][]Piece
	size := 0
	for _, x := range pieces {
		if n := len(out); n == 0 || len(out[n-1]) == MaxBlocks || size+x.Size > MaxMessageText {
			out, size = append(out, nil), 0
		}
		size += x.Size
		out[len(out)-1] = append(out[len(out)-1], x)
	}
	return out
}

// Pages divides a text into pages of at most n characters. Each cut is at the last line end in the second half of a
// page. If there is none, the cut is within a line.
func Pages(text string, n int) []string {
	var out []string
	rest := []rune(text)
	for len(rest) > n {
		at := n
		for i := n; i > n/2; i-- {
			if rest[i-1] == '\n' {
				at = i
				break
			}
		}
		out = append(out, string(rest[:at]))
		rest = rest[at:]
	}
	return append(out, string(rest))
}
