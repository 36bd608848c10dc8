package yamldoc

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
)

// Value is one value of the file.
type Value struct {
	Path string // the keys that lead to the value, such as tools.issue_refund.rules[0]
	doc  *Document
	node ast.Node // never an alias, an anchor or a tag; nil: the value could not be parsed, which was reported
}

// value returns the value of a node and records its place.
func (d *Document) value(path string, n ast.Node) Value {
	n = d.resolve(n, 0)
	v := Value{doc: d, Path: path, node: n}
	if n != nil {
		d.marks[path] = nodeMark(n)
	}
	return v
}

// Wrong adds an error about the value to the document.
func (v Value) Wrong(message, hint string) {
	v.doc.problems = append(v.doc.problems, v.doc.Problem(Error, v.Path, message, hint))
}

// Wrongf is like Wrong, but formats the message.
func (v Value) Wrongf(hint, format string, args ...any) { v.Wrong(fmt.Sprintf(format, args...), hint) }

// WrongAt adds an error about a part of the value to the document.
func (v Value) WrongAt(m Mark, message, hint string) { v.doc.wrongAt(m, v.Path+": "+message, hint) }

// ProblemAt returns a problem with a part of the value, without adding it to the document.
func (v Value) ProblemAt(m Mark, s Severity, message, hint string) Problem {
	return v.doc.ProblemAt(m, s, v.Path+": "+message, hint)
}

// WrongStart reports a problem at the beginning of the file.
func (v Value) WrongStart(message, hint string) { v.doc.wrongAt(Mark{1, 1}, message, hint) }

// Below returns a value without content at a path below this value. Problems can be reported at this path.
func (v Value) Below(path string) Value { return Value{doc: v.doc, Path: join(v.Path, path)} }

// ProblemCount returns how many problems have been found in the document so far.
func (v Value) ProblemCount() int { return len(v.doc.problems) }

// File returns the name of the document's file.
func (v Value) File() string { return v.doc.name }

// Line returns the line on which the value begins.
func (v Value) Line() int { return v.doc.At(v.Path).line }

// Hide masks the value in excerpts, because it may be a secret. If the end of the value is not on its first line, Hide
// masks the rest of that line.
func (v Value) Hide() {
	if !v.IsText() && !v.IsNumber() {
		return
	}
	m := v.doc.At(v.Path)
	before, rest := v.doc.upTo(m), v.doc.rest(m)
	written := strings.TrimSpace(v.node.GetToken().Origin)
	if !strings.HasPrefix(rest, written) {
		written = rest
	}
	line := before + strings.Repeat("*", utf8.RuneCountInString(written)) + rest[len(written):]
	v.doc.lines[m.line-1] = line
	delete(v.doc.runes, m.line)
	for i, p := range v.doc.problems {
		if p.Line == m.line {
			v.doc.problems[i].Source = line
		}
	}
}

// Text reads a text that may not be empty. The parameter named like is an example for hints.
func (v Value) Text(like string) (string, bool) {
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
		v.Wrongf(hint, "%s is not text", n.GetToken().Value)
	default:
		v.Wrongf(hint, "is %s, and text is needed", kindOf(n))
	}
	return "", false
}

func (v Value) filled(text, hint string) (string, bool) {
	if text == "" {
		v.Wrong("is empty", hint)
	}
	return text, text != ""
}

// Free reads any text. If the value is a number, the hint is to put the number in quotes.
func (v Value) Free(like string) (string, bool) {
	switch n := v.node.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		v.Wrongf("write "+like+"; if "+n.GetToken().Value+" is meant, put it in quotes", "%s is not text in YAML", n.GetToken().Value)
		return "", false
	}
	return v.Text(like)
}

// missing reports a key without a value. The usual cause is a # that was meant as text.
func (v Value) missing(hint string) {
	m := v.doc.At(v.Path)
	if line := v.doc.rest(Mark{m.line, 1}); strings.Contains(line, ": #") {
		_, comment, _ := strings.Cut(line, ": #")
		name, _, _ := strings.Cut(comment, " ")
		hint = fmt.Sprintf("# begins a comment in YAML: if it is meant as text, put it in quotes: %q", "#"+name)
	}
	v.Wrong("is empty", hint)
}

// Flag reads true or false.
func (v Value) Flag() (on, ok bool) {
	switch n := v.node.(type) {
	case nil:
		return false, false
	case *ast.BoolNode:
		return n.Value, true
	case *ast.NullNode:
		v.missing("write true or false")
		return false, false
	}
	v.Wrongf("write true or false", "%s is neither true nor false", v.Shown())
	return false, false
}

// leadingZero matches numbers that YAML reads with the base 8.
var leadingZero = regexp.MustCompile(`^0[0-9]+$`)

// Whole reads a whole number between the given minimum and maximum.
func (v Value) Whole(least, most int) (int, bool) {
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
		written := node.GetToken().Value
		if decimal, err := strconv.Atoi(written); err == nil && decimal != n && leadingZero.MatchString(written) {
			v.Wrongf("write "+number(decimal)+" if that is meant", "%s is %d in YAML, because of the zero", written, n)
			return 0, false
		}
		if n >= least && n <= most {
			return n, true
		}
	}
	v.Wrongf(hint, "%s is not possible", v.Shown())
	return 0, false
}

// Shown returns the value in the form in which messages show it.
func (v Value) Shown() string {
	switch n := v.node.(type) {
	case *ast.StringNode:
		return Quote(n.Value)
	case *ast.LiteralNode:
		return Quote(n.Value.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value
	}
	return kindOf(v.node)
}
