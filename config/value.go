package config

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// reader walks the file's tree and notes every problem on its way. It never stops at one.
type reader struct {
	file     *File
	anchors  map[string]ast.Node
	problems Problems
}

func (r *reader) wrongAt(m mark, message, hint string) {
	r.problems = append(r.problems, r.file.problemAt(m, Error, message, hint))
}

// value is one value of the file with the path of the keys that lead to it.
type value struct {
	r    *reader
	path string
	node ast.Node // never an alias, an anchor or a tag; nil: it could not be read, and that was reported
}

// value makes the value of a node and marks its place.
func (r *reader) value(path string, n ast.Node) value {
	n = r.resolve(n, 0)
	v := value{r: r, path: path, node: n}
	if n != nil {
		r.file.marks[path] = nodeMark(n)
	}
	return v
}

// wrong reports a problem with the value.
func (v value) wrong(message, hint string) {
	v.r.problems = append(v.r.problems, v.r.file.problem(Error, v.path, message, hint))
}

func (v value) wrongf(hint, format string, args ...any) { v.wrong(fmt.Sprintf(format, args...), hint) }

// empty reports whether there is nothing after the key.
func (v value) empty() bool {
	_, null := v.node.(*ast.NullNode)
	return null
}

// text reads a text that has to be there.
func (v value) text(like string) (string, bool) {
	hint := "write " + like
	switch n := v.node.(type) {
	case nil:
		return "", false
	case *ast.StringNode:
		return v.filled(n.Value, hint)
	case *ast.LiteralNode:
		return v.filled(n.Value.Value, hint)
	case *ast.NullNode:
		v.missing(hint)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		v.wrongf(hint, "%s is no text", n.GetToken().Value)
	default:
		v.wrongf(hint, "is %s, and text is needed", kindOf(n))
	}
	return "", false
}

func (v value) filled(text, hint string) (string, bool) {
	if text == "" {
		v.wrong("is empty", hint)
	}
	return text, text != ""
}

// free reads a text that can be anything, a number too if it is in quotes.
func (v value) free(like string) (string, bool) {
	switch n := v.node.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		v.wrongf("write "+like+"; if "+n.GetToken().Value+" is meant, put it in quotes", "%s is no text in YAML", n.GetToken().Value)
		return "", false
	}
	return v.text(like)
}

// missing reports a key without a value. The usual reason is a # that was meant to be text.
func (v value) missing(hint string) {
	m := v.r.file.at(v.path)
	if line := v.r.rest(mark{m.line, 1}); strings.Contains(line, ": #") {
		_, comment, _ := strings.Cut(line, ": #")
		name, _, _ := strings.Cut(comment, " ")
		hint = fmt.Sprintf("# begins a comment in YAML: if it is meant as text, put it in quotes: %q", "#"+name)
	}
	v.wrong("is empty", hint)
}

// flag reads true or false.
func (v value) flag() (on, ok bool) {
	switch n := v.node.(type) {
	case nil:
		return false, false
	case *ast.BoolNode:
		return n.Value, true
	case *ast.NullNode:
		v.missing("write true or false")
		return false, false
	}
	v.wrongf("write true or false", "%s is neither true nor false", v.shown())
	return false, false
}

// whole reads a whole number in bounds.
func (v value) whole(least, most int) (int, bool) {
	hint := fmt.Sprintf("write a whole number from %d to %d", least, most)
	var n int
	switch node := v.node.(type) {
	case nil:
		return 0, false
	case *ast.NullNode:
		v.missing(hint)
		return 0, false
	case *ast.IntegerNode:
		switch i := node.Value.(type) {
		case int64:
			n = int(i)
		case uint64:
			n = int(min(i, uint64(most)+1))
		}
		if n >= least && n <= most {
			return n, true
		}
	}
	v.wrongf(hint, "%s is not possible", v.shown())
	return 0, false
}

// shown repeats a value in a message.
func (v value) shown() string {
	switch n := v.node.(type) {
	case *ast.StringNode:
		return quote(n.Value)
	case *ast.LiteralNode:
		return quote(n.Value.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value
	}
	return kindOf(v.node)
}

func kindOf(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.NullNode:
		return "nothing"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	}
	return "something else"
}
