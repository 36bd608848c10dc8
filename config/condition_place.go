package config

import (
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"
)

// places says where in the file each character of a condition's text is, and last where the text ends.
type places []mark

// at is the place of a line (from 1) and column (from 0) of the text.
func (p places) at(text string, line, column int) mark {
	lines := strings.SplitAfter(text, "\n")
	for _, before := range lines[:min(max(line-1, 0), len(lines))] {
		column += len([]rune(before))
	}
	return p.offset(column)
}

// offset is the place of a character, counted from 0.
func (p places) offset(n int) mark { return p[min(max(n, 0), len(p)-1)] }

// places follows the text through the file: through quotation marks, escapes and lines. A text that is written in a way that
// is not followed here is pointed at as a whole.
func (v value) places(text string) places {
	whole := v.r.file.at(v.path)
	f := follower{r: v.r, mark: whole}
	f.begin(v.node)
	out := make(places, 0, len(text)+1)
	for _, c := range text {
		m, ok := f.next(c)
		if !ok {
			return places{whole}
		}
		out = append(out, m)
	}
	return append(out, f.mark)
}

// follower goes through a text of the file as YAML reads it.
type follower struct {
	r *reader
	mark
	quote  rune // 0: there are no quotation marks
	indent int  // of a block's lines; 0: it is no block
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

// next goes over one character of the text and says where it is. A new line of the file is a space of the text, or a new line.
func (f *follower) next(c rune) (mark, bool) {
	here, rest := f.mark, f.rest()
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

// newline goes to the next line that has something on it.
func (f *follower) newline() {
	for more := true; more; more = f.line <= len(f.r.file.lines) && strings.TrimSpace(f.r.file.lines[f.line-1]) == "" {
		f.line++
	}
	f.column = max(f.indent, 1)
	if f.indent == 0 {
		f.column += blanks(f.rest())
	}
}

func (f *follower) rest() []rune { return []rune(f.r.rest(f.mark)) }

// blanks counts the blanks that a line begins with.
func blanks(line []rune) int { return len(line) - len([]rune(strings.TrimLeft(string(line), " \t"))) }
