package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/operators"
)

// misfit reports operands that no form of a function takes: the first that it takes in no form, or else that they don't go together.
func (t *typing) misfit(e ast.Expr, forms []*decls.OverloadDecl, operands []term) {
	name := e.AsCall().FunctionName()
	mixed := arithmetic[name] && !slices.ContainsFunc(operands, func(o term) bool { return o.kinds&kindNumber == 0 })
	if mixed {
		t.say(Error, t.place(e), "combines a whole number with a decimal one", "arguments are decimal numbers: write double(…) around what is whole, such as double(size(args.items))")
		return
	}
	if shown, ok := operators.FindReverse(name); ok {
		name = cmp.Or(shown, "?")
	}
	for i, operand := range operands {
		var takes kinds
		for _, form := range forms {
			if i < len(form.ArgTypes()) {
				takes |= kindsOf(form.ArgTypes()[i])
			}
		}
		if operand.kinds&takes == 0 {
			message, hint := misfits(name, operand, takes)
			t.say(Error, t.start(operandsOf(e.AsCall())[i]), message, hint)
			return
		}
	}
	var are []string
	for _, o := range operands {
		are = append(are, o.kinds.String())
	}
	t.say(Error, t.place(e), name+" does not go with "+strings.Join(are, " and "), "write string(…) to make text of something, or double(…) to make a number of it")
}

// misfits says what one operand is, and what it would have to be.
func misfits(function string, operand term, takes kinds) (message, hint string) {
	called := operand.called()
	if operand.kinds == kindDecimal && takes&kindWhole != 0 {
		return fmt.Sprintf("%s is a decimal number, and %s takes whole ones", called, function), "write int(" + called + ")"
	}
	message = fmt.Sprintf("%s is %s, and %s takes %s", called, operand.kinds, function, takes)
	switch {
	case takes == kindText && operand.kinds&(kindNumber|kindBool) != 0:
		return message, "write string(" + called + ")"
	case takes&kindNumber != 0 && operand.kinds == kindText:
		return message, "write double(" + called + ") if the text is a number"
	}
	return message, "compare it, such as " + called + " == …"
}
