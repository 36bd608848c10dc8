package agent

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SchemaOf derives the JSON Schema of a tool's arguments from a struct. For the same struct, every build derives the
// same bytes.
//
// The json tag of a struct field is the argument's name. Pointer fields, and fields whose json tag has omitempty or
// omitzero, are optional. All other fields are required. Unknown fields are refused. The following struct tags
// describe a field further:
//
//	doc:"Order number, such as ORD-123"    description for the model and the approvers
//	min:"1" max:"40"                       bounds of a number, a text's characters, a list's items, or a map's names
//	above:"0" below:"1"                    exclusive bounds of a number
//	places:"2"                             maximum number of digits after the decimal point
//	enum:"USD,EUR"                         the allowed values
//	pattern:"^ORD-[0-9]+$"                 a regular expression that a text matches
//	format:"email"                         format of a text: email, date, date-time, time, uri, uuid, hostname, ipv4, ipv6, …
//	unique:"true"                          a list's items differ
//	secret:"true"                          people see it masked
//	each_min:"1" each_max:"70"             min and max of each item of a list or value of a map; enum, pattern and format always apply to each item
//	type:"number"                          JSON type of a type with its own UnmarshalJSON: string, number, integer or boolean
//
// A field can be a text, a number, a boolean, a struct, a list, or a map with text keys. Other possible types are
// time.Time, []byte (base64), and json.RawMessage (any JSON). A field can also be a pointer to a possible type, except
// to another pointer. A json.Number or [Decimal] keeps a number as it is written. A type with UnmarshalText is a text.
// A type with UnmarshalJSON needs a type tag.
func SchemaOf[Args any]() (json.RawMessage, error) {
	t := reflect.TypeFor[Args]()
	if t.Kind() != reflect.Struct || isLeaf(t) {
		return nil, fmt.Errorf("the arguments are a %s; a call's arguments are a JSON object, so declare a struct (struct{} if there are none)", t)
	}
	s, err := shapeOf(t, typeName(t), nil)
	if err != nil {
		return nil, err
	}
	return s.append(nil), nil
}

var (
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func isLeaf(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonUnmarshaler) || p.Implements(textUnmarshaler)
}

// typeName returns the name of a type for errors.
func typeName(t reflect.Type) string {
	if t.Name() == "" {
		return "the arguments"
	}
	return t.Name()
}

// leaves lists the types with a fixed JSON form.
var leaves = map[reflect.Type]shape{
	reflect.TypeFor[time.Time]():       {kind: "string", format: "date-time"},
	reflect.TypeFor[json.Number]():     {kind: "number"},
	reflect.TypeFor[Decimal]():         {kind: "number"},
	reflect.TypeFor[json.RawMessage](): {},
	reflect.TypeFor[[]byte]():          {kind: "string", encoding: "base64"},
}

// shapeOf returns the shape of the JSON that is decoded into a type. path names the field in errors. within lists the
// enclosing types, so that shapeOf detects recursive types.
func shapeOf(t reflect.Type, path string, within []reflect.Type) (shape, error) {
	no := func(why string) (shape, error) { return shape{}, fmt.Errorf("%s is a %s: %s", path, t, why) }
	if s, ok := leaves[t]; ok {
		return s, nil
	}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return no("JSON has no readable form of it; use a number of seconds, or a text")
	case reflect.PointerTo(t).Implements(jsonUnmarshaler):
		return shape{own: true}, nil
	case reflect.PointerTo(t).Implements(textUnmarshaler):
		return shape{kind: "string"}, nil
	case contains(within, t):
		return no("it contains itself; arguments must be finite, because an approver reads all of them")
	}
	within = append(slices.Clip(within), t)
	switch t.Kind() {
	case reflect.Bool:
		return shape{kind: "boolean"}, nil
	case reflect.String:
		return shape{kind: "string"}, nil
	case reflect.Float32, reflect.Float64:
		return shape{kind: "number"}, nil
	case reflect.Int, reflect.Int64:
		return shape{kind: "integer"}, nil
	case reflect.Int8, reflect.Int16, reflect.Int32:
		most := int64(1)<<(t.Bits()-1) - 1
		return shape{kind: "integer", least: strconv.FormatInt(-most-1, 10), most: strconv.FormatInt(most, 10)}, nil
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return shape{kind: "integer", least: "0", most: strconv.FormatUint(uint64(1)<<t.Bits()-1, 10)}, nil
	case reflect.Uint, reflect.Uint64:
		return shape{kind: "integer", least: "0"}, nil
	case reflect.Slice, reflect.Array:
		item, err := shapeOf(t.Elem(), path+"[]", within)
		s := shape{kind: "array", item: &item}
		if t.Kind() == reflect.Array {
			s.least, s.most = strconv.Itoa(t.Len()), strconv.Itoa(t.Len())
		}
		return s, err
	case reflect.Map:
		if t.Key().Kind() != reflect.String || isLeaf(t.Key()) {
			return no("the names in a JSON object are texts")
		}
		item, err := shapeOf(t.Elem(), path+"{}", within)
		return shape{kind: "object", item: &item}, err
	case reflect.Struct:
		return structShape(t, path, within)
	case reflect.Pointer:
		return no("a pointer marks a field that can be left out, so only a field of a struct can be a pointer, and it can't point to another pointer")
	case reflect.Interface:
		return no("its content can't be described; use json.RawMessage if it may be anything")
	}
	return no("JSON can't represent it; leave it out with `json:\"-\"`, or use another type")
}

func contains(types []reflect.Type, t reflect.Type) bool { return slices.Contains(types, t) }

var fieldName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// structShape describes a struct's fields in order, including the fields of embedded structs.
func structShape(t reflect.Type, path string, within []reflect.Type) (shape, error) {
	s := shape{kind: "object", closed: true}
	folded := map[string]string{}
	for f := range t.Fields() {
		at := path + "." + f.Name
		tag, err := readTag(f)
		if err != nil {
			return s, fmt.Errorf("%s: %w", at, err)
		}
		if tag.left || (!f.IsExported() && !f.Anonymous) {
			continue
		}
		fields, err := fieldShapes(f, tag, at, within)
		if err != nil {
			return s, err
		}
		for _, one := range fields {
			if other, taken := folded[fold(one.name)]; taken {
				return s, fmt.Errorf("%s: the names %q and %q are the same or differ only in case; rename one of them", at, other, one.name)
			}
			folded[fold(one.name)] = one.name
			s.fields = append(s.fields, one)
		}
	}
	return s, nil
}

// fieldShapes returns the description of one field, or of all fields of an embedded struct.
func fieldShapes(f reflect.StructField, tag tags, at string, within []reflect.Type) ([]field, error) {
	of := f.Type
	if f.Anonymous && tag.name == "" && !isLeaf(of) {
		if of.Kind() != reflect.Struct || len(tag.said) > 0 {
			return nil, fmt.Errorf("%s: only a struct itself can be embedded, without tags; give it a name with a json tag", at)
		}
		s, err := shapeOf(of, at, within)
		return s.fields, err
	}
	if !f.IsExported() {
		return nil, fmt.Errorf("%s: it is not exported, so nothing is ever read into it", at)
	}
	optional := tag.optional
	if of.Kind() == reflect.Pointer {
		of, optional = of.Elem(), true
	}
	s, err := shapeOf(of, at, within)
	if err != nil {
		return nil, err
	}
	if err := tag.limit(&s); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	name := tag.name
	if name == "" {
		name = f.Name
	}
	if !fieldName.MatchString(name) {
		return nil, fmt.Errorf(`%s: the name %q is not possible: a name has 1 to 64 letters, digits, "_" and "-"`, at, name)
	}
	return []field{{name: name, shape: s, optional: optional}}, nil
}

// fold normalizes the case of a name. Argument names that differ only in case are refused as duplicates.
func fold(s string) string { return strings.ToLower(strings.ToUpper(s)) }
