package condition

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// certain is the set of the arguments that are always present when an expression is evaluated. The keys are the
// arguments' names.
type certain map[string]bool

func (g certain) and(more []string) certain {
	if len(more) == 0 {
		return g
	}
	out := certain{}
	maps.Copy(out, g)
	for _, name := range more {
		out[name] = true
	}
	return out
}

// without returns the set without the given name. A macro binds this name to another value.
func (g certain) without(name string) certain {
	out := maps.Clone(g)
	maps.DeleteFunc(out, func(known string, _ bool) bool {
		return strings.HasPrefix(known, name+".") || strings.HasPrefix(known, name+"[")
	})
	return out
}

// presence returns the arguments that are present if the expression is true, and the arguments that are present if
// the expression is false.
func presence(e ast.Expr) (ifTrue, ifFalse []string) {
	if e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() {
		return chain(e), nil
	}
	if e.Kind() != ast.CallKind {
		return nil, nil
	}
	args := e.AsCall().Args()
	switch e.AsCall().FunctionName() {
	case operators.In:
		if name, ok := literalText(args[0]); ok {
			if of := chain(args[1]); of != nil {
				return append(of, of[len(of)-1]+suffix(name)), nil
			}
		}
	case operators.LogicalNot:
		ifFalse, ifTrue = presence(args[0])
	case operators.LogicalAnd:
		leftTrue, leftFalse := presence(args[0])
		rightTrue, rightFalse := presence(args[1])
		return append(leftTrue, rightTrue...), common(leftFalse, rightFalse)
	case operators.LogicalOr:
		leftTrue, leftFalse := presence(args[0])
		rightTrue, rightFalse := presence(args[1])
		return common(leftTrue, rightTrue), append(leftFalse, rightFalse...)
	case operators.Conditional:
		condTrue, condFalse := presence(args[0])
		thenTrue, thenFalse := presence(args[1])
		elseTrue, elseFalse := presence(args[2])
		return common(append(slices.Clip(condTrue), thenTrue...), append(slices.Clip(condFalse), elseTrue...)),
			common(append(slices.Clip(condTrue), thenFalse...), append(slices.Clip(condFalse), elseFalse...))
	}
	return ifTrue, ifFalse
}

func common(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(name string) bool { return !slices.Contains(b, name) })
}

// chain returns a path and its prefixes. For args.address.country, the result is args, args.address and
// args.address.country. The function returns nil for an expression that is not a path.
func chain(e ast.Expr) []string {
	var of ast.Expr
	var part string
	switch e.Kind() {
	case ast.IdentKind:
		return []string{e.AsIdent()}
	case ast.SelectKind:
		of, part = e.AsSelect().Operand(), suffix(e.AsSelect().FieldName())
	case ast.CallKind:
		c := e.AsCall()
		if c.FunctionName() != operators.Index {
			return nil
		}
		name, ok := literalText(c.Args()[1])
		if !ok {
			return nil
		}
		of, part = c.Args()[0], suffix(name)
	default:
		return nil
	}
	path := chain(of)
	if path == nil {
		return nil
	}
	return append(path, path[len(path)-1]+part)
}

func literalText(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// suffix writes a field in the form that conditions use: .amount, or ["odd name"].
func suffix(field string) string {
	if identifier.MatchString(field) {
		return "." + field
	}
	return "[" + strconv.Quote(field) + "]"
}
