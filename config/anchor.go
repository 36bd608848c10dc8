package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// maxHops is how long a chain of aliases and merges may be. One that refers to itself has no end.
const maxHops = 10

// collectAnchors finds the values that have names (&name), for the aliases (*name) that repeat them.
func (r *reader) collectAnchors(root ast.Node) {
	r.anchors = map[string]ast.Node{}
	for _, n := range ast.Filter(ast.AnchorType, root) {
		a, ok := n.(*ast.AnchorNode)
		if !ok {
			continue
		}
		name := a.Name.GetToken().Value
		if _, twice := r.anchors[name]; twice {
			r.wrongAt(markOf(a.Start), "the anchor &"+name+" is given twice", "use another name for one of them")
		}
		r.anchors[name] = a.Value
	}
}

// resolve follows aliases to the value that they stand for. Nil: it can't, and says so.
func (r *reader) resolve(n ast.Node, hops int) ast.Node {
	if hops > maxHops {
		r.wrongAt(markOf(n.GetToken()), "the alias leads back to itself", "write the value itself")
		return nil
	}
	switch n := n.(type) {
	case *ast.AnchorNode:
		return r.resolve(n.Value, hops+1)
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		target, ok := r.anchors[name]
		if !ok {
			r.wrongAt(markOf(n.Start), "the alias *"+name+" has no anchor &"+name,
				`write &`+name+` before the value that it repeats, or put it in quotes if text is meant: "*`+name+`"`)
			return nil
		}
		return r.resolve(target, hops+1)
	case *ast.TagNode:
		hint := "remove it"
		if !strings.HasPrefix(n.Start.Value, "!!") {
			hint = "put the value in quotes: " + quote(n.Start.Value)
		}
		r.wrongAt(markOf(n.Start), "! at the beginning of a value has a meaning of its own in YAML", hint)
		return nil
	case nil:
		return nil
	}
	return n
}

// merge adds what << brings in. Keys of the mapping itself rule, then the earlier of several.
func (v value) merge(own []*ast.MappingValueNode, out []entry) []entry {
	for _, pair := range own {
		if !pair.Key.IsMergeKey() {
			continue
		}
		for _, from := range v.mergeSources(pair) {
			for _, e := range from.entriesOf(v.path) {
				if !slices.ContainsFunc(out, func(o entry) bool { return o.key == e.key }) {
					out = append(out, e)
				}
			}
		}
	}
	return out
}

// mergeSources are the mappings that a << names: one, or a list of them.
func (v value) mergeSources(pair *ast.MappingValueNode) []value {
	path := join(v.path, "<<")
	source := v.r.value(path, pair.Value)
	list := []value{source}
	if n, ok := source.node.(*ast.SequenceNode); ok {
		list = nil
		for i, item := range n.Values {
			list = append(list, v.r.value(path+"["+number(i)+"]", item))
		}
	}
	var out []value
	for _, s := range list {
		switch n := s.node.(type) {
		case nil:
		case *ast.MappingNode:
			if slices.ContainsFunc(n.Values, func(p *ast.MappingValueNode) bool { return p.Key.IsMergeKey() }) {
				s.wrong("brings in a mapping that has a << of its own", "merge both here: <<: [*one, *other]")
				continue
			}
			out = append(out, s)
		default:
			s.wrongf("write the alias of a mapping, such as <<: *common", "is %s, and << needs a mapping", kindOf(n))
		}
	}
	return out
}

// entriesOf reads a mapping's entries as if they stood at another path.
func (v value) entriesOf(path string) []entry {
	v.path = path
	return v.entries("a mapping")
}

func number(n int) string { return strconv.Itoa(n) }
