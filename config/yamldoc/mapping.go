package yamldoc

import (
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// Entry is a key of a mapping, with its value.
type Entry struct {
	Key   string
	at    Mark // the key's position
	Value Value
}

// Wrong reports a problem with the entry, at the position of the entry's key.
func (e Entry) Wrong(message, hint string) {
	e.Value.doc.wrongAt(e.at, e.Value.Path+": "+message, hint)
}

// Entries reads a mapping, in the order of the file. The parameter named what describes the keys in a hint. If a key
// occurs twice, Entries reports a problem and leaves out the second value.
func (v Value) Entries(what string) []Entry { return v.entries(what, nil) }

// entries is like Entries, but leaves out the keys of the given entries. So the positions of their values stay.
func (v Value) entries(what string, without []Entry) []Entry {
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
		v.Wrongf("write "+what, "is %s, and a mapping is needed", kindOf(n))
		return nil
	}
	var out []Entry
	for _, pair := range own {
		if pair.Key.IsMergeKey() {
			continue
		}
		key, ok := v.key(pair)
		if !ok {
			continue
		}
		if has(without, key) {
			continue
		}
		at := markOf(pair.Key.GetToken())
		if i := slices.IndexFunc(out, func(e Entry) bool { return e.Key == key }); i >= 0 {
			v.doc.wrongAt(at, join(v.Path, key)+": is given twice, first on line "+number(out[i].at.line), "keep one of them")
			continue
		}
		e := Entry{Key: key, at: at, Value: v.doc.value(join(v.Path, key), pair.Value)}
		if e.Value.Empty() || isMapping(pair.Value) {
			v.doc.marks[e.Value.Path] = at // a problem with the value as a whole is reported at the position of its key
		}
		out = append(out, e)
	}
	return v.merge(own, out)
}

func has(entries []Entry, key string) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return e.Key == key })
}

// key reads a key, which has to be text.
func (v Value) key(pair *ast.MappingValueNode) (string, bool) {
	switch k := pair.Key.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		v.doc.wrongAt(markOf(k.GetToken()), join(v.Path, k.GetToken().Value)+": the key is not text", `put it in quotes: "`+k.GetToken().Value+`"`)
	default:
		v.doc.wrongAt(markOf(k.GetToken()), orFile(v.Path)+": a key has to be a plain name", "write name: value")
	}
	return "", false
}

// List reads a list. The parameter named like is an example for hints. A value that is not a list is reported.
func (v Value) List(like string) ([]Value, bool) {
	switch n := v.node.(type) {
	case nil:
		return nil, false
	case *ast.NullNode:
		v.missing("write a list, such as " + like)
		return nil, false
	case *ast.SequenceNode:
		out := make([]Value, len(n.Values))
		for i, item := range n.Values {
			out[i] = v.doc.value(v.Path+"["+number(i)+"]", item)
		}
		return out, true
	}
	v.Wrongf("write a list, such as "+like, "%s is not a list", v.Shown())
	return nil, false
}

// Texts reads a list of texts. For hints, the parameter named like is an example of the list, and the parameter named
// item is an example of one item.
func (v Value) Texts(like, item string) []string {
	items, _ := v.List(like)
	var out []string
	for _, i := range items {
		if s, ok := i.Free(item); ok {
			out = append(out, s)
		}
	}
	return out
}
