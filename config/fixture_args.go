package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"countersign/approvers"
)

// arguments reads a call's arguments: a mapping, or the JSON as it is. Numbers keep the digits with which they are written.
func (v value) arguments() json.RawMessage {
	switch v.node.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		text, _ := v.text(`a mapping, or JSON such as '{"amount": 600}'`)
		return json.RawMessage(text)
	}
	if v.node != nil && !v.isMapping() {
		v.wrongf(`write a mapping such as {amount: 600}, or JSON in quotes`, "%s is no arguments", v.shown())
		return nil
	}
	w := jsonWriter{of: v}
	w.write(v, 0)
	return json.RawMessage(w.b.String())
}

// exponent is a number of JSON that the YAML parser takes for text, although it is not in quotes.
var exponent = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?[eE][+-]?[0-9]+$`)

// maxArgsDepth is above what calls may have, so that a fixture can try that.
const maxArgsDepth = 50

// jsonWriter writes YAML as JSON. Aliases may repeat a value in itself, or be many more values than are written: both have an end here.
type jsonWriter struct {
	of   value // all of the arguments
	b    strings.Builder
	over bool // they are too large, and that was said
}

func (w *jsonWriter) write(v value, depth int) {
	if w.over = w.over || w.tooLarge(depth); w.over {
		return
	}
	switch n := v.node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		w.object(v, depth)
	case *ast.SequenceNode:
		w.list(v, depth)
	case *ast.StringNode:
		if n.Token.Type == token.StringType && exponent.MatchString(n.Value) {
			w.b.WriteString(n.Value)
			return
		}
		w.text(n.Value)
	case *ast.LiteralNode:
		w.text(n.Value.Value)
	case *ast.BoolNode:
		w.b.WriteString(strconv.FormatBool(n.Value))
	case *ast.IntegerNode, *ast.FloatNode:
		text := n.GetToken().Value
		if !json.Valid([]byte(text)) {
			v.wrongf("write it as JSON has it, or in quotes if text is meant", "%s is no number in JSON", text)
		}
		w.b.WriteString(text)
	case *ast.NullNode:
		w.b.WriteString("null")
	case nil: // it could not be read, and that was said
	default:
		v.wrongf("write text, a number, true, false, a list or a mapping", "%s can't be an argument", kindOf(n))
	}
}

func (w *jsonWriter) tooLarge(depth int) bool {
	switch {
	case depth > maxArgsDepth:
		w.of.wrong(fmt.Sprintf("is nested deeper than %d levels", maxArgsDepth), "does an alias repeat a value in itself?")
	case w.b.Len() > approvers.MaxArgs:
		w.of.wrong(fmt.Sprintf("is longer than the %d KiB that a call's arguments can have", approvers.MaxArgs>>10), "write shorter ones")
	default:
		return false
	}
	return true
}

func (w *jsonWriter) object(v value, depth int) {
	w.b.WriteByte('{')
	for i, e := range v.entries("the arguments") {
		if i > 0 {
			w.b.WriteByte(',')
		}
		w.text(e.key)
		w.b.WriteByte(':')
		w.write(e.value, depth+1)
	}
	w.b.WriteByte('}')
}

func (w *jsonWriter) list(v value, depth int) {
	w.b.WriteByte('[')
	items, _ := v.list("[1, 2]")
	for i, item := range items {
		if i > 0 {
			w.b.WriteByte(',')
		}
		w.write(item, depth+1)
	}
	w.b.WriteByte(']')
}

func (w *jsonWriter) text(s string) {
	out, err := json.Marshal(s)
	if err != nil { // text always encodes
		out = []byte(`""`)
	}
	w.b.Write(out)
}
