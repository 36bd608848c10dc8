package config

import (
	"fmt"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/types/ref"
)

// typedRules holds what the rules' conditions read against the arguments that the tools have.
func (c *checker) typedRules() {
	for _, tool := range c.registered {
		policy, named := c.policy.Tool(tool.Name, "")
		if !named || len(policy.Rules) == 0 || len(tool.Schema) == 0 {
			continue
		}
		arguments := argumentShape(tool.Schema)
		for i := range policy.Rules {
			path := fmt.Sprintf("tools.%s.rules[%d].when", tool.Name, i)
			if cond, ok := c.file.conditions[path]; ok && arguments != nil {
				c.typed(path, tool.Name, cond, arguments)
			}
		}
	}
}

func (c *checker) typed(path, tool string, cond condition, arguments shape) {
	env, err := conditions()
	if err != nil {
		return // then no condition was compiled
	}
	t := &typing{
		condition: cond, tool: tool, functions: env.Functions(), said: map[string]bool{},
		names: map[string]term{"args": {name: "args", kinds: kindObject, shape: arguments}},
		report: func(s Severity, m mark, message, hint string) {
			c.problems = append(c.problems, c.file.problemAt(m, s, path+": "+message, hint))
		},
	}
	t.visit(cond.checked.Expr(), nil)
}

// typing goes through one condition. It knows of each part what kinds of value that can have, and speaks up only where no valid arguments
// could make the part mean something.
type typing struct {
	condition
	tool      string
	functions map[string]*decls.FunctionDecl
	names     map[string]term // args, and what macros such as exists bind
	said      map[string]bool // messages, each of which is said once
	report    func(s Severity, m mark, message, hint string)
}

// term is what is known of a part of a condition.
type term struct {
	name    string   // as the condition writes it, such as args.amount; empty: it is computed
	about   string   // what a bound name stands for, such as an item of args.items
	kinds   kinds    // what it can be
	shape   shape    // what its schema says; nil: nothing
	items   []term   // what is in a list that the condition writes or computes; nil: not known
	literal ref.Val  // nil: it is none
	has     []string // fields that are there for sure, such as .price
}

var unknownTerm = term{kinds: kindAnything}

// part names a field of the term, or "".
func (t term) part(suffix string) string {
	if t.name == "" {
		return ""
	}
	return t.name + suffix
}

// visit goes through an expression. given are the names of the arguments that are there for sure.
func (t *typing) visit(e ast.Expr, given certain) term {
	switch e.Kind() {
	case ast.LiteralKind:
		return term{kinds: literalKind(e.AsLiteral()), literal: e.AsLiteral()}
	case ast.IdentKind:
		if bound, ok := t.names[e.AsIdent()]; ok {
			return bound
		}
		return term{name: e.AsIdent(), kinds: kindsOf(t.checked.GetType(e.ID()))}
	case ast.SelectKind:
		s := e.AsSelect()
		return t.field(access{of: t.visit(s.Operand(), given), field: s.FieldName(), asked: s.IsTestOnly(), at: t.fieldPlace(e)}, given)
	case ast.CallKind:
		return t.call(e, given)
	case ast.ListKind:
		return t.list(e.AsList().Elements(), given)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			t.visit(entry.AsMapEntry().Key(), given)
			t.visit(entry.AsMapEntry().Value(), given)
		}
		return term{kinds: kindObject}
	case ast.ComprehensionKind:
		return t.loop(e, given)
	}
	return unknownTerm
}

// list is a list written in the condition.
func (t *typing) list(items []ast.Expr, given certain) term {
	out := term{kinds: kindList}
	for _, item := range items {
		out.items = append(out.items, t.visit(item, given))
	}
	return out
}

// loop is a macro that goes through a list, or through the names of an object's fields.
func (t *typing) loop(e ast.Expr, given certain) term {
	l := e.AsComprehension()
	over := t.visit(l.IterRange(), given)
	if over.kinds&(kindList|kindObject) == 0 {
		t.say(Error, t.place(l.IterRange()), fmt.Sprintf("%s is %s, and has no items to go through", over.called(), over.kinds), "ask of it directly, such as "+over.called()+" == …")
	}
	each := over.each(l.IterVar())
	defer t.bind(l.IterVar(), each)()
	defer t.bind(l.AccuVar(), unknownTerm)()
	given = given.without(l.IterVar())
	for _, field := range each.has {
		given = given.and([]string{l.IterVar() + field})
	}
	step := t.visit(l.LoopStep(), given)
	return term{kinds: kindsOf(t.checked.GetType(e.ID())), items: step.items}
}

// bind gives a name its meaning until the returned function is called.
func (t *typing) bind(name string, as term) (end func()) {
	before, shadows := t.names[name]
	t.names[name] = as
	return func() {
		delete(t.names, name)
		if shadows {
			t.names[name] = before
		}
	}
}

// each is what a macro's name stands for.
func (t term) each(name string) term {
	switch {
	case t.kinds == kindObject:
		return term{name: name, kinds: kindText}
	case t.kinds&kindObject != 0:
		return term{name: name, kinds: kindAnything}
	case len(t.items) == 1:
		out := t.items[0]
		out.name = name
		return out
	case len(t.items) > 1:
		out := term{name: name}
		for _, item := range t.items {
			out.kinds |= item.kinds
		}
		return out
	}
	items := t.shape.items()
	return term{name: name, about: "an item of " + t.called(), kinds: items.kinds(), shape: items}
}
