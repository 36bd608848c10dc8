package yamldoc

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxNesting is the maximum nesting depth of brackets. A policy needs five levels. The limit exists because the
// parser's time grows with the cube of the depth.
const maxNesting = 20

var byteOrderMark = []byte("\xef\xbb\xbf")

// read turns the file's bytes into a tree. The function returns false if there is no value to read.
func (d *Document) read(data []byte) (Value, bool) {
	if len(data) > MaxFile {
		message, hint := fileTooLarge()
		d.wrongFile(message, hint)
		return Value{}, false
	}
	data = bytes.TrimPrefix(data, byteOrderMark)
	if !d.readable(data) {
		return Value{}, false
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	d.lines = strings.Split(text, "\n")
	tokens := lexer.Tokenize(text)
	if deep := tooDeep(tokens); deep != nil {
		d.wrongAt(markOf(deep), fmt.Sprintf("brackets are nested deeper than %d levels", maxNesting), "is one of them not closed?")
		return Value{}, false
	}
	keepTabs(tokens)
	tree, err := parseTokens(tokens)
	if err != nil {
		d.syntax(err)
		return Value{}, false
	}
	return d.root(tree)
}

// parseTokens runs the parser. The parser panics on some malformed files. parseTokens converts such a panic to an
// error.
func parseTokens(tokens token.Tokens) (tree *ast.File, err error) {
	defer func() {
		if recover() != nil {
			tree, err = nil, errUnreadable
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // Entries reports duplicate keys
}

// keepTabs restores the tabs inside of texts without quotation marks, because the lexer leaves these tabs out.
func keepTabs(tokens token.Tokens) {
	for _, t := range tokens {
		if t.Type == token.CommentType || strings.Contains(t.Value, "\t") {
			continue
		}
		if text := folded(strings.TrimSpace(t.Origin)); text != t.Value && strings.ReplaceAll(text, "\t", "") == t.Value {
			t.Value, t.Type = text, token.StringType
		}
	}
}

// folded joins the lines of a text without quotation marks, as YAML does.
func folded(text string) string {
	var b strings.Builder
	breaks := 0
	for i, line := range strings.Split(text, "\n") {
		line = strings.Trim(line, " \t")
		switch {
		case line == "":
			breaks++
			continue
		case i == 0:
		case breaks == 0:
			b.WriteByte(' ')
		default:
			b.WriteString(strings.Repeat("\n", breaks))
		}
		b.WriteString(line)
		breaks = 0
	}
	return b.String()
}

// readable reports whether the bytes are text. If the bytes are not text, readable adds a problem at the first invalid
// byte.
func (d *Document) readable(data []byte) bool {
	line, lineStart := 1, 0
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		broken := c == utf8.RuneError && size == 1
		if broken || c == 0 {
			d.lines = nil
			d.wrongAt(Mark{line, utf8.RuneCount(data[lineStart:i]) + 1}, fmt.Sprintf("byte 0x%02x is not text in UTF-8", data[i]),
				"save the file as UTF-8")
			return false
		}
		i += size
		if c == '\n' {
			line, lineStart = line+1, i
		}
	}
	return true
}

// tooDeep finds the first bracket that is nested deeper than maxNesting, or the first dash that has maxNesting dashes
// before it on its line.
func tooDeep(tokens token.Tokens) *token.Token {
	depth, dashes, line := 0, 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType:
			if t.Position.Line != line {
				dashes, line = 0, t.Position.Line
			}
			dashes++
		}
		if depth > maxNesting || dashes > maxNesting {
			return t
		}
	}
	return nil
}

// root returns the only document of the file.
func (d *Document) root(tree *ast.File) (Value, bool) {
	var bodies []ast.Node
	for _, d := range tree.Docs {
		if d.Body == nil || d.Body.Type() == ast.DirectiveType || d.Body.Type() == ast.CommentType {
			continue
		}
		bodies = append(bodies, d.Body)
	}
	if len(bodies) == 0 {
		d.wrongFile("is empty", d.page+" has an example to begin with")
		return Value{}, false
	}
	if len(bodies) > 1 {
		d.wrongAt(nodeMark(bodies[1]), "a second document begins here", "write one document in the file: remove the line ---")
		return Value{}, false
	}
	d.collectAnchors(bodies[0])
	return d.value("", bodies[0]), true
}

func markOf(t *token.Token) Mark {
	if t == nil || t.Position == nil {
		return Mark{1, 1}
	}
	return Mark{max(t.Position.Line, 1), max(t.Position.Column, 1)}
}

// nodeMark returns the position at which a value begins. For a block mapping, nodeMark returns the position of the
// first key, because the parser gives the position of the first colon.
func nodeMark(n ast.Node) Mark {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return markOf(m.Values[0].Key.GetToken())
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		return markOf(m.Key.GetToken())
	}
	return markOf(n.GetToken())
}
