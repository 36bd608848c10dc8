package config

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

// maxNesting is how deep brackets may be nested. A policy needs five levels; the parser's time grows with their cube.
const maxNesting = 20

var byteOrderMark = []byte("\xef\xbb\xbf")

// parse turns the file's bytes into a tree. It reports false where there is none to read from.
func (r *reader) parse(data []byte) (value, bool) {
	if len(data) > MaxFile {
		message, hint := fileTooLarge()
		r.problems = append(r.problems, Problem{File: r.file.Name, Message: message, Hint: hint})
		return value{}, false
	}
	data = bytes.TrimPrefix(data, byteOrderMark)
	if !r.readable(data) {
		return value{}, false
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	r.file.lines = strings.Split(text, "\n")
	tokens := lexer.Tokenize(text)
	if deep := tooDeep(tokens); deep != nil {
		r.wrongAt(markOf(deep), fmt.Sprintf("brackets are nested deeper than %d levels", maxNesting), "is one of them not closed?")
		return value{}, false
	}
	tree, err := parseTokens(tokens)
	if err != nil {
		r.syntax(err)
		return value{}, false
	}
	return r.root(tree)
}

// parseTokens runs the parser. It may panic on what nobody would write on purpose; such a file is wrong all the same.
func parseTokens(tokens token.Tokens) (tree *ast.File, err error) {
	defer func() {
		if recover() != nil {
			tree, err = nil, errUnreadable
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // reported by fields, with the place of the first
}

// readable reports whether the bytes are text, and says where they are not.
func (r *reader) readable(data []byte) bool {
	line, lineStart := 1, 0
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		broken := c == utf8.RuneError && size == 1
		if broken || c == 0 {
			r.file.lines = nil
			r.wrongAt(mark{line, utf8.RuneCount(data[lineStart:i]) + 1}, fmt.Sprintf("byte 0x%02x is not text in UTF-8", data[i]),
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

// tooDeep finds the first bracket that is nested too deep, or the first of too many dashes on a line.
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

// root finds the one document of the file.
func (r *reader) root(tree *ast.File) (value, bool) {
	var bodies []ast.Node
	for _, d := range tree.Docs {
		if d.Body == nil || d.Body.Type() == ast.DirectiveType || d.Body.Type() == ast.CommentType {
			continue
		}
		bodies = append(bodies, d.Body)
	}
	if len(bodies) == 0 {
		r.problems = append(r.problems, Problem{File: r.file.Name, Message: "is empty", Hint: "docs/policy.md has an example to begin with"})
		return value{}, false
	}
	if len(bodies) > 1 {
		r.wrongAt(nodeMark(bodies[1]), "a second document begins here", "a policy file has one: remove the line ---")
		return value{}, false
	}
	r.collectAnchors(bodies[0])
	return r.value("", bodies[0]), true
}

func markOf(t *token.Token) mark {
	if t == nil || t.Position == nil {
		return mark{1, 1}
	}
	return mark{max(t.Position.Line, 1), max(t.Position.Column, 1)}
}

// nodeMark is where a value begins. A block mapping's own token is its first colon, so its first key stands for it.
func nodeMark(n ast.Node) mark {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return markOf(m.Values[0].Key.GetToken())
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		return markOf(m.Key.GetToken())
	}
	return markOf(n.GetToken())
}
