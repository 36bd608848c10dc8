package condition

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"countersign/config/yamldoc"
)

// comparison checks ==, < and the other comparison operators. A whole number can be compared with a decimal number.
func (t *typing) comparison(e ast.Expr, given certain) term {
	args := e.AsCall().Args()
	left, right := t.visit(args[0], given), t.visit(args[1], given)
	together := left.kinds.loose() & right.kinds.loose()
	switch e.AsCall().FunctionName() {
	case operators.Equals, operators.NotEquals:
		t.equal(t.place(e), left, right)
		t.limited(args[1], left, right)
		t.limited(args[0], right, left)
	default:
		if together&kindOrdered == 0 {
			t.unlike(t.place(e), left, right)
		}
	}
	return term{kinds: kindBool}
}

// limited reports a literal that is not among the values that the schema lists.
func (t *typing) limited(at ast.Expr, of, literal term) {
	values := of.shape.values(literal.kinds)
	if literal.literal == nil || values == nil {
		return
	}
	var value any
	switch l := literal.literal.(type) {
	case types.String:
		value = string(l)
	case types.Double:
		value = float64(l)
	case types.Int:
		value = float64(l)
	default:
		return
	}
	if !slices.Contains(values, value) {
		t.neverThat(t.place(at), of, value, values)
	}
}

// The method checks an expression with the operator in: a value in a list, or a name in an object.
func (t *typing) in(e ast.Expr, given certain) term {
	args := e.AsCall().Args()
	left, in := t.visit(args[0], given), t.visit(args[1], given)
	if in.kinds&(kindList|kindObject) == 0 {
		t.say(yamldoc.Error, t.start(args[1]), in.called()+" is "+in.kinds.String()+", and in needs a list or an object", containsHint(left, in))
		return term{kinds: kindBool}
	}
	if name, ok := literalText(args[0]); ok && in.kinds == kindObject {
		t.field(access{of: in, field: name, asked: true, at: t.place(args[0])}, given)
		return term{kinds: kindBool}
	}
	if args[1].Kind() == ast.ListKind {
		for i, item := range args[1].AsList().Elements() {
			t.equal(t.place(item), left, in.items[i])
			t.limited(item, left, in.items[i])
		}
	} else if in.kinds == kindList {
		item := in.each("")
		item.about = "an item of " + in.called()
		t.equal(t.place(e), left, item)
		t.limited(args[0], item, left)
	}
	return term{kinds: kindBool}
}
