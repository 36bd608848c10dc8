package httptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Keywords of JSON Schema that contain schemas.
var (
	schemaIn   = []string{"not", "items", "additionalProperties", "contains", "propertyNames", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties", "contentSchema"}
	schemaList = []string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}
	schemaMap  = []string{"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
	// beside lists keywords that don't affect validity. The keywords are dropped to keep the schema short for the
	// model.
	beside = []string{"xml", "externalDocs", "example", "examples", "discriminator", "$schema", "$comment", "$anchor", "nullable", "readOnly"}
	// elsewhere lists keywords that change the meaning of references. Schemas with these keywords are refused.
	elsewhere = []string{"$id", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"}
)

// schemas converts the schemas of an OpenAPI file to one self-contained schema of arguments. The result has each
// referenced schema once, in $defs, so it is finite even for recursive schemas.
type schemas struct {
	doc      *document
	defs     map[string]any
	names    map[string]string // by reference
	warnings []string
}

func newSchemas(d *document) *schemas {
	return &schemas{doc: d, defs: map[string]any{}, names: map[string]string{}}
}

var errSchemaDeep = fmt.Errorf("a schema is nested deeper than %d levels", maxFileDepth)

// convert converts a schema to JSON Schema 2020-12.
func (s *schemas) convert(v any, depth int) (any, error) {
	if depth > maxFileDepth {
		return nil, errSchemaDeep
	}
	if b, ok := v.(bool); ok {
		return b, nil
	}
	in, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("a schema is not an object")
	}
	out := map[string]any{}
	if ref, ok := in["$ref"].(string); ok {
		name, err := s.def(ref, depth)
		if err != nil {
			return nil, err
		}
		out["$ref"] = "#/$defs/" + name
		if !s.doc.v31 { // before version 3.1, keys beside a reference have no effect
			return out, nil
		}
	}
	for _, key := range elsewhere {
		if _, ok := in[key]; ok {
			return nil, fmt.Errorf("a schema uses %s, which is not supported", key)
		}
	}
	for key, item := range in {
		if key == "$ref" || slices.Contains(beside, key) || strings.HasPrefix(key, "x-") && key != "x-secret" {
			continue
		}
		converted, err := s.keyword(key, item, depth)
		if err != nil {
			return nil, err
		}
		if converted != nil || item == nil {
			out[key] = converted
		}
	}
	s.forRequests(in, out)
	if !s.doc.v31 {
		older(in, out)
	}
	return out, nil
}

// keyword converts the value of a keyword. A nil result means that the keyword is dropped.
func (s *schemas) keyword(key string, item any, depth int) (any, error) {
	list, isList := item.([]any)
	fields, isMap := item.(map[string]any)
	switch {
	case isList && slices.Contains(schemaList, key):
		out := make([]any, len(list))
		for i := range list {
			var err error
			if out[i], err = s.convert(list[i], depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case isMap && slices.Contains(schemaMap, key):
		out := map[string]any{}
		for name, field := range fields {
			var err error
			if out[name], err = s.convert(field, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case slices.Contains(schemaIn, key):
		return s.convert(item, depth+1)
	case key == "pattern":
		if text, ok := item.(string); ok && !compiles(text) {
			s.warnings = append(s.warnings, fmt.Sprintf("the pattern %.60q can't be checked here, and only the server checks it", text))
			return nil, nil
		}
	}
	return item, nil
}

func compiles(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil
}

// def puts a referenced schema into $defs under a unique name.
func (s *schemas) def(ref string, depth int) (string, error) {
	if name, ok := s.names[ref]; ok {
		return name, nil
	}
	target, err := s.doc.at(ref)
	if err != nil {
		return "", err
	}
	name := plainName(ref[strings.LastIndexByte(ref, '/')+1:])
	for i := 2; ; i++ {
		if _, taken := s.defs[name]; !taken {
			break
		}
		name = strings.TrimRight(name, "0123456789") + strconv.Itoa(i)
	}
	s.names[ref] = name
	s.defs[name] = true // a placeholder, for recursive references
	converted, err := s.convert(target, depth+1)
	if err != nil {
		return "", err
	}
	s.defs[name] = converted
	return name, nil
}

// forRequests removes read-only properties, because they occur only in responses. They are also not required, even if
// one part of allOf requires a property that is read-only in another part.
func (s *schemas) forRequests(in, out map[string]any) {
	converted, _ := out["properties"].(map[string]any)
	properties, _ := in["properties"].(map[string]any)
	for name, p := range properties {
		if s.isReadOnly(p) {
			delete(converted, name)
		}
	}
	readOnly := map[string]bool{}
	s.findReadOnly(in, readOnly, map[string]bool{})
	notRequired(out, readOnly)
}

// findReadOnly adds the names of the properties in a schema, and in the parts of its allOf, to the map found. The value
// is true if all descriptions of the property say that it is read-only.
func (s *schemas) findReadOnly(v any, found, seen map[string]bool) {
	o, _ := v.(map[string]any)
	if ref, ok := o["$ref"].(string); ok && !seen[ref] {
		seen[ref] = true
		if target, err := s.doc.at(ref); err == nil {
			s.findReadOnly(target, found, seen)
		}
	}
	properties, _ := o["properties"].(map[string]any)
	for name, p := range properties {
		before, known := found[name]
		found[name] = s.isReadOnly(p) && (before || !known)
	}
	parts, _ := o["allOf"].([]any)
	for _, part := range parts {
		s.findReadOnly(part, found, seen)
	}
}

// notRequired removes names from the keyword required of a schema and of the parts of its allOf.
func notRequired(schema map[string]any, names map[string]bool) {
	if required, ok := schema["required"].([]any); ok {
		kept := slices.DeleteFunc(slices.Clone(required), func(v any) bool {
			name, _ := v.(string)
			return names[name]
		})
		if schema["required"] = kept; len(kept) == 0 {
			delete(schema, "required")
		}
	}
	parts, _ := schema["allOf"].([]any)
	for _, part := range parts {
		if o, ok := part.(map[string]any); ok {
			notRequired(o, names)
		}
	}
}

// isReadOnly reports whether a property is read-only, either itself or in the schema to which it refers.
func (s *schemas) isReadOnly(p any) bool {
	own, _ := p.(map[string]any)
	target, err := s.doc.object(p)
	return own["readOnly"] == true || err == nil && target["readOnly"] == true
}

// older converts the constructs of OpenAPI 3.0 that differ from JSON Schema: the keyword nullable, and exclusive
// bounds that are booleans.
func older(in, out map[string]any) {
	if in["nullable"] == true {
		if kind, ok := in["type"].(string); ok {
			out["type"] = []any{kind, "null"}
			if values, ok := in["enum"].([]any); ok && !slices.Contains(values, nil) {
				out["enum"] = append(slices.Clone(values), nil)
			}
		}
	}
	for exclusive, bound := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		on, ok := in[exclusive].(bool)
		if !ok {
			continue
		}
		delete(out, exclusive)
		if limit, has := in[bound]; on && has {
			out[exclusive] = limit
			delete(out, bound)
		}
	}
}

// kinds returns the JSON types that a schema allows, according to its own keywords and its references. An empty list
// means any type.
func (s *schemas) kinds(v any) []string {
	o, err := s.doc.object(v)
	if err != nil {
		return nil
	}
	switch kind := o["type"].(type) {
	case string:
		return []string{kind}
	case []any:
		var out []string
		for _, k := range kind {
			if text, ok := k.(string); ok && text != "null" {
				out = append(out, text)
			}
		}
		return out
	}
	var out []string
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := o[key].([]any)
		for _, item := range list {
			if sub, ok := item.(map[string]any); ok && sub["$ref"] == nil {
				out = append(out, s.kinds(item)...)
			} else if direct, err := s.doc.object(item); err == nil {
				if kind, ok := direct["type"].(string); ok {
					out = append(out, kind)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// notPlain matches characters that are not allowed in the names of tools and arguments.
var notPlain = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// plainName returns a valid name for a tool or an argument.
func plainName(s string) string {
	if s = notPlain.ReplaceAllString(s, "_"); s == "" {
		return "_"
	}
	return s
}

// argumentsSchema returns the schema of a tool's arguments.
func argumentsSchema(properties map[string]any, required []string, defs map[string]any) (json.RawMessage, error) {
	out := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	if len(defs) > 0 {
		out["$defs"] = defs
	}
	raw, err := json.Marshal(out)
	if err == nil && len(raw) > maxSchema {
		err = fmt.Errorf("the schema of its arguments has %d KB, and the model is given at most %d", len(raw)>>10, maxSchema>>10)
	}
	return raw, err
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
