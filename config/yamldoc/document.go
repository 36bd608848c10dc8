package yamldoc

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Document is a YAML file as it was written: its lines, the position of each value, and the problems found so far.
type Document struct {
	name     string
	page     string // the page with an example
	lines    []string
	runes    map[int][]rune  // lines by number, as characters: see characters
	marks    map[string]Mark // by path, such as tools.issue_refund.rules[0]
	anchors  map[string]ast.Node
	problems Problems
}

// Mark is a place in the file. Lines and columns count from 1.
type Mark struct{ line, column int }

// Parse reads a file that holds one YAML document. name is the file's name in problems, and page is the page of
// docs with an example of such a file. ok is false if there is no
// value to read. In that case, the document's problems say why.
func Parse(name, page string, data []byte) (d *Document, root Value, ok bool) {
	d = &Document{name: name, page: page, marks: map[string]Mark{}, runes: map[int][]rune{}}
	root, ok = d.read(data)
	return d, root, ok
}

// Problems returns the problems found so far, in the order of the file.
func (d *Document) Problems() Problems { return d.problems.InOrder() }

// At returns the position at which the value at a path begins. For a mapping or an empty value, this is the position of
// its key. If the file does not have the path, At returns the position of the nearest value that would contain this
// path.
func (d *Document) At(path string) Mark {
	for path != "" {
		if m, ok := d.marks[path]; ok {
			return m
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return Mark{1, 1}
}

// Has reports whether the file has a value at exactly this path.
func (d *Document) Has(path string) bool {
	_, ok := d.marks[path]
	return ok
}

// Problem returns a problem about the value at a path, without adding it to the document.
func (d *Document) Problem(s Severity, path, message, hint string) Problem {
	return d.ProblemAt(d.At(path), s, orFile(path)+": "+message, hint)
}

// ProblemAt returns a problem at a position in the file, without adding it to the document.
func (d *Document) ProblemAt(m Mark, s Severity, message, hint string) Problem {
	p := Problem{File: d.name, Line: m.line, Column: m.column, Severity: s, Message: message, Hint: hint}
	if m.line >= 1 && m.line <= len(d.lines) {
		p.Source = d.lines[m.line-1]
	}
	return p
}

// wrongAt reports an error at a place in the file.
func (d *Document) wrongAt(m Mark, message, hint string) {
	d.problems = append(d.problems, d.ProblemAt(m, Error, message, hint))
}

// wrongFile reports an error in the file as a whole.
func (d *Document) wrongFile(message, hint string) {
	d.problems = append(d.problems, Problem{File: d.name, Message: message, Hint: hint})
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func orFile(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}
