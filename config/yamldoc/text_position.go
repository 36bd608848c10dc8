package yamldoc

import (
	"slices"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"
)

// TextMarks holds the position in the file of each character of a text. The last mark is the position of the text's
// end.
type TextMarks []Mark

// At converts a line (from 1) and a column (from 0) of the text to a position in the file.
func (p TextMarks) At(text string, line, column int) Mark {
	lines := strings.SplitAfter(text, "\n")
	for _, before := range lines[:min(max(line-1, 0), len(lines))] {
		column += len([]rune(before))
	}
	return p.Offset(column)
}

// Offset returns the position in the file of a character. Characters are counted from 0.
func (p TextMarks) Offset(n int) Mark { return p[min(max(n, 0), len(p)-1)] }

// TextMarks finds the position in the file of each character of the value's text, even if the text has quotation
// marks, escapes or line breaks. If the text uses another notation, each character gets the position at which the
// text begins.
func (v Value) TextMarks(text string) TextMarks {
	whole := v.doc.At(v.Path)
	f := follower{doc: v.doc, Mark: whole}
	f.begin(v.node)
	out := make(TextMarks, 0, len(text)+1)
	for _, c := range text {
		m, ok := f.next(c)
		if !ok {
			return TextMarks{whole}
		}
		out = append(out, m)
	}
	return append(out, f.Mark)
}

// follower reads a text in the file as a YAML parser does.
type follower struct {
	doc *Document
	Mark
	quote  rune // 0: there are no quotation marks
	indent int  // indentation of a block's lines; 0: not a block
}

// begin goes to the text's first character.
func (f *follower) begin(n ast.Node) {
	if _, block := n.(*ast.LiteralNode); block {
		f.newline()
		f.indent = f.column
		return
	}
	if rest := f.rest(); len(rest) > 0 && (rest[0] == '"' || rest[0] == '\'') {
		f.quote = rest[0]
		f.column++
		f.column += blanks(f.rest())
	}
}

// The method moves past one character of the text and returns the character's position. A line break in the file
// stands for a space or a line break in the text.
func (f *follower) next(c rune) (Mark, bool) {
	here, rest := f.Mark, f.rest()
	if blanks(rest) == len(rest) {
		f.newline()
		return here, unicode.IsSpace(c)
	}
	if len(rest) > 1 && ((f.quote == '"' && rest[0] == '\\' && strings.ContainsRune(`"\/`, rest[1])) || (f.quote == '\'' && rest[0] == '\'')) {
		rest = rest[1:]
		f.column++
	}
	f.column++
	return here, rest[0] == c
}

// newline goes to the next line that is not blank.
func (f *follower) newline() {
	for more := true; more; more = f.line <= len(f.doc.lines) && strings.TrimSpace(f.doc.lines[f.line-1]) == "" {
		f.line++
	}
	f.column = max(f.indent, 1)
	if f.indent == 0 {
		f.column += blanks(f.rest())
	}
}

func (f *follower) rest() []rune { return f.doc.characters(f.Mark) }

// blanks counts the blanks at the beginning of a line.
func blanks(line []rune) int {
	if n := slices.IndexFunc(line, func(c rune) bool { return c != ' ' && c != '\t' }); n >= 0 {
		return n
	}
	return len(line)
}
