package yamldoc

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// JSON writes a value as JSON. The parameter named most limits the length of the JSON, in bytes. Numbers keep the
// digits with which they are written.
func (v Value) JSON(most int) json.RawMessage {
	w := jsonWriter{of: v, most: most}
	w.write(v, 0)
	return json.RawMessage(w.b.String())
}

// ScalarJSON writes a text, a whole number, or true or false as JSON.
func (v Value) ScalarJSON() json.RawMessage {
	switch n := v.node.(type) {
	case *ast.BoolNode:
		return json.RawMessage(strconv.FormatBool(n.Value))
	case *ast.IntegerNode:
		if b, err := json.Marshal(n.Value); err == nil {
			return b
		}
	case *ast.StringNode:
		if b, err := json.Marshal(n.Value); err == nil {
			return b
		}
	}
	if v.node != nil {
		v.Wrong("is not possible here", "write a text, a whole number, or true")
	}
	return nil
}

// exponent matches a JSON number that the YAML parser treats as text, although the number is not in quotes.
var exponent = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?[eE][+-]?[0-9]+$`)

// maxJSONDepth limits nesting. maxJSONDepth is higher than the limit for a call's arguments. So a fixture can test that
// limit.
const maxJSONDepth = 50

// jsonWriter writes YAML as JSON, and limits the depth and the length. Without the limits, aliases could make a value
// that contains itself, or a large value from a small file.
type jsonWriter struct {
	of   Value // the value that JSON was called for; problems are about this value
	most int   // the maximum length of the JSON, in bytes
	b    strings.Builder
	over bool // the value is too large, and this was reported
}

func (w *jsonWriter) write(v Value, depth int) {
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
			v.Wrongf("write it as JSON has it, or in quotes if text is meant", "%s is not a number in JSON", text)
		}
		w.b.WriteString(text)
	case *ast.InfinityNode, *ast.NanNode:
		v.Wrongf("write a finite number, or put it in quotes if text is meant", "%s is not a number in JSON", n.GetToken().Value)
	case *ast.NullNode:
		w.b.WriteString("null")
	case nil: // the value could not be parsed, which was reported
	default:
		v.Wrongf("write text, a number, true, false, a list or a mapping", "%s can't be an argument", kindOf(n))
	}
}

func (w *jsonWriter) tooLarge(depth int) bool {
	switch {
	case depth > maxJSONDepth:
		w.of.Wrong(fmt.Sprintf("is nested deeper than %d levels", maxJSONDepth), "does an alias repeat a value in itself?")
	case w.b.Len() > w.most:
		w.of.Wrong(fmt.Sprintf("is longer than %d KiB", w.most>>10), "write less: a call's arguments and their schema have this limit")
	default:
		return false
	}
	return true
}

func (w *jsonWriter) object(v Value, depth int) {
	w.b.WriteByte('{')
	for i, e := range v.Entries("the arguments") {
		if i > 0 {
			w.b.WriteByte(',')
		}
		w.text(e.Key)
		w.b.WriteByte(':')
		w.write(e.Value, depth+1)
	}
	w.b.WriteByte('}')
}

func (w *jsonWriter) list(v Value, depth int) {
	w.b.WriteByte('[')
	items, _ := v.List("[1, 2]")
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
