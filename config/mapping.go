package config

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// entry is one key of a mapping with its value.
type entry struct {
	key   string
	at    mark // of the key
	value value
}

// entries reads a mapping, in the order of the file. what says what its keys are, for people. A key that is there twice is reported and left out.
func (v value) entries(what string) []entry {
	var own []*ast.MappingValueNode
	switch n := v.node.(type) {
	case nil:
		return nil
	case *ast.NullNode:
		v.missing("write " + what)
		return nil
	case *ast.MappingNode:
		own = n.Values
	case *ast.MappingValueNode:
		own = []*ast.MappingValueNode{n}
	default:
		v.wrongf("write "+what, "is %s, and a mapping is needed", kindOf(n))
		return nil
	}
	var out []entry
	for _, pair := range own {
		if pair.Key.IsMergeKey() {
			continue
		}
		key, ok := v.key(pair)
		if !ok {
			continue
		}
		at := markOf(pair.Key.GetToken())
		if i := slices.IndexFunc(out, func(e entry) bool { return e.key == key }); i >= 0 {
			v.r.wrongAt(at, join(v.path, key)+": is given twice, first on line "+number(out[i].at.line), "keep one of them")
			continue
		}
		e := entry{key: key, at: at, value: v.r.value(join(v.path, key), pair.Value)}
		if e.value.empty() || isMapping(pair.Value) {
			v.r.file.marks[e.value.path] = at // what is said of all of it is said at its name
		}
		out = append(out, e)
	}
	return v.merge(own, out)
}

// key reads a key, which has to be text.
func (v value) key(pair *ast.MappingValueNode) (string, bool) {
	switch k := pair.Key.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		v.r.wrongAt(markOf(k.GetToken()), join(v.path, k.GetToken().Value)+": the key is no text", `put it in quotes: "`+k.GetToken().Value+`"`)
	default:
		v.r.wrongAt(markOf(k.GetToken()), orFile(v.path)+": a key has to be a plain name", "write name: value")
	}
	return "", false
}

// fields reads a mapping whose keys are fixed. Unknown ones are reported; those that begin with x- are for anchors and ignored at the top of the file.
func (v value) fields(known ...string) fieldset {
	out := fieldset{}
	what := "the keys " + oneOf(known)
	if len(known) == 1 {
		what = known[0] + ": and its value"
	}
	for _, e := range v.entries(what) {
		if v.path == "" && strings.HasPrefix(e.key, "x-") {
			continue
		}
		if !slices.Contains(known, e.key) {
			hint := didYouMean(e.key, known)
			if hint == "" {
				hint = "the keys here are " + strings.Join(known, ", ")
			}
			v.r.wrongAt(e.at, join(v.path, e.key)+": is not a key that belongs here", hint)
			continue
		}
		out[e.key] = e.value
	}
	return out
}

// list reads a list. A single value in its place is reported.
func (v value) list(like string) ([]value, bool) {
	switch n := v.node.(type) {
	case nil:
		return nil, false
	case *ast.NullNode:
		v.missing("write a list, such as " + like)
		return nil, false
	case *ast.SequenceNode:
		out := make([]value, len(n.Values))
		for i, item := range n.Values {
			out[i] = v.r.value(v.path+"["+number(i)+"]", item)
		}
		return out, true
	}
	v.wrongf("write a list, such as "+like, "%s is no list", v.shown())
	return nil, false
}

// texts reads a list of texts.
func (v value) texts(like, item string) []string {
	items, _ := v.list(like)
	var out []string
	for _, i := range items {
		if s, ok := i.free(item); ok {
			out = append(out, s)
		}
	}
	return out
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func orFile(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}
