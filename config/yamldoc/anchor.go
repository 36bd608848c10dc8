package yamldoc

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// maxHops is the maximum length of a chain of aliases and merges. The limit is needed, because a chain that refers to
// itself has no end.
const maxHops = 10

// collectAnchors finds the values that have names (&name). Aliases (*name) repeat these values.
func (d *Document) collectAnchors(root ast.Node) {
	d.anchors = map[string]ast.Node{}
	for _, n := range ast.Filter(ast.AnchorType, root) {
		a, ok := n.(*ast.AnchorNode)
		if !ok {
			continue
		}
		name := a.Name.GetToken().Value
		if _, twice := d.anchors[name]; twice {
			d.wrongAt(markOf(a.Start), "the anchor &"+name+" is given twice", "use another name for one of them")
		}
		d.anchors[name] = a.Value
	}
}

// resolve follows aliases to the value that they refer to. If there is no such value, resolve reports a problem and
// returns nil.
func (d *Document) resolve(n ast.Node, hops int) ast.Node {
	if hops > maxHops {
		d.wrongAt(markOf(n.GetToken()), "the alias leads back to itself", "write the value itself")
		return nil
	}
	switch n := n.(type) {
	case *ast.AnchorNode:
		return d.resolve(n.Value, hops+1)
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		target, ok := d.anchors[name]
		if !ok {
			d.wrongAt(markOf(n.Start), "the alias *"+name+" has no anchor &"+name,
				`write &`+name+` before the value that it repeats, or put it in quotes if text is meant: "*`+name+`"`)
			return nil
		}
		return d.resolve(target, hops+1)
	case *ast.TagNode:
		hint := "remove it"
		if !strings.HasPrefix(n.Start.Value, "!!") {
			hint = "put the value in quotes: " + Quote(n.Start.Value)
		}
		d.wrongAt(markOf(n.Start), "! at the beginning of a value has a meaning of its own in YAML", hint)
		return nil
	case nil:
		return nil
	}
	return n
}

// merge adds the entries that << refers to. If a key occurs several times, the mapping's own entry takes precedence
// over merged entries. If two merged entries have the same key, the entry of the earlier source takes precedence.
func (v Value) merge(own []*ast.MappingValueNode, out []Entry) []Entry {
	for _, pair := range own {
		if !pair.Key.IsMergeKey() {
			continue
		}
		for _, from := range v.mergeSources(pair) {
			from.Path = v.Path // the entries count as entries of this mapping
			out = append(out, from.entries("a mapping", out)...)
		}
	}
	return out
}

// mergeSources returns the mappings to which a << refers. A << refers to one mapping, or to a list of mappings.
func (v Value) mergeSources(pair *ast.MappingValueNode) []Value {
	path := join(v.Path, "<<")
	source := v.doc.value(path, pair.Value)
	list := []Value{source}
	if n, ok := source.node.(*ast.SequenceNode); ok {
		list = nil
		for i, item := range n.Values {
			list = append(list, v.doc.value(path+"["+number(i)+"]", item))
		}
	}
	var out []Value
	for _, s := range list {
		switch n := s.node.(type) {
		case nil:
		case *ast.MappingNode:
			if slices.ContainsFunc(n.Values, func(p *ast.MappingValueNode) bool { return p.Key.IsMergeKey() }) {
				s.Wrong("brings in a mapping that has a << of its own", "merge both here: <<: [*one, *other]")
				continue
			}
			out = append(out, s)
		default:
			s.Wrongf("write the alias of a mapping, such as <<: *common", "is %s, and << needs a mapping", kindOf(n))
		}
	}
	return out
}
