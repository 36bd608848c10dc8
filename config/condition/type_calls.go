package condition

import (
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/operators"

	"countersign/config/yamldoc"
)

// call checks an operator or a function.
func (t *typing) call(e ast.Expr, given certain) term {
	c := e.AsCall()
	args := c.Args()
	switch c.FunctionName() {
	case operators.LogicalAnd:
		left, _ := presence(args[0])
		right, _ := presence(args[1])
		return t.function(e, t.visit(args[0], given.and(right)), t.visit(args[1], given.and(left)))
	case operators.LogicalOr:
		_, left := presence(args[0])
		_, right := presence(args[1])
		return t.function(e, t.visit(args[0], given.and(right)), t.visit(args[1], given.and(left)))
	case operators.Conditional:
		return t.conditional(e, given)
	case operators.Index:
		return t.index(e, given)
	case operators.In:
		return t.in(e, given)
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return t.comparison(e, given)
	}
	var operands []term
	for _, operand := range operandsOf(c) {
		operands = append(operands, t.visit(operand, given))
	}
	return t.function(e, operands...)
}

// operandsOf returns a call's arguments. If the call is written with a dot, the value before the dot comes first.
func operandsOf(c ast.CallExpr) []ast.Expr {
	if c.IsMemberFunction() {
		return append([]ast.Expr{c.Target()}, c.Args()...)
	}
	return c.Args()
}

// conditional checks a ? b : c.
func (t *typing) conditional(e ast.Expr, given certain) term {
	args := e.AsCall().Args()
	ifTrue, ifFalse := presence(args[0])
	condition := t.visit(args[0], given)
	a, b := t.visit(args[1], given.and(ifTrue)), t.visit(args[2], given.and(ifFalse))
	t.function(e, condition, unknownTerm, unknownTerm)
	out := term{kinds: a.kinds | b.kinds}
	if isAccumulator(args[2]) { // for example, all items in the result of filter(i, has(i.price)) have a price
		for _, item := range a.items {
			for _, name := range ifTrue {
				if field, ok := strings.CutPrefix(name, item.name); ok && strings.IndexAny(field, ".[") == 0 {
					item.has = append(slices.Clip(item.has), field)
				}
			}
			out.items = append(out.items, item)
		}
	}
	return out
}

// index checks args["name"], or an item of a list by its number.
func (t *typing) index(e ast.Expr, given certain) term {
	args := e.AsCall().Args()
	of, key := t.visit(args[0], given), t.visit(args[1], given)
	if name, ok := literalText(args[1]); ok {
		return t.field(access{of: of, field: name, at: t.place(args[1])}, given)
	}
	switch {
	case of.kinds&(kindList|kindObject) == 0:
		t.say(yamldoc.Error, t.start(args[0]), of.called()+" is "+of.kinds.String()+", and has no parts", "read "+of.called()+" itself")
	case of.kinds == kindList && key.kinds&KindNumber == 0:
		t.say(yamldoc.Error, t.start(args[1]), of.called()+" is a list, and its items have numbers", "write "+of.called()+"[0] for the first")
	case of.kinds == kindList:
		return of.each("")
	}
	return unknownTerm
}

// function checks the operands of a function call, and returns the result.
func (t *typing) function(e ast.Expr, operands ...term) term {
	name := e.AsCall().FunctionName()
	forms := t.forms(e)
	if len(forms) == 0 {
		return unknownTerm
	}
	out := term{}
	for _, form := range forms {
		fits := len(form.ArgTypes()) == len(operands)
		for i := 0; fits && i < len(operands); i++ {
			fits = operands[i].kinds&kindsOf(form.ArgTypes()[i]) != 0
		}
		if fits {
			out.kinds |= kindsOf(form.ResultType())
		}
	}
	if out.kinds == 0 {
		t.operandErrors(e, forms, operands)
		return unknownTerm
	}
	if name == operators.Add && isAccumulator(e.AsCall().Args()[0]) {
		out.items = operands[1].items
	}
	return out
}

// isAccumulator reports whether a list is the result of a macro, and not a list that the condition names.
func isAccumulator(e ast.Expr) bool { return len(e.AsIdent()) > 0 && e.AsIdent()[0] == '@' }

// forms returns those overloads of a function that the compiler considers possible for a call.
func (t *typing) forms(e ast.Expr) []*decls.OverloadDecl {
	declared, ok := t.functions[e.AsCall().FunctionName()]
	if !ok {
		return nil
	}
	open := t.checked.GetOverloadIDs(e.ID())
	var out []*decls.OverloadDecl
	for _, form := range declared.OverloadDecls() {
		if slices.Contains(open, form.ID()) {
			out = append(out, form)
		}
	}
	return out
}
