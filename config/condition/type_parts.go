package condition

import (
	"encoding/json"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"countersign/config/yamldoc"
)

// Field returns the shape of an object's field. If no valid value has a field of this name, ok is false. In that
// case, the schema neither describes the field nor allows additional fields. Package agent refuses arguments with
// such a field.
func (s Shape) Field(name string) (field Shape, ok bool) {
	if s == nil {
		return nil, true
	}
	var out Shape
	for _, v := range s {
		if v.kinds()&kindObject == 0 {
			continue
		}
		under, known := v.field(name)
		if !known {
			continue
		}
		way := shapeOf(under)
		if len(under) == 0 || way == nil || len(out) > maxVariants {
			return nil, true
		}
		out, ok = append(out, way...), true
	}
	return out, ok
}

// field lists the schemas that a field must match in this variant. If there are no such schemas, any value is allowed.
func (v variant) field(name string) (under []*jsonschema.Schema, known bool) {
	var additional []*jsonschema.Schema
	listed, free := false, false
	for _, s := range v {
		listed = listed || s.Properties != nil || s.AdditionalProperties == false
		described := false
		if p, ok := s.Properties[name]; ok {
			under, described = append(under, p), true
		}
		for pattern, p := range s.PatternProperties {
			if pattern.MatchString(name) {
				under, described = append(under, p), true
			}
		}
		if described {
			continue
		}
		switch a := s.AdditionalProperties.(type) {
		case bool:
			free = free || a
		case *jsonschema.Schema:
			free = free || a.Bool == nil || *a.Bool
			additional = append(additional, a)
		}
	}
	if len(under) > 0 {
		return under, true
	}
	return additional, free || !listed
}

// requires reports whether every valid value has the field.
func (s Shape) requires(name string) bool {
	return len(s) > 0 && !slices.ContainsFunc(s, func(v variant) bool {
		return !slices.ContainsFunc(v, func(s *jsonschema.Schema) bool { return slices.Contains(s.Required, name) })
	})
}

// Names returns the fields that the schema lists.
func (s Shape) Names() []string {
	var out []string
	for _, v := range s {
		for _, schema := range v {
			for name := range schema.Properties {
				out = append(out, name)
			}
		}
	}
	return yamldoc.SortedUnique(out)
}

// maxLists is the depth of nested lists in which EachItem looks for items.
const maxLists = 10

// EachItem returns the shape of the items of a list, or of a list in the list. If the value may also be something else
// than a list, the shape of the items is not known.
func (s Shape) EachItem() Shape {
	for range maxLists {
		switch kinds := s.Kinds(); {
		case s == nil || kinds&kindList == 0:
			return s
		case kinds != kindList:
			return nil
		}
		s = s.items()
	}
	return nil
}

func (s Shape) items() Shape {
	var out Shape
	for _, v := range s {
		if v.kinds()&kindList == 0 {
			continue
		}
		open := true
		for _, schemas := range v.items() {
			way := shapeOf([]*jsonschema.Schema{schemas})
			if way == nil || len(out) > maxVariants {
				return nil
			}
			out, open = append(out, way...), false
		}
		if open {
			return nil
		}
	}
	return out
}

// items lists the schemas for an item in this variant. An item matches at least one of these schemas. If there are no
// schemas, any value is allowed.
func (v variant) items() []*jsonschema.Schema {
	for _, s := range v {
		var out []*jsonschema.Schema
		out = append(out, s.PrefixItems...)
		rest := s.Items2020
		switch items := s.Items.(type) { // drafts before 2020-12
		case *jsonschema.Schema:
			rest = items
		case []*jsonschema.Schema:
			out = append(out, items...)
			rest, _ = s.AdditionalItems.(*jsonschema.Schema)
		}
		if rest != nil {
			return append(out, rest)
		}
	}
	return nil
}

// Kinds returns the kinds that a value can have.
func (s Shape) Kinds() Kinds {
	var out Kinds
	for _, v := range s {
		out |= v.kinds()
	}
	if out == 0 {
		return kindAnything
	}
	return out
}

func (v variant) kinds() Kinds {
	out := kindAnything
	for _, s := range v {
		if s.Types != nil && !s.Types.IsEmpty() {
			var of Kinds
			for _, t := range s.Types.ToStrings() {
				of |= schemaKinds[t]
			}
			out &= of
		}
		if values := listedValues(s); values != nil {
			var of Kinds
			for _, value := range values {
				of |= jsonKind(value)
			}
			out &= of
		}
	}
	return out
}

// values returns the values in the schema's lists. The result has all valid values of the given kinds, and may have
// values of other kinds. If a list is missing, values returns nil.
func (s Shape) values(of Kinds) []any {
	var out []any
	for _, v := range s {
		if v.kinds().loose()&of.loose() == 0 {
			continue
		}
		i := slices.IndexFunc(v, func(s *jsonschema.Schema) bool { return listedValues(s) != nil })
		if i < 0 {
			return nil
		}
		out = append(out, listedValues(v[i])...)
	}
	return out
}

func listedValues(s *jsonschema.Schema) []any {
	switch {
	case s.Const != nil:
		return []any{plainValue(*s.Const)}
	case s.Enum != nil:
		out := []any{}
		for _, v := range s.Enum.Values {
			out = append(out, plainValue(v))
		}
		return out
	}
	return nil
}

// plainValue converts a value from a schema to its form in arguments.
func plainValue(v any) any {
	if n, ok := v.(json.Number); ok {
		f, err := n.Float64()
		if err == nil {
			return f
		}
	}
	return v
}
