package agent

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// shape describes the JSON that is decoded into a type. A shape has the parts of JSON Schema that Go types and tags
// can express.
type shape struct {
	kind     string // JSON type; "": any type
	doc      string
	format   string
	encoding string
	pattern  string
	enum     []string // the allowed values, as JSON
	least    string   // this bound and the bounds below are in JSON notation
	most     string
	above    string
	below    string
	step     string
	unique   bool
	secret   bool
	own      bool    // the type has its own decoder, so a type tag is required
	item     *shape  // shape of a list's items, or of a map's values
	fields   []field // fields of a struct
	closed   bool    // unknown fields of the struct are refused
}

// field is one named part of an object.
type field struct {
	name     string
	shape    shape
	optional bool
}

// bounds are the JSON Schema keywords for minimum and maximum, by JSON type.
var bounds = map[string][2]string{
	"number": {"minimum", "maximum"}, "integer": {"minimum", "maximum"}, "string": {"minLength", "maxLength"}, "array": {"minItems", "maxItems"},
	"object": {"minProperties", "maxProperties"},
}

// append writes the schema. The order of keywords is fixed, because the tool's hash covers the bytes of the schema.
func (s shape) append(b []byte) []byte {
	b = append(b, '{')
	if s.kind == "" {
		b = append(b, `"type":["object","array","string","number","boolean","null"],"items":true,"additionalProperties":true`...)
	}
	b = keyword(b, "type", quoted(s.kind))
	b = keyword(b, "description", quoted(s.doc))
	b = keyword(b, "format", quoted(s.format))
	b = keyword(b, "contentEncoding", quoted(s.encoding))
	if s.enum != nil {
		b = keyword(b, "enum", array(s.enum))
	}
	b = keyword(b, "pattern", quoted(s.pattern))
	b = keyword(b, bounds[s.kind][0], []byte(s.least))
	b = keyword(b, bounds[s.kind][1], []byte(s.most))
	b = keyword(b, "exclusiveMinimum", []byte(s.above))
	b = keyword(b, "exclusiveMaximum", []byte(s.below))
	b = keyword(b, "multipleOf", []byte(s.step))
	if s.unique {
		b = keyword(b, "uniqueItems", []byte("true"))
	}
	if s.secret {
		b = keyword(b, "x-secret", []byte("true"))
	}
	if s.item != nil && s.kind == "array" {
		b = keyword(b, "items", s.item.append(nil))
	}
	if s.item != nil && s.kind == "object" {
		b = keyword(b, "additionalProperties", s.item.append(nil))
	}
	if s.closed {
		b = s.appendFields(b)
	}
	return append(b, '}')
}

func (s shape) appendFields(b []byte) []byte {
	properties := []byte{'{'}
	var required []string
	for _, f := range s.fields {
		properties = keyword(properties, f.name, f.shape.append(nil))
		if !f.optional {
			required = append(required, strconv.Quote(f.name)) // a name has only letters, digits, _ and -
		}
	}
	b = keyword(b, "properties", append(properties, '}'))
	if required != nil {
		b = keyword(b, "required", array(required))
	}
	return keyword(b, "additionalProperties", []byte("false"))
}

// keyword adds a member to the current object. If the value is nil, keyword adds nothing.
func keyword(b []byte, name string, value []byte) []byte {
	if len(value) == 0 {
		return b
	}
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, quoted(name)...)
	return append(append(b, ':'), value...)
}

// quoted returns a text as JSON, or nil for an empty text. The text must be valid UTF-8.
func quoted(s string) []byte {
	if s == "" {
		return nil
	}
	b, _ := jsontext.AppendQuote(nil, s)
	return b
}

func array(items []string) []byte {
	b := []byte{'['}
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	return append(b, ']')
}
