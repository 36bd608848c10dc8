package approvers

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Secret arguments are named by their path: names joined by dots, without list indexes. "card.number" is the member
// "number" of the object "card", or of each element if "card" is a list. All values below a secret path are secret
// too. "*" means all arguments.

// SecretPaths returns the arguments that a tool's JSON Schema marks as secret: by "x-secret": true, "writeOnly": true,
// or "format": "password". A schema from a tool's source may refer to itself, and may describe too many paths to list.
// Therefore SecretPaths stops at a limit. Beyond the limit, every part that could contain a secret counts as secret.
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

// step examines the next schema, and appends the schemas that are nested in this schema.
func (w *schemaWalk) step() {
	at := w.steps[w.taken]
	w.taken++
	s, ok := at.schema.(map[string]any)
	if !ok {
		return
	}
	last := len(w.steps) > maxSchemaSteps || at.depth == maxSchemaDepth
	if marked(s) || last && anyWithin(s, func(s map[string]any) bool { return marked(s) || s["$ref"] != nil }) {
		w.found = append(w.found, cmp.Or(strings.Join(at.path, "."), "*"))
	}
	if marked(s) || last {
		return
	}
	within := func(sub any, name ...string) {
		if _, ok := sub.(map[string]any); ok {
			w.steps = append(w.steps, schemaStep{sub, append(slices.Clip(at.path), name...), at.depth + 1})
		}
	}
	if ref, ok := s["$ref"].(string); ok {
		within(w.at(ref))
	}
	for _, key := range []string{"properties", "dependentSchemas"} {
		members, _ := s[key].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if key == "properties" {
				within(members[name], name)
			} else {
				within(members[name])
			}
		}
	}
	for _, key := range []string{"items", "additionalProperties", "contains", "if", "then", "else", "not"} {
		within(s[key])
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf", "prefixItems"} {
		list, _ := s[key].([]any)
		for _, sub := range list {
			within(sub)
		}
	}
}

// at resolves a reference within the schema. For a reference to another document, at returns nil.
func (w *schemaWalk) at(ref string) any {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	at := w.root
	for part := range strings.SplitSeq(strings.TrimPrefix(rest, "/"), "/") {
		if part == "" {
			continue
		}
		m, _ := at.(map[string]any)
		at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
	}
	return at
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
