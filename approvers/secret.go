package approvers

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Secret arguments are named by their path: names joined by dots, without list indexes. "card.number" is the member
// "number" of the object "card", or of each element if "card" is a list. All values below a secret path are secret
// too. "*" means all arguments.

// SecretPaths returns the arguments that a tool's JSON Schema marks as secret: by "x-secret": true, "writeOnly": true,
// or "format": "password". A schema from a tool's source may refer to itself, and may describe too many paths to list.
// Therefore SecretPaths stops at a limit. Beyond the limit, every part that could contain a secret counts as secret. If
// SecretPaths can't find out which value a mark is for, the value with all its members counts as secret.
func SecretPaths(schema json.RawMessage) []string {
	var root any
	if json.Unmarshal(schema, &root) != nil || !anyWithin(root, marked) {
		return nil
	}
	w := schemaWalk{root: root, steps: []schemaStep{{schema: root}}}
	for w.taken < len(w.steps) {
		w.step()
	}
	slices.Sort(w.found)
	return slices.Compact(w.found)
}

// marked reports whether a schema is marked as secret.
func marked(s map[string]any) bool {
	return s["x-secret"] == true || s["writeOnly"] == true || s["format"] == "password"
}

// references returns the schema's references to other schemas.
func references(s map[string]any) (refs []string) {
	for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if ref, ok := s[key].(string); ok {
			refs = append(refs, ref)
		}
	}
	return refs
}

// anyWithin applies a function to a schema and to the schemas inside this schema. anyWithin returns true if the
// function returns true for one of these schemas.
func anyWithin(schema any, is func(map[string]any) bool) bool {
	switch s := schema.(type) {
	case map[string]any:
		if is(s) {
			return true
		}
		for _, sub := range s {
			if anyWithin(sub, is) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(s, func(sub any) bool { return anyWithin(sub, is) })
	}
	return false
}

// schemaWalk collects the secret paths of a schema, the shortest first.
type schemaWalk struct {
	root  any
	steps []schemaStep // the schemas to look at
	taken int          // how many of these schemas were looked at
	found []string
}

// schemaStep is a schema inside another schema, and the path of the argument that the inner schema describes.
type schemaStep struct {
	schema any
	path   []string
	depth  int
}

// The limits of the walk: the number of schemas, and the depth. A schema beyond these limits counts as secret if it is
// marked, or if it refers to another schema.
const (
	maxSchemaSteps = 5000
	maxSchemaDepth = 100
)

// The keywords whose values are schemas, in three forms: one schema or a list of schemas; schemas by name; and values
// that describe no argument. Definitions count only where a reference names them.
var (
	schemaKeywords = []string{
		"items", "additionalItems", "prefixItems", "unevaluatedItems", "contains", "additionalProperties", "unevaluatedProperties", "propertyNames",
		"if", "then", "else", "not", "allOf", "anyOf", "oneOf", "contentSchema",
	}
	namedSchemaKeywords = []string{"dependentSchemas", "dependencies", "patternProperties"}
	plainKeywords       = []string{"properties", "$defs", "definitions", "const", "enum", "default", "examples"}
)

// step examines the next schema, and appends the schemas that are nested in this schema.
func (w *schemaWalk) step() {
	at := w.steps[w.taken]
	w.taken++
	s, ok := at.schema.(map[string]any)
	if !ok {
		return
	}
	last := len(w.steps) > maxSchemaSteps || at.depth == maxSchemaDepth
	if marked(s) || last && anyWithin(s, func(s map[string]any) bool { return marked(s) || len(references(s)) > 0 }) || w.elsewhere(s) {
		w.found = append(w.found, cmp.Or(strings.Join(at.path, "."), "*"))
		return
	}
	if last {
		return
	}
	within := func(sub any, name ...string) {
		if _, ok := sub.(map[string]any); ok {
			w.steps = append(w.steps, schemaStep{sub, append(slices.Clip(at.path), name...), at.depth + 1})
		}
	}
	for _, ref := range references(s) {
		sub, _ := w.at(ref)
		within(sub)
	}
	members, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		within(members[name], name)
	}
	for _, key := range namedSchemaKeywords {
		members, _ := s[key].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			within(members[name])
		}
	}
	for _, key := range schemaKeywords {
		if list, ok := s[key].([]any); ok {
			for _, sub := range list {
				within(sub)
			}
			continue
		}
		within(s[key])
	}
}

// elsewhere reports whether step can't follow the schema: one of its references leads to no schema in this document, or
// a keyword that step does not know has a mark.
func (w *schemaWalk) elsewhere(s map[string]any) bool {
	for _, ref := range references(s) {
		if _, ok := w.at(ref); !ok {
			return true
		}
	}
	for key, value := range s {
		known := slices.Contains(schemaKeywords, key) || slices.Contains(namedSchemaKeywords, key) || slices.Contains(plainKeywords, key)
		if !known && anyWithin(value, marked) {
			return true
		}
	}
	return false
}

// at resolves a reference within the schema: a JSON Pointer, or the name of an anchor. If the reference leads to another
// document, or to nothing, at returns false.
func (w *schemaWalk) at(ref string) (schema any, ok bool) {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	rest, err := url.PathUnescape(rest)
	if err != nil {
		return nil, false
	}
	if rest != "" && !strings.HasPrefix(rest, "/") {
		return w.anchor(rest)
	}
	at := w.root
	for part := range strings.SplitSeq(strings.TrimPrefix(rest, "/"), "/") {
		if part == "" {
			continue
		}
		switch s := at.(type) {
		case map[string]any:
			at = s[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(s) {
				return nil, false
			}
			at = s[i]
		default:
			return nil, false
		}
	}
	return at, at != nil
}

// anchor finds the schema that names itself.
func (w *schemaWalk) anchor(name string) (found any, ok bool) {
	ok = anyWithin(w.root, func(s map[string]any) bool {
		found = s
		return s["$anchor"] == name || s["$dynamicAnchor"] == name || s["$id"] == "#"+name
	})
	return found, ok
}

// Secrets joins two lists of paths.
func Secrets(a, b []string) []string {
	if len(a) == 0 && len(b) == 0 {
		return nil
	}
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}

// IsSecret reports whether the argument at a path is secret, or lies below a secret argument.
func IsSecret(secrets []string, path string) bool {
	return slices.ContainsFunc(secrets, func(s string) bool { return s == "*" || path == s || strings.HasPrefix(path, s+".") })
}

// HoldsSecret reports whether the argument at a path is secret, or has a secret value below it.
func HoldsSecret(secrets []string, path string) bool {
	return IsSecret(secrets, path) || slices.ContainsFunc(secrets, func(s string) bool { return strings.HasPrefix(s, path+".") })
}

// MaskValues replaces the secret values in decoded arguments. MaskValues is used for texts that many people can read.
func MaskValues(args map[string]any, secrets []string) map[string]any {
	if len(secrets) == 0 {
		return args
	}
	masked, _ := maskValue(args, secrets, "").(map[string]any)
	return masked
}

// MaskedValue replaces a secret value in texts.
const MaskedValue = "(masked)"

func maskValue(v any, secrets []string, path string) any {
	if path != "" && IsSecret(secrets, path) {
		return MaskedValue
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, one := range v {
			out[name] = maskValue(one, secrets, strings.TrimPrefix(path+"."+name, "."))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = maskValue(one, secrets, path)
		}
		return out
	}
	return v
}
