package agent

import (
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// unknownProperties finds names that the schema does not describe. By default, JSON Schema allows properties with
// unknown names. The bot refuses these properties, because no schema checks their values, and an approver would
// overlook them. There are two exceptions: the schema sets additionalProperties (or unevaluatedProperties) to true or
// to a schema, or the schema of a value below the arguments describes no members and no items at all. Such a schema
// means any object or list. Examples are {"type":"object"}, {"title":"Value"} and true.
func (s schema) unknownProperties(v any) []problem {
	return unknownProperties([]*jsonschema.Schema{s.root}, v, "")
}

// The function unknownProperties checks a value against the schemas in given. Together, these schemas describe the
// value.
func unknownProperties(given []*jsonschema.Schema, v any, path string) []problem {
	applied := applicable(given, v)
	if path != "" && len(applied) > 0 && !describes(applied, v) {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		return unknownPropertiesInObject(applied, v, path)
	case []any:
		var out []problem
		for i, item := range v {
			if under := itemSchemas(applied, i); len(under) > 0 {
				out = append(out, unknownProperties(under, item, path+"["+strconv.Itoa(i)+"]")...)
				continue
			}
			out = append(out, unknownProperties(nil, item, path+"["+strconv.Itoa(i)+"]")...)
		}
		return out
	}
	return nil
}

// describes reports whether one of the schemas describes members or items of the value. The keyword properties
// describes the members even if it lists none.
func describes(applied []*jsonschema.Schema, v any) bool {
	return slices.ContainsFunc(applied, func(s *jsonschema.Schema) bool {
		switch v.(type) {
		case map[string]any:
			return s.Properties != nil || len(s.PatternProperties) > 0 || s.AdditionalProperties != nil || s.UnevaluatedProperties != nil
		case []any:
			return s.Items != nil || s.Items2020 != nil || len(s.PrefixItems) > 0
		}
		return false
	})
}

func unknownPropertiesInObject(applied []*jsonschema.Schema, object map[string]any, path string) []problem {
	var out []problem
	for name, child := range object {
		under, known := propertySchemas(applied, name)
		if !known {
			out = append(out, problem{join(path, name), "is not known" + knownNames(applied)})
			continue
		}
		if len(under) > 0 { // if there is no schema, the property is allowed with any content
			out = append(out, unknownProperties(under, child, join(path, name))...)
		}
	}
	return out
}

// propertySchemas lists the schemas of a property. The property counts as known if a schema describes it, or if
// additional properties are allowed.
func propertySchemas(applied []*jsonschema.Schema, name string) (under []*jsonschema.Schema, known bool) {
	var additional []*jsonschema.Schema
	for _, s := range applied {
		described := false
		if p, ok := s.Properties[name]; ok {
			under, described = append(under, p), true
		}
		for re, p := range s.PatternProperties {
			if re.MatchString(name) {
				under, described = append(under, p), true
			}
		}
		if described {
			known = true
			continue
		}
		switch a := s.AdditionalProperties.(type) {
		case bool:
			known = known || a
		case *jsonschema.Schema:
			if a.Bool == nil || *a.Bool {
				known = true
				additional = append(additional, a)
			}
		}
		if u := s.UnevaluatedProperties; u != nil && (u.Bool == nil || *u.Bool) {
			known = true
			additional = append(additional, u)
		}
	}
	if len(under) == 0 {
		under = additional
	}
	return under, known
}

// itemSchemas lists the schemas of a list's item.
func itemSchemas(applied []*jsonschema.Schema, i int) []*jsonschema.Schema {
	var out []*jsonschema.Schema
	add := func(a any) {
		if s, ok := a.(*jsonschema.Schema); ok && s != nil {
			out = append(out, s)
		}
	}
	for _, s := range applied {
		switch items := s.Items.(type) {
		case []*jsonschema.Schema: // tuples of drafts before 2020-12
			if i < len(items) {
				out = append(out, items[i])
			} else {
				add(s.AdditionalItems)
			}
		default:
			add(items)
		}
		if i < len(s.PrefixItems) {
			out = append(out, s.PrefixItems[i])
		} else {
			add(s.Items2020)
		}
	}
	return out
}

// applicable lists the schemas that apply to a value, directly or through references and combinations. If a schema has
// several alternatives, the alternatives that fit the value apply. If no alternative fits, all alternatives apply. In
// this case, the validator reports the mismatch.
func applicable(given []*jsonschema.Schema, v any) []*jsonschema.Schema {
	var out []*jsonschema.Schema
	var visit func(s *jsonschema.Schema)
	visit = func(s *jsonschema.Schema) {
		if s == nil || slices.Contains(out, s) {
			return
		}
		out = append(out, s)
		visit(s.Ref)
		visit(s.RecursiveRef)
		if s.DynamicRef != nil {
			visit(s.DynamicRef.Ref)
		}
		for _, part := range s.AllOf {
			visit(part)
		}
		for _, part := range fitting(s.AnyOf, v) {
			visit(part)
		}
		for _, part := range fitting(s.OneOf, v) {
			visit(part)
		}
		if s.If != nil && s.If.Validate(v) == nil {
			visit(s.If)
			visit(s.Then)
		} else {
			visit(s.Else)
		}
		object, _ := v.(map[string]any)
		for name, part := range s.DependentSchemas {
			if _, has := object[name]; has {
				visit(part)
			}
		}
		for name, part := range s.Dependencies {
			if _, has := object[name]; has {
				if p, ok := part.(*jsonschema.Schema); ok {
					visit(p)
				}
			}
		}
	}
	for _, s := range given {
		visit(s)
	}
	return out
}

func fitting(parts []*jsonschema.Schema, v any) []*jsonschema.Schema {
	var fit []*jsonschema.Schema
	for _, p := range parts {
		if p.Validate(v) == nil {
			fit = append(fit, p)
		}
	}
	if len(fit) == 0 {
		return parts
	}
	return fit
}

// knownNames lists the known property names as a part of an error text.
func knownNames(applied []*jsonschema.Schema) string {
	var names []string
	for _, s := range applied {
		for name := range s.Properties {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "; no fields are allowed here"
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxValues {
		names = append(names[:maxValues], "…")
	}
	return "; the fields are " + strings.Join(names, ", ")
}
