package condition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/operators"

	"countersign/config/yamldoc"
)

// operandErrors reports operands that don't fit a function. If an operand fits no overload of the function,
// operandErrors reports the first such operand. If each operand fits some overload, operandErrors reports the
// combination.
func (t *typing) operandErrors(e ast.Expr, forms []*decls.OverloadDecl, operands []term) {
	name := e.AsCall().FunctionName()
	mixed := arithmetic[name] && !slices.ContainsFunc(operands, func(o term) bool { return o.kinds&KindNumber == 0 })
	if mixed {
		t.say(yamldoc.Error, t.place(e), "combines a whole number with a decimal one", "arguments are decimal numbers: write double(…) around what is whole, such as double(size(args.items))")
		return
	}
	if shown, ok := operators.FindReverse(name); ok {
		name = cmp.Or(shown, "?")
	}
	for i, operand := range operands {
		var takes Kinds
		for _, form := range forms {
			if i < len(form.ArgTypes()) {
				takes |= kindsOf(form.ArgTypes()[i])
			}
		}
		if operand.kinds&takes == 0 {
			message, hint := typeErrors(name, operand, takes)
			t.say(yamldoc.Error, t.start(operandsOf(e.AsCall())[i]), message, hint)
			return
		}
	}
	var are []string
	for _, o := range operands {
		are = append(are, o.kinds.String())
	}
	t.say(yamldoc.Error, t.place(e), name+" does not go with "+strings.Join(are, " and "), "write string(…) to make text of something, or double(…) to make a number of it")
}

// typeErrors returns the message about an operand of the wrong kind. The message has the operand's kind, and the kinds
// that the function takes.
func typeErrors(function string, operand term, takes Kinds) (message, hint string) {
	called := operand.called()
	if operand.kinds == kindDecimal && takes&kindWhole != 0 {
		return fmt.Sprintf("%s is a decimal number, and %s takes whole ones", called, function), "write int(" + called + ")"
	}
	message = fmt.Sprintf("%s is %s, and %s takes %s", called, operand.kinds, function, takes)
	switch {
	case takes == kindText && operand.kinds&(KindNumber|kindBool) != 0:
		return message, "write string(" + called + ")"
	case takes&KindNumber != 0 && operand.kinds == kindText:
		return message, "write double(" + called + ") if the text is a number"
	}
	return message, "compare it, such as " + called + " == …"
}
