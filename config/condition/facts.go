package condition

import (
	"fmt"
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"countersign/config/yamldoc"
)

// Fact describes the texts that a fact other than an argument can have.
type Fact struct {
	Is    func(text string) bool // reports whether the fact can have a text
	Names []string               // the texts, if they are names in the policy
	Like  string                 // what the fact is, for a hint, such as "the name of an agent"
}

// timeRanges has the smallest and the largest result of functions of a time.
var timeRanges = map[string][2]types.Int{
	"getDayOfWeek": {0, 6}, "getMonth": {0, 11}, "getDayOfMonth": {0, 30}, "getDate": {1, 31}, "getHours": {0, 23}, "getMinutes": {0, 59}, "getSeconds": {0, 59},
}

// FactProblems warns about comparisons with a text or a number that a fact never has, and about a condition that is
// always false. The facts are by name, such as caller.name.
func (c *Compiled) FactProblems(facts map[string]Fact) (found yamldoc.Problems) {
	root := c.checked.Expr()
	if root.Kind() == ast.LiteralKind && root.AsLiteral() == types.False {
		return yamldoc.Problems{c.value.ProblemAt(c.marks.Offset(0), yamldoc.Warning, "never matches", "remove the rule")}
	}
	never := func(literal ast.Expr, subject, hint string) {
		at := 0
		if r, ok := c.checked.SourceInfo().GetOffsetRange(literal.ID()); ok {
			at = int(r.Start)
		}
		found = append(found, c.value.ProblemAt(c.marks.Offset(at), yamldoc.Warning, subject+" is never "+plainLiteral(literal.AsLiteral().Value()), hint))
	}
	var bound []string // names that macros such as exists bind
	compared := func(of, literal ast.Expr) {
		if literal.Kind() != ast.LiteralKind {
			return
		}
		switch value := literal.AsLiteral().(type) {
		case types.String:
			if of.Kind() != ast.IdentKind {
				return
			}
			if fact, ok := facts[of.AsIdent()]; ok && !slices.Contains(bound, of.AsIdent()) && !fact.Is(string(value)) {
				never(literal, of.AsIdent(), SuggestionOr(yamldoc.DidYouMean(string(value), fact.Names), "it is "+fact.Like))
			}
		case types.Int:
			if of.Kind() != ast.CallKind || !of.AsCall().IsMemberFunction() || c.checked.GetType(of.AsCall().Target().ID()).Kind() != types.TimestampKind {
				return // such as the hours of a duration, which have no maximum
			}
			name := of.AsCall().FunctionName()
			if within, ok := timeRanges[name]; ok && (value < within[0] || value > within[1]) {
				never(literal, name+"()", fmt.Sprintf("it is a number from %d to %d", within[0], within[1]))
			}
		}
	}
	ast.PreOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			bound = append(bound, e.AsComprehension().IterVar())
		}
	}))
	ast.PreOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind {
			return
		}
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.Equals, operators.NotEquals:
			compared(args[0], args[1])
			compared(args[1], args[0])
		case operators.In:
			if args[1].Kind() == ast.ListKind {
				for _, item := range args[1].AsList().Elements() {
					compared(args[0], item)
				}
			}
		}
	}))
	return found
}

// OneOf describes a fact that is one of the names in the policy, or empty.
func OneOf(names []string, like string) Fact {
	if len(names) > 0 {
		like += ": " + ListNames(names)
	}
	return Fact{Is: func(text string) bool { return text == "" || slices.Contains(names, text) }, Names: names, Like: like}
}
