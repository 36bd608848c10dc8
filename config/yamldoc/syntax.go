package yamldoc

import (
	"errors"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
)

var errUnreadable = errors.New("is not YAML that can be read")

// syntax reports a syntax error, and says what to write instead. The parser stops at the first syntax error, so later
// problems are not reported.
func (d *Document) syntax(err error) {
	var at *yaml.SyntaxError
	known := errors.As(err, &at)
	last := len(d.lines)
	if known {
		last = markOf(at.Token).line
	}
	if d.tabs(last) {
		return
	}
	if !known {
		d.wrongFile(errUnreadable.Error(), d.page+" has an example to begin with")
		return
	}
	m := d.begin(markOf(at.Token))
	message, hint := d.explain(at.Message, m)
	d.wrongAt(m, message, hint)
}

// blockStart matches the end of a line that begins a text as a block.
var blockStart = regexp.MustCompile(`(^|[-:?] +)[|>][0-9+-]*[ \t]*(#.*)?$`)

// tabs reports every line that is indented by a tab, if one of these lines is at most at the line with the number last.
// YAML does not allow tabs, and an editor does not show tabs. Inside of a block, a tab is a part of the text.
func (d *Document) tabs(last int) bool {
	var found []Mark
	block := -1 // indentation of the line that began a block; -1: not in a block
	for i, line := range d.lines {
		blank := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		spaces := len(line) - len(strings.TrimLeft(line, " "))
		if len(blank) == len(line) || block >= 0 && spaces > block {
			continue
		}
		if block = -1; blockStart.MatchString(line) {
			block = spaces
		}
		if at := strings.IndexByte(blank, '\t'); at >= 0 {
			found = append(found, Mark{i + 1, at + 1})
		}
	}
	if len(found) == 0 || found[0].line > last {
		return false
	}
	for _, m := range found {
		d.wrongAt(m, "the line is indented by a tab", "indent it by spaces")
	}
	return true
}

// explain translates the parser's message into plain words.
func (d *Document) explain(said string, m Mark) (message, hint string) {
	rest := d.rest(m)
	has := func(s string) bool { return strings.Contains(said, s) }
	switch {
	case has("reserved character"):
		return Quote(rest[:min(1, len(rest))]) + " can't begin a value in YAML", `put the value in quotes, such as "@support"`
	case has("unexpected scalar value type"), has("undefined anchor"):
		if !strings.HasPrefix(rest, "*") && !strings.HasPrefix(rest, "&") && strings.Contains(d.upTo(m), ": !") {
			return "! at the beginning of a value has a meaning of its own in YAML", `put the value in quotes, such as "!has(args.note)"`
		}
		return "* and & have a meaning of their own in YAML, and no name follows here", `put a value that begins with them in quotes, such as "*"`
	case has("']' not found"), has("sequence end"):
		return "the bracket [ is never closed", unclosed(rest, "]")
	case has("'}'"), has("flow map content"), has("mapping end"):
		if strings.HasPrefix(rest, "{{") {
			return "{{ opens a YAML mapping here, not a template", `put the template in quotes, such as "Ship to {{.address}}"`
		}
		return "the brace { is never closed, or what follows it is not a list of keys and values", unclosed(rest, "}")
	case has("end character of"):
		return "the quotation mark is never closed", "add the one at the end"
	case has("mapping value is not allowed"):
		return "there is a second colon on this line", "put the value in quotes, or the key on a line of its own"
	case has("non-map value"), has("value is not allowed"):
		return "this line does not fit the lines above it", "write key: value, and indent keys that belong together by the same number of spaces"
	case has("escape character"):
		return "this is not an escape sequence of YAML", `write \\ for a backslash, or use 'single quotes'`
	case has("cannot start any token"):
		return "a character that can't be here", "is it a tab? indent by spaces"
	}
	return "is not valid YAML: " + said, ""
}

// begin moves the position back by one if the parser points to the character after the wrong character.
func (d *Document) begin(m Mark) Mark {
	before := Mark{m.line, max(m.column-1, 1)}
	if s := d.rest(before); strings.HasPrefix(s, "{{") || strings.HasPrefix(s, "*") || strings.HasPrefix(s, "&") {
		return before
	}
	return m
}

// rest returns the part of the line that begins at a position.
func (d *Document) rest(m Mark) string {
	return string(d.characters(m))
}

// characters returns the part of the line that begins at a position. Each line is converted once, because a file may
// have one very long line with many conditions.
func (d *Document) characters(m Mark) []rune {
	if m.line > len(d.lines) {
		return nil
	}
	line, ok := d.runes[m.line]
	if !ok {
		line = []rune(d.lines[m.line-1])
		d.runes[m.line] = line
	}
	return line[min(m.column-1, len(line)):]
}

// upTo returns the part of the line before a position.
func (d *Document) upTo(m Mark) string {
	line := d.rest(Mark{m.line, 1})
	return strings.TrimSuffix(line, d.rest(m))
}

// unclosed returns the hint about a bracket that is not closed. For example, in [#support], the # makes the rest of
// the line a comment.
func unclosed(rest, close string) string {
	if i := strings.IndexByte(rest, '#'); i > 0 && strings.ContainsRune("[{, ", rune(rest[i-1])) {
		return `# begins a comment in YAML: put the name in quotes, such as "#support"`
	}
	return "add " + close
}
