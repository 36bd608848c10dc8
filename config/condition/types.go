package condition

import (
	"fmt"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/types/ref"

	"countersign/config/yamldoc"
)

// TypeProblems checks the condition against the arguments of a tool. TypeProblems reports each part that always fails,
// or always has the same value, for all valid arguments of the tool. TypeProblems never guesses. If the schema leaves a
// type open, TypeProblems reports nothing.
func (c *Compiled) TypeProblems(tool string, arguments Shape) (found yamldoc.Problems) {
	t := &typing{
		Compiled: c, tool: tool, functions: c.env.Functions(), said: map[string]bool{},
		names: map[string]term{"args": {name: "args", kinds: kindObject, shape: arguments}},
		report: func(s yamldoc.Severity, m yamldoc.Mark, message, hint string) {
			found = append(found, c.value.ProblemAt(m, s, message, hint))
		},
	}
	t.visit(c.checked.Expr(), nil)
	return found
}

// typing is the type check of one condition. The check computes the possible kinds of each part's value.
type typing struct {
	*Compiled
	tool      string
	functions map[string]*decls.FunctionDecl
	names     map[string]term // the variable args, and the names that macros such as exists bind
	said      map[string]bool // messages that were already reported
	report    func(s yamldoc.Severity, m yamldoc.Mark, message, hint string)
}

// term has the known facts about a part of a condition.
type term struct {
	name    string   // as the condition writes it, such as args.amount; empty: the term is computed
	about   string   // what a bound name refers to, such as an item of args.items
	kinds   Kinds    // the kinds that the value can have
	shape   Shape    // what the schema says about the value; nil: nothing
	items   []term   // the items of a list that the condition writes or computes; nil: the items are not known
	literal ref.Val  // the value of a literal; nil: the term is not a literal
	has     []string // fields that are always present, such as .price
}

var unknownTerm = term{kinds: kindAnything}

// part names a field of the term. The function returns "" for a computed term.
func (t term) part(suffix string) string {
	if t.name == "" {
		return ""
	}
	return t.name + suffix
}

// visit checks an expression. The parameter named given has the arguments that are always present when the expression
// is evaluated.
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

// list checks a list that is written in the condition.
func (t *typing) list(items []ast.Expr, given certain) term {
	out := term{kinds: kindList}
	for _, item := range items {
		out.items = append(out.items, t.visit(item, given))
	}
	return out
}

// loop checks a macro that iterates over a list, or over the names of an object's fields.
func (t *typing) loop(e ast.Expr, given certain) term {
	l := e.AsComprehension()
	over := t.visit(l.IterRange(), given)
	if over.kinds&(kindList|kindObject) == 0 {
		t.say(yamldoc.Error, t.place(l.IterRange()), fmt.Sprintf("%s is %s, and has no items", over.called(), over.kinds),
			"test it directly, such as "+over.called()+" == …")
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

// bind binds a name until the returned function is called.
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

// The method returns the term for the variable of a macro.
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
	return term{name: name, about: "an item of " + t.called(), kinds: items.Kinds(), shape: items}
}
