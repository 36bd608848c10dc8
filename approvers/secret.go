package approvers

import (
	"encoding/json"
	"slices"
	"strings"
)

// Secret arguments are named by their path: names joined by dots, without list indexes. "card.number" is the number of
// card, or of each element if card is a list. Everything below a secret is secret too. "*" means all arguments.

// SecretPaths returns the arguments that a tool's JSON Schema marks as secret: by "x-secret": true, "writeOnly": true,
// or "format": "password".
func SecretPaths(schema json.RawMessage) []string {
	var root any
	if json.Unmarshal(schema, &root) != nil {
		return nil
	}
	w := schemaWalk{root: root}
	w.walk(root, nil, 0)
	slices.Sort(w.found)
	return slices.Compact(w.found)
}

// schemaWalk collects the secret paths of a schema.
type schemaWalk struct {
	root  any
	found []string
}

// maxSchemaDepth limits the walk through a recursive schema. Secrets that a schema marks deeper than this are not
// found.
const maxSchemaDepth = 32

func (w *schemaWalk) walk(schema any, path []string, depth int) {
	s, ok := schema.(map[string]any)
	if !ok {
		return
	}
	if s["x-secret"] == true || s["writeOnly"] == true || s["format"] == "password" {
		if at := strings.Join(path, "."); at == "" {
			w.found = append(w.found, "*")
		} else {
			w.found = append(w.found, at)
		}
		return
	}
	if depth == maxSchemaDepth {
		return
	}
	if ref, ok := s["$ref"].(string); ok {
		w.walk(w.at(ref), path, depth+1)
	}
	for _, key := range []string{"properties", "dependentSchemas"} {
		members, _ := s[key].(map[string]any)
		for name, sub := range members {
			if key == "properties" {
				w.walk(sub, append(slices.Clip(path), name), depth+1)
			} else {
				w.walk(sub, path, depth+1)
			}
		}
	}
	for _, key := range []string{"items", "additionalProperties", "contains", "if", "then", "else", "not"} {
		w.walk(s[key], path, depth+1)
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf", "prefixItems"} {
		list, _ := s[key].([]any)
		for _, sub := range list {
			w.walk(sub, path, depth+1)
		}
	}
}

// at resolves a reference within the schema; it returns nil for any other.
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

// IsSecret reports whether the argument at a path is secret, or lies below one that is.
func IsSecret(secrets []string, path string) bool {
	return slices.ContainsFunc(secrets, func(s string) bool { return s == "*" || path == s || strings.HasPrefix(path, s+".") })
}

// HoldsSecret reports whether the argument at a path is secret, or something below it is.
func HoldsSecret(secrets []string, path string) bool {
	return IsSecret(secrets, path) || slices.ContainsFunc(secrets, func(s string) bool { return strings.HasPrefix(s, path+".") })
}

// MaskValues replaces the secret values of decoded arguments, for texts that many people can read.
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
